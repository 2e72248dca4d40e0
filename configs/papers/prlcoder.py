"""Process-Supervised Reinforcement Learning for Code Generation (arXiv:2502.01715), PRLCoder:
lines of right programs are changed, and running the programs with them says which lines are right;
a PRM learns these labels of lines, and PPO rewards each line by its score.

  rlx train_scorer papers/prlcoder base=code workdir=SCORER
  rlx train papers/prlcoder:rl base=code scorers.trained.path=SCORER/scorer workdir=DIR
  rlx train_scorer papers/prlcoder:smoke workdir=SCORER

The first command samples programs, keeps those that pass all tests, and runs copies of them in the
sandbox, each with one line changed (`mutations.swap_words`). train_scorer.rollouts=ROWS.jsonl takes
other right programs, such as reference solutions, whose `group` is the id of the prompt:

  {"question": "...", "completion": "```python\\ndef f(x):\\n  return x\\n```", "verdict": 1,
   "group": "mbpp/601"}

On the toy a line is a step of a chain, and a chain passes if all of its steps are right.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: words of
a line are exchanged, where a language model changes and refactors lines; the reward 2 p - 1 of a
line with the score p, and its weight beside the verdict, are ours.

Confidence in the formula: low.
"""
from rlx.configs import base, quickstart
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "rewards of lines are better than those of outcomes alone, above all on complex programs",)


def get_config(arg=""):
  kind, size = base.variant(arg, ("scorer", "rl"))
  if kind == "rl":
    c = quickstart.ppo(size)                                                # P: PPO
    c.verifier.steps, = base.scored_by(c, "scorer", models=1, gives="probability")
    c.rewards = dict(
        outcome=dict(name="outcome.verdict", coef=1.0),                     # P
        process=dict(name="steps.refine", coef=0.25, kind="raw", signed=True))  # O
    return c
  c = implicit_prm.get_config(size)
  c.verifier.scores = (base.part("graded verifier"),)                       # O: 1 if all is right
  c.train_scorer.labels, c.train_scorer.labelled_by = "hard", "mutations"   # P
  c.train_scorer.balanced = True                                            # O
  return c
