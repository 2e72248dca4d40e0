"""Two chains in a row of one step each, from the data set itself: the completion states
two digits, the verifiers read them. The start knows how to do a step, not surely (its
own digit leads by 1.5 nats, noise on top), and goes on from whatever it stated first;
max and min lead from wrong first digits to right last ones, too. A reward for both
answers right against one for the last alone, tested on both.
"""
import jax.numpy as jnp
import numpy as np

from configs.papers import r_horizon
from experiments.worlds import tabular
from rlx.prompts.datasets import chain
from rlx.prompts.datasets import chain_horizon
from rlx.verifiers import chain as verifier

CLAIM = 1
MEASURE = "both answers right, trained with a reward for both less with one for the last"
PROMPTS = 32


def effects(seeds):
  world = tabular.Tree(prompts=PROMPTS, vocab=10, length=2)
  rows = (dict(seed=0, index=i, n_min=1, n_max=1) for i in range(4 * PROMPTS))
  prompts = list(chain_horizon.prompts(rows, "train"))[:PROMPTS]
  texts = [f"{a};{b}#{b}" for a, b in world.leaves[0]]
  both_PL, last_PL = (
      jnp.array([[fn(p, t) for t in texts] for p in prompts])
      for fn in (verifier.milestones, verifier.answer))
  skill_PNV = np.zeros((PROMPTS, world.nodes, 10))
  for i, p in enumerate(prompts):
    skill_PNV[i, 0, chain.OPS[p.text[1]](int(p.text[0]), int(p.text[2]))] = 1.5
    for a in range(10):
      skill_PNV[i, 1 + a, chain.OPS[p.text[3]](a, int(p.text[4]))] = 1.5

  def start(key):
    return world.start(key, 1.0) + skill_PNV

  def accuracy(reward_PL):
    def judge(key, logits_PNV, batch):
      del key, logits_PNV
      leaf_B = world.leaf_B(batch)
      return dict(outcome_B=reward_PL[batch.prompt_B, leaf_B])
    c = tabular.changed(r_horizon.get_config(),
                        rollouts__keep=dict(name="keep.everything"))
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(both=world.expected_P(x, both_PL).mean()),
        seeds=seeds, steps=200, lr=20.0, start=start)
    return found["both"][:, -1]

  return accuracy(both_PL) - accuracy(last_PL)
