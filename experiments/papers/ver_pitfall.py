"""Questions are chains of one operation and completions are texts of up to five tokens. They are
checked by the verifiers of rlx: the strict rule of chains, and with it the more lenient
math_answer.final, which accepts a text by its last number.

A completion is truly right if it states the result and then the answer, in whatever form. The
policy starts with demonstrations of both forms, such as "7#7" and, equally likely, "7;#7". Two
effects are measured. Before training, the rule alone rejects a larger share of the truly right
completions. After training with both verifiers, a larger share of the accepted completions is
wrong than after training with the rule alone. The learning rate is the one with the most truly
right completions.
"""
import contextlib
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import ver_pitfall
from experiments.environments import tabular
from rlx.core import records
from rlx.prompts.datasets import chain
from rlx.verifiers import pool

CLAIM = 0
MEASURE = ("the smaller of two differences between the verifiers: right completions that the rule "
           "misses, wrong ones that the looser verifier lets in after training")
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
ILLUSTRATION = ("The rule accepts a single form, in which nothing is wrong. Half of the truly "
                "right completions have another form, and the looser verifier accepts some wrong "
                "ones.")
QUESTIONS = ("3M7=", "7m3=", "3m7=", "7M3=")
TOKENS = ("", "3", "7", ";", "#")
TREE = tabular.Tree(prompts=len(QUESTIONS), vocab=len(TOKENS), length=5, eos=True)


@functools.cache
def judged():
  """Returns (accepted by the rule, accepted by the lenient verifier, truly right), all [P, L]."""
  texts = ["".join(TOKENS[v] for v in row_T) for row_T in TREE.leaves[0]]
  def verdicts(path):
    with contextlib.closing(pool.Pool(1, 10.0)) as workers:
      return np.stack([workers.verify([records.Prompt(
          id=q, text=q, answer=str(chain.solve(q)[-1]), verifier=path)] * len(texts), texts)
                       for q in QUESTIONS]) > 0.5
  right_PL = np.array([[re.findall(r"\d", text) == [str(chain.solve(q)[-1])] * 2
                        for text in texts] for q in QUESTIONS])
  return verdicts("chain.answer"), verdicts("math_answer.final"), right_PL


def start(key):
  """Returns logits with noise and a preference for the tokens of each prompt's demonstrations."""
  keys, start_PNV = jax.random.split(key), TREE.start()
  said_P2 = tabular.around(keys[0], jnp.full((len(QUESTIONS), 2), 2.0))
  for p, q in enumerate(QUESTIONS):
    digit = TOKENS.index(str(chain.solve(q)[-1]))
    for said, path in zip(said_P2[p], ((digit, 4, digit, 0), (digit, 3, 4, digit, 0))):
      node = 0
      for token in path:
        start_PNV = start_PNV.at[p, node, token].set(said)
        node = node * TREE.vocab + token + 1
  return TREE.start(keys[1], 0.5) + start_PNV


def environment(key, *, by_rule):
  rule_PL, loose_PL, right_PL = map(jnp.asarray, judged())
  accepted_PL = rule_PL if by_rule else rule_PL | loose_PL
  # The index of a completion is found by its tokens, read as a number.
  place_T = TREE.vocab ** jnp.arange(TREE.length)
  leaf_C = jnp.zeros(TREE.vocab ** TREE.length, int).at[
      jnp.asarray(TREE.leaves[0]) @ place_T].set(jnp.arange(len(TREE.leaves[0])))

  def verify(batch, **_):
    at = batch.prompt_B, leaf_C[batch.tokens_BT @ place_T]
    return dict(outcome_B=1.0 * rule_PL[at], scores_BE=1.0 * loose_PL[at][:, None])

  def measure(logits_PNV):
    probs_PL = jnp.exp(TREE.leaf_logps(logits_PNV))
    share = lambda part_PL, whole_PL: (jnp.sum(probs_PL * (part_PL & whole_PL))
                                       / jnp.sum(probs_PL * whole_PL))
    return dict(missed=share(~accepted_PL, right_PL), wrong=share(~right_PL, accepted_PL),
                right=jnp.sum(probs_PL * right_PL, axis=1).mean())

  return tabular.Environment(verify, measure, start=start(key))


def arms():
  c = ver_pitfall.get_config()
  def shares(curves):
    return (np.stack([curves["missed"][:, 0], curves["wrong"][:, -1]], axis=1),
            curves["right"][:, -1])
  def arm(c, by_rule):
    return tabular.arm(c, TREE, functools.partial(environment, by_rule=by_rule), shares, steps=100)
  return {"rule, then looser": arm(c, False),
          "rule": arm(tabular.changed(c, rewards__outcome__weight=0.0), True)}


def compare(loose_I2, rule_I2):
  return np.minimum(rule_I2[:, 0] - loose_I2[:, 0], loose_I2[:, 1] - rule_I2[:, 1])
