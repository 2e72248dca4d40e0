"""A run of a few thousand parameters on made-up questions, for tests of whole loops."""
import contextlib
import dataclasses
import functools
import json
import shutil
import types

import jax
import numpy as np
import pytest

from rlx import build
from rlx.configs import base
from rlx.core import rng
from rlx.io import checkpoint, hf, metrics as io_metrics, tokenizer
from rlx.loops import session
from rlx.models import transformer


def draw_decoder(config):
  """Random numbers in every parameter of a decoder, without the program of `transformer.init`."""
  rng = np.random.default_rng(0)
  return jax.tree.map(
      lambda x: (0.5 * rng.normal(size=x.shape)).astype(np.float32),
      jax.eval_shape(functools.partial(transformer.init, config), jax.random.key(0)))


CLOCK = types.SimpleNamespace(lap=lambda *_: None)  # It measures nothing.


def write(folder, *, train=64, test=8, alphabet="0123456789abcdefgh"):
  """A random model, and questions whose verdict is the share of letters in a completion."""
  tokens = tokenizer.characters(alphabet)
  config = transformer.DecoderConfig(
      vocab_size=len(tokens.vocabulary), d_model=16, n_layers=1, n_heads=8,
      n_kv_heads=4, head_dim=4, d_ff=32)
  hf.save(folder / "model", config, transformer.init(config, jax.random.key(0)), tokens)
  for split, letter, n in (("train", "a", train), ("test", "b", test)):
    (folder / f"{split}.jsonl").write_text("".join(
        json.dumps(dict(question=f"{letter}{i:02d}", answer="x")) + "\n" for i in range(n)))


def say_more(model, **generation):
  """Gives a model what others come with: a family, a padding token, settings for sampling and a
  chat template. Returns what config.json and generation_config.json say."""
  def change(name, **values):
    told = json.loads((model / name).read_text()) | values
    (model / name).write_text(json.dumps(told))
    return told
  (model / "chat_template.jinja").write_text("{{ messages[0].content }}")
  return (
      change("config.json", model_type="mistral", architectures=["MistralForCausalLM"],
             sliding_window=None, pad_token_id=0, bos_token_id=None, eos_token_id=1,
             use_cache=False),
      change("generation_config.json", temperature=0.7, top_p=0.8, do_sample=True, pad_token_id=0,
             **generation))


def config(folder, **changes):
  """The config of a run on what `write` wrote; in `changes`, __ stands for the dots of a key."""
  c = base.get_config()
  c.steps, c.model.path = 4, str(folder / "model")
  c.prompts.source, c.prompts.dataset = f"jsonl:{folder}/{{split}}.jsonl", "jsonl"
  c.prompts.columns = dict(verifier="format.ascii_share")
  c.prompts.per_step, c.prompts.max_tokens = 8, 4
  c.rollouts.per_prompt, c.rollouts.max_tokens = 4, 4
  c.rollouts.chunk = c.rollouts.bucket = 4
  c.rollouts.filter_groups.low, c.rollouts.filter_groups.high = 0.25, 0.8
  c.rollouts.oversample, c.rollouts.max_draws = 1.5, 3
  c.learner.pack = False  # One shape to compile, not one per batch.
  c.learner.optimizer.lr = c.prm.optimizer.lr = 3e-3
  c.learner.minibatches = c.prm.minibatches = 2
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.final_samples = 0, 8, 8, 1
  c.checkpoint.every, c.log.completions_every = 2, 1
  for key, value in changes.items():
    *sections, name = key.split("__")
    section = c
    for part in sections: section = section[part]
    with section.ignore_type():
      section[name] = base.ml_collections.ConfigDict(value) if isinstance(value, dict) else value
  return c


_FIRST = {}  # {the options of a stage: the first one that has them}


def build_run(c, **given):
  """`build.build`, with the programs of earlier runs whose stages have the same options."""
  return share_programs(build.build(c, **given))


def share_programs(run):
  """The run, with the programs of earlier ones whose stages have the same options."""
  for stage in run.updates.values():
    stage = getattr(stage, "update", stage)  # Of a judge.
    alike = dataclasses.replace(stage, learner=dataclasses.replace(stage.learner, offload=False))
    if stage is run.update_policy:  # Its loss does not depend on the PRM's.
      alike = dataclasses.replace(alike, loss=dataclasses.replace(
          alike.loss, methods=dataclasses.replace(run.methods, prm=None)))
    vars(stage)["program"] = _FIRST.setdefault(repr(alike), stage).program
  stage = run.rewards_advantages
  vars(stage)["_program"] = _FIRST.setdefault(repr(stage), stage)._program
  return run


@contextlib.contextmanager
def building(run):
  """Within it, `build.build` returns this run, so that what it compiled is not compiled again."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(build, "build", lambda *_, **__: run)
    yield


def restored(run, workdir):
  """(state, host state) of the newest checkpoint that is not damaged."""
  checkpoints = checkpoint.Checkpoints(workdir)
  state, host = session.restore(checkpoints, run.init, run.prompts)
  checkpoints.close()
  return jax.device_get(state), host


def killed_after(whole, k, workdir):
  """A copy of the workdir `whole` as a kill during step k + 1 leaves it."""
  shutil.copytree(whole, workdir)
  for path in (workdir / "checkpoints").iterdir():
    if int(path.name) > k: shutil.rmtree(path)
  (workdir / "summary.json").unlink()
  return workdir


def lines(workdir):
  """The lines of metrics.jsonl without what depends on the time."""
  return [{k: v for k, v in line.items() if "seconds" not in k and "_per_s" not in k}
          for line in io_metrics.read(workdir)]


def assert_equal_trees(tree, expected):
  jax.tree.map(np.testing.assert_array_equal, tree, expected)


def sample(run, state, per_step=8):
  """(prompts, rollouts, verdicts) of the first prompts."""
  prompts = run.prompts.take(per_step)
  rollouts = run.sampling.train(state.join_params("policy"), prompts, rng.key(0, "sample", 0))
  return prompts, rollouts, np.float32(run.outcomes(prompts, jax.device_get(rollouts))).reshape(-1)
