"""Trust, But Verify: A Self-Verification Approach to Reinforcement Learning with Verifiable Rewards
(arXiv:2505.13445). RISE: in each step the policy also scores some of the completions that it has
just drawn, and both kinds of completions are in one PPO update. The reward of either is 1 for a
right answer, -0.5 for a wrong one and -1 without one; the right score is what the verifier said.

  rlx train papers/rise workdir=DIR
  rlx train papers/rise:smoke workdir=DIR
  rlx train papers/rise base=gsm8k workdir=DIR
  rlx train papers/rise:policy base=gsm8k workdir=DIR

The variant :policy solves alone, the paper's rival. docs/data.md, "Prompts from own completions",
has the mechanism.

Letters beside the values: P stated in the paper or its published code, O our choice. Differences
from the paper: its score of a completion has three values, those of the reward, here it is 1 or 0;
the requests are in other words; scored prompts are some of prompts.per_step, there they are added.
Votes weighted by the policy's own scores are not here. The model of the toy has never seen any
request.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "the policy verifies its own completions far better, and solves no worse, than with the same "
    "RL on the task alone",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("both", "policy"))
  c = quickstart.ppo(size, lam=1.0)                                             # P
  c.rewards = dict(outcome=dict(name="outcome.stated", coef=1.0, wrong=-0.5, missing=-1.0))  # P
  c.kl.coef, c.kl.kind, c.kl.place = 1e-2, "k1", "reward"                       # P
  words = base.part("score of a completion")
  if kind == "policy": return c
  # O: for a completion and the words of a request, whose tokens have three characters or more.
  c.prompts.max_tokens += c.rollouts.max_tokens + len(words["request"]) // 3
  c.prompts.derived = dict(verify=dict(
      name="derived.judging", per_question=0, per_step=max(c.prompts.per_step // 8, 1),  # P: 1 to 8
      **words))
  return c
