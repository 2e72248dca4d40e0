"""Reward Modeling from Natural Language Human Feedback (arXiv:2601.07349). A judge of two answers
is rewarded for the right verdict, and for a critique that resembles that of a human.

  rlx train papers/rm_nlhf prompts.source=judging:FILE workdir=DIR model.path=MODEL

FILE has completions with verdicts, or `chosen` and `rejected`, and critiques by humans in the
column `critique`.

Letters beside the values: P stated in the paper, O our choice (equal weights). Differences from the
paper: a language model lists the arguments of both critiques there, of which the F1 is taken; here
it is that of their words. Its MetaRM, which predicts the similarity for prompts without a human
critique and learns beside the judge, is not here.

Confidence in the formula: low.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "judges that learn from critiques, too, do better than those that learn from verdicts alone",
    "20% to 30% of right verdicts have a flawed critique",
)


def get_config(arg=""):
  c = domains.judge(arg, "pair", critique="critique", reads="A=1 B=0")
  c.verifier.scores = ("judging.similarity",)                                                 # P
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0),                            # P
                   critique=dict(name="outcome.score", coef=1.0))                             # P, O
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # P
  return c
