"""Distill Not Only Data but Also Rewards: Can Smaller Language Models Surpass Larger Ones?
(arXiv:2502.19557): a student learns a teacher's completions; a reward model learns which
completions agree with the teacher's majority; RL rewards its score.

  rlx sft papers/distill_rewards base=gsm8k model.path=STUDENT prompts.source=TEACHER.jsonl \\
      prompts.dataset=teacher sft.target.name=teacher.demonstration workdir=SFT
  rlx train_scorer papers/distill_rewards base=gsm8k model.path=SFT/model \\
      prompts.source=TEACHER.jsonl prompts.dataset=teacher workdir=SCORER
  rlx train papers/distill_rewards:rl base=gsm8k model.path=SFT/model workdir=DIR \\
      prompts.source=TEACHER.jsonl prompts.dataset=teacher scorers.trained.path=SCORER/scorer
  rlx train_scorer papers/distill_rewards:smoke workdir=DIR

A row of the file has a question and completions of the teacher (rlx/prompts/datasets/teacher.py):

  {"question": "What is 3 + 4?", "completions": ["3 + 4 = \\\\boxed{7}", "\\\\boxed{7}"]}

Letters beside the values: P stated in the paper, as its summary describes it, O our choice.
Differences from the paper: the reward model learns completions of the student alone, there those of
the teacher, too; on the toy, which has no teacher, the exact answer stands for its majority.

Confidence in the formula: low.
"""
from rlx.configs import base, quickstart
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "a student becomes better than with supervised training alone, and better than its teacher",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("scorer", "rl"))
  if kind == "rl":
    c = quickstart.ppo(size)                                                # O
    c.verifier.scores = base.scored_by(c, "scorer", models=1, gives="probability")
    c.rewards = dict(outcome=dict(name="outcome.score", coef=1.0))          # P
    return c
  c = implicit_prm.get_config(size)
  c.train_scorer.labels = "outcome"                                         # P
  c.train_scorer.loss = dict(name="reward_model.bce")                       # O
  return c
