"""Shows prompts as the model reads them, their lengths, and what is dropped and why.

  rlx data papers/grpo base=gsm8k model.path=DIR
  rlx data papers/grpo base=gsm8k model.path=DIR rows=mine.csv examples=5 json=data.json
  rlx data papers/grpo base=gsm8k model.path=DIR validate=true

Reads the rows and the tokenizer, but no weights, and compiles nothing.
"""
import contextlib
import dataclasses
import functools
import json as json_lib
import pathlib
import shutil
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rlx.build import (
    keys, models as build_models, prompts as build_prompts, run as build_run, sets,
    sft as build_sft, verifiers as build_verifiers)
from rlx.core import records, resolve
from rlx.io import report, terminal
from rlx.stages import dialogue, texts as texts_lib
from rlx.tools import validate as validate_lib

QUANTILES = {"shortest": 0.0, "25%": 0.25, "median": 0.5, "75%": 0.75, "95%": 0.95, "longest": 1.0}
_ANY = 2**30   # Tokens: no limit.
_LETTERS = 60  # Of a prompt that is named by its start.


@dataclasses.dataclass
class Split:
  """The prompts of a split.

  Attributes:
    rows: all that were read.
    dropped: {reason: prompts, or rows that a set's reader drops}, in the order of the filters.
    used: what is left; None: a refusal came before.
  """
  rows: list[records.Prompt] = dataclasses.field(default_factory=list)
  dropped: dict[str, list[records.Prompt | records.Dropped]] = dataclasses.field(
      default_factory=dict)
  used: list[records.Prompt] | None = None

  def note(self, reason: str, prompts: list, kept: list[records.Prompt]) -> None:
    """Takes down what a filter drops, see `filters.Report`."""
    if not self.dropped:  # The first filter gets all.
      self.rows = [p for p in prompts if isinstance(p, records.Prompt)]
    ids = {p.id for p in kept}
    self.dropped[reason] = [p for p in prompts if p.id not in ids]


def main(config: keys.Config, *, examples: str = "2", json: str | None = None,
         validate: str = "false") -> dict[str, Any]:
  """Prints the prompts of both splits of a config, and returns what it printed.

  Args:
    examples: number of prompts of each split that are shown whole, and of those that are named
      for each reason why prompts are dropped.
    json: file for the figures and examples.
    validate: "true" asks the verifiers of the prompts that are used about their own reference
      answers, see `validate.validate`, and refuses those that `rlx train` refuses.
  Returns:
    {"train", "eval", "eval.sets.NAME"} -> dict(rows, used, dropped, tokens, examples); `tokens`
    has the quantiles of the lengths of prompts and demonstrations; with `validate` also
    "references".
  Raises:
    ValueError: the config or a row is refused, with the line that `rlx train` prints, or a
      reference is not paid; what was read before is printed first.
  """
  if not examples.isdigit(): raise ValueError(f"examples={examples!r}: a number of prompts.")
  if validate not in ("true", "false"): raise ValueError(f"validate={validate!r}: true or false.")
  sets.fill(config)
  keys.check(config)
  texts, dialogues = build_prompts.texts_and_dialogues(
      config, build_models.load_tokenizer(config))
  with contextlib.closing(dialogues) if dialogues else contextlib.nullcontext():
    splits, refusal = _load(config, build_sft.leave_out_replies(texts))
    if dialogues and splits["train"].rows:
      dialogues.start(texts.tokenizer, splits["train"].rows[0])
    figures = {name: _describe(config, texts, dialogues, name, split, int(examples))
               for name, split in splits.items()}
  if validate == "true":
    for name, references in _validate(config, splits).items():
      figures[name]["references"] = references
  _print({name: x for name, x in figures.items() if x["rows"]}, int(examples))
  if json is not None:
    pathlib.Path(json).write_text(json_lib.dumps(figures, indent=2, ensure_ascii=False))
  learned = figures["train"]["tokens"].get("demonstrations", dict(longest=0))
  if refusal is None and learned["longest"] > config.rollouts.max_tokens:
    refusal = ValueError(f"rollouts.max_tokens={config.rollouts.max_tokens}: the longest "
                         f"demonstration has {learned['longest']} tokens.")
  unpaid = [u for x in figures.values() for u in x.get("references", dict(unpaid=[]))["unpaid"]]
  if refusal is None and unpaid:
    refusal = ValueError(f"validate: {len(unpaid)} references are not paid by their own verifier, "
                         f"first that of {unpaid[0]['id']!r}.")
  if refusal is not None: raise refusal
  if validate == "true":
    build_verifiers.check_prompts(config, [p for x in splits.values() for p in x.used or ()])
  return figures


