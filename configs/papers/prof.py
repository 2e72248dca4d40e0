"""Beyond Correctness: Harmonizing Process and Outcome Rewards through RL Training
(arXiv:2509.03403). PROF filters the completions of a group: it trains on the right
completions whose steps score highest and on the wrong ones whose steps score lowest.

  rlx train papers/prof workdir=DIR
  rlx train papers/prof:smoke workdir=DIR
  rlx train papers/prof:scorer scorers.trained.path=SCORER workdir=DIR

The variant :scorer takes the scores of steps from a trained model with a head instead, as
probabilities, such as <workdir>/scorer of `rlx train_scorer` with labels of steps.

Letters beside the values: P stated in the paper (the filter, as its summary describes it),
C taken from the released code (amazon-science/PROF-GRPO, prof_grpo/scripts/run_prof_grpo.sh),
O our choice (how many completions are kept of each side). 4 of 8 completions are used for
training, in the code 8 of 12.

Differences from the paper: The paper's scores are a PRM's, averaged over steps. This config
uses the exact share of right steps.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "filtering beats blending the scores into the reward, which is hacked",
    "the steps of right completions improve",
)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.grpo(size)  # C: groups are not filtered by their accuracy.
  c.rollouts.select_completions = dict(
      name="select_completions.prof", count=c.rollouts.per_prompt // 2, side="both")
  if kind == "checked": c.verifier.scores = (base.part("graded verifier"),)  # the PRM's mean
  else:
    c.verifier.steps, = base.scored_by(c, kind, "checker of steps", gives="probability")
    c.rollouts.select_completions.name = "select_completions.prof_steps"
  # The reward is the verdict, without the PRM's score (P), its estimator GRPO (C).
  c.kl.coef, c.kl.place, c.kl.kind = 0.001, "loss", "k3"      # C
  # C amazon-science/PROF-GRPO prof_grpo/verl/trainer/config/ppo_trainer.yaml.
  c.learner.aggregation = "token-mean"
  return c
