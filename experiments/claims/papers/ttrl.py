"""The policy chooses one of eight methods for each question. One of them answers every question
correctly. Each of the others gives one of 20 wrong answers, drawn anew for each question. The
majority vote on a question can therefore be wrong, but what is learned applies to the next
question, too. The right method starts with a probability of about 0.27.

Measured is the accuracy learned from votes of 8 less the accuracy of votes of 8 completions of
the initial policy. The learning rate is the one with the best accuracy.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import ttrl
from experiments.claims.environments import tabular
from rlx.evals import pass_at_k

CLAIM = 1
MEASURE = "accuracy learned from votes of 8 minus that of votes of 8 by the initial policy"
MARGIN, RATE = 0.05, 16.0
FIRST = ("confirmed", None)
TREE, GROUP, ASKED = tabular.Tree(prompts=32, vocab=8, length=1), 8, 50


def verify(batch, key, **_):
  answer_PV = jax.random.randint(key, (TREE.prompts, TREE.vocab), 1, 21)
  answer_PV = answer_PV.at[:, 0].set(0)
  answer_B = answer_PV[batch.prompt_B, batch.tokens_BT[:, 0]]
  return dict(outcome_B=1.0 * (answer_B == 0), answer_B=answer_B)


def environment(key):
  keys = jax.random.split(key)
  lean_V = tabular.around(keys[0], 1.0) * (jnp.arange(8) == 0)
  return tabular.Environment(verify, lambda x: dict(accuracy=jax.nn.softmax(x)[:, 0, 0].mean()),
                             start=TREE.start(keys[1], 0.5) + lean_V)


@jax.jit
@jax.vmap
def asked(seed):
  """Returns the answers of the initial policy, [ASKED, B]."""
  start_PNV = environment(tabular.environment_key(seed)).start
  def ask(key):
    return verify(TREE.sample(key, start_PNV, GROUP), jax.random.fold_in(key, 1))["answer_B"]
  return jax.vmap(ask)(jax.random.split(jax.random.fold_in(jax.random.key(seed), 1), ASKED))


def arms():
  def beyond_votes(seeds, rates):
    metrics, _ = tabular.train(
        ttrl.get_config(), TREE, environment, seeds=seeds, lr=rates, steps=200)
    votes = [np.mean([pass_at_k.majority(answer_G) == 0 for answer_G in answers_XG.tolist()])
             for answers_XG in np.asarray(asked(seeds)).reshape(len(seeds), -1, GROUP)]
    return metrics["accuracy"][:, -1] - votes, metrics["accuracy"][:, -1]
  return {"votes of the start": beyond_votes}
