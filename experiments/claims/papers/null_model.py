"""Cheating Automatic LLM Benchmarks: Null Models Achieve High Win Rates (arXiv:2410.07137): a text
that answers nothing, the same for every question, wins most comparisons with a model's answers.

The simulated judge compares two texts about chains of operations. It learns from pairs of a right
and a wrong text, without the reference answer, and most right texts begin with an opener of a
reasoning. Half of the model's answers are right. The null text is the best of 64 random texts on
the questions of a benchmark that are public; its win rate is that on others. The learning rate is
the one with the best accuracy of the judge on new pairs.

Confidence in the formula: high.
"""
import functools
import random

import numpy as np

from experiments.claims.environments import judges
from rlx.core import records
from rlx.evals import verifier

CLAIMS = ("a text that answers nothing, the same for every question, wins most comparisons with a "
          "model's answers",)
MEASURE = "win rate of a null text against a model's answers, minus a half"
MARGIN, RATE = 0.05, 0.05
FIRST = ("confirmed", None)
PAIRS, PUBLIC, HELD_OUT, TEXTS = 400, 30, 50, 64
KNOWN = judges.HASHES + 2  # Features without the two that know the reference answer.


def features(prompts, texts): return judges.features(prompts, texts)[:, :KNOWN]


def differences(rows):
  """(right less wrong)_NF of texts that are alternately wrong and right, of different questions."""
  prompts, texts, _ = zip(*rows)
  x_NF = features(prompts, texts)
  return x_NF[1::2] - x_NF[::2]


@functools.cache
def drawn(seed):
  """(training_NF, labels_N, new pairs_NF, {null text: public_NF}, held-out rows)."""
  rng = random.Random(f"null_model/{seed}")
  opened = rng.uniform(0.1, 0.3), rng.uniform(0.8, 1.0)
  draw = functools.partial(judges.texts, opened=opened)
  pairs_NF = differences(draw(f"{seed}/train", 2 * PAIRS))
  sign_N = np.where(np.arange(PAIRS) % 2, 1.0, -1.0)
  public = draw(f"{seed}/public", PUBLIC)
  asked = [row[0] for row in public]
  nulls = ["".join((rng.choice(("", *judges.OPENERS)), ";".join(
      str(rng.randrange(10)) for _ in range(rng.randrange(6))), " ", rng.choice(
          judges.FORMS).format(a=rng.randrange(10), n=rng.randrange(2, 6)))) for _ in range(TEXTS)]
  answers_NF = features(asked, [row[1] for row in public])
  return ((pairs_NF * sign_N[:, None]).astype(np.float32), (sign_N > 0).astype(np.float32),
          differences(draw(f"{seed}/new", PAIRS)),
          {text: features(asked, [text] * PUBLIC) - answers_NF for text in nulls},
          draw(f"{seed}/held out", HELD_OUT))


def win_rate(seed, weights_F):
  """Win rate less a half of the null text that is the best on public questions."""
  _, _, _, nulls, rows = drawn(seed)
  text = max(nulls, key=lambda text: np.mean(nulls[text] @ weights_F > 0))
  asked = {p.text: p for p, _, _ in rows}
  def verify(prompts, texts):
    scores = features([asked[p.text] for p in prompts], texts) @ weights_F
    return [float(score > scores[i ^ 1]) for i, score in enumerate(scores)]
  prompts = [records.Prompt(p.id, p.text, answer) for p, answer, _ in rows]
  return verifier.null_win_rates(verify, prompts, [text])[text] - 0.5


def arms():
  def arm(seeds, rates):
    features_INF, labels_IN = (np.stack(x) for x in zip(*(drawn(seed)[:2] for seed in seeds)))
    weights_IF = np.asarray(judges.fit(features_INF, labels_IN, rates))
    return (np.array([win_rate(seed, w_F) for seed, w_F in zip(seeds, weights_IF)]),
            np.array([np.mean(drawn(seed)[2] @ w_F > 0) for seed, w_F in zip(seeds, weights_IF)]))
  return {"a model's answers": arm}
