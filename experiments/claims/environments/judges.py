"""Texts about chains of operations, and small judges that learn to tell which ones are right.

A judge is a logistic regression on the trigrams of a text and on the result of a step verifier
of rlx, and on whether the reference answer equals the number that the text states last.
"""
import itertools
import random
import re
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.claims.environments import learn
from rlx.core import records
from rlx.losses import reward_model
from rlx.prompts.datasets import chain
from rlx.verifiers import answers, chain as chain_verifier

OPENERS = ("Solution: ", "Thought process: ", "Let's solve this problem step by step. ")
# Forms in which an answer is stated; the last one ends with another number.
FORMS = ("#{a}", "\\boxed{{{a}}}", "The answer is {a}.", "So it is {a}", "= {a}",
         "{a}, after {n} operations")
HASHES = 96


def texts(seed, count, *, opened=(0.5, 0.5)):
  """Returns a list of `count` (Prompt, text, label), half of them right.

  A step is wrong with probability 1/5, and later steps continue from its result. One answer in
  ten is drawn at random instead of taken from the last step. A text is right if its answer is
  right, whatever its steps are.

  Args:
    opened: probabilities that a wrong and a right text start with one of OPENERS.
  """
  rng, examples = random.Random(f"judges/{seed}"), []
  for index in range(count):
    label = index % 2
    prompt, steps, stated = next(drawn for drawn in _drawn(rng, f"{seed}/{index}")
                                 if (drawn[2] == drawn[0].answer) == label)
    opener = rng.choice(OPENERS) if rng.random() < opened[label] else ""
    text = opener + ";".join(steps) + " " + rng.choice(FORMS).format(a=stated, n=len(steps))
    examples.append((prompt, text, float(label)))
  return examples


def _drawn(rng, seed):
  """Yields (Prompt, steps, stated answer) without end."""
  for index in itertools.count():
    question = chain.generate(seed, index, n_min=2, n_max=5)
    prompt = records.Prompt(id=str(index), text=question["text"], answer=question["answer"])
    value, steps = int(prompt.text[0]), []
    for op, digit in zip(prompt.text[1:-1:2], prompt.text[2:-1:2]):
      right = chain.OPS[op](value, int(digit))
      value = rng.randrange(10) if rng.random() < 0.2 else right
      steps.append(str(value))
    yield prompt, steps, steps[-1] if rng.random() < 0.9 else str(rng.randrange(10))


def features(prompts, completions):
  """Returns features_NF of texts."""
  rows_NF = np.zeros((len(completions), HASHES + 4), np.float32)
  for row_F, prompt, text, stated in zip(
      rows_NF, prompts, completions, answers.find_stated_answers(completions, prompts, r"\d")):
    for i in range(len(text) - 2):
      row_F[zlib.crc32(text[i:i + 3].encode()) % HASHES] = 1
    steps = re.search(r"\d(?:;\d)*", text)
    row_F[HASHES] = chain_verifier.step_share(prompt, steps[0]) if steps else 0
    row_F[HASHES + 1] = 1
    if stated is not None:
      row_F[HASHES + 2 + (stated == prompt.answer)] = 1
  return rows_NF


@jax.jit
@jax.vmap
def fit(features_NF, labels_N, rate):
  """Returns weights_IF of one judge for each of features_INF, labels_IN and rates_I."""
  mask_N = jnp.ones(labels_N.shape, bool)
  return learn.descend(
      jnp.zeros(features_NF.shape[1]),
      lambda weights_F, _: reward_model.bce(features_NF @ weights_F, labels_N, mask_N),
      optax.adamw(rate, weight_decay=0.01), steps=400)
