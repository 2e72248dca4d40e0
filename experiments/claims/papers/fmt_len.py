"""Simulates completions of up to 6 tokens: end (0), work (1), fill (2), err (3). The form
is right if a completion ends. The answer is right after enough work, one to three tokens
as drawn for each prompt, and without err. As the paper reports for mathematics, longer
answers are right more often up to a length beyond which errors dominate. The rewards do
not distinguish work, fill and err. One arm learns from form and length, the other from
the form alone, and the accuracies are compared.
"""
import jax
import jax.numpy as jnp

from configs.papers import fmt_len
from experiments.claims.environments import tabular

CLAIM = 1
MEASURE = "accuracy learned from form and length minus that from the form alone"
MARGIN, RATE = 0.05, 5.0
FIRST = ("confirmed", None)
DIFFERS = {"rewards.outcome.max_length": "10: the best length is half of it and leaves room for "
           "four tokens before the end"}
TREE = tabular.Tree(prompts=8, vocab=4, length=6, eos=True)


def has_ended(tokens_BT, mask_BT):
  return jnp.any((tokens_BT == 0) & mask_BT, axis=1)


def environment(key):
  keys = jax.random.split(key)
  needed_P = jax.random.randint(keys[0], (8,), 1, 4)

  def is_right(tokens_BT, mask_BT, needed_B):
    works_B = jnp.sum((tokens_BT == 1) & mask_BT, axis=1)
    return (has_ended(tokens_BT, mask_BT) & (works_B >= needed_B)
            & ~jnp.any((tokens_BT == 3) & mask_BT, axis=1))

  right_PL = jax.vmap(is_right, (None, None, 0))(*map(jnp.asarray, TREE.leaves), needed_P)

  def verify(batch, **_):
    rows = batch.tokens_BT, batch.mask_BT
    return dict(outcome_B=1.0 * is_right(*rows, needed_P[batch.prompt_B]),
                scores_BE=1.0 * has_ended(*rows)[:, None])

  return tabular.Environment(verify, TREE.means(accuracy=right_PL), start=TREE.start(keys[1], 0.5))


def arms():
  c = fmt_len.get_config()
  both = tabular.changed(c, rewards__outcome__max_length=10)
  form = tabular.changed(c, rewards=dict(outcome=dict(name="shaping.plain", coef=1.0)))
  return tabular.arms({"form and length": both, "form": form},
                      TREE, environment, "accuracy", steps=100)
