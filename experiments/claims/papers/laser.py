"""The simulated model is a head on 6 noisy features that indicate a right completion. Its output
is read as the log-prob of an unused token, starts at c_ref and learns the verdicts of one batch
with the auxiliary loss. Then 8 completions vote on each of the prompts of a new batch: votes
weighted by the self-reward are compared with equal votes. Wrong answers have a favourite, so
majorities can be wrong, and right completions are a minority, for which the loss balances the
classes. No policy is trained.
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from configs.papers import laser
from experiments.claims.environments import learn, tabular
from rlx.build import methods as build_methods
from rlx.evals import pass_at_k

CLAIM = 1
MEASURE = "accuracy of votes weighted by the self-reward minus that of the majority"
MARGIN, RATE = 0.05, 4.0
FIRST = ("confirmed", None)
PROMPTS, GROUP, SIGNS = 256, 8, 6


def draw(key, favourite, noise):
  """Returns (answer_B, signs_BD).

  Of the four answers 0 is right and 1 is the favourite of the wrong ones. A sign is the verdict
  plus noise.
  """
  keys = jax.random.split(key, 3)
  right_P = jax.random.uniform(keys[0], (PROMPTS, 1), minval=0.1, maxval=0.6)
  wrong_A = jnp.stack([favourite, (1 - favourite) / 2, (1 - favourite) / 2])
  share_PA = jnp.concatenate([right_P, (1 - right_P) * wrong_A[None]], axis=1)
  answer_B = jax.random.categorical(keys[1], jnp.repeat(jnp.log(share_PA), GROUP, axis=0))
  signs_BD = noise * jax.random.normal(keys[2], (PROMPTS * GROUP, SIGNS))
  return answer_B, signs_BD + (answer_B == 0)[:, None]


def arms():
  c = laser.get_config()
  c_ref, beta = c.learner.auxiliary.c_ref, c.learner.auxiliary.beta_v
  loss_of = build_methods.resolve_methods(c).auxiliary

  def run(seed, rate):
    keys = jax.random.split(jax.random.key(seed), 3)
    constants = tabular.around(keys[2], (0.6, 1.5))
    answer_B, signs_BD = draw(keys[0], *constants)
    def logps(head, signs_BD):
      return jax.nn.log_sigmoid(c_ref + signs_BD @ head[1:] + head[0])
    def loss(head, _):
      return loss_of(tabular.record(
          jnp.ones((len(answer_B), 1), bool), 1.0 * (answer_B == 0),
          finish_B=jnp.ones(len(answer_B), int), group=GROUP,
          self_logps_B=logps(head, signs_BD)))
    head = learn.descend(jnp.zeros(SIGNS + 1), loss, optax.sgd(rate), steps=500)
    answer_B, signs_BD = draw(keys[1], *constants)
    return answer_B, jnp.clip(beta * (logps(head, signs_BD) - c_ref), 0, 1)

  def votes(weight_of):
    def right(answer_B, score_B):
      pairs = zip(answer_B.reshape(-1, GROUP), weight_of(score_B).reshape(-1, GROUP))
      return np.mean([pass_at_k.majority(list(a_G), w_G) == 0 for a_G, w_G in pairs])
    return learn.arm(run, right)
  return {"self-reward": votes(lambda score_B: score_B), "majority": votes(np.ones_like)}
