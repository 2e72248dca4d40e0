"""Trajectories from segments of token ids: prompts, actions and observations. Numpy."""
import itertools

import numpy as np

from rlx.core import records
from rlx.rollouts import padding

KINDS = ("action", "observation")


def rows(prompts, segments, *, prompt_width, width, pad_id, logps=None, finish="eos"):
  """Rollouts of prompts and the segments after them.

    row b:   prompt | action 0 | observation | action 1 | ...
    turn_BT        0 0 0 0    -1 -1 -1       1 1 1 1

  Tokens that the policy drew are taken as they are, never tokenised again.

  Args:
    prompts: lists of token ids.
    segments: for each row a list of (kind, ids), kind one of KINDS.
    prompt_width, width: columns before and after the end of the prompt.
    logps: for each row the sampler's log-probs of its actions' tokens, in order; None: 0.
    finish: how the last action ended, one of records.FINISH.
  Raises:
    ValueError: a prompt or row is too long, or a segment has another kind.
  """
  for kind in {kind for row in segments for kind, _ in row} - set(KINDS):
    raise ValueError(f"A segment of kind {kind!r}: one of {KINDS}.")
  left, prompt_len_B = padding.pad_left(prompts, prompt_width, pad_id)
  right, len_B = padding.pad_right([sum((ids for _, ids in row), []) for row in segments],
                                   width, pad_id)
  turn_BT = np.full(right.shape, -1, np.int32)
  logps_BT = np.zeros(right.shape, np.float32)
  for b, row in enumerate(segments):
    start = turn = 0
    for kind, ids in row:
      if kind == "action":
        turn_BT[b, start:start + len(ids)] = turn
        turn += 1
      start += len(ids)
    if logps is not None: logps_BT[b, turn_BT[b] >= 0] = logps[b]
  has_one_action = all([kind for kind, _ in row] == ["action"] for row in segments)
  return records.Rollouts(
      tokens_BS=np.concatenate([left, right], axis=1), prompt_len_B=prompt_len_B,
      completion_len_B=len_B, sampler_logps_BT=logps_BT,
      finish_B=np.full(len(len_B), records.FINISH.index(finish), np.int32), prompt_P=None,
      turn_BT=None if has_one_action else turn_BT)


def split(rollouts):
  """(prompts, segments) of episodes: the inverse of `rows`, for rollouts on the host."""
  prompts, segments = [], []
  for b, n in enumerate(rollouts.completion_len_B):
    x = rollouts.prompt_width
    prompts.append(rollouts.tokens_BS[b, x - rollouts.prompt_len_B[b]:x].tolist())
    tokens_T, turn_T = rollouts.tokens_BS[b, x:x + n].tolist(), rollouts.turn_BT[b, :n].tolist()
    parts = itertools.groupby(zip(turn_T, tokens_T), key=lambda pair: pair[0])
    segments.append([(KINDS[turn < 0], [token for _, token in part]) for turn, part in parts])
  return prompts, segments


def rewards(rollouts):
  """(reward_B, is_given_B): the verdicts of the environments of episodes; NaN: unknown.

  Where an environment gave none, the rewards of the turns are added up. The reward is 0 where there
  are none either, as in completions that are no episodes.
  """
  if rollouts.turn_rewards_BT is None:
    return np.zeros(len(rollouts.finish_B)), np.zeros(len(rollouts.finish_B), bool)
  is_unknown_B = rollouts.finish_B == records.FINISH.index("environment")
  has_reward_B = (~np.isnan(rollouts.turn_rewards_BT)).any(axis=1)
  reward_B, verdict_B = np.nansum(rollouts.turn_rewards_BT, axis=1), rollouts.verdict_B
  if verdict_B is not None:
    has_reward_B |= ~np.isnan(verdict_B)
    reward_B = np.where(np.isnan(verdict_B), reward_B, verdict_B)
  return np.where(is_unknown_B, np.nan, reward_B), is_unknown_B | has_reward_B


def list_turn_rewards(rollouts, b):
  """The rewards of the turns of episode b, None for a turn that has none."""
  n = rollouts.completion_len_B[b]
  turn_T, reward_T = rollouts.turn_BT[b, :n], rollouts.turn_rewards_BT[b, :n]
  rewards = [reward_T[turn_T == k] for k in range(turn_T.max(initial=-1) + 1)]
  return [None if np.isnan(x).all() else float(np.nansum(x)) for x in rewards]


def pairs(prompts, completions, tokenizer, width, bucket):
  """Rollouts of one completion after each prompt, lists of ids.

  Args:
    width: columns of the completions.
    bucket: prompts are padded to it or, if one is longer, to 4, 16, ... times as much.
  """
  return rows(prompts, [[("action", list(ids))] for ids in completions],
              prompt_width=padding.bucket(max(map(len, prompts)), bucket), width=width,
              pad_id=tokenizer.pad_id)
