"""Completions have up to four tokens, and token 0 ends one. A fifth of the completions that end is
right.

GRPO is compared with UCAS, which shapes GRPO's advantages by the certainty of the policy.
Measured is the entropy of the policy over whole completions, at the learning rate with the best
accuracy.
"""
from configs.papers import ucas
from experiments.claims.environments import sparse, tabular

MEASURE = "entropy over completions after 200 steps, in nats: UCAS minus GRPO"
MARGIN, RATE = 0.1, 5.0
FIRST = ("not seen", None)


def arms():
  tree = tabular.Tree(prompts=8, vocab=4, length=4, eos=True)
  problem = sparse.Problem(tree, share=0.2, spread=0.0)
  c = tabular.changed(ucas.get_config(), rollouts__per_prompt=16)
  grpo = tabular.changed(c, advantages__outcome=dict(name="group.grpo"))
  return problem.arms({"UCAS": c, "GRPO": grpo}, ("entropy", "accuracy"), steps=200)
