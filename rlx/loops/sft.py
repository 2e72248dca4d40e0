"""Supervised fine-tuning on worked examples, which gives a policy to start RL from.

  rlx sft sft_chain workdir=/tmp/rlx/sft_chain

The result is an HF directory, <workdir>/model, which `model.path` reads.
"""
import dataclasses
import pathlib

import jax
import numpy as np
import tqdm

from rlx import build
from rlx import cli
from rlx import keys
from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.io import hf
from rlx.io import metrics as io_metrics
from rlx.io import tokenizer as tokenizer_io
from rlx.io import trackers
from rlx.learner import hosts
from rlx.learner import sharding
from rlx.learner import step as learner_step
from rlx.losses import aggregate
from rlx.losses import sft as sft_loss
from rlx.models import logps
from rlx.models import transformer
from rlx.rollouts import padding


def train(config, workdir):
  """Trains config.sft.steps steps on (prompt, target) pairs and exports the model to HF."""
  c, workdir = config, pathlib.Path(workdir)
  keys.check(c)
  if c.lora.rank: raise ValueError(f"lora.rank={c.lora.rank}: 0; sft trains all parameters.")
  demonstrate = resolve.bind("prompts.datasets", c.sft.target, "sft.target", n_given=2)
  trackers.check(c.log.writers)
  mesh = sharding.make_mesh(**c.mesh)
  shards = sharding.row_shards(mesh)
  if c.sft.batch % (c.sft.microbatches * shards):
    raise ValueError(f"sft.batch={c.sft.batch}: must be a multiple of sft.microbatches="
                     f"{c.sft.microbatches} x mesh.data x mesh.fsdp = {shards}.")
  model_config, params, tokenizer = start(c)
  model_config = build.on_rows(model_config, mesh)
  cli.record(config, workdir)
  writer = io_metrics.Writer(workdir, trackers=c.log.writers, config=c.to_dict(),
                             fetch=hosts.fetch)
  transform = build.optimizer_of(c, "sft")
  params = sharding.place(params, mesh)
  opt_state = sharding.made(transform.init, params, mesh)
  text = build.text_of(c, tokenizer)
  prompts, _ = build.load_prompts(c, tokenizer, text)
  build.note_template(c, tokenizer, prompts[0])

  def loss(params, rollouts):
    logps_BT, _ = logps.logps(
        params, model_config, rollouts.tokens_BS, rollouts.positions_BS,
        rollouts.valid_BS, completion_width=rollouts.sampler_logps_BT.shape[1],
        with_entropy=False)
    mask_BT = rollouts.mask_BT
    return aggregate.aggregate(sft_loss.nll(logps_BT, mask_BT), mask_BT,
                               mode="token-mean"), {}, None

  update = learner_step.make(loss, transform, microbatches=c.sft.microbatches,
                             shards=shards)
  for step in tqdm.trange(c.sft.steps, unit="step"):
    draw = np.random.default_rng([c.seed, rng.number("sft"), step])
    chosen = draw.choice(len(prompts), c.sft.batch, replace=False)
    pairs = [(text(prompts[i]), demonstrate(prompts[i], draw)) for i in chosen]
    batch = batch_of(pairs, c, tokenizer)
    params, opt_state, metrics, _ = update(
        params, opt_state, sharding.place_rows(batch, mesh))
    writer.write(step, {f"sft/{k}": v for k, v in metrics.items()})
  writer.close()
  hf.save(workdir / "model", model_config, params, tokenizer)
  print(f"{workdir / 'model'}  the model; set model.path to it")


def start(c):
  """Loads the model of model.path; if it is None, initialises one with the sizes of sft.fresh.

  Raises:
    ValueError: sft.fresh lacks a size or has an unknown one.
  """
  if c.model.path is not None: return build.load_model(c, c.model.path)
  sizes = c.sft.fresh.to_dict()
  fields = {f.name: f.default for f in dataclasses.fields(transformer.DecoderConfig)}
  needed = {k for k, v in fields.items() if v is dataclasses.MISSING}
  needed = needed - {"vocab_size"} | {"alphabet"}
  if needed - sizes.keys() or sizes.keys() - needed - fields.keys():
    raise ValueError(f"sft.fresh has {sorted(sizes)}; needed are {sorted(needed)}.")
  tokens = tokenizer_io.characters(sizes.pop("alphabet"))
  config = transformer.DecoderConfig(
      vocab_size=len(tokens.vocabulary), dtype=c.model.dtype,
      param_dtype=c.model.param_dtype,
      attention=c.model.attention, remat=c.model.remat, **sizes)
  return config, transformer.init(config, rng.key(c.seed, "init")), tokens


def batch_of(pairs, c, tokenizer):
  """Returns (prompt, target) texts as Rollouts, with EOS after each target."""
  prompts, targets = zip(*(tokenizer.pair(*pair) for pair in pairs))
  targets = [ids + [tokenizer.end_id] for ids in targets]
  tokens_BX, prompt_len_B = padding.left_pad(
      prompts, c.prompts.max_tokens, tokenizer.pad_id)
  tokens_BT, target_len_B = padding.right_pad(
      targets, c.rollouts.max_tokens, tokenizer.pad_id)
  return records.Rollouts(
      tokens_BS=np.concatenate([tokens_BX, tokens_BT], axis=1),
      prompt_len_B=prompt_len_B, completion_len_B=target_len_B,
      sampler_logps_BT=np.zeros(tokens_BT.shape, np.float32),
      finish_B=np.zeros(len(pairs), np.int32), prompt_P=None)


if __name__ == "__main__":
  cli.main(train)
