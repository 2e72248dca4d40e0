"""On the Limited Generalization Capability of the Implicit Reward Model Induced by Direct
Preference Optimization (arXiv:2409.03650): a reward model with a head is compared with the
implicit reward model that DPO trains.

Both start from the same small recurrent network, and all their parameters learn from the same
pairs: a head by Bradley-Terry, and log-ratios to the start by DPO.

The true reward is a sum over the tokens, whose values depend on the prompt. The test pairs are
new pairs of the same distribution, pairs with prompts of another distribution and pairs with
completions of another distribution. The learning rates are tuned for the accuracy on the first.

Confidence in the formula: medium.
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.claims.environments import learn
from rlx.evals import reward_model as evaluation
from rlx.losses import prm, reward_model

CLAIMS = ("an implicit reward model is 3% worse on average than one with a head if prompts or "
          "completions shift, and equal if they do not",)
MEASURE = ("accuracy that the implicit model loses against the one with a head: mean of both "
           "shifts minus without a shift")
MARGIN, RATE = 0.01, 3e-3
FIRST = ("not seen", None)
PAIRS, TOKENS, VOCAB, SIZE = 400, 4, 12, 16
NEW = ("same", "prompts", "completions")
SPLITS = dict(train=(0.0, 1.0), same=(0.0, 1.0), prompts=(1.0, 1.0),
              completions=(0.0, -1.0))  # (shift of the prompts, lean to tokens)


def draw(key, task, prompt_shift, lean):
  """Returns (prompts_BD, tokens_BT). Rows 2 n and 2 n + 1 are a pair, the better one first."""
  worth_DV, shift_D, lean_V = task
  prompt_key, token_key = jax.random.split(key)
  prompts_ND = jax.random.normal(prompt_key, (PAIRS, SIZE)) + prompt_shift * shift_D
  tokens_N2T = jax.random.categorical(token_key, lean * lean_V, shape=(PAIRS, 2, TOKENS))
  worth_NV = prompts_ND @ worth_DV
  reward_N2 = jnp.take_along_axis(worth_NV[:, None], tokens_N2T, axis=2).sum(axis=2)
  order_N2 = jnp.argsort(-reward_N2, axis=1)
  tokens_N2T = jnp.take_along_axis(tokens_N2T, order_N2[..., None], axis=1)
  return jnp.repeat(prompts_ND, 2, axis=0), tokens_N2T.reshape(-1, TOKENS)


def run_over(params, prompts_BD, tokens_BT):
  """Returns (logps_BT, score_B) of the completions."""
  hidden_BD, logps = jnp.tanh(prompts_BD @ params["prompt"]), []
  for t in range(TOKENS):
    token_BV = jax.nn.one_hot(tokens_BT[:, t], VOCAB)  # faster than the gradient of a gather
    logps.append(jnp.sum(token_BV * jax.nn.log_softmax(hidden_BD @ params["out"]), axis=1))
    hidden_BD = jnp.tanh(hidden_BD @ params["mix"] + token_BV @ params["embed"])
  return jnp.stack(logps, axis=1), hidden_BD @ params["head"]


def scores(seed, rate, is_implicit):
  """Returns scores_S2N of the pairs of each split in NEW, the better completion first."""
  keys = iter(jax.random.split(jax.random.key(seed), 11))
  normal = lambda *shape: jax.random.normal(next(keys), shape) / np.sqrt(SIZE)
  start = dict(prompt=normal(SIZE, SIZE), mix=normal(SIZE, SIZE), out=normal(SIZE, VOCAB),
               embed=normal(VOCAB, SIZE), head=jnp.zeros(SIZE))
  shift_D, lean_V = (jnp.sqrt(SIZE) * normal(n) for n in (SIZE, VOCAB))
  task = normal(SIZE, VOCAB), shift_D, lean_V
  data = {name: draw(next(keys), task, *shifts) for name, shifts in SPLITS.items()}
  ones_BT = jnp.ones((2 * PAIRS, TOKENS), bool)
  label_N2 = jnp.tile(jnp.array([1.0, 0.0]), (PAIRS, 1))

  def log_ratios_N2(params, rows):
    ratio_BT = run_over(params, *rows)[0] - run_over(start, *rows)[0]
    return ratio_BT.sum(axis=1).reshape(PAIRS, 2)

  if is_implicit:
    scores_N2, ref_BT = log_ratios_N2, run_over(start, *data["train"])[0]
    loss = lambda params, _: prm.dpo(
        run_over(params, *data["train"])[0], ref_BT, ones_BT, label_N2,
        jnp.ones((PAIRS, 2), bool), prm_beta=0.5)
  else:
    scores_N2 = lambda params, rows: run_over(params, *rows)[1].reshape(PAIRS, 2)
    loss = lambda params, _: reward_model.bradley_terry(
        *scores_N2(params, data["train"]).T, ones_BT[:PAIRS, 0])
  params = learn.descend(start, loss, optax.adam(rate), steps=200)
  return jnp.stack([scores_N2(params, data[name]).T for name in NEW])


def compare(implicit_IS2N, explicit_IS2N):
  def gap(*scores):
    gaps = evaluation.implicit_gap(*(dict(zip(NEW, scores_S2N)) for scores_S2N in scores))
    return (gaps["prompts"]["gap"] + gaps["completions"]["gap"]) / 2 - gaps["same"]["gap"]
  return np.array(list(map(gap, implicit_IS2N, explicit_IS2N)))


def arms():
  def arm_with(is_implicit):
    run = jax.jit(jax.vmap(lambda seed, rate: scores(seed, rate, is_implicit)))
    def arm(seeds, rates):
      scores_IS2N = np.asarray(run(seeds, rates))
      return scores_IS2N, [evaluation.pair_accuracy(*same_2N) for same_2N in scores_IS2N[:, 0]]
    return arm
  return {"implicit": arm_with(True), "head": arm_with(False)}
