"""Completions and episodes of the policy, for training and for evaluation."""
from collections.abc import Mapping
import dataclasses
import functools
from typing import Any, Callable

import jax
import numpy as np

from rlx.core import records, rng
from rlx.core.options import key
from rlx.learner import hosts, sharding
from rlx.models import decode, size, transformer
from rlx.rollouts import episodes, padding, sampler, slots as slots_lib
from rlx.stages import dialogue, sizes as sizes_lib, texts as texts_lib


# Differences between the log-probs of sampler and trainer that rounding explains, in nats: the mean
# over tokens, and the largest. Measured (docs/gpu.md) were up to 5.7e-6 and 6.5e-5 in float32,
# where products that are TF32 made 2.1e-4, and 2.7e-2 and 0.21 in bfloat16, both with SmolLM2. The
# largest one grows with the number of tokens.
GAPS = {"float32": (1e-4, 1e-2), "bfloat16": (5e-2, 1.0)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
  """How completions of held-out prompts are sampled."""
  decoding: dict[str, Any]  # keyword arguments of decoding.next_token
  max_tokens: int
  samples: int              # of a prompt
  batch: int                # prompts sampled at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """The config values that sampling needs, other than those of `texts`."""
  sizes: sizes_lib.Sizes
  decoding: dict[str, Any]                          # keyword arguments of decoding.next_token
  evaluation: Mapping[str, Rule]                    # of held-out prompts, "", and of eval.sets
  slots: int | None = key("rollouts.slots")
  step_rollouts: int = key("train_scorer.step_rollouts")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampler:
  """Samples completions, or episodes, of a fixed number of prompts.

  Attributes:
    prompts, group: P and G of a call.
    rule: keyword arguments of decoding.next_token.
    max_tokens: of a completion, or of all after the prompt of an episode.
    slots: most rows decoded at once; None: all.
    dialogues: of the run's environment; None: prompts have one completion each.
    counts: whether `dialogues.metrics` counts the episodes.
    keeps: whether Rollouts have the ids of the tokens that could be drawn, as training needs.
  """
  config: transformer.DecoderConfig
  texts: texts_lib.Texts
  mesh: jax.sharding.Mesh
  chunk: int
  prompts: int
  group: int
  rule: dict[str, Any]
  max_tokens: int
  slots: int | None
  dialogues: dialogue.Dialogues | None = None
  counts: bool = False
  keeps: bool = False

  def __call__(self, params: Any, prompts: list[records.Prompt], key_: jax.Array,
               factor_T: jax.Array | None = None, weights: Any = None) -> records.Rollouts:
    """Rollouts on the host; `factor_T` and `weights` are those of `sampler.make`."""
    encoded = encode(self.texts, self.mesh, prompts)
    most_P = sharding.place_rows(np.array(
        [min(p.max_tokens or self.max_tokens, self.max_tokens) for p in prompts], np.int32),
                                 self.mesh)
    if self.dialogues is None:
      return hosts.fetch(self.sample(params, *encoded, key_, factor_T, weights, most_P))
    with self.dialogues.start_episodes(prompts, self.group, counts=self.counts) as answers:
      return self.sample(params, *encoded, key_, answers, factor_T, weights, most_P)

  @functools.cached_property
  def sample(self) -> Callable[..., records.Rollouts]:
    """The function of `sampler.make` or, with an environment, of `episodes.make`."""
    make = sampler.make if self.dialogues is None else episodes.make
    return make(self.config, **self._options, stops=self.texts.stops, fetch=hosts.fetch,
                put=hosts.put, decode=self.texts.tokenizer.decode,
                lay_out=functools.partial(lay_out, self.config, self.mesh))

  @property
  def _options(self) -> dict[str, Any]:
    tokenizer = self.texts.tokenizer
    return dict(self.rule, keeps=self.keeps, max_tokens=self.max_tokens, chunk=self.chunk,
                eos_ids=tokenizer.eos_ids, pad_id=tokenizer.pad_id, group=self.group,
                stop_ids=self.texts.stop_ids, slots=self.slots,
                **(self.dialogues.sizes(self.max_tokens) if self.dialogues else {}))

  @property
  def kept(self) -> int:
    """K of kept_BTK; 0: there is none."""
    return sampler.count_kept(self.config, self.keeps, self.rule)

  def trace(self, params: Any, weights: Any, **more: Any) -> dict[str, tuple]:
    """The programs of a call, see `sampler.trace`, for shapes of parameters and weights."""
    place = functools.partial(sharding.row_shapes, mesh=self.mesh, heads=True)
    trace = sampler.trace if self.dialogues is None else episodes.trace
    return trace(self.config, params, weights, place, prompts=self.prompts,
                 prompt_tokens=self.texts.prompt_tokens, **self._options, **more)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampling:
  """The samplers of a run.

  Attributes:
    train, baseline: `first_pass` completions of each prompt, and one greedy completion.
    greedy, sampled: one and eval.samples completions of each held-out prompt.
    sets: {name: {"greedy", "sampled"}: Sampler} of eval.sets.
    after_steps: train_scorer.step_rollouts completions of prompts that are given as tokens.
    device_bytes: memory of a device, which limits the slots; None: unknown.
  """
  train: Sampler
  baseline: Sampler
  greedy: Sampler
  sampled: Sampler
  sets: Mapping[str, Mapping[str, Sampler]]
  after_steps: Sampler
  device_bytes: int | None

  def encode(self, prompts: list[records.Prompt]) -> tuple[jax.Array, ...]:
    """tokens_PX, prompt_len_P and prompt_P of prompts, on the mesh."""
    return encode(self.train.texts, self.train.mesh, prompts)

  def lay_out(self, params: Any) -> Any:
    """The weights as decoding reads them; once for each policy."""
    return lay_out(self.train.config, self.train.mesh, params)

  @property
  def slots(self) -> dict[str, int | None]:
    """{"train", "greedy", "sampled"}: most rows decoded at once; None: all."""
    return {name: getattr(self, name).slots for name in ("train", "greedy", "sampled")}

  def trace(self, name: str, params: Any, **more: Any) -> dict[str, tuple]:
    """The programs of one of the samplers or of "hand-over", see `sampler.trace`.

    Args:
      name: "train", "greedy", "sampled", or with a set of eval.sets "greedy/NAME".
    """
    config, mesh = self.train.config, self.train.mesh
    weights = sharding.gather_shapes(jax.eval_shape(self.lay_out, params), mesh)
    if name != "hand-over":
      kind, _, of_set = name.partition("/")
      chosen = self.sets[of_set][kind] if of_set else getattr(self, kind)
      return chosen.trace(params, weights, **more)
    # Beside a layer are all tables and the other layers.
    tables = {k: x for k, x in weights.items() if k != "layers"}
    beside = {"tables": (), "a layer": (tables, weights["layers"][1:])}
    return {part: (*program, beside[part]) for part, program in decode.trace(
        params, config, _gather(mesh)).items()}


def make_sampling(o: Options, texts: texts_lib.Texts, config: transformer.DecoderConfig,
                  mesh: jax.sharding.Mesh, *, device_bytes: int | None = None,
                  bytes_free: int | None = None,
                  dialogues: dialogue.Dialogues | None = None) -> Sampling:
  """The Sampling of a run.

  Args:
    config: DecoderConfig of the policy.
    device_bytes: memory of a device; None: unknown.
    bytes_free: memory of a device that the state does not use; None: unknown.
    dialogues: of the run's environment; None: prompts have one completion each.
  """
  sizes, k = o.sizes, o.step_rollouts
  def make(prompts: int, group: int, rule: dict[str, Any],
           max_tokens: int = texts.completion_tokens, **more: Any) -> Sampler:
    slots = most_rows(o, texts, config, mesh, bytes_free, prompts, group, max_tokens)
    return Sampler(config=config, texts=texts, mesh=mesh, chunk=sizes.chunk, prompts=prompts,
                   group=group, rule=rule, max_tokens=max_tokens,
                   **{"slots": slots, "dialogues": dialogues, **more})
  def make_both(rule: Rule) -> dict[str, Sampler]:
    return dict(greedy=make(rule.batch, 1, _GREEDY, rule.max_tokens),
                sampled=make(rule.batch, rule.samples, rule.decoding, rule.max_tokens))
  train = make(sizes.draw, sizes.first_pass, o.decoding, counts=True, keeps=True)
  part = k * sharding.row_shards(mesh)
  return Sampling(
      train=train, device_bytes=device_bytes, baseline=make(sizes.prompts, 1, _GREEDY),
      **make_both(o.evaluation[""]),
      sets={name: make_both(rule) for name, rule in o.evaluation.items() if name},
      after_steps=make(sizes.draw, k, o.decoding, dialogues=None,
                       slots=train.slots and max(train.slots // part, 1) * part))


_GREEDY = dict(temperature=0.0)


def encode(texts: texts_lib.Texts, mesh: jax.sharding.Mesh,
           prompts: list[records.Prompt]) -> tuple[jax.Array, ...]:
  """tokens_PX, prompt_len_P and prompt_P of prompts, on the mesh."""
  tokens_PX, len_P = padding.pad_left(
      list(map(texts.prompt_ids, prompts)), texts.prompt_tokens, texts.tokenizer.pad_id)
  ids_P = np.array([rng.number(p.id) for p in prompts], np.uint32)
  return tuple(sharding.place_rows(x, mesh) for x in (tokens_PX, len_P, ids_P))


def most_rows(o: Options, texts: texts_lib.Texts, config: transformer.DecoderConfig,
              mesh: jax.sharding.Mesh, bytes_free: int | None, prompts: int,
              group: int, max_tokens: int) -> int | None:
  """The largest number of rows of a draw that are decoded at once; None: all of them.

  Args:
    config: DecoderConfig of the policy.
    bytes_free: memory of a device that the state does not use; None: unknown.
    prompts, group, max_tokens: P, G and T of the draw.
  """
  shards, config = sharding.row_shards(mesh), size.shard_config(config, mesh.shape["tensor"])
  if o.slots is not None: return max(o.slots // (group * shards), 1) * group * shards
  # A row may need its own copy of its prompt's cache, and its cache grows by chunks.
  tokens = texts.prompt_tokens + max_tokens + o.sizes.chunk
  fit = slots_lib.count_fitting(prompts * group // shards, group,
                                tokens * size.kv_bytes_per_token(config), bytes_free)
  return fit and fit * shards


def lay_out(config: transformer.DecoderConfig, mesh: jax.sharding.Mesh, params: Any) -> Any:
  """The decoder's weights, replicated except over the tensor axis.

  Trained parameters are sharded over fsdp. A decode step multiplies few rows and would gather
  all parameters for each token.
  """
  return decode.lay_out(params, config, _gather(mesh))


@functools.cache  # One function for each mesh: a later run finds what an earlier one compiled.
def _gather(mesh: jax.sharding.Mesh) -> Callable:
  return functools.partial(sharding.gather, mesh=mesh)
