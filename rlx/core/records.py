"""The records that travel between stages. There are five.

  Prompt     one question with what its verifier needs (host)
  Rollouts   sampled completions (device)
  Scored     rollouts with everything a method may ask for by name (device)
  Weighted   a mean kept as sum and weight
  TrainState everything that learning changes
"""
import dataclasses
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

FINISH = ("length", "eos", "stop")  # How a completion ended; Rollouts.finish_B.


@dataclasses.dataclass(frozen=True)
class Prompt:
  """One question. `id` is unique within its data set and stable across runs."""
  id: str
  text: str                  # the question, before any template
  answer: str = ""           # what the verifier compares with
  verifier: str = ""         # import path below rlx/verifiers: "math_answer.boxed"
  meta: dict = dataclasses.field(default_factory=dict)  # whatever else the verifier needs

  def again(self, i):
    """The same under another id: its completions are drawn with other keys."""
    return dataclasses.replace(self, id=f"{self.id}/again{i}")


@flax.struct.dataclass
class Rollouts:
  """P*G sampled completions: [left padding | prompt | completion | right padding]."""
  tokens_BS: jax.Array         # int32
  prompt_len_B: jax.Array      # int32, tokens of the prompt
  completion_len_B: jax.Array  # int32, tokens of the completion, EOS included
  sampler_logps_BT: jax.Array  # float32, what the sampler drew from, 0 on padding
  finish_B: jax.Array          # int32, index into FINISH
  prompt_P: jax.Array          # uint32, rng.number(prompt id): groups stay traceable

  def rows(self):
    """The same without what is per prompt, so that it can be cut between any rows."""
    return self.replace(prompt_P=None)

  @property
  def prompt_width(self):
    """X, the padded width of the prompts."""
    return self.tokens_BS.shape[1] - self.sampler_logps_BT.shape[1]

  @property
  def completions_BT(self):
    return self.tokens_BS[:, self.prompt_width:]

  @property
  def mask_BT(self):
    """True on completion tokens, EOS included."""
    columns_1T = jnp.arange(self.sampler_logps_BT.shape[1])[None, :]
    return columns_1T < self.completion_len_B[:, None]

  @property
  def positions_BS(self):
    """Position of each token in its own sequence; 0 on left padding."""
    columns_1S = jnp.arange(self.tokens_BS.shape[1])[None, :]
    start_B1 = (self.prompt_width - self.prompt_len_B)[:, None]
    return jnp.maximum(columns_1S - start_B1, 0)

  @property
  def valid_BS(self):
    """True on prompt and completion tokens."""
    columns_1S = jnp.arange(self.tokens_BS.shape[1])[None, :]
    start_B1 = (self.prompt_width - self.prompt_len_B)[:, None]
    end_B1 = (self.prompt_width + self.completion_len_B)[:, None]
    return (columns_1S >= start_B1) & (columns_1S < end_B1)