def _validate(config: keys.Config, splits: dict[str, Split]) -> dict[str, dict[str, Any]]:
  """{split: what `validate.validate` returns for its prompts}."""
  config = config.copy_and_resolve_references()
  # A verifier may need a process.
  with config.unlocked(): config.verifier.workers = max(config.verifier.workers, 1)
  prompts = {name: split.used or [] for name, split in splits.items()}
  pool = build_verifiers.pool_of(config, [p for some in prompts.values() for p in some])
  with contextlib.closing(pool):
    return {name: validate_lib.validate(some, pool, config.verifier.thoughts)
            for name, some in prompts.items() if some}


def _load(config: keys.Config, texts: texts_lib.Texts
          ) -> tuple[dict[str, Split], ValueError | None]:
  """({"train", "eval", "eval.sets.NAME"}: Split, the refusal that ended the reading or None)."""
  splits = {name: Split() for name in ("train", "eval", *_name_sets(config))}
  note = lambda name, *args: splits[name].note(*args)
  try:
    if config.model.path is None:  # Of `rlx sft`, which needs no prompts for a draw.
      loaded = build_prompts.load_prompts(config, texts, report=note)
    else:
      loaded = build_prompts.load_and_check_prompts(
          config, build_run.sizes_of(config).draw, texts,
          ("train", "eval") if config.prompts.split else ("eval",), report=note)
  except ValueError as e:
    if not splits["train"].rows:  # What held-out prompts are refused for is no reason to hide them.
      with contextlib.suppress(ValueError):
        build_prompts.load_prompts(config, texts, ("train",), report=note)
    return splits, e
  held_out, by_set = build_prompts.split_sets(config, loaded[1])
  for name, used, key, most in (
      ("train", loaded[0], "prompts.limit", config.prompts.limit),
      ("eval", held_out, "eval.prompts", config.eval.prompts),
      *((key, by_set[key.rpartition(".")[2]], f"{key}.prompts", part.eval.prompts)
        for key, part in _name_sets(config).items())):
    split, ids = splits[name], {p.id for p in used}
    gone = {p.id for prompts in split.dropped.values() for p in prompts}
    split.used = used
    if more := [p for p in split.rows if p.id not in ids and p.id not in gone]:
      split.dropped[f"more than {key}={most}"] = [*more]
  return splits, None


def _describe(config: keys.Config, texts: texts_lib.Texts, dialogues: dialogue.Dialogues | None,
              name: str, split: Split, examples: int) -> dict[str, Any]:
  """The figures of a split, which JSON can express."""
  asked, used = build_sft.leave_out_replies(texts), split.used or []
  ids_of = {p.id: asked.prompt_ids(p) for p in split.rows}
  tokens = dict(prompts=dict(_quantiles(map(len, ids_of.values())), limit=config.prompts.max_tokens,
                             key="prompts.max_tokens"))
  learned = _demonstrations(config, texts, dialogues, used) if name == "train" else {}
  if learned:
    lengths = [sum(len(ids) for _, ids in segments) for segments in learned.values()]
    tokens["demonstrations"] = dict(_quantiles(lengths), limit=config.rollouts.max_tokens,
                                    key="rollouts.max_tokens")
  unread = [p for prompts in split.dropped.values() for p in prompts
            if isinstance(p, records.Dropped)]
  def start(p: records.Prompt | records.Dropped) -> dict[str, Any]:
    if isinstance(p, records.Dropped): return dict(id=p.id)
    return dict(id=p.id, tokens=len(ids_of[p.id]), text=p.text[:_LETTERS])
  return dict(
      source=_source(config, name), rows=len(split.rows) + len(unread),
      used=None if split.used is None else len(split.used),
      dropped={reason: dict(count=len(prompts), first=[start(p) for p in prompts[:examples]])
               for reason, prompts in split.dropped.items()},
      tokens=tokens, verifiers=sorted({p.verifier for p in split.rows}),
      examples=[_example(texts, p, ids_of[p.id], learned.get(p.id))
                for p in (used or split.rows)[:examples]])


def _name_sets(config: keys.Config) -> dict[str, keys.Config]:
  """{"eval.sets.NAME": its config}."""
  return {f"eval.sets.{name}": part for name, part in build_prompts.list_eval_sets(config).items()}


def _source(config: keys.Config, name: str) -> str:
  config = _name_sets(config).get(name, config)
  return "; ".join(
      f"{f'{source}: ' if source else ''}{part.prompts.source}, split "
      + (part.prompts.split if name == "train" else part.eval.split or "none")
      for source, part in build_prompts.list_sources(config).items())


