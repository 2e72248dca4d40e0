"""One Token to Fool LLM-as-a-Judge (arXiv:2507.08794): a judge is trained with openers of a
reasoning, cut off from their texts, as additional wrong answers.

The simulated judge learns from texts. Most right texts begin with an opener of a reasoning, few
wrong ones do. In one arm, one training text in nine is an opener that nothing follows, labelled
wrong; the other arm has none of these.

The judge is tested on texts without content, for equally many prompts, and on held-out texts.

Confidence in the formula: medium.
"""
import functools
import random

import numpy as np

from experiments.claims.environments import judges
from rlx.evals import verifier

CLAIMS = ("a judge that is trained with truncated openers as wrong answers has about 0 false "
          "positives on master keys and keeps its agreement",
          "many judges accept a symbol or an opener without an answer")
MEASURE = ("held-out accuracy, reduced by the false positives on texts without content: with "
           "openers minus without them")
MARGIN, RATE = 0.05, 0.05
FIRST = ("not seen", None)
OPENERS = 100  # added to the 800 training texts


@functools.cache
def drawn(seed):
  """Returns (training, held-out, prompts), the first two as (features_NF, labels_N).

  Of the training texts the openers are the last. The prompts are those for texts without content.
  """
  rng = random.Random(f"master_key/{seed}")
  opened = rng.uniform(0.1, 0.3), rng.uniform(0.8, 1.0)
  train = judges.texts(f"{seed}/train", 800, opened=opened)
  train += [(prompt, opener, 0.0) for prompt, text, _ in train
            for opener in judges.OPENERS if text.startswith(opener)][:OPENERS]
  held_out = judges.texts(f"{seed}/test", 400, opened=opened)
  def features_and_labels(rows):
    prompts, texts, labels = zip(*rows)
    return judges.features(prompts, texts), np.array(labels, np.float32)
  return (features_and_labels(train), features_and_labels(held_out),
          [row[0] for row in held_out[:50]])


@functools.cache
def keys_of(seed):
  """Returns {text: features_NF} of texts without content, for the prompts of a seed."""
  prompts = drawn(seed)[2]
  return {text: judges.features(prompts, [text] * len(prompts)) for text in verifier.MASTER_KEYS}


def arms():
  def trained(count):
    def arm(seeds, rates):
      features, labels = zip(*(drawn(seed)[0] for seed in seeds))
      weights_IF = np.asarray(judges.fit(
          np.stack([x[:count] for x in features]), np.stack([x[:count] for x in labels]), rates))
      return np.array([value(*one) for one in zip(seeds, weights_IF)])
    return arm

  def value(seed, weights_F):
    _, (features_NF, labels_N), prompts = drawn(seed)
    verify = lambda prompts, texts: keys_of(seed)[texts[0]] @ weights_F > 0
    rates = verifier.false_positive_rates(verify, prompts)
    accuracy = verifier.report(features_NF @ weights_F > 0, labels_N)["all"]["accuracy"]
    return accuracy - np.mean(list(rates.values()))

  return {"with openers": trained(800 + OPENERS), "without": trained(800)}
