"""A completion is a token of reasoning and an answer, which is right if it is the prompt's
reference answer, one of the four tokens that the initial policy samples often: 24% of its answers
are right. The reward model is linear in the counts of tokens and in whether the answer is the
reference. It is learned from six pairs a prompt of a right and a wrong completion of the initial
policy, a quarter of them the wrong way round, which have few of the other eight tokens: it scores
these by its initial weights (environments/reward_models.py).

In the config's arm the weights learn beside the policy, by one step of Bradley-Terry a batch and at
the rate at which they were learned before: the better one of a pair is a right completion of the
prompt, the other one the same with another completion's answer, one of the same prompt if there is
one. In the other arm they are frozen. The accuracy after 300 steps is measured. There is no KL
term.
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
FIRST = ("not recorded", "the first version was underpowered, 0.076 [-0.001, 0.153]: its reward "
         "model read no reference answer, and with two prompts all effects were near multiples of "
         "1/2")
DIFFERS = {"rewards.outcome.name": "a table has no scorers: the reward keeps the weights of one",
           "rewards.outcome.rate": "the rate of these weights"}
P, V, PAIRS, COMMON = 8, 12, 6, 4
TREE = tabular.Tree(prompts=P, vocab=V, length=2)


def features(tokens_XT, reference_X):
  """features_XD: the counts of tokens, and whether the answer is the reference."""
  counts_XV = jnp.sum(jax.nn.one_hot(tokens_XT, V), axis=-2)
  is_right_X = tokens_XT[..., -1] == reference_X
  return jnp.concatenate([counts_XV, 1.0 * is_right_X[..., None]], axis=-1)


@method(state=dict(moved=np.zeros(V + 1)))
def learned(scores_BE, tokens_BT, outcome_PG, noise_PG, learn_PG, *, rate=0.5, moved=INITIAL):
  """The probability of a linear reward model, and its weights after one step.

    r = sigmoid(w . features - c)

  Args:
    scores_BE: w before the first step and c, the same in all rows, and the prompt's reference.
    noise_PG: uniform, which completions a pair is made of.
    rate: of w; 0: it is frozen.
    moved: by how much w has changed.
  """
  start_D, centre, reference_B = scores_BE[0, :-2], scores_BE[0, -2], scores_BE[:, -1]
  def score(moved, tokens_XT, reference_X):
    return features(tokens_XT, reference_X) @ (start_D + moved) - centre

  group, answer_B = learn_PG.shape[1], tokens_BT[:, -1]
  reference_P, rows_P = reference_B[::group], jnp.arange(P)
  is_right_PG = learn_PG & (outcome_PG > 0.5)
  right_P = rows_P * group + jnp.argmax(is_right_PG * noise_PG, axis=1)
  differs_PB = answer_B != answer_B[right_P][:, None]
  is_own_PB = jnp.repeat(jnp.eye(P), group, axis=1)
  other_P = jnp.argmax(differs_PB * (is_own_PB + noise_PG.ravel()), axis=1)
  altered_PT = tokens_BT[right_P].at[:, -1].set(answer_B[other_P])
  has_pair_P = jnp.any(is_right_PG, axis=1) & jnp.any(differs_PB, axis=1)
  slope = jax.grad(lambda moved: reward_model.bradley_terry(
      score(moved, tokens_BT[right_P], reference_P), score(moved, altered_PT, reference_P),
      has_pair_P).mean())(moved)
  return (jax.nn.sigmoid(score(moved, tokens_BT, reference_B)), {},
          dict(moved=moved - rate * slope))


def environment(key):
  keys = jax.random.split(key, 4)
  reference_P = jax.random.randint(keys[0], (P,), 0, COMMON)
  leaves_LT = jnp.asarray(TREE.leaves[0])
  right_PL = leaves_LT[:, -1] == reference_P[:, None]
  features_PLD = jax.vmap(lambda reference: features(leaves_LT, reference))(reference_P)
  start_PNV = jnp.broadcast_to(reward_models.LOGITS_V, (P, TREE.nodes, V))

  logps_PL = TREE.leaf_logps(start_PNV)
  draw = lambda key, among_PL: jax.random.categorical(
      key, jnp.where(among_PL, logps_PL, -jnp.inf), axis=1, shape=(PAIRS, P)).ravel()
  is_flipped_N = jax.random.bernoulli(keys[1], 0.25, (PAIRS * P,))
  first_N = jnp.tile(jnp.arange(P) * len(leaves_LT), PAIRS)  # The first leaf of its prompt.
  right_N, wrong_N = (first_N + draw(key, among_PL) for key, among_PL in zip(
      jax.random.split(keys[2]), (right_PL, ~right_PL)))
  chosen_N, rejected_N = (jnp.where(is_flipped_N, *pair) for pair in (
      (wrong_N, right_N), (right_N, wrong_N)))
  features_RD = features_PLD.reshape(-1, V + 1)
  weights_D = reward_models.fit(jax.random.normal(keys[3], (V + 1,)), features_RD,
                                (chosen_N, rejected_N, jnp.ones_like(is_flipped_N)))
  seen_N = jnp.concatenate([chosen_N, rejected_N])
  model_E = jnp.append(weights_D, (features_RD[seen_N] @ weights_D).mean())

  def verify(batch, key, **_):
    of_model_BE = jnp.broadcast_to(model_E, (len(batch.prompt_B), len(model_E)))
    return dict(outcome_B=1.0 * right_PL[batch.prompt_B, TREE.leaf_B(batch)],
                noise_B=jax.random.uniform(key, batch.prompt_B.shape),
                scores_BE=jnp.concatenate(
                    [of_model_BE, 1.0 * reference_P[batch.prompt_B][:, None]], axis=1))

  return tabular.Environment(verify, TREE.means(accuracy=right_PL), start=start_PNV)


def arms():
  def config(rate):
    return tabular.changed(cooper.get_config(), rewards__outcome=dict(
        name=f"{__name__}:learned", coef=1.0, rate=rate))
  return tabular.arms({"learns": config(0.5), "frozen": config(0.0)}, TREE, environment,
                      "accuracy", steps=300)
