"""A completion has up to six tokens and ends with token 0. Two tokens are labels, one of which is
right for the prompt, and the fourth is a word that is quoted as a reason. A completion has the
right form if its last word before the end is its only label. The initial policy writes about four
words.

The label is the first one that is stated. The rewards are the config's: of label and evidence (at
least one quoted word), and of form and length (at least four words). The length of completions is
compared with that from the same rewards without form and length.
"""
import jax
import jax.numpy as jnp

from configs.papers import moderation_rl
from experiments.claims.environments import tabular, verdicts

MEASURE = "tokens of completions after 150 steps with form and length minus those without them"
MARGIN, RATE = 0.15, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=4, vocab=4, length=6, eos=True)
PARTS = ("label", "format", "length", "evidence")


def environment(key, *, parts):
  keys = jax.random.split(key)
  label_P = jax.random.randint(keys[0], (TREE.prompts,), 1, 3)
  weights = {x["name"]: x["weight"] for x in moderation_rl.get_config().prompts.options["items"]}

  def verify(batch, **_):
    tokens_BT = jnp.where(batch.mask_BT, batch.tokens_BT, 0)
    words_B = jnp.sum(tokens_BT > 0, axis=1)
    is_label_BT = (tokens_BT == 1) | (tokens_BT == 2)
    at = lambda column_B: jnp.take_along_axis(tokens_BT, column_B[:, None], axis=1)[:, 0]
    first_B, last_B = at(jnp.argmax(is_label_BT, axis=1)), at(jnp.maximum(words_B - 1, 0))
    has_end_B = jnp.any(batch.mask_BT & (batch.tokens_BT == 0), axis=1)
    met = dict(label=first_B == label_P[batch.prompt_B],
               format=has_end_B & (is_label_BT.sum(axis=1) == 1) & (last_B > 0) & (last_B < 3),
               length=words_B >= 4, evidence=jnp.any(tokens_BT == 3, axis=1))
    return dict(outcome_B=sum(weights[x] * met[x] for x in parts) / sum(weights[x] for x in parts))

  lengths_PL = verdicts.of_leaves(TREE, lambda batch: 1.0 * batch.mask_BT.sum(axis=1))
  score_PL = verdicts.of_leaves(TREE, lambda batch: verify(batch)["outcome_B"])
  return tabular.Environment(verify, TREE.means(length=lengths_PL, score=score_PL),
                             start=TREE.start(keys[1], 0.5).at[:, :, 0].add(-0.5))


def arms():
  c = moderation_rl.get_config()
  return {name: tabular.arm(c, TREE, lambda key, parts=parts: environment(key, parts=parts),
                            ("length", "score"), steps=150)
          for name, parts in (("all parts", PARTS), ("label and evidence", (PARTS[0], PARTS[3])))}
