"""Rows that ask how likely a text is after a prompt and the reasoning before it."""
import bisect
import itertools

import numpy as np

from rlx.core import records
from rlx.rollouts import padding


def split(ids, tokenizer, separator):
  """A completion's reasoning, and where its own answer begins and ends.

  The reasoning ends with the last `separator`. A token that goes on after it is
  not part of the reasoning, it would tell how the answer begins; what it has of
  the separator is spelled anew.

  Args:
    ids: token ids of a completion.
    separator: text, or None.
  Returns:
    ids of the reasoning, and start and end of the answer in `ids`, without EOS.
    Where there is no separator all is reasoning and start = end.
  """
  if ids and ids[-1] in tokenizer.eos_ids: ids = ids[:-1]
  texts = tokenizer.pieces(ids)
  whole = "".join(texts)
  if not separator or separator not in whole: return ids, len(ids), len(ids)
  cut = whole.rindex(separator) + len(separator)
  ends = [0, *itertools.accumulate(map(len, texts))]
  n = bisect.bisect_left(ends, cut)  # Tokens up to the one that the separator ends in.
  if ends[n] == cut: return ids[:n], n, len(ids)
  respelled = tokenizer.encode(whole[ends[n - 1]:cut], add_bos=False)
  return ids[:n - 1] + respelled, n - 1, len(ids)


def rows(prompts, answers, *, bucket, width, pad_id):
  """Rollouts (numpy) of `answers` as completions of `prompts`, all lists of ids.

  Args:
    bucket: prompts are padded to a multiple of it: each width is a compilation.
    width: of the answers, the longest they may be.
  """
  longest = padding.bucket(max(map(len, prompts)), bucket)
  left, prompt_len_B = padding.left_pad(prompts, longest, pad_id)
  right, answer_len_B = padding.right_pad(answers, width, pad_id)
  return records.Rollouts(
      tokens_BS=np.concatenate([left, right], axis=1), prompt_len_B=prompt_len_B,
      completion_len_B=answer_len_B, sampler_logps_BT=np.zeros(right.shape, np.float32),
      finish_B=np.zeros_like(answer_len_B), prompt_P=None)
