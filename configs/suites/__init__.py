"""Suites: named benchmarks, with prompts, decoding and grading as published harnesses have them.

  rlx evaluate suites/math model.path=hf:Qwen/Qwen2.5-1.5B-Instruct workdir=runs/qwen_math
  rlx evaluate runs/mine suite=math eval.sets.aime24.samples=8

A suite is a file with SETS ({name: the keys of eval.sets.NAME}), KEYS (other keys) and
get_config, which has a config without a training split. A set is decoded greedily unless it has
`samples`; then its accuracy is avg@samples, the mean over samples and prompts. The chat template of
the model renders the prompts. Each setting has its source as a comment, OWNER/NAME PATH on GitHub.
"""
import copy

from rlx.configs import base


def make(sets, keys, arg):
  """The config of a suite, without a PRM."""
  c = base.get_config()
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=False)
  c.prm.order = "none"
  fill(c, sets, keys)
  if arg == "smoke":
    for part in c.eval.sets.values():
      part.prompts, part.max_tokens = 4, 16
      if "samples" in part: part.samples = 2
  return base.sized(c, arg)


def fill(c, sets, keys):
  """Makes the sets of a suite all that a config evaluates, whatever its own prompts are."""
  plain = base.get_config()
  with c.unlocked(), c.ignore_type():
    for name in ("source", "dataset", "options", "columns", "template", "mixture", "paired"):
      c.prompts[name] = plain.prompts[name]
    for name in ("decoding", "stops", "stop_ids", "demonstration"):
      c.rollouts[name] = plain.rollouts[name]
    for name in ("decoding", "max_tokens", "difficulty", "prm_sets"):
      c.eval[name] = plain.eval[name]
    c.environment = plain.environment
    c.prompts.split = c.eval.split = ""
    c.eval.sets = {}
    for name, own in sets.items(): c.eval.sets[name] = copy.deepcopy(own)  # Sets share no section.
    for key, value in keys.items():
      section, _, name = key.partition(".")
      c[section][name] = value
    c.verifier.workers = max(c.verifier.workers, 4)
