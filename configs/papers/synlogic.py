"""SynLogic: Synthesizing Verifiable Reasoning Data at Scale for Learning Logical
Reasoning and Beyond (arXiv:2505.19641).

GRPO is trained on several kinds of generated logic tasks, each with a rule that checks answers
and a level of difficulty. Only prompts that are sometimes, but not always, solved are used.

  rlx train papers/synlogic workdir=DIR model.path=WHEEL
  rlx train papers/synlogic:smoke workdir=DIR model.path=WHEEL

Letters beside the values: P stated in the paper (the recipe), O our choice (the kinds of tasks
and their levels). Differences from the paper: it has 35 kinds of tasks; this config has five,
from reasoning-gym, and the model SmolLM2-135M (configs/smollm2.py says where WHEEL comes from).
A level is an option of its kind of task, such as
prompts.options.config.mini_sudoku.max_empty=6.

Confidence in the formula: high.
"""
from rlx.configs import base, smollm2

CLAIMS = (
    "training on generated logic carries over to logic tasks that were not trained on (BBEH: 6 "
    "points above DeepSeek-R1-Distill-Qwen-32B)",
    "mixed with mathematics and code it makes training on those more efficient",
)


def get_config(arg=""):
  c = smollm2.get_config(arg)
  if base.chosen():
    base.part("chat model")
    c = base.sized(base.start(), arg)
  c.prompts.dataset, c.prompts.columns = "reasoning_gym", {}
  c.prompts.split, c.eval.split = "train", "test"
  c.eval.answer = r"(?i)answer:\s*(\S+)"
  levels = dict(                                                           # O the lowest levels
      countdown=dict(min_numbers=3, max_numbers=3, min_value=1, max_value=10,
                     min_target=2, max_target=24),
      number_sequence=dict(max_complexity=1, min_terms=4, max_terms=6),
      bitwise_arithmetic=dict(difficulty=1),
      mini_sudoku=dict(min_empty=2, max_empty=4),
      syllogism=dict())
  c.prompts.source = "gym:" + ",".join(levels)
  c.prompts.options = dict(size=2000, config=levels)
  c.prompts.template = dict(
      name="chat", system="Think step by step. End with a line 'Answer: ' and the answer.")
  c.prompts.max_tokens = 256
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=0.01, high=0.99)   # P
  return c
