"""A reasoning has up to four tokens and ends with token 0. The answer is likelier if the prompt's
own token is in the reasoning, slightly likelier with every further token, and varies by random
noise. The answer's log-probs are a fixed table. The reward of ranks does not contain the length.
NOVER with the efficiency term is compared with the reward of ranks alone. The learning rates
are tuned for the answer's log-prob.
"""
import jax
import jax.numpy as jnp

from configs.papers import nover
from experiments.claims.environments import tabular

CLAIM = 1
MEASURE = "tokens of a completion learned without the efficiency term minus those with it"
MARGIN, RATE = 0.15, 20.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=6, vocab=4, length=4, eos=True)
compare = lambda values, without: without - values


def environment(key):
  keys = jax.random.split(key, 3)
  own_P = jax.random.randint(keys[0], (6,), 1, 4)
  hint, token = tabular.around(keys[1], (1.0, 0.1))
  noise_PN = 0.2 * jax.random.normal(keys[2], (6, 256))

  def answer_logps(prompt_B, tokens_BT):
    helps_B = jnp.any(tokens_BT == own_P[prompt_B][:, None], axis=1)
    return (-2.5 + hint * helps_B + token * jnp.sum(tokens_BT > 0, axis=1)
            + noise_PN[prompt_B, tokens_BT @ 4 ** jnp.arange(4)])

  def verify(batch, **_):
    logps_B = answer_logps(batch.prompt_B, batch.tokens_BT)
    return dict(outcome_B=jnp.zeros(len(logps_B)), answer_logps_BM=logps_B[:, None],
                answer_mask_BM=jnp.ones((len(logps_B), 1), bool))

  tokens_LT, mask_LT = map(jnp.asarray, TREE.leaves)
  logps_PL = jax.vmap(lambda p: answer_logps(jnp.full(len(tokens_LT), p), tokens_LT))(jnp.arange(6))
  return tabular.Environment(
      verify, TREE.means(length=mask_LT.sum(axis=1)[None], answer=logps_PL))


def arms():
  c = nover.get_config()
  alone = tabular.changed(c, rewards__efficiency__coef=0.0)
  return tabular.arms({"efficiency": c, "ranks alone": alone},
                      TREE, environment, ("length", "answer"), steps=200)
