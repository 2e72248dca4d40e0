"""Cooper: Co-Optimizing Policy and Reward Models in Reinforcement Learning for Large Language
Models (arXiv:2508.05613). The reward is the probability that a reward model gives, which reads the
question, the reference answer and the completion. The reward model learns beside the policy, so
that it cannot be exploited for long: in each step from pairs of a completion that a precise
verifier accepts and the same completion with another answer.

  rlx train papers/cooper workdir=DIR
  rlx train papers/cooper:smoke workdir=DIR
  rlx train papers/cooper scorers.trained.path=SCORER workdir=DIR
  rlx train papers/cooper:frozen scorers.trained.path=SCORER workdir=DIR

The variant :frozen has the same reward model without updates, the paper's rival. SCORER is a model
that `rlx train_scorer` trained with the same text in train_scorer.reference as in
scorers.trained.reference.

Letters beside the values: P stated in the paper, as its summary describes it, O our choice.
Differences from the paper: the answer is replaced by the next one that another completion states,
where a language model alters it in the paper. The loss compares log-odds,
sigma(h_right - h_altered), where the summary has differences of probabilities. The reward model
starts as the policy with a head of zeros, unless scorers.trained.path names a trained one; the
paper's starts from a trained one. The text around the reference answer is ours.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "a frozen reward model is exploited, so that accuracy falls; one that learns beside the policy "
    "is not",
)

# Between question and completion.
REFERENCE = "\n\nReference answer: {}\n\nCandidate:\n"


def get_config(arg=""):
  kind, size = base.variant(arg, ("online", "frozen"))
  c = quickstart.grpo(size)  # P: GRPO. O: no filter by accuracy, as the verdict is no reward.
  c.verifier.scores = base.scored_by(c, "scorer", "reward model", gives="probability")
  reference, most = base.part("reference before a completion", (REFERENCE, 64))
  c.scorers.trained.update(dict(reference=reference, reference_tokens=most))    # P
  c.rewards.outcome = dict(name="outcome.score", coef=1.0)                      # P
  if kind == "frozen": return c
  c.scorers.trained.path = c.model.path                                         # O
  c.scorers.trained.online = dict(
      labels="altered", loss=dict(name="reward_model.bradley_terry"),  # P: one pair a prompt
      optimizer=dict(lr=c.learner.optimizer.lr))                                # O
  return c
