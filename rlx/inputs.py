"""Reads what a config names: models, tokenizers, texts and prompts, and checks the prompts."""
import dataclasses
import functools
import itertools
import sys
from collections.abc import Collection, Iterable
from typing import Any, Callable

from rlx import keys
from rlx import methods as methods_lib
from rlx.core import options as options_lib
from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.io import chat
from rlx.io import rows as io_rows
from rlx.io import terminal
from rlx.io import tokenizer as tokenizer_io
from rlx.io import weights
from rlx.learner import hosts
from rlx.loops import texts as texts_lib
from rlx.models import transformer
from rlx.prompts import filters

Model = tuple[transformer.DecoderConfig, Any, tokenizer_io.Tokenizer]
Splits = tuple[list[records.Prompt], list[records.Prompt]]


def load_model(c: keys.Config, path: str | None, shapes: bool = False) -> Model:
  """(DecoderConfig, params, tokenizer) of a path, in the dtypes of `model`.

  Args:
    shapes: see `weights.load`.

  Raises:
    ValueError: no path, or sequences could be longer than the model supports.
  """
  if path is None: raise ValueError("model.path=None: a model; only `rlx sft` makes one.")
  config, params, tokenizer = weights.load(path, dtype=c.model.param_dtype, shapes=shapes)
  length = c.prompts.max_tokens + c.rollouts.max_tokens + c.likelihood.max_tokens
  if config.max_positions is not None and length > config.max_positions:
    terms = [f"{stage}.max_tokens={c[stage].max_tokens}"
             for stage in ("prompts", "rollouts", "likelihood") if c[stage].max_tokens]
    raise ValueError(f"{' + '.join(terms)}: {path!r} supports at most "
                     f"{config.max_positions} positions (max_position_embeddings).")
  config = dataclasses.replace(config, dtype=c.model.dtype, length=length,
                               param_dtype=c.model.param_dtype, remat=c.model.remat)
  kernel, lacks = c.model.attention, config.lacks(c.model.attention)
  if lacks and hosts.is_first():
    print(f"rlx: model.attention={kernel!r} {lacks}: blocks is used for {path!r}.", file=sys.stderr)
  return dataclasses.replace(config, attention="blocks" if lacks else kernel), params, tokenizer


def sft_start(c: keys.Config) -> Model:
  """Loads the model of model.path; if it is None, initialises one with the sizes of sft.fresh.

  Raises:
    ValueError: sft.fresh lacks a size or has an unknown one.
  """
  if c.model.path is not None: return load_model(c, c.model.path)
  sizes = c.sft.fresh.to_dict()
  options = {f.name: f.default for f in dataclasses.fields(transformer.DecoderConfig)}
  needed = {k for k, v in options.items() if v is dataclasses.MISSING}
  needed = needed - {"vocab_size"} | {"alphabet"}
  if needed - sizes.keys() or any(keys.allowed(f"sft.fresh.{name}") is None for name in sizes):
    raise ValueError(f"sft.fresh has {sorted(sizes)}; needed are {sorted(needed)}.")
  tokens = tokenizer_io.characters(sizes.pop("alphabet"))
  config = transformer.DecoderConfig(
      vocab_size=len(tokens.vocabulary), dtype=c.model.dtype, param_dtype=c.model.param_dtype,
      attention=c.model.attention, remat=c.model.remat, **sizes)
  return config, transformer.init(config, rng.key(c.seed, "init")), tokens


def texts_of(c: keys.Config, tokenizer: tokenizer_io.Tokenizer) -> texts_lib.Texts:
  """The texts.Texts of a config and a tokenizer."""
  return options_lib.read(
      texts_lib.Texts, methods_lib.setting(c), tokenizer=tokenizer, stops=tuple(c.rollouts.stops),
      template=resolve.bind("prompts.templates", c.prompts.template, "prompts.template"))


def note_template(texts: texts_lib.Texts, prompt: records.Prompt) -> None:
  """Prints a line on stderr if the chat template is not prefix-stable."""
  messages = texts.template(prompt)
  if isinstance(messages, str) or not hosts.is_first(): return
  faults: dict[str, str] = {}
  for reply in chat.PROBES: faults |= chat.faults(texts.tokenizer, messages, reply)
  if faults:
    print("rlx: the chat template is not prefix-stable: "
          + terminal.line("; ".join(faults.values()))
          + ". Training uses the prompt as it is rendered for sampling (rlx/io/chat.py).",
          file=sys.stderr)


