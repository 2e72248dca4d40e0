"""Aligning Language Models Using Follow-up Likelihood as Reward Signal
(arXiv:2409.13948): what a user would say next is the reward: how likely thanks are,
against a complaint.

  python -m rlx.train --config=configs/papers/flr.py --workdir=DIR --config.model.path=WHEEL
  python -m rlx.train --config=configs/papers/flr.py:smoke --workdir=DIR   # on the quickstart's model, digits for words

O (ours) nearly all: the texts, the difference of means, GRPO (there pairs of the best
and the worst completion, and DPO), and SmolLM2-135M on sums (configs/smollm2.py says
where WHEEL is from): chains of digits have no words to say it in. The texts follow the
completion's end without a user's turn around them.
"""
from configs import base
from configs import quickstart
from configs import smollm2

PAPER = dict(
    title="Aligning Language Models Using Follow-up Likelihood as Reward Signal",
    arxiv="2409.13948",
    claims=(
        "the likelihood of follow-ups ranks completions as strong trained reward models do, "
        "on 8 benchmarks of pairs and 4 of ratings",
    ),
    confidence="low")


def get_config(arg=""):
  if arg not in ("", "smoke"):
    raise ValueError(f"arg {arg!r} after the config's colon: there is smoke only.")
  c = smollm2.get_config()
  c.likelihood.model = "reference"                # P a frozen model is asked
  c.likelihood.follow_ups = (                     # O
      "Thank you, that is correct.", "Great, that helps.",
      "No, that is wrong.", "That makes no sense.")
  c.rewards = dict(outcome=dict(name="likelihood.follow_up", coef=1.0, positive=2))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.rollouts.keep = dict(name="keep.everything")  # asks no verdict
  return _smoke(c) if arg == "smoke" else c


def _smoke(c):
  """The same settings on the quickstart's model and task, in seconds."""
  small = quickstart.get_config("smoke")
  c.model, c.prompts, c.eval.answer = small.model, small.prompts, small.eval.answer
  c.rollouts.step_separator, c.verifier.workers = small.rollouts.step_separator, 0
  c.likelihood.follow_ups = ("1", "2", "3", "4")
  return base.smoke(c)
