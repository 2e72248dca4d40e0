"""Agentic Reward Modeling: Integrating Human Preferences with Verifiable Correctness Signals for
Reliable Reward Systems (arXiv:2502.19328). The reward is the score of a reward model plus the
results of the checks that are chosen for the prompt.

  rlx train papers/reward_agent workdir=DIR
  rlx train papers/reward_agent:smoke workdir=DIR
  rlx train papers/reward_agent:scorer scorers.trained.path=SCORER workdir=DIR

r = lambda r_RM + sum_j w_j a_j over the checks of the prompt. A row with a column `items`
names its own checks with their weights, others have those of the base.
A language model chooses them by `rlx write base task=choose rows=FILE to=CHOSEN` with
verifier.judge.url=URL verifier.judge.model=NAME. The variant :scorer takes r_RM from a trained
model with a head, such as <workdir>/scorer of `rlx train_scorer`.

Letters beside the values: C taken from the released code (THU-KEG/Agentic-Reward-Modeling,
reward_agent/judger.py); O our choice. Differences from the paper: another language model
writes the checks of constraints as code there; here they are chosen among those of the rows. Facts
are not looked up. The paper scores pairs and lists for DPO and for the best of n; here the sum is
the reward of GRPO.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = ("checks added to the score of a reward model choose better completions than it alone",)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.grpo(size)  # O: no filter by accuracy, because the verdict is no reward.
  c.verifier.workers = max(c.verifier.workers, 1)
  # The graded verifier stands in for a reward model.
  c.verifier.scores = base.scored_by(c, kind, "graded verifier")
  c.verifier.by_item, c.verifier.default_items = "items.verdicts", base.part("rubric")
  c.rewards = dict(preference=dict(name="outcome.score", coef=1.0),              # C
                   checks=dict(name="items.weighted", coef=1.0, kind="sum"))     # C
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)               # O
  return c
