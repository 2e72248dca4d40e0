"""A head on 6 noisy signs of being right, read as the log-prob of an unused token; it
starts at c_ref and learns the verdicts of one batch with the auxiliary loss. Then, on
prompts it has not seen, 8 completions vote: those with equal votes against those
weighted by the self-reward. Wrong answers share a favourite, so that majorities can be
wrong, and right completions are a minority, which the classes' balance is for. No
policy is trained.
"""
import jax
import jax.numpy as jnp

from configs.papers import laser
from experiments.worlds import tabular
from rlx import methods
from rlx.core import records
from rlx.evals import pass_at_k

CLAIM = 1
MEASURE = "accuracy of votes weighted by the self-reward less that of the majority"
PROMPTS, GROUP, SIGNS, ANSWERS = 256, 8, 6, 4   # Answer 0 is right, 1 the wrong favourite.


def draw(key):
  """answer_B, signs_BD: a sign is the verdict's with noise of 1.5."""
  keys = jax.random.split(key, 3)
  right_P = jax.random.uniform(keys[0], (PROMPTS, 1), minval=0.1, maxval=0.6)
  share_PL = jnp.concatenate([right_P, (1 - right_P) * jnp.array([[0.6, 0.2, 0.2]])], axis=1)
  answer_B = jax.random.categorical(
      keys[1], jnp.repeat(jnp.log(share_PL), GROUP, axis=0))
  signs_BD = jax.random.normal(keys[2], (PROMPTS * GROUP, SIGNS)) * 1.5
  return answer_B, signs_BD + (answer_B == 0)[:, None]


def effects(seeds):
  c = tabular.changed(laser.get_config())
  c_ref, beta = c.learner.auxiliary.c_ref, c.learner.auxiliary.beta
  loss_of = methods.of(c).auxiliary

  @jax.jit
  @jax.vmap
  def run(seed):
    keys = jax.random.split(jax.random.key(seed))
    answer_B, signs_BD = draw(keys[0])
    def logps(head, signs_BD):
      return jax.nn.log_sigmoid(c_ref + signs_BD @ head[1:] + head[0])
    def loss(head):
      return loss_of(records.Scored(
          mask_BT=jnp.ones((len(answer_B), 1), bool), outcome_B=1.0 * (answer_B == 0),
          finish_B=jnp.ones(len(answer_B), int), group=GROUP,
          self_logps_B=logps(head, signs_BD))).mean()
    head, _ = jax.lax.scan(lambda head, _: (head - 4.0 * jax.grad(loss)(head), None),
                           jnp.zeros(SIGNS + 1), None, length=500)
    answer_B, signs_BD = draw(keys[1])
    return answer_B, jnp.clip(beta * (logps(head, signs_BD) - c_ref), 0, 1)

  def gain(answer_B, score_B):
    answer_PG, score_PG = answer_B.reshape(-1, GROUP), score_B.reshape(-1, GROUP)
    right = lambda weight_PG: sum(
        pass_at_k.majority(list(a), w) == 0 for a, w in zip(answer_PG, weight_PG)) / PROMPTS
    return right(score_PG) - right(0 * score_PG + 1)

  return [gain(*one) for one in zip(*jax.device_get(run(jnp.asarray(seeds))))]
