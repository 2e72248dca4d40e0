"""Completions and episodes of the policy, for training and for evaluation."""
import dataclasses
import functools
from typing import Any, Callable

import jax
import numpy as np

from rlx.core.options import key
from rlx.core import rng
from rlx.learner import hosts
from rlx.learner import sharding
from rlx.models import decode
from rlx.models import size
from rlx.models import transformer
from rlx.rollouts import episodes
from rlx.rollouts import padding
from rlx.rollouts import sampler
from rlx.rollouts import slots as slots_lib
from rlx.stages import dialogue
from rlx.stages import texts as texts_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """The config values that sampling needs, other than those of `texts`."""
  decoding: dict[str, Any]                          # keyword arguments of decoding.next_token
  chunk: int = key("rollouts.chunk")
  slots: int | None = key("rollouts.slots")
  draw: int                                         # prompts of a draw
  first_pass: int                                   # completions of each
  eval_batch: int = key("eval.batch")
  eval_samples: int = key("eval.samples")
  step_rollouts: int = key("train_prm.step_rollouts")


@dataclasses.dataclass(frozen=True)
class Sampling:
  """The samplers of a run.

  train, greedy and sampled are functions (params, prompts, key, factor_T=None, weights=None) ->
  Rollouts on the host: `first_pass`, one and eval.samples completions of each prompt. They take
  as many prompts as a draw or eval.batch has.
  """
  encode: Callable             # prompts -> tokens_PX, prompt_len_P, prompt_P on the mesh
  lay_out: Callable            # params -> weights as decoding reads them, once per policy
  train: Callable
  greedy: Callable
  sampled: Callable
  steps: Callable              # (params, *encoded, key) -> train_prm.step_rollouts completions
  traced: Callable             # (name, params) -> programs, see tools/preflight.py
  slots: dict[str, int | None]  # {"train", "greedy", "sampled"}: most rows decoded at once, or None
  device_bytes: int | None     # memory of a device, which limits the slots; None: unknown


def make(o: Options, texts: texts_lib.Texts, config: transformer.DecoderConfig,
         mesh: jax.sharding.Mesh, *, device_bytes: int | None = None,
         bytes_free: int | None = None, dialogues: dialogue.Dialogues | None = None) -> Sampling:
  """The Sampling of a run.

  Args:
    config: DecoderConfig of the policy.
    device_bytes: memory of a device; None: unknown.
    bytes_free: memory of a device that the state does not use; None: unknown.
    dialogues: of the run's environment; None: prompts have one completion each.
  """
  tokenizer, greedy, k = texts.tokenizer, dict(temperature=0.0), o.step_rollouts
  lay_out, shards = layout(config, mesh), sharding.row_shards(mesh)
  most = functools.partial(most_rows, o, texts, config, mesh, bytes_free)
  slots = dict(train=most(o.draw, o.first_pass), greedy=most(o.eval_batch, 1),
               sampled=most(o.eval_batch, o.eval_samples))
  calls = dict(train=(o.draw, o.first_pass, o.decoding), greedy=(o.eval_batch, 1, greedy),
               sampled=(o.eval_batch, o.eval_samples, o.decoding))
  fixed = dict(max_tokens=texts.completion_tokens, chunk=o.chunk, eos_ids=tokenizer.eos_ids,
               pad_id=tokenizer.pad_id)
  places = dict(lay_out=lay_out, stops=texts.stops, decode=tokenizer.decode, fetch=hosts.fetch,
                put=hosts.put)

  def encode(prompts):
    tokens_PX, len_P = padding.left_pad(
        list(map(texts.prompt_ids, prompts)), texts.prompt_tokens, tokenizer.pad_id)
    ids_P = np.array([rng.number(p.id) for p in prompts], np.uint32)
    return tuple(sharding.place_rows(x, mesh) for x in (tokens_PX, len_P, ids_P))

  def completions(name):
    _, group, rule = calls[name]
    sample = sampler.make(config, **fixed, **places, **rule, group=group, slots=slots[name])
    return lambda params, prompts, key_, factor_T=None, weights=None: hosts.fetch(
        sample(params, *encode(prompts), key_, factor_T, weights))

  def episodes_of(name):
    assert dialogues is not None
    _, group, rule = calls[name]
    sample = episodes.make(config, **fixed, **places, **rule, **dialogues.sizes, group=group,
                           slots=slots[name])
    def draw(params, prompts, key_, factor_T=None, weights=None):
      with dialogues.started(prompts, group, counts=name == "train") as answers:
        return sample(params, *encode(prompts), key_, answers, factor_T, weights)
    return draw

  def traced(name, params, **more):
    weights = sharding.gathered_shapes(jax.eval_shape(lay_out, params), mesh)
    if name == "hand-over":  # Beside a layer are all tables and the other layers.
      tables = {k: x for k, x in weights.items() if k != "layers"}
      beside = {"tables": (), "a layer": (tables, weights["layers"][1:])}
      return {part: (*program, beside[part]) for part, program in decode.traced(
          params, config, functools.partial(sharding.gathered, mesh=mesh)).items()}
    prompts, group, rule = calls[name]
    place = functools.partial(sharding.row_shapes, mesh=mesh, heads=True)
    sizes = dict(fixed, **rule, prompts=prompts, prompt_tokens=texts.prompt_tokens, group=group,
                 slots=slots[name], **more)
    if dialogues is None: return sampler.traced(config, params, weights, place, **sizes)
    return episodes.traced(config, params, weights, place, **sizes, **dialogues.sizes)

  step_slots = slots["train"] and max(slots["train"] // (k * shards), 1) * k * shards
  return Sampling(
      encode=encode, lay_out=lay_out, slots=slots, device_bytes=device_bytes, traced=traced,
      **{name: (completions if dialogues is None else episodes_of)(name) for name in calls},
      steps=sampler.make(config, **fixed, **places, **o.decoding, group=k, slots=step_slots))


def most_rows(o: Options, texts: texts_lib.Texts, config: transformer.DecoderConfig,
              mesh: jax.sharding.Mesh, bytes_free: int | None, prompts: int,
              group: int) -> int | None:
  """The largest number of rows of a draw that are decoded at once; None: all of them.

  Args:
    config: DecoderConfig of the policy.
    bytes_free: memory of a device that the state does not use; None: unknown.
    prompts, group: P and G of the draw.
  """
  shards, config = sharding.row_shards(mesh), size.part(config, mesh.shape["tensor"])
  if o.slots is not None: return max(o.slots // (group * shards), 1) * group * shards
  # A row may need its own copy of its prompt's cache, and its cache grows by chunks.
  tokens = texts.prompt_tokens + texts.completion_tokens + o.chunk
  fit = slots_lib.that_fit(prompts * group // shards, group,
                           tokens * size.kv_bytes_per_token(config), bytes_free)
  return fit and fit * shards


def layout(config: transformer.DecoderConfig, mesh: jax.sharding.Mesh) -> Callable:
  """Returns params -> the decoder's weights, replicated except over the tensor axis.

  Trained parameters are sharded over fsdp. A decode step multiplies few rows and would gather
  all parameters for each token.
  """
  place = functools.partial(sharding.gathered, mesh=mesh)
  return lambda params: decode.lay_out(params, config, place)
