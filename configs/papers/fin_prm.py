"""Fin-PRM: A Domain-Specialized Process Reward Model for Financial Reasoning in Large Language
Models (arXiv:2508.15202): a PRM learns labels of steps that join three views of them, and of whole
trajectories; RL mixes its score with the verdict.

  rlx train_scorer papers/fin_prm workdir=SCORER
  rlx train papers/fin_prm:rl scorers.trained.path=SCORER/scorer workdir=DIR
  rlx train_scorer papers/fin_prm:smoke workdir=SCORER
  rlx train_scorer papers/fin_prm base=gsm8k model.path=MODEL verifier.judge.url=URL \\
      verifier.judge.model=NAME prompts.source=ROWS.jsonl prompts.dataset=jsonl workdir=SCORER

The label of a step is the mean of its importance, the share of rollouts from it that are right; its
quality, by a judge; and its accuracy, by a judge who checks its facts against those that stand in
the question of a row. The label of a trajectory is the mean of its verdict and of the share of the
known facts of its row, `facts`, that it states.

Letters beside the values: P stated in the paper, as summaries of it describe it, O our choice.
Differences from the paper: labels are the means, there 1 or 0; finding the facts of a question is
done outside of rlx, and a fact counts where it stands word for word, where the paper asks a model
(verifier.scores=judge.rubric does, of `items` of a row); that all views of a step, both parts of a
trajectory's label, and both parts of the score in RL weigh the same is ours. The judge of the toy
is an exact checker, who says the same of quality and facts; the facts of a chain are its right
steps.

Confidence in the formula: low.
"""
from rlx.configs import base, quickstart
from rlx.configs.papers import aurora, implicit_prm

CLAIMS = (
    "a PRM of the domain chooses better completions, and trains a better policy, than general ones",
)

TASKS = dict(
    quality="Which steps of a solution are sound, clear and of use for the answer?",
    facts="Which steps of a solution agree with all facts that the question and the "
          "reference name?")


def get_config(arg=""):
  kind, size = base.variant(arg, ("scorer", "rl"))
  if kind == "rl":
    c = quickstart.grpo(size)                                               # P: GRPO
    c.verifier.scores = base.scored_by(c, "scorer", models=1, gives="probability")
    c.verifier.steps, = c.verifier.scores
    c.rewards = dict(outcome=dict(name="outcome.verdict", coef=0.5),        # P 1 - delta, O delta
                     steps=dict(name="steps.completion", coef=0.25, kind="mean"),  # O
                     trajectory=dict(name="outcome.score", coef=0.25))      # O
    c.advantages = dict(total=dict(name="group.grpo"), whiten=False)
    return c
  c = implicit_prm.get_config(size)
  base.use_judge(c)
  c.verifier.judges = {name: dict(template=aurora.TEMPLATE.format(task=task))
                       for name, task in TASKS.items()}                     # P, O texts
  c.verifier.judges.panel = dict(of=tuple(TASKS), vote="mean")
  c.verifier.steps = "judge.steps/panel"
  c.train_scorer.labels, c.train_scorer.labelled_by = "soft", "mean"        # O, P
  c.train_scorer.judged_share = 2 / 3                                       # O: two of three views
  c.train_scorer.add_outcome = True                                         # P
  c.verifier.scores = (base.part("graded verifier", "coverage.facts"),)
  c.train_scorer.scored_share = 0.5                                         # P the two parts, O
  return c
