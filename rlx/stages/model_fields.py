"""Model fields of a batch, which forward passes compute on devices (passes.py)."""
import collections
from collections.abc import Mapping
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import masked, records, rng, schedule
from rlx.core.fields import field
from rlx.stages import passes as passes_lib


@field(np.float32, where="model")
def prm_ref_logps_BT(passes: passes_lib.Passes) -> jax.Array:
  """log pi_ref of the PRM's log-ratio, at temperature 1."""
  return passes.prm_reference()


@field(np.float32, where="model")
def prm_ref_all_logps_BTV(passes: passes_lib.Passes) -> jax.Array:
  """log pi_ref of all tokens of the vocabulary, at temperature 1."""
  return passes.prm_reference((("all",),))[1]


@field(np.float32, where="model")
def prm_beta_B(passes: passes_lib.Passes, outcome_B: jax.Array) -> jax.Array:
  """prm.beta, repeated in every row because batches are cut by rows."""
  # Outside of jit, which would not place it as outcome_B.
  return jnp.full_like(outcome_B, _compute_scheduled(passes.options.beta, passes.state.step))


# One program instead of one for each operation.
@functools.partial(jax.jit, static_argnums=0)
def _compute_scheduled(value: schedule.Schedule, step: Any) -> jax.Array:
  return jnp.asarray(value(step))


@field(None, options=dict(group="rollouts.per_prompt"))
def mismatched_rows(rollouts: records.Rollouts, *, group: int) -> records.Rollouts:
  """Each prompt with the completion of the next prompt's group, as rollouts (for KTO's KL)."""
  rows, x = rollouts.rows(), rollouts.prompt_width
  rolled = jax.tree.map(lambda a: np.roll(a, -group, axis=0), rows)
  return rolled.replace(
      tokens_BS=np.concatenate([rows.tokens_BS[:, :x], rolled.tokens_BS[:, x:]], axis=1),
      prompt_len_B=rows.prompt_len_B)


@field(np.float32, where="model")
def kl_ratio_B(passes: passes_lib.Passes, mismatched_rows: records.Rollouts) -> jax.Array:
  """Sums of the PRM's log-ratio over mismatched_rows; NaN of an empty completion (KTO's KL)."""
  other = passes_lib.make_passes(passes.options, passes.state, mismatched_rows)
  ratio_BT = other.logps("prm", "prm") - other.prm_reference()
  return jnp.where(other.rollouts.completion_len_B > 0,
                   masked.total(ratio_BT, other.rollouts.action_BT, axis=1), jnp.nan)


@field(np.float32, where="model")
def old_logps_BT(passes: passes_lib.Passes) -> jax.Array:
  """Log-probs of the policy before its update, of what was drawn from."""
  return passes.old("old_logps_BT")


@field(np.float32, where="model", statistic=("mean",))
def old_mean_logps_BT(passes: passes_lib.Passes) -> jax.Array:
  """mean_logps_BT of the policy before its update."""
  return passes.old("old_mean_logps_BT")


@field(np.float32, where="model", statistic=("all",))
def old_all_logps_BTV(passes: passes_lib.Passes) -> jax.Array:
  """all_logps_BTV of the policy before its update."""
  return passes.old("old_all_logps_BTV")


@field(np.float32, where="model", statistic=("squared",))
def old_sum_pi_squared_BT(passes: passes_lib.Passes) -> jax.Array:
  """Sum of the squared probabilities of all tokens, before the update."""
  return passes.old("old_sum_pi_squared_BT")


@field(np.float32, where="model", statistic=("logit",))
def old_logits_BT(passes: passes_lib.Passes) -> jax.Array:
  """Logit of the sampled token, before the update."""
  return passes.old("old_logits_BT")


@field(np.float32, where="model", needs={"distribution.min_p": 0},
       statistic=("min_p", "distribution.min_p"))
def old_min_p_logps_BT(passes: passes_lib.Passes) -> jax.Array:
  """Log-prob after truncation to the tokens of distribution.min_p, before the update."""
  return passes.old("old_min_p_logps_BT")


@field(np.float32, where="model")
def ref_logps_BT(passes: passes_lib.Passes) -> jax.Array:
  """log pi_ref of the policy's KL, of what was drawn from."""
  return passes.logps("reference" if passes.state.kl_reference is None else "kl_reference",
                      is_drawn=True)


@field(np.float32, where="model", needs={"teacher.path": None})
def teacher_logps_BT(passes: passes_lib.Passes) -> jax.Array:
  """Log-probs of the model of teacher.path, of what was drawn from."""
  return passes.logps("teacher", "teacher", is_drawn=True)


@field(np.float32, where="model", needs={"teacher.path": None})
def teacher_all_logps_BTV(passes: passes_lib.Passes) -> jax.Array:
  """Its log-probs of all tokens of the vocabulary."""
  return passes.logps("teacher", "teacher", (("all",),), is_drawn=True)[1]


@field(None, where="model")
def appended_passes(passes: passes_lib.Passes, appended_rows: records.Rollouts
                    ) -> passes_lib.Passes:
  """The passes of scorers with a head."""
  return passes_lib.make_passes(passes.options, passes.state, appended_rows)


@field(None, where="model")
def passes_of_scorers(passes: passes_lib.Passes, appended_passes: passes_lib.Passes,
                      reference_rows: dict[str, records.Rollouts]
                      ) -> Mapping[str, passes_lib.Passes]:
  """{scorer: the passes that it reads completions in}, with the reference answer or without."""
  return collections.defaultdict(lambda: appended_passes, {
      name: passes_lib.make_passes(passes.options, passes.state, rows)
      for name, rows in reference_rows.items()})