@flax.struct.dataclass
class Scored:
  """Completions with everything a reward, estimator or loss may ask for by name.

  Fields default to None; `build.py` refuses at startup a config whose methods
  ask for a field that the run does not compute.
  """
  action_BT: jax.Array                 # bool, tokens that the policy drew, EOS included
  outcome_B: jax.Array                 # verdict in [0, 1]; NaN = could not tell
  tokens_BT: jax.Array | None = None         # int32, the completions
  old_logps_BT: jax.Array | None = None      # policy before the update, at the sampling temperature; None until the update if only that needs it
  logps_BT: jax.Array | None = None          # policy being updated (differentiable)
  entropy_BT: jax.Array | None = None        # of the policy being updated
  top_logps_BTK: jax.Array | None = None     # log-probs of the K most likely tokens, the most likely first (differentiable)
  mean_logps_BT: jax.Array | None = None     # mean log-prob of all tokens of the vocabulary
  old_mean_logps_BT: jax.Array | None = None   # the same of the policy before the update
  old_sum_pi_squared_BT: jax.Array | None = None  # sum of the squared probabilities of all tokens, before the update
  old_logits_BT: jax.Array | None = None     # logit of the token drawn, before the update
  old_min_p_logps_BT: jax.Array | None = None  # log-prob among the tokens that distribution.min_p leaves, before the update
  sampler_logps_BT: jax.Array | None = None  # what the sampler drew from
  prm_logps_BT: jax.Array | None = None      # log pi_phi (differentiable in PRM losses)
  prm_old_logps_BT: jax.Array | None = None  # log pi_phi of the scoring pass
  prm_ref_logps_BT: jax.Array | None = None      # log pi_ref of the PRM's log-ratio, both at temperature 1
  ref_logps_BT: jax.Array | None = None  # log pi_ref of the policy's KL, at the sampling temperature
  prm_beta_B: jax.Array | None = None        # prm.beta, the same in every row: batches are cut by rows
  kl_ratio_B: jax.Array | None = None        # log-ratio sums of mismatched prompt-completion rows (KTO)
  values_BT: jax.Array | None = None         # value model before the update
  old_values_BT: jax.Array | None = None
  returns_BT: jax.Array | None = None        # targets of the value model
  step_ends_BT: jax.Array | None = None      # bool, last token of each reasoning step
  step_scores_BT: jax.Array | None = None    # of each step on its last token, in [0, 1], 0 elsewhere; NaN = could not tell
  finish_B: jax.Array | None = None          # int32, index into FINISH
  scores_BE: jax.Array | None = None         # of the verifiers in verifier.scores; NaN = could not tell
  answer_B: jax.Array | None = None          # int32, equal where the answers stated are; -1 = none
  pair_B: jax.Array | None = None            # int32, place in the batch of the prompt that is the other wording; -1 = none
  noise_B: jax.Array | None = None           # uniform in [0, 1), one draw for every method that reads it
  answer_logps_BM: jax.Array | None = None   # the reference answer after prompt and reasoning, at temperature 1
  answer_mask_BM: jax.Array | None = None    # bool, tokens of the reference answer
  base_answer_logps_BM: jax.Array | None = None   # the same after the prompt alone
  step_answer_logps_BJM: jax.Array | None = None  # the same after the first j steps; j = 0 is the base
  answer_span_BT: jax.Array | None = None    # bool, the completion's own answer
  noprompt_logps_BT: jax.Array | None = None  # policy without the prompt, at the sampling temperature
  self_logps_B: jax.Array | None = None      # policy of likelihood.token after the completion
  demo_B: jax.Array | None = None            # bool, rows that are demonstrations, not samples
  rehearsal_BT: jax.Array | None = None      # bool, tokens of stored completions, which have no verdict
  greedy_B: jax.Array | None = None          # verdict of the prompt's greedy completion, on each of its rows; NaN = could not tell
  advantages_BT: jax.Array | None = None
  group: int = flax.struct.field(pytree_node=False, default=1)  # G

  @property
  def learn_B(self):
    """Rows that may give a gradient or a baseline: judged by all, not empty."""
    learn_B = ~jnp.isnan(self.outcome_B) & jnp.any(self.action_BT, axis=1)
    if self.scores_BE is None: return learn_B
    return learn_B & ~jnp.any(jnp.isnan(self.scores_BE), axis=1)

  @property
  def learn_BT(self):
    """Tokens that give a gradient: drawn by the policy, in a row of learn_B."""
    return self.action_BT & self.learn_B[:, None]

  @property
  def prm_beta(self):
    """Scale of the PRM's log-ratio."""
    return None if self.prm_beta_B is None else self.prm_beta_B[0]

  @property
  def lengths_B(self):
    return jnp.sum(self.action_BT, axis=1)

  @property
  def outcome_PG(self):
    return self.outcome_B.reshape(-1, self.group)

  @property
  def learn_PG(self):
    return self.learn_B.reshape(-1, self.group)

  @property
  def lengths_PG(self):
    return self.lengths_B.reshape(-1, self.group)

  @property
  def finish_PG(self):
    return self.finish_B.reshape(-1, self.group)

  @property
  def scores_B(self):
    """Of the first verifier in verifier.scores."""
    return self.scores_BE[:, 0]

  @property
  def scores_PG(self):
    return self.scores_B.reshape(-1, self.group)

  @property
  def answer_PG(self):
    return self.answer_B.reshape(-1, self.group)

  @property
  def demo_PG(self):
    return None if self.demo_B is None else self.demo_B.reshape(-1, self.group)

  @property
  def pair_PG(self):
    return self.pair_B.reshape(-1, self.group)

  @property
  def noise_PG(self):
    return self.noise_B.reshape(-1, self.group)


@flax.struct.dataclass
class Weighted:
  """A mean kept as (total, weight), so microbatches and devices add up exactly.

  weight 0 means there is nothing to divide by: a plain sum, or an empty batch.
  """
  total: jax.Array
  weight: jax.Array

  def __add__(self, other):
    return Weighted(self.total + other.total, self.weight + other.weight)

  def mean(self):
    return self.total / jnp.where(self.weight > 0, self.weight, 1)


@flax.struct.dataclass
class TrainState:
  """Everything that learning changes, and what it is measured against."""
  step: Any                    # int, RL iterations done
  policy: Any
  policy_opt: Any
  reference: Any = None        # the policy's start, frozen; None when nothing asks for it
  kl_reference: Any = None     # the policy's reference where it moves (kl.sync_every)
  prm: Any = None
  prm_opt: Any = None
  prm_reference: Any = None    # the PRM's start, frozen, if the PRM is its own reference
  value: Any = None
  value_opt: Any = None
  kl_coef: Any = None          # adaptive KL coefficient, if one is used
  sampler: Any = None          # what completions are drawn from if not from the policy (rollouts.sync_every)
  reward_std: Any = None       # running spread of a group's rewards, if groups are kept by it
  frozen: Any = None           # what all models above are adapters over; None: they are whole

  @property
  def sampled_from(self):
    """The name of the model that completions are drawn from."""
    return "policy" if self.sampler is None else "sampler"

  def full(self, name):
    """The parameters of a model, adapters together with what they adapt."""
    return join(self.frozen, getattr(self, name))


def join(frozen, trained):
  """One tree of both; `trained` wins. Copies nothing; frozen None is no tree."""
  if frozen is None or not isinstance(trained, dict): return trained
  return {**frozen, **{k: join(frozen.get(k), v) for k, v in trained.items()}}
