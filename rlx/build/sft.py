"""The built config of supervised fine-tuning."""
import dataclasses
import functools
from typing import Callable

import numpy as np

from rlx.build import keys
from rlx.build import models as build_models
from rlx.build import prompts as build_prompts
from rlx.build import updates as updates_lib
from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.io import tokenizer as tokenizer_io
from rlx.learner import sharding
from rlx.models import transformer
from rlx.stages import update_sft


@dataclasses.dataclass(frozen=True)
class Sft:
  """The built config of supervised fine-tuning."""
  model: transformer.DecoderConfig
  tokenizer: tokenizer_io.Tokenizer
  init: Callable               # () -> TrainState of the policy
  batch: Callable              # step -> Rollouts of worked examples, on the mesh
  update: Callable             # (params, opt_state, Rollouts) -> params, opt_state, metrics, None
  close: Callable              # stops the environment's processes


def build_sft(config: keys.Config) -> Sft:
  """Checks `config` and binds what supervised fine-tuning needs of it.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  c = config
  if c.lora.rank: raise ValueError(f"lora.rank={c.lora.rank}: 0; sft trains all parameters.")
  demonstrate = resolve.bind("prompts.datasets", c.sft.target, "sft.target", n_given=2)
  mesh = sharding.make_mesh(**c.mesh)
  shards = sharding.row_shards(mesh)
  if c.sft.batch % (c.sft.microbatches * shards):
    raise ValueError(f"sft.batch={c.sft.batch}: must be a multiple of sft.microbatches="
                     f"{c.sft.microbatches} x mesh.data x mesh.fsdp = {shards}.")
  model_config, params, tokenizer = build_models.load_sft_model(c)
  model_config = build_models.on_mesh(model_config, mesh)
  transform, (texts, dialogues) = updates_lib.optimizer_of(c, "sft"), build_prompts.texts_and_dialogues(c, tokenizer)
  prompts, _ = build_prompts.load_prompts(c, texts)
  if dialogues: dialogues.start(tokenizer, prompts[0])
  build_prompts.note_template(texts, prompts[0])
  seed, size = c.seed, c.sft.batch

  def init():
    policy = sharding.place(params, mesh)
    return records.TrainState(step=0, policy=policy,
                              policy_opt=sharding.made(transform.init, policy, mesh))

  def batch(step):
    draw = np.random.default_rng([seed, rng.number("sft"), step])
    chosen = draw.choice(len(prompts), size, replace=False).tolist()
    rollouts = texts.episodes(map(episode, chosen)) if dialogues else texts.examples(
        [(texts.prompt(prompts[i]), demonstrate(prompts[i], draw)) for i in chosen])
    return sharding.place_rows(rollouts, mesh)

  @functools.cache  # Steps of an environment take longer than drawing a text.
  def episode(i):
    draw = np.random.default_rng([seed, rng.number("sft"), rng.number(prompts[i].id)])
    return dialogues.played(prompts[i], demonstrate(prompts[i], draw))

  return Sft(
      model_config, tokenizer, init, batch, update_sft.sft(
          model_config, transform, microbatches=c.sft.microbatches, mesh=mesh),
      close=dialogues.close if dialogues else lambda: None)
