"""Parts of an RL iteration for tests: completions that a test chose, through the run's stages."""
import dataclasses

import numpy as np

from rlx.core import records
from rlx.learner import hosts
from rlx.rollouts import padding
from rlx.stages import collect


def rollouts(run, prompts, completions, width, finish_B=None):
  """Rollouts on the host of completions, lists of token ids, in order of their prompts.

  All ended with EOS where finish_B is None; the sampler's log-probs are 0.
  """
  tokens_PX, len_P, prompt_P = map(np.asarray, run.sampling.encode(prompts))
  tokens_BT, len_B = padding.pad_right(completions, width, run.texts.tokenizer.pad_id)
  group = len(completions) // len(prompts)
  return records.Rollouts(
      tokens_BS=np.concatenate([tokens_PX.repeat(group, axis=0), tokens_BT], axis=1),
      prompt_len_B=len_P.repeat(group), completion_len_B=len_B,
      sampler_logps_BT=np.zeros(tokens_BT.shape, np.float32), prompt_P=prompt_P,
      finish_B=np.ones(len(completions), np.int32) if finish_B is None else finish_B)


def annotate(run, state, rollouts, outcome_B, prompts=(), excluded_B=None):
  """Annotated, of rollouts wherever they lie."""
  return run.annotate(state, collect.Collected(
      list(prompts), hosts.fetch(rollouts), np.asarray(outcome_B, np.float32), excluded_B))


def score(run, state, rollouts, outcome_B, prompts=(), excluded_B=None):
  """Placed, with the log-probs that methods read."""
  return run.score(state, run.place(annotate(run, state, rollouts, outcome_B, prompts, excluded_B)))


def with_updates_logps(state, placed):
  """Placed, with the log-probs of policy and PRM that their updates set."""
  placed = placed.with_columns(old_logps_BT=placed.passes.old("old_logps_BT"))
  if state.prm is None: return placed
  prm_BT = placed.passes.logps("prm", "prm")
  return placed.with_columns(prm_logps_BT=prm_BT, prm_old_logps_BT=prm_BT)


def update(run, state, placed, step=0):
  """(state, Batch, metrics) of rewards, advantages and the policy's update, the PRM's left out."""
  if state.prm is not None and "prm_logps_BT" not in placed.batch:
    prm_BT = placed.passes.logps("prm", "prm")
    placed = placed.with_columns(prm_logps_BT=prm_BT, prm_old_logps_BT=prm_BT)
  placed, metrics = run.rewards_advantages(state, placed)
  state, placed, more = run.update_policy(state, placed, step)
  return state, placed.batch, metrics | more


def collected(run, state, host, step, clock):
  """(Placed, metrics) of a batch that the run collects itself."""
  batch, metrics = run.collect(state, host, step, clock)
  return run.score(state, run.place(run.annotate(state, batch))), metrics


def with_rewards(run, rewards):
  """The run with the rewards, which are verdicts, of rewards(prompts, rollouts)."""
  class Given:
    def __init__(self, outcomes): self.prompt_rows = outcomes.prompt_rows
    def hold(self, state): pass
    def __call__(self, prompts, rollouts): return rewards(prompts, rollouts)
    def rewards(self, prompts, rollouts, texts=None, keep=False): return rewards(prompts, rollouts)

  given = Given(run.outcomes)
  return dataclasses.replace(run, outcomes=given,
                             collect=dataclasses.replace(run.collect, outcomes=given),
                             annotate=dataclasses.replace(run.annotate, columns=dataclasses.replace(
                                 run.annotate.columns, outcomes=given)))