def _quantiles(lengths: Iterable[int]) -> dict[str, Any]:
  """{"count", name of a quantile: length}; without lengths the count alone."""
  all_ = list(lengths)
  if not all_: return dict(count=0)
  values = np.quantile(all_, list(QUANTILES.values()), method="inverted_cdf").tolist()
  return dict(zip(QUANTILES, map(int, values)), count=len(all_))


def _demonstrations(config: keys.Config, texts: texts_lib.Texts,
                    dialogues: dialogue.Dialogues | None, prompts: Sequence[records.Prompt]
                    ) -> dict[str, list[tuple[str, list[int]]]]:
  """{prompt id: segments} of what is learned from, however long it is; {} if the policy writes all
  completions."""
  config, texts = config.copy_and_resolve_references(), dataclasses.replace(
      texts, completion_tokens=_ANY)
  with config.unlocked(): config.rollouts.max_tokens = _ANY
  if config.rollouts.demonstration.name is not None:
    ids_of = build_verifiers.demonstrations_of(config, texts, prompts)
    return {name: [("action", ids)] for name, ids in (ids_of or {}).items()}
  if config.model.path is not None:
    prompts = [p for p in prompts if build_sft.is_dialogue(p)]
  if not prompts: return {}
  write = resolve.bind("prompts.datasets", config.sft.target, "sft.target", n_given=2)
  return {p.id: build_sft.play(p, texts, dialogues, write, config.seed)[1] for p in prompts}


def _example(texts: texts_lib.Texts, prompt: records.Prompt, ids: list[int],
             segments: list[tuple[str, list[int]]] | None) -> dict[str, Any]:
  """A prompt as the model reads it, and what follows it in a demonstration."""
  show = texts.tokenizer.show
  after = [dict(kind=kind, tokens=len(ids_), text=show(ids_)) for kind, ids_ in segments or ()]
  return dict(id=prompt.id, tokens=len(ids), text=show(ids),
              answers=[*(prompt.answers or filter(None, [prompt.answer]))],
              verifier=prompt.verifier, demonstration=after)


def _print(figures: dict[str, dict], examples: int) -> None:
  """Prints the tables and examples of all splits; of unpaid references as many as `examples`."""
  import rich.console  # pylint: disable=g-import-not-at-top
  # A file or pipe has no width of its own.
  width = max(120, shutil.get_terminal_size().columns)
  out = rich.console.Console(width=width, markup=False, highlight=False, emoji=False)
  table = functools.partial(report.print_table, width=width)
  def lines(text: str) -> str:
    return "\n".join("  " + terminal.line(line) for line in text.replace("\n", "↵\n").split("\n"))
  for name, x in figures.items():
    for example in x["examples"]:
      out.print(f"{name}: prompt {terminal.line(example['id'])}, {example['tokens']} tokens",
                style="bold")
      out.print(lines(example["text"]), soft_wrap=True)
      for part in example["demonstration"]:
        out.print(f"{part['kind']}, {part['tokens']} tokens", style="bold")
        out.print(lines(part["text"]), soft_wrap=True)
      answers = " or ".join(map(terminal.line, example["answers"])) or "none"
      out.print(f"reference answer: {answers}; verifier: {example['verifier'] or 'none'}\n",
                soft_wrap=True)
  table(("split", "from", "rows", "dropped", "used"),
        [(name, terminal.line(x["source"]), x["rows"],
          sum(d["count"] for d in x["dropped"].values()), "-" if x["used"] is None else x["used"])
         for name, x in figures.items()])
  table(("split", "dropped because", "rows", "such as"),
        [(name, reason, d["count"], "\n".join(
            terminal.line(f"{p['id']} ({p['tokens']} tokens): {p['text']!r}" if "text" in p else
                          p["id"]) for p in d["first"]))
         for name, x in figures.items() for reason, d in x["dropped"].items() if d["count"]])
  table(("split", "tokens of", "number", *QUANTILES, "at most"),
        [(name, what, t["count"], *(t.get(q, "-") for q in QUANTILES), f"{t['key']}={t['limit']}")
         for name, x in figures.items() for what, t in x["tokens"].items()])
  checked = {name: x["references"] for name, x in figures.items() if "references" in x}
  table(("split", "references", "paid by their verifier", "not paid", "unknown"),
        [(name, x["paid"] + len(x["unpaid"]) + sum(x["unknown"].values()), x["paid"],
          len(x["unpaid"]), "\n".join(f"{n}: {why}" for why, n in x["unknown"].items()) or 0)
         for name, x in checked.items()])
  table(("split", "not paid", "verdict", "verifier", "completion"),
        [(name, terminal.line(u["id"]), u["verdict"], u["verifier"], terminal.line(
            repr(u["completion"][-_LETTERS:]))) for name, x in checked.items()
         for u in x["unpaid"][:examples]])