def read_prompts(c: keys.Config, split: str) -> Iterable[records.Prompt]:
  """Returns all prompts of a split."""
  path = c.prompts.dataset
  if isinstance(path, str) and ":" not in path: path = f"datasets.{path}.prompts"
  resolve.lookup("prompts", path, "prompts.dataset")
  dataset = resolve.bind("prompts", dict(c.prompts.columns, name=path), "prompts.columns",
                         n_given=2)
  return dataset(io_rows.rows(c.prompts.source, split, **c.prompts.options), split)


def load_prompts(c: keys.Config, texts: texts_lib.Texts,
                 splits: Collection[str] = ("train", "eval")) -> Splits:
  """Returns (training prompts, held-out prompts), filtered and without common texts."""
  def load(split, at_most=None):
    prompts = itertools.islice(read_prompts(c, split), at_most)
    kept = filters.unique(list(prompts), is_episode=c.environment.name is not None)
    return filters.by_length(kept, lambda p: len(texts.prompt_ids(p)), c.prompts.max_tokens)
  # Reads twice as many rows as held-out prompts are wanted, because the filters drop some.
  held_out = (load(c.eval.split, 2 * c.eval.prompts)[:c.eval.prompts]
              if "eval" in splits else [])
  train = filters.not_in(load(c.prompts.split), held_out) if "train" in splits else []
  return train[:c.prompts.limit], held_out


def checked_prompts(c: keys.Config, draw: int, texts: texts_lib.Texts,
                    splits: Collection[str]) -> Splits:
  """Returns (training prompts, held-out prompts) after a check that there are enough of them."""
  train_prompts, eval_prompts = load_prompts(c, texts, splits)
  if "eval" in splits and not eval_prompts:
    raise ValueError(f"eval.split={c.eval.split!r} of prompts.source="
                     f"{c.prompts.source!r} has no prompts.")
  if "train" in splits and len(train_prompts) < draw:
    raise ValueError(f"prompts.source={c.prompts.source!r}: {len(train_prompts)} "
                     f"training prompts; a draw takes {draw} different ones.")
  if train_prompts: note_template(texts, train_prompts[0])
  return train_prompts, eval_prompts


def check_prompts(c: keys.Config, prompts: list[records.Prompt]) -> None:
  """Checks that the verifiers support the prompts, and that no constant answer passes them.

  Raises:
    ValueError: one line about the first prompt that fails.
  """
  errors = []
  for p, problem, constant in inspected(c, prompts):
    if not problem and constant and not c.verifier.allow_constant:
      problem = (f"its tests are passed by {constant}, whatever is asked: add tests, leave it "
                 "out, or take it with verifier.allow_constant=true")
    if problem: errors.append(f"prompt {p.id!r}: {problem}")
  if errors:
    more = f" ({len(errors) - 1} more such prompts)" if len(errors) > 1 else ""
    raise ValueError(f"{errors[0].rstrip('.')}.{more}")


def prompt_lengths(c: keys.Config, texts: texts_lib.Texts) -> list[int]:
  """Number of tokens of each training prompt, also of those that are too long."""
  return [len(texts.prompt_ids(p)) for p in read_prompts(c, c.prompts.split)]


def constants(c: keys.Config, prompts: list[records.Prompt]) -> dict[str, str | None]:
  """{id: the answer that passes whatever the question is, or None} of `inspected` prompts."""
  return {p.id: constant for p, _, constant in inspected(c, prompts)}


def inspected(c: keys.Config,
              prompts: list[records.Prompt]) -> list[tuple[records.Prompt, str | None, str | None]]:
  """Returns [(prompt, problem, constant)] of the prompts whose verifiers inspect prompts.

  A verifier may have `inspect(prompts, unsafe)`, which returns for each prompt why completions
  cannot be verified, and an answer that passes whatever the question is; None without one.
  """
  prompts_of: dict[Callable, dict[str, records.Prompt]] = {}
  for p in prompts:
    for path in filter(None, (p.verifier, *c.verifier.scores)):
      if inspector := getattr(_verifier(path), "inspect", None):
        prompts_of.setdefault(inspector, {})[p.id] = p
  return [(p, *result) for inspector, by_id in prompts_of.items()
          for p, result in zip(by_id.values(), inspector(list(by_id.values()), c.verifier.unsafe))]


@functools.cache  # The prompts of a run share a few verifiers.
def _verifier(path):
  return resolve.lookup("verifiers", path, "verifier")
