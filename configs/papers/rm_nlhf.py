"""Reward Modeling from Natural Language Human Feedback (arXiv:2601.07349). A judge of two answers
is rewarded for the right verdict, and for a critique that resembles that of a human.

  rlx train papers/rm_nlhf prompts.source=judging:FILE workdir=DIR model.path=MODEL
  rlx train papers/rm_nlhf:meta prompts.source=judging:FILE workdir=DIR model.path=MODEL \
      scorers.meta.path=MODEL

FILE has completions with verdicts, or `chosen` and `rejected`, and critiques by humans in the
column `critique`. In the variant :meta it may be empty. A second model, MetaRM, learns beside the
judge to predict the similarity from request and reply, where there is a critique, and gives the
reward where there is none.

Letters beside the values: P stated in the paper, O our choice (equal weights). Differences from the
paper: a language model lists the arguments of both critiques there, of which the F1 is taken; here
it is that of their words. How MetaRM learns is not known to us; here a head learns the similarity
by the loss of probabilities.

Confidence in the formula: low.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "judges that learn from critiques, too, do better than those that learn from verdicts alone",
    "20% to 30% of right verdicts have a flawed critique",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("critiques", "meta"))
  c = domains.judge(size, "pair", critique="critique", reads="A=1 B=0")
  c.verifier.scores = ("judging.similarity",)                                                 # P
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0),                            # P
                   critique=dict(name="outcome.score", coef=1.0))                             # P, O
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # P
  if kind == "meta":
    c.verifier.scores = ("judging.known_similarity", "judging.is_critiqued", "scorers.meta")
    c.rewards.critique = dict(name="outcome.filled", coef=1.0)                                # P
    c.scorers = dict(meta=dict(path=c.model.path, kind="probability", online=dict(            # O
        labels="scores", optimizer=dict(lr=c.learner.optimizer.lr))))                         # P, O
  return c
