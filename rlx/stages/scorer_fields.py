"""Fields of verifiers that frozen models compute where verifier.scores or .steps names a scorer.

Each takes the place of the field of the same name in host_fields.py, so that methods which read
it do not know who scores. A scorer is a section of `scorers`, named "scorers.NAME".
"""
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import records
from rlx.core.fields import field
from rlx.stages import host_fields, passes as passes_lib


@field(np.float32, where="model", options=dict(names="verifier.scores"),
       needs={"verifier.scores": ()})
def scores_BE(passes: passes_lib.Passes, passes_of_scorers: Mapping[str, passes_lib.Passes],
              checked_scores_BE: jax.Array, question_rows: dict[str, records.Rollouts], *,
              names: tuple[str, ...]) -> jax.Array:
  """Scores of the verifiers and scorers in verifier.scores; NaN: could not tell.

  That of a scorer is its score at the completion's last token (`Passes.token_scores`), or its
  answer after the completion. It is NaN where a completion is empty, or where the model gives NaN.
  """
  len_B1 = passes.rollouts.completion_len_B[:, None]
  def score(name: str) -> jax.Array:
    if name in question_rows: return passes.yes_no_scores(name, question_rows[name])
    scores_BT = passes.token_scores(name, passes_of_scorers[name])
    return jnp.take_along_axis(scores_BT, jnp.maximum(len_B1 - 1, 0), axis=1)[:, 0]
  return jnp.stack([
      jnp.where(len_B1[:, 0] > 0, score(name), jnp.nan) if host_fields.is_scorer(name)
      else checked_scores_BE[:, e] for e, name in enumerate(names)], axis=1)


@field(np.float32, where="model", options=dict(name="verifier.steps"),
       needs={"verifier.steps": None, "rollouts.step_separator": None})
def step_scores_BT(passes: passes_lib.Passes, passes_of_scorers: Mapping[str, passes_lib.Passes],
                   step_ends_BT: jax.Array, *, name: str) -> jax.Array:
  """Score of the scorer in verifier.steps on the last token of each step, 0 elsewhere."""
  return jnp.where(step_ends_BT, passes.token_scores(name, passes_of_scorers[name]), 0)


@field(np.float32, where="model", options=dict(name="verifier.spans"),
       needs={"verifier.spans": None})
def span_scores_BT(passes: passes_lib.Passes, passes_of_scorers: Mapping[str, passes_lib.Passes], *,
                   name: str) -> jax.Array:
  """Score of the scorer in verifier.spans on each token that the policy drew; 1/2 elsewhere, and on
  the EOS token at the end, which has no text."""
  rows, len_B1 = passes.rollouts, passes.rollouts.completion_len_B[:, None]
  is_eos_BT = ((jnp.arange(rows.sampler_logps_BT.shape[1])[None] == len_B1 - 1)
               & (rows.finish_B == records.FINISH.index("eos"))[:, None])
  scores_BT = passes.token_scores(name, passes_of_scorers[name])
  return jnp.where(rows.action_BT & ~is_eos_BT, scores_BT, 0.5)


@field(np.float32, where="model",
       needs={"verifier.scores": (), "rollouts.step_separator": None})
def prefix_scores_BT(token_scores_BT: jax.Array, step_ends_BT: jax.Array) -> jax.Array:
  """Score of the first scorer in verifier.scores up to the end of each step, 0 elsewhere."""
  return jnp.where(step_ends_BT, token_scores_BT, 0)