@field(np.float32, where="model", options=dict(names="verifier.scores"),
       needs={"verifier.scores": ()})
def token_scores_BT(passes: passes_lib.Passes,
                    passes_of_scorers: Mapping[str, passes_lib.Passes], *,
                    names: tuple[str, ...]) -> jax.Array:
  """Score of the first scorer in verifier.scores up to each token, that included; 0 elsewhere."""
  return jnp.where(passes.rollouts.action_BT,
                   passes.token_scores(names[0], passes_of_scorers[names[0]]), 0)


@field(np.float32, where="model", options=dict(names="verifier.scores"),
       needs={"verifier.scores": ()})
def score_spreads_BE(passes: passes_lib.Passes,
                     passes_of_scorers: Mapping[str, passes_lib.Passes], *,
                     names: tuple[str, ...]) -> jax.Array:
  """The spread of each score that scorers with the head spread predict; 0 of empty completions."""
  last_B1 = passes.rollouts.completion_len_B[:, None] - 1
  spreads_BE = jnp.stack([jnp.take_along_axis(
      passes.token_spreads(name, passes_of_scorers[name]), jnp.maximum(last_B1, 0), axis=1)[:, 0]
                          for name in names], axis=1)
  return jnp.where(last_B1 >= 0, spreads_BE, 0)


# What an ensemble says of a completion: summaries of scores_BE, each one program.
_summary = functools.partial(field, np.float32, where="model", needs={"verifier.scores": ()})


@_summary()
def mean_scores_B(scores_BE: jax.Array) -> jax.Array:
  """Mean of the scores in verifier.scores; NaN: one of them is."""
  return _reduce_scores("mean", scores_BE)


@_summary()
def std_scores_B(scores_BE: jax.Array) -> jax.Array:
  """Spread of the scores in verifier.scores: their std, divided by E; NaN: one of them is."""
  return _reduce_scores("std", scores_BE)


@_summary()
def min_scores_B(scores_BE: jax.Array) -> jax.Array:
  """Least of the scores in verifier.scores; NaN: one of them is."""
  return _reduce_scores("min", scores_BE)


@_summary(options=dict(quantile="verifier.scores_quantile"))
def low_scores_B(scores_BE: jax.Array, *, quantile: float) -> jax.Array:
  """Quantile verifier.scores_quantile of the scores in verifier.scores; NaN: one of them is."""
  return _reduce_scores("quantile", scores_BE, quantile)


@functools.partial(jax.jit, static_argnums=(0, 2))
def _reduce_scores(kind: str, scores_BE: jax.Array, *more: float) -> jax.Array:
  return getattr(jnp, kind)(scores_BE, *more, axis=1)


@field(np.float32, where="model")
def values_BT(passes: passes_lib.Passes) -> jax.Array:
  """Values of the value model before its update."""
  return passes.values()


@field(np.float32, where="model")
def noise_B(passes: passes_lib.Passes, prompt_P: jax.Array) -> jax.Array:
  """Uniform in [0, 1); depends on the seed, step, prompt and place in the group only."""
  o = passes.options
  return jax.vmap(lambda prompt: jax.random.uniform(
      rng.key(o.seed, "noise", passes.state.step, prompt), (o.group,)))(prompt_P).ravel()


@field(np.float32, where="model", needs={"likelihood.max_tokens": 0})
def answer_logps_BM(passes: passes_lib.Passes, answer_rows: records.Rollouts) -> jax.Array:
  """Log-probs of the reference answer after prompt and reasoning, at temperature 1."""
  return passes.answers(answer_rows)


@field(np.float32, where="model", needs={"likelihood.max_tokens": 0})
def base_answer_logps_BM(passes: passes_lib.Passes, base_rows: records.Rollouts) -> jax.Array:
  """Log-probs of the reference answer directly after the prompt, at temperature 1."""
  return jnp.repeat(passes.answers(base_rows), passes.options.group, axis=0)


@field(np.float32, where="model",
       needs={"likelihood.steps": 0, "likelihood.max_tokens": 0, "rollouts.step_separator": None})
def step_answer_logps_BJM(passes: passes_lib.Passes, step_rows: list[records.Rollouts],
                          base_answer_logps_BM: jax.Array) -> jax.Array:
  """Log-probs of the reference answer after the first j steps; j = 0 is after the prompt."""
  return jnp.stack([base_answer_logps_BM, *map(passes.answers, step_rows)], axis=1)


@field(np.float32, where="model")
def noprompt_logps_BT(passes: passes_lib.Passes, noprompt_rows: records.Rollouts) -> jax.Array:
  """Log-probs of the policy without the prompt, as what was drawn from."""
  return passes.score_rows("policy", noprompt_rows, is_drawn=True)


@field(np.float32, where="model", needs={"teacher.hint": None})
def hinted_logps_BT(passes: passes_lib.Passes, hinted_rows: records.Rollouts) -> jax.Array:
  """Log-probs of the policy where the prompt has teacher.hint, of what was drawn from."""
  return passes.score_rows("policy", hinted_rows, is_drawn=True)


@field(np.float32, where="model", needs={"likelihood.token": None})
def self_logps_B(passes: passes_lib.Passes, last_token_rows: records.Rollouts) -> jax.Array:
  """The policy's log-prob of likelihood.token after the completion, at temperature 1."""
  return passes.score_rows("policy", last_token_rows)[:, 0]
