"""Completions of up to four tokens, of which token 0 ends one; a fifth of those that end is
right.

GRPO against the same with its advantages shaped by how sure the policy is. Entropy of
the policy over whole completions, at the rate of the best accuracy.
"""
from configs.papers import ucas
from experiments.environments import sparse
from experiments.environments import tabular

CLAIM = 0
MEASURE = "entropy over completions after 200 steps with UCAS less that with GRPO, nats"
MARGIN, RATE = 0.1, 5.0
FIRST = ("not seen", None)


def arms():
  world = sparse.World(tabular.Tree(prompts=8, vocab=4, length=4, eos=True), share=0.2, spread=0.0)
  c = tabular.changed(ucas.get_config(), rollouts__per_prompt=16)
  def entropy(c):
    def arm(seeds, rates):
      found = world.learned(c, seeds, rates, steps=200)
      return found["entropy"][:, -1], found["accuracy"][:, -1]
    return arm
  grpo = tabular.changed(c, advantages__outcome=dict(name="group.grpo"))
  return {"UCAS": entropy(c), "GRPO": entropy(grpo)}
