"""Pre-Trained Policy Discriminators are General Reward Models (arXiv:2507.05197), called POLAR: a
reward model learns which of two completions is by the policy that wrote a third one, and RL rewards
how near a completion is to a reference.

  rlx train_scorer papers/polar train_scorer.rollouts=policies:ROWS.jsonl \\
      train_scorer.held_out=policies:HELD_OUT.jsonl workdir=BASE
  rlx train_scorer papers/polar prm.path=BASE/scorer train_scorer.rollouts=PAIRS.jsonl \\
      workdir=SCORER
  rlx train papers/polar:rl scorers.trained.path=SCORER/scorer workdir=DIR
  rlx train_scorer papers/polar:smoke workdir=DIR

The first command is the pre-training: a row has completions of a question by several policies, of
which one is the reference (rlx/prompts/scored_sets.py):

  {"question": "What is 3 + 4?", "completions": {"small": ["6", "8"], "large": ["7", "It is 7."]}}

The second one learns pairs with references, {"question", "reference", "chosen", "rejected"}. Where
no file is named, completions of the policy are sampled, and right ones are nearer to the reference
answer than wrong ones. In RL the reference is the prompt's answer.

Letters beside the values: C taken from the released code (InternLM/POLAR, the order of prompt,
reference and candidate, and the loss), P stated in the paper, O our choice. Differences from the
code: it repeats the prompt before the candidate, and reads the score at a token of its own.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "pre-training on policies lifts the accuracy on preferences, with a power law in compute",
    "RL with it gains more than with reward models that are not pre-trained",
)
# Between prompt and candidate: the reference, and an end that neither of them has.
REFERENCE = "{}\n\nCandidate:\n"


def get_config(arg=""):
  kind, size = base.variant(arg, ("scorer", "rl"))
  reference, most = base.part("reference before a completion", (REFERENCE, 256))
  if kind == "rl":
    c = quickstart.ppo(size)                                                # P: PPO
    c.verifier.scores = base.scored_by(c, "scorer", models=1)
    c.scorers.trained.update(dict(reference=reference, reference_tokens=most))
    c.rewards = dict(outcome=dict(name="outcome.score", coef=1.0))          # P
    return c
  c = implicit_prm.get_config(size)
  c.prompts.max_tokens += most                                              # Of what it reads.
  c.train_scorer.labels = "outcome"                                         # C
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")             # C
  c.train_scorer.reference = reference
  return c
