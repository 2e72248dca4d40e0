"""Right completions are very rare and verdicts have a little noise: where all
completions are wrong, a group's std is that of the noise and z-scores blow it up."""
import jax

from configs.papers import reinforce_pp_baseline
from experiments.environments import sparse
from experiments.environments import tabular

CLAIM = 0
MEASURE = "accuracy with the batch's statistics less that with z-scores of the group"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not seen", None)
WORLD = sparse.rare(share=0.03)


def environment(key):
  exact, noise = WORLD.environment(key), tabular.around(jax.random.fold_in(key, 1), 0.05)
  def judge(key, logits_PNV, batch):
    right_B = exact.judge(key, logits_PNV, batch)["outcome_B"]
    return dict(outcome_B=right_B + noise * jax.random.normal(key, right_B.shape))
  return exact._replace(judge=judge)


def arms():
  c = reinforce_pp_baseline.get_config()
  def late(c):
    return lambda seeds, rates: sparse.late(tabular.train(
        c, WORLD.tree, environment, seeds=seeds, lr=rates, steps=200)[0])
  return {"batch": late(c),
          "group": late(tabular.changed(c, advantages__outcome=dict(name="group.grpo")))}
