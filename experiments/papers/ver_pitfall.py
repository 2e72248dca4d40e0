"""Chains of one operation, completions of up to five tokens as text, judged by the
verifiers themselves: the strict rule and the looser one that any last number opens.

True is a completion that states the result and then the answer, in whatever form. The
policy starts with both demonstrated, form and answer: "7#7" and, as often, "7;#7".
Two things have to show: before training the rule misses more of what is true, and in
training on the looser verdicts alone more of what is accepted becomes untrue than in
training on the rule's.
"""
import re

import jax.numpy as jnp
import numpy as np

from configs.papers import ver_pitfall
from experiments.worlds import tabular
from rlx.core import records
from rlx.prompts.datasets import chain
from rlx.verifiers import pool

CLAIM = 0
MEASURE = ("the lesser of: right ones the rule misses beyond the looser verifier, wrong "
           "ones the looser lets in after training")
QUESTIONS = ("3M7=", "7m3=", "3m7=", "7M3=")
TOKENS = ("", "3", "7", ";", "#")


def effects(seeds):
  world = tabular.Tree(prompts=len(QUESTIONS), vocab=len(TOKENS), length=5, eos=True)
  tokens_LT, _ = world.leaves
  texts = ["".join(TOKENS[v] for v in row_T) for row_T in tokens_LT]
  workers = pool.Pool(0, 1.0)

  def verdicts(path):
    return np.stack([workers.verify([records.Prompt(
        id=q, text=q, answer=str(chain.solve(q)[-1]), verifier=path)] * len(texts), texts)
                     for q in QUESTIONS]) > 0.5

  rule_PL, loose_PL = verdicts("chain.answer"), verdicts("math_answer.final")
  right_PL = np.array([[re.findall(r"\d", text) == [str(chain.solve(q)[-1])] * 2
                        for text in texts] for q in QUESTIONS])
  # Completions are looked up by their tokens, read as a number.
  place_T = len(TOKENS) ** np.arange(world.length)
  leaf_C = np.zeros(len(TOKENS) ** world.length, int)
  leaf_C[tokens_LT @ place_T] = np.arange(len(texts))
  rule, loose, right, leaf, place = map(jnp.asarray, (
      rule_PL, loose_PL, right_PL, leaf_C, place_T))

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    at = batch.prompt_B, leaf[batch.tokens_BT @ place]
    return dict(outcome_B=1.0 * rule[at], scores_BE=1.0 * loose[at][:, None])

  def start(key):
    """Noise, and what each prompt's two demonstrations say next."""
    shown_PNV = np.zeros((world.prompts, world.nodes, world.vocab), np.float32)
    for p, q in enumerate(QUESTIONS):
      digit = TOKENS.index(str(chain.solve(q)[-1]))
      for path in ((digit, 4, digit, 0), (digit, 3, 4, digit, 0)):
        node = 0
        for token in path:
          shown_PNV[p, node, token] = 2.0
          node = node * world.vocab + token + 1
    return world.start(key, 0.5) + shown_PNV

  def measure(logits_PNV):
    probs_PL = jnp.exp(world.leaf_logps(logits_PNV))
    share = lambda part_PL, whole_PL: (jnp.sum(probs_PL * (part_PL & whole_PL))
                                       / jnp.sum(probs_PL * whole_PL))
    return dict(missed_by_rule=share(~rule, right), missed_by_loose=share(~loose, right),
                wrong_of_rule=share(~right, rule), wrong_of_loose=share(~right, loose))

  def train(**options):
    c = tabular.changed(ver_pitfall.get_config(), **{
        f"rewards__outcome__{k}": v for k, v in options.items()})
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=150, lr=10.0,
                             start=start)
    return found

  by_rule, by_loose = train(weight=0.0), train(mode="only")
  missed = by_rule["missed_by_rule"] - by_rule["missed_by_loose"]
  hacked = by_loose["wrong_of_loose"] - by_rule["wrong_of_rule"]
  return np.minimum(missed[:, 0], hacked[:, -1])
