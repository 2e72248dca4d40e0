"""Parts of an RL iteration for tests: completions that a test chose, through the run's stages."""
import numpy as np

from rlx.learner import hosts
from rlx.loops import collect


def annotate(run, state, rollouts, outcome_B, prompts=(), excluded_B=None):
  """Annotated, of rollouts wherever they lie."""
  return run.annotate(state, collect.Collected(
      list(prompts), hosts.fetch(rollouts), np.asarray(outcome_B, np.float32), excluded_B))


def score(run, state, rollouts, outcome_B, prompts=(), excluded_B=None):
  """Placed, with the log-probs that methods read."""
  return run.score(state, run.place(annotate(run, state, rollouts, outcome_B, prompts, excluded_B)))


def update(run, state, placed, step=0):
  """(state, Batch, metrics) of rewards, advantages and the policy's update."""
  batch, metrics = run.advantage(state, placed.batch)
  state, batch, more = run.update.policy(state, placed.replace(batch=batch), step)
  return state, batch, metrics | more


def collected(run, state, host, step, clock):
  """(Placed, metrics) of a batch that the run collects itself."""
  batch, metrics = collect.batch(run.collector, state, host, step, clock)
  return run.score(state, run.place(run.annotate(state, batch))), metrics
