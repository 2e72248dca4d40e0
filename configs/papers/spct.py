"""Inference-Time Scaling for Generalist Reward Modeling (arXiv:2504.02495): a judge writes
principles and criticisms and scores several answers from 1 to 10. The reward is 1 if the best
answer alone has the highest score, else -1 (self-principled critique tuning).

  rlx train papers/spct prompts.source=judging:FILE workdir=DIR model.path=MODEL
  rlx train_scorer papers/spct:meta prompts.source=judging:FILE workdir=DIR/meta \
      model.path=DIR/model

The second command trains the meta reward model: a head that says of a judgement whether it finds
the best answer. It reads what the judge reads, and learns from judgements that the judge writes. At
test time scores of several judgements are added, of those that it rates highest (`sum_scores` of
rlx/evals/judgements.py).

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
rejective fine-tuning before RL is `rlx sft` with the column `judgement`, which drops judgements
whose verdict is wrong; judgements are not sampled for it, and prompts that are always judged right
stay.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "sums over more judgements scale, most with a model that chooses among them",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("judge", "meta"))
  c = domains.judge(size, "scores", answers=4)                                                # O
  if kind == "meta": return domains.learn_scorer(c, "bce")                                    # P
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=2.0))  # P: 1 or -1, less a constant
  return c
