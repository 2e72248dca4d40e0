"""The environment is that of environments/reward_models.py: one linear reward model of the counts
of tokens, learned from 50 pairs, which scores rare tokens by its initial weights. A completion is
right if its quality is above 1/2: 13% of those of the initial policy.

In the config's arm the weights learn beside the policy, by one step of Bradley-Terry a batch and at
the rate at which they were learned before: the better one of a pair is a right completion of the
prompt, the other one the same with one token taken from another completion, if that makes it wrong.
In the other arm they are frozen. The accuracy after 300 steps is measured. There is no KL term.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import cooper
from experiments.claims.environments import reward_models, tabular
from rlx.core.method import INITIAL, method
from rlx.losses import reward_model

MEASURE = "accuracy after 300 steps with a reward model that learns minus that with a frozen one"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "this is the first version, which is underpowered")
DIFFERS = {"rewards.outcome.name": "a table has no scorers: the reward keeps the weights of one",
           "rewards.outcome.rate": "the rate of these weights"}
TREE = reward_models.TREE


@method(state=dict(moved=np.zeros(TREE.vocab)))
def learned(scores_BE, tokens_BT, outcome_PG, noise_PG, learn_PG, *, rate=0.5, moved=INITIAL):
  """The probability of a linear reward model, and its weights after one step.

    r = sigmoid(sum_t w_{y_t} - c)

  Args:
    scores_BE: w before the first step and c, the same in all rows.
    noise_PG: uniform, which completion another token is taken from and at which position.
    rate: of w; 0: it is frozen.
    moved: by how much w has changed.
  """
  start_V, centre = scores_BE[0, :-1], scores_BE[0, -1]
  def score(moved, tokens_XT): return (start_V + moved)[tokens_XT].sum(axis=-1) - centre

  tokens_PGT = tokens_BT.reshape(*learn_PG.shape, -1)
  rows_P, width = jnp.arange(len(learn_PG)), tokens_PGT.shape[2]
  is_right_PG = learn_PG & (outcome_PG > 0.5)
  right_P1T = tokens_PGT[rows_P, jnp.argmax(is_right_PG * noise_PG, axis=1)][:, None]
  place_P11 = jnp.floor(width * noise_PG[:, 0]).astype(int)[:, None, None]
  altered_PGT = jnp.where(jnp.arange(width) == place_P11, tokens_PGT, right_P1T)
  is_wrong_PG = reward_models.WORTH_V[altered_PGT].mean(axis=2) <= 0.5
  altered_PT = altered_PGT[rows_P, jnp.argmax(is_wrong_PG * noise_PG, axis=1)]
  has_pair_P = jnp.any(is_right_PG, axis=1) & jnp.any(is_wrong_PG, axis=1)
  slope = jax.grad(lambda moved: reward_model.bradley_terry(
      score(moved, right_P1T[:, 0]), score(moved, altered_PT), has_pair_P).mean())(moved)
  return jax.nn.sigmoid(score(moved, tokens_BT)), {}, dict(moved=moved - rate * slope)


def environment(key):
  keys = jax.random.split(key)
  pairs_N = reward_models.pairs(
      keys[0], TREE.leaf_logps(reward_models.start(None))[0], reward_models.GOLD_L,
      reward_models.PAIRS)
  weights_V = reward_models.fit(jax.random.normal(keys[1], (TREE.vocab,)),
                                reward_models.COUNTS_LV, pairs_N)
  seen_N = jnp.concatenate(pairs_N[:2])
  model_E = jnp.append(weights_V, (reward_models.COUNTS_LV[seen_N] @ weights_V).mean())
  right_L = reward_models.GOLD_L > 0.5

  def verify(batch, key, **_):
    return dict(outcome_B=1.0 * right_L[TREE.leaf_B(batch)],
                noise_B=jax.random.uniform(key, batch.prompt_B.shape),
                scores_BE=jnp.broadcast_to(model_E, (len(batch.prompt_B), len(model_E))))

  return tabular.Environment(verify, TREE.means(accuracy=right_L[None]),
                             start=reward_models.start(None))


def arms():
  def config(rate):
    return tabular.changed(cooper.get_config(), rewards__outcome=dict(
        name=f"{__name__}:learned", coef=1.0, rate=rate))
  return tabular.arms({"learns": config(0.5), "frozen": config(0.0)}, TREE, environment,
                      "accuracy", steps=300)
