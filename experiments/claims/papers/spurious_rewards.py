"""Policies with a latent skill are trained on random rewards. At every node they start with a
preference for the right steps, so that four completions in ten are right before training.

Each batch is used for eight passes, because the paper explains the gain by the clipping of
stale ratios. As in the paper's table, accuracy after training is compared with accuracy
before it. The learning rate is the one that is best with true verdicts, because the paper
changes nothing but the reward.
"""
import jax

from configs.papers import spurious_rewards
from experiments.claims.environments import steps, tabular

MEASURE = "accuracy of skilled policies after 200 steps of random rewards minus that before"
MARGIN, RATE = 0.05, 10.0
FIRST = ("opposite", None)
TREE = tabular.Tree(prompts=32, vocab=4, length=3)


def environment(key):
  keys = jax.random.split(key, 3)
  ok_PNV = steps.right_steps(keys[0], TREE, 2)
  right_PL = steps.right_leaves(TREE, ok_PNV)
  def verify(batch, key, **_):
    return dict(outcome_B=steps.verdict_B(ok_PNV, batch),
                noise_B=jax.random.uniform(key, batch.prompt_B.shape))
  return tabular.Environment(verify, TREE.means(accuracy=right_PL),
                             start=TREE.start(keys[1], 0.5) + tabular.around(keys[2], ok_PNV))


def arms():
  coin = tabular.changed(spurious_rewards.get_config(), learner__epochs=8)
  true = tabular.changed(coin, rewards__outcome=dict(name="outcome.verdict", coef=1.0))
  def gained(seeds, rates):
    coin_IS, true_IS = (tabular.train(
        c, TREE, environment, seeds=seeds, lr=rates, steps=200)[0]["accuracy"]
                        for c in (coin, true))
    return coin_IS[:, -1] - coin_IS[:, 0], true_IS[:, -1]
  return {"before training": gained}
