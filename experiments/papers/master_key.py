"""A judge that learns from texts of which right ones mostly open as reasoning does and
wrong ones seldom, with and without one opener in nine that nothing follows, a wrong one.

What is asked is texts without content, for as many prompts, and held-out texts.
"""
import numpy as np

from experiments.worlds import judges
from rlx.evals import verifier

PAPER = dict(
    title="One Token to Fool LLM-as-a-Judge",
    arxiv="2507.08794",
    claims=(
        "truncated openers as wrong answers in its training take a judge's false positives "
        "on master keys to about 0, agreement kept",
        "a symbol or an opener without an answer is accepted by many judges",
    ),
    confidence="medium")
CLAIM = 0
MEASURE = ("false positives on openers that training with them saves, less what it costs "
           "in held-out accuracy")


def effects(seeds):
  return [_effect(seed) for seed in seeds]


def _effect(seed):
  train = judges.texts(f"{seed}/train", 800, opened=(0.2, 0.9))
  held_out = judges.texts(f"{seed}/test", 400, opened=(0.2, 0.9))
  openers = [(prompt, opener, 0.0) for prompt, text, _ in train
             for opener in judges.OPENERS if text.startswith(opener)][:100]

  def outcome(rows):
    prompts, texts, labels = zip(*rows)
    weights_F = np.asarray(judges.fit(judges.features(prompts, texts), np.array(labels)))
    verify = lambda prompts, texts: judges.features(prompts, texts) @ weights_F > 0
    rates = verifier.false_positive_rates(verify, [row[0] for row in held_out[:50]])
    prompts, texts, labels = zip(*held_out)
    accuracy = verifier.report(verify(prompts, texts), labels)["all"]["accuracy"]
    return np.mean(list(rates.values())), accuracy

  (plain, plain_accuracy), (keys, keys_accuracy) = outcome(train), outcome(train + openers)
  return (plain - keys) - (plain_accuracy - keys_accuracy)
