"""Texts and prompts that a config names: read, filtered and checked."""
import contextlib
import dataclasses
import functools
import inspect
import itertools
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rlx.build import keys, methods as build_methods, options as options_lib
from rlx.core import records, resolve
from rlx.environments import runner
from rlx.io import chat, rows as io_rows, terminal, tokenizer as tokenizer_io
from rlx.learner import hosts
from rlx.prompts import columns, derived, filters, iterator, mixture
from rlx.stages import derive as derive_lib, dialogue, host_fields, texts as texts_lib
from rlx.verifiers import items, judging, pool


def texts_and_dialogues(c: keys.Config, tokenizer: tokenizer_io.Tokenizer
                        ) -> tuple[texts_lib.Texts, dialogue.Dialogues | None]:
  """Returns (texts.Texts, dialogue.Dialogues); the second is None without an environment.

  With one, episodes start with what it says of a prompt and not with the prompt's own text.
  """
  texts, e = texts_of(c, tokenizer), c.episodes
  if c.environment.name is None: return texts, None
  given = {k: v for k, v in c.environment.to_dict().items() if k != "name"}
  dialogues = dialogue.Dialogues(
      runner.Runner(c.environment.name, given, workers=e.workers, timeout_s=e.timeout_s,
                    variables=e.variables),
      options_lib.read_options(dialogue.Options, c), texts.template)
  return dataclasses.replace(texts, template=dialogues.open_episode), dialogues


Splits = tuple[list[records.Prompt], list[records.Prompt]]


def list_sources(c: keys.Config) -> dict[str, keys.Config]:
  """{name: the config as it would be of this source of prompts.mixture alone}, in order.

  A source has the keys of `prompts` where it has none of its own, except those that mean something
  else for it: options of another source, columns of another source or data set, options of another
  template. Without a mixture the one source is "".
  """
  sources = {}
  for name, section in sorted(c.prompts.mixture.items()):
    own = section.to_dict()
    own.pop("weight", None)
    eval_split = own.pop("eval_split", None)
    sources[name] = part = _take_source(c, own)
    if eval_split is not None: part.eval.split = eval_split
  return sources or {"": c}


def _take_source(c: keys.Config, own: dict[str, Any]) -> keys.Config:
  """The config whose one source has these keys of `prompts`, see `list_sources`."""
  # `sets.fill` has resolved the names of public sets.
  prompts, part = c.prompts.to_dict(), c.copy_and_resolve_references()
  differs = lambda key: own.get(key, prompts[key]) != prompts[key]
  template = own.get("template", {})
  if differs("source"):
    prompts["options"] = {}
    if prompts["dataset"] == "_rows": prompts["dataset"] = "jsonl"  # Of the rows of a call alone.
  if differs("source") or differs("dataset"): prompts["columns"] = {}
  if template.get("name", prompts["template"]["name"]) != prompts["template"]["name"]:
    prompts["template"] = {}
  for key, value in own.items():
    prompts[key] = prompts[key] | value if isinstance(value, dict) else value
  with part.unlocked(): part.prompts = type(c)(prompts | dict(mixture={}))
  return part


def list_eval_sets(c: keys.Config) -> dict[str, keys.Config]:
  """{name: the config as it would be if this set of eval.sets were its held-out prompts}, in order.

  A set has the keys of `prompts` as a source of a mixture has them, and those of `eval`.
  """
  parts = {}
  for name, section in sorted(c.eval.sets.items()):
    own = {key: x for key, x in section.to_dict().items() if x is not None}
    changes = {key: own.pop(key) for key in _OF_EVAL if key in own}
    own.pop("verifier", None)  # See `find_verifier`.
    parts[name] = part = _take_source(c, own)
    with part.unlocked(), part.eval.ignore_type():
      part.eval.sets = {}
      for key, x in changes.pop("decoding", {}).items():
        if x is not None: part.eval.decoding[key] = x
      for key, x in changes.items(): part.eval[key] = x
  return parts


def bind_derived(c: keys.Config) -> dict[str, tuple[resolve.UserFunction, int]]:
  """{name: (function, the most prompts of a step)} of prompts.derived, in order.

  Raises:
    ValueError: there is no such function, or it refuses its options.
  """
  sets = {}
  for name, section in sorted(c.prompts.derived.items()):
    path, spec = f"prompts.derived.{name}", dict(
        keys.base.named_section("prompts.derived"), **section)
    most, _ = spec.pop("per_step"), spec.pop("template")
    sets[name] = resolve.bind("prompts", spec, path, n_given=1), most
    if ":" in str(spec["name"]): continue  # It may read what this example does not have.
    example = records.Prompt("example", "?", "1")
    try:
      list(judging.ask(sets[name][0]([derived.Completion(example, text, text, verdict)
                                      for text, verdict in (("1", 1.0), ("0", 0.0))])))
    except ValueError as e:
      line = str(e).replace("prompts.columns.template", "request", 1)
      raise ValueError(f"{path}.{line.removeprefix('prompts.columns.')}") from None
  return sets


def list_derived(c: keys.Config) -> dict[str, keys.Config]:
  """{name: the config as it would be with the template of this part of prompts.derived}, of those
  that have one."""
  return {name: _take_source(c, dict(template=section.template.to_dict()))
          for name, section in sorted(c.prompts.derived.items()) if "template" in section}


def count_derived(c: keys.Config) -> int:
  """Prompts of a step that are made of the completions of the others."""
  return sum(section.get("per_step", 1) for section in c.prompts.derived.values())


def derive_of(c: keys.Config, texts: texts_lib.Texts,
              prompts: Sequence[records.Prompt]) -> derive_lib.Derive | None:
  """The Derive of prompts.derived; None without it.

  Args:
    prompts: of training; short completions of the first of them are tried.
  Raises:
    ValueError: what it makes of these is no prompt or too long, or the tokenizer cannot encode it.
  """
  if not c.prompts.derived: return None
  derive = options_lib.read_options(derive_lib.Derive, c, sets=bind_derived(c), texts=texts)
  tried = [derived.Completion(p, text, text, verdict) for p in prompts[:16]
           for text, verdict in (("", 1.0), (p.text[:1], 0.0))]
  for name in derive.sets:
    made = derive.make(name, tried)
    try:
      lengths = [len(texts.prompt_ids(p)) for p in made]
    except ValueError as e:
      raise ValueError(f"prompts.derived.{name}.request: {str(e)[:300]}") from None
    if lengths and min(lengths) > texts.prompt_tokens:
      raise ValueError(f"prompts.max_tokens={texts.prompt_tokens}: a prompt of "
                       f"prompts.derived.{name} has at least {min(lengths)} tokens, with the "
                       "shortest completion.")
  return derive


def find_verifier(c: keys.Config, name: str) -> str | None:
  """The verifier of the prompts of a set of eval.sets; None: as they say."""
  return c.eval.sets[name].get("verifier", {}).get("name")


_OF_EVAL = ("split", "prompts", "samples", "max_tokens", "decoding")


def list_limits(c: keys.Config) -> dict[str, int]:
  """{key: the most tokens of a completion}, of training first, then of evaluation."""
  parts = {"eval": c, **{f"eval.sets.{name}": part for name, part in list_eval_sets(c).items()}}
  return {"rollouts.max_tokens": c.rollouts.max_tokens} | {
      f"{section}.max_tokens": part.eval.max_tokens for section, part in parts.items()
      if part.eval.max_tokens is not None}


def read_weights(c: keys.Config) -> dict[str, float] | None:
  """{source of prompts.mixture: its weight}; None: they are numbers of prompts.

  Raises:
    ValueError: only some sources have one.
  """
  weights = {name: own.get("weight") for name, own in sorted(c.prompts.mixture.items())}
  missing = [name for name, weight in weights.items() if weight is None]
  if len(missing) == len(weights): return None
  if missing:
    raise ValueError(f"prompts.mixture.{missing[0]}.weight is missing; give all sources a weight, "
                     "or none, for the numbers of their prompts.")
  return weights


@contextlib.contextmanager
def name_source(source: str, section: str = "prompts.mixture") -> Iterator[None]:
  """Within it, messages of errors begin with the source of a mixture, or the set of eval.sets."""
  try:
    yield
  except ValueError as e:
    if not source: raise
    raise ValueError(f"{section}.{source}: {e}") from None


def bind_template(c: keys.Config) -> tuple[resolve.UserFunction, dict[str, Any]]:
  """(function of prompts.template with its options, variables of the chat template)."""
  spec = c.prompts.template.to_dict()
  fn = resolve.lookup("prompts.templates", spec["name"], "prompts.template")
  options = {p.name for p in inspect.signature(fn).parameters.values()
             if p.kind is p.KEYWORD_ONLY} | {"name"}
  return (resolve.bind("prompts.templates", {k: x for k, x in spec.items() if k in options},
                       "prompts.template", n_given=1),
          {k: x for k, x in spec.items() if k not in options})


def texts_of(c: keys.Config, tokenizer: tokenizer_io.Tokenizer) -> texts_lib.Texts:
  """The texts.Texts of a config and a tokenizer; with those of sources, evaluation sets and derived
  prompts that have other templates.

  Raises:
    ValueError: the chat template has no variable of the name of a key of prompts.template.
  """
  own = {}
  for section, parts in (("prompts.mixture", list_sources(c)), ("eval.sets", list_eval_sets(c)),
                         ("prompts.derived", list_derived(c))):
    for name, part in parts.items():
      with name_source(name, section):
        if part.prompts.template != c.prompts.template:
          own[name] = _texts_of_source(part, tokenizer)
  return dataclasses.replace(_texts_of_source(c, tokenizer), sources=own)


def _texts_of_source(c: keys.Config, tokenizer: tokenizer_io.Tokenizer) -> texts_lib.Texts:
  template, variables = bind_template(c)
  if variables and (unknown := sorted(set(variables) - set(there := tokenizer.list_variables()))):
    raise ValueError(f"prompts.template.{unknown[0]}: no option of {c.prompts.template.name}, and "
                     f"the model's chat template never reads it; its variables are {there}.")
  ids = set(tokenizer.vocabulary.values())
  if outside := [i for i in c.rollouts.stop_ids if i not in ids]:
    raise ValueError(f"rollouts.stop_ids={tuple(c.rollouts.stop_ids)!r:.80}: {outside[0]} is no "
                     f"token of the model, which has 0 to {max(ids)}.")
  return options_lib.read_options(
      texts_lib.Texts, c, stops=tuple(c.rollouts.stops), stop_ids=tuple(c.rollouts.stop_ids),
      template=template,
      tokenizer=dataclasses.replace(tokenizer, variables=variables) if variables else tokenizer)


def note_template(texts: texts_lib.Texts, prompts: Sequence[records.Prompt]) -> None:
  """Prints a line on stderr if the chat template is not prefix-stable, for the first prompt of each
  source."""
  if not hosts.is_first(): return
  faults: dict[str, str] = {}
  for prompt in {p.source: p for p in reversed(prompts)}.values():
    own = texts.select_source(prompt)
    if isinstance(messages := own.template(prompt), str): continue
    for reply in chat.PROBES: faults |= chat.faults(own.tokenizer, messages, reply)
  if faults:
    print("rlx: the chat template is not prefix-stable: "
          + terminal.line("; ".join(faults.values()))
          + ". Training uses the prompt as it is rendered for sampling (rlx/io/chat.py).",
          file=sys.stderr)


def bind_dataset(c: keys.Config) -> tuple[resolve.UserFunction, Callable]:
  """(function of prompts.dataset with prompts.columns, the function itself)."""
  path = c.prompts.dataset
  if isinstance(path, str) and ":" not in path: path = f"datasets.{path}.prompts"
  fn = resolve.lookup("prompts", path, "prompts.dataset")
  return resolve.bind("prompts", dict(c.prompts.columns, name=path), "prompts.columns",
                      n_given=2), fn


def read_prompts(c: keys.Config, split: str,
                 unread: list[records.Dropped] | None = None) -> Iterable[records.Prompt]:
  """Returns all prompts of a split, of the one source of a config of `list_sources`; the rows that
  the data set dropped are added to `unread`, or logged without it."""
  if not split:
    raise ValueError(f"prompts.split={split!r}: {c.prompts.source} has no split for training; as "
                     "eval.sets.NAME.source it is evaluated.")
  dataset, _ = bind_dataset(c)
  rows = io_rows.rows(c.prompts.source, split, **c.prompts.options)
  return filters.drop_unread(judging.ask(dataset(rows, split)),
                             f"{c.prompts.source}, split {split}", unread)


def _read_source(source: str, c: keys.Config, split: str, at_most: int | None = None,
                 unread: list[records.Dropped] | None = None, section: str = "prompts.mixture",
                 verifier: str | None = None) -> list[records.Prompt]:
  """The prompts of a source, which they name: ids are unique within a mixture.

  Args:
    section: of which the source is a part.
    verifier: of its prompts; None: as they say.
  """
  with name_source(source, section):
    prompts = list(itertools.islice(read_prompts(c, split, unread), at_most))
    if verifier is not None:
      prompts = [dataclasses.replace(p, verifier=verifier) for p in prompts]
  if not source: return prompts
  def rename(p: records.Prompt) -> records.Prompt:
    meta = p.meta
    if c.prompts.paired and "pair" in meta: meta = meta | dict(pair=f"{source}/{meta['pair']}")
    return dataclasses.replace(p, id=f"{source}/{p.id}", source=source, meta=meta)
  return list(map(rename, prompts))


def load_prompts(c: keys.Config, texts: texts_lib.Texts,
                 splits: Collection[str] = ("train", "eval"), *, judged: bool = False,
                 has_target: bool = False, report: Callable[..., None] | None = None) -> Splits:
  """Returns (training prompts, held-out prompts), filtered and without common texts.

  Held-out prompts are those of eval.split, and after them those of eval.sets, whose name is their
  `source`; `split_sets` takes them apart. A set may have texts of another one.

  Of a mixture these are the prompts of all sources. Among equal texts that of the first source
  stays. Held-out prompts are taken from the sources in the order of `mixture.choose_sources`, with
  the weights of the mixture, or else the numbers of held-out rows; where a source has fewer, the
  others have more.

  Args:
    judged: True drops prompts of public sets that their verifiers cannot judge.
    has_target: as in `filters.drop_duplicates`.
    report: is called with "train", "eval" or "eval.sets.NAME" and what `filters.Report` is called
      with, for each filter and each reason of a set's reader; None: what is dropped is logged.
  Raises:
    ValueError: as `read_prompts` and the filters, or no prompt of a source is left.
  """
  sources, weights, is_episode = list_sources(c), read_weights(c), c.environment.name is not None
  def read(p: records.Prompt) -> str:
    # An episode's opening may be the same for all. The turns are those of dialogues of sft.
    if is_episode: return p.text
    return " ".join([texts.prompt(p), *(m["content"] for m in p.messages)])
  def load(kind: str, find_split: Callable[[keys.Config], str], at_most: int | None = None,
           sources: Mapping[str, keys.Config] = sources, **of_set: Any
           ) -> tuple[list[records.Prompt], dict[str, int]]:
    """(prompts, {source: number of its rows}); `of_set` as in `_read_source`."""
    note = functools.partial(report, kind) if report else None
    unread: list[records.Dropped] | None = [] if report else None
    by_source = {name: _read_source(name, part, split, at_most, unread, **of_set)
                 for name, part in sources.items()
                 if (split := find_split(part)) or not (name or kind == "eval" and c.eval.sets)}
    prompts = [add_items(c, p) for some in by_source.values() for p in some]
    _check_limits(prompts, *_find_limit(next(iter(sources.values())) if of_set else c, kind))
    for reason in dict.fromkeys(row.reason for row in unread or ()):
      rows = [row for row in unread or () if row.reason == reason]
      if note: note(reason, [*prompts, *rows], prompts)
    kept = filters.drop_longer(prompts, lambda p: len(texts.prompt_ids(p)), c.prompts.max_tokens,
                               report=note or filters.log_dropped)
    kept = filters.drop_duplicates(kept, read, is_episode=is_episode, has_target=has_target,
                                   report=note or filters.log_dropped)
    if judged:
      first = next(iter(sources.values()))
      shown = ("prompts.mixture" if c.prompts.mixture and not of_set else
               f"{first.prompts.source}, split {find_split(first)}")
      kept = filters.drop_unjudged(
          kept, find_problems(c, [p for p in kept if p.is_public]), shown, report=note)
    kept = [dataclasses.replace(p, meta={**p.meta, "begun": texts.start_of_reply(p)}) for p in kept]
    return kept, {name: len(some) for name, some in by_source.items()}
  train: list[records.Prompt] = []
  held_out: list[records.Prompt] = []
  if "eval" in splits:
    # Reads twice as many rows as held-out prompts are wanted, because the filters drop some.
    at_most = 2 * c.eval.prompts if weights or len(sources) == 1 else None
    held_out, counts = load("eval", lambda part: part.eval.split, at_most)
    _check_left(c, counts, held_out, "held-out")
    held_out = _share_out(held_out, weights or counts, c.eval.prompts)
    for name, part in list_eval_sets(c).items():
      some, counts = load(f"eval.sets.{name}", lambda part: part.eval.split, 2 * part.eval.prompts,
                          {name: part}, section="eval.sets",
                          verifier=find_verifier(c, name))
      if not some:
        raise ValueError(f"eval.sets.{name}: no prompts are left of {counts.get(name, 0)} of "
                         f"{part.prompts.source}, split {part.eval.split}.")
      held_out = held_out + some[:part.eval.prompts]
  if "train" in splits:
    train, counts = load("train", lambda part: part.prompts.split)
    # Of prompts that judge completions, the judged question is held out.
    train = filters.drop_held_out(
        train, held_out, lambda p: p.meta.get("judged", {}).get("question") or read(p),
        report=functools.partial(report, "train") if report else filters.log_dropped)
    _check_left(c, counts, train, "training")
    train = [p for name, part in sources.items() for p in itertools.islice(
        (p for p in train if p.source == name), part.prompts.limit)]
  return train, held_out


def add_items(c: keys.Config, prompt: records.Prompt) -> records.Prompt:
  """The prompt with verifier.default_items, if it does not say what the items of a verdict are."""
  meta = {key: x for key, x in prompt.meta.items() if key != "items"}
  if (own := columns.read_items(prompt.meta.get("items"))) is None:
    own = [*c.verifier.default_items] or None
  return dataclasses.replace(prompt, meta=meta if own is None else meta | dict(items=own))


def _find_limit(c: keys.Config, kind: str) -> tuple[str, int]:
  """(key, value) of the most tokens of a completion of prompts of this kind."""
  if kind == "train" or c.eval.max_tokens is None:
    return "rollouts.max_tokens", c.rollouts.max_tokens
  key = "eval.max_tokens" if kind == "eval" else f"{kind}.max_tokens"
  return key, c.eval.max_tokens


def _check_limits(prompts: Sequence[records.Prompt], key: str, most: int) -> None:
  """Checks the limits that rows have of their own."""
  if over := [p for p in prompts if (p.max_tokens or 0) > most]:
    raise ValueError(f"prompts.columns.max_tokens: {over[0].max_tokens} tokens for {over[0].id!r}; "
                     f"at most {key}={most}, which is that of the longest completion.")


def _check_left(c: keys.Config, counts: Mapping[str, int], prompts: list[records.Prompt],
                kind: str) -> None:
  """Checks that prompts of each source of a mixture are left; `counts` are those of their rows."""
  if empty := sorted(set(counts) - {p.source for p in prompts} - {""}):
    raise ValueError(
        f"prompts.mixture.{empty[0]}: no {kind} prompts are left of {counts[empty[0]]}; they are "
        f"longer than prompts.max_tokens={c.prompts.max_tokens}, or those of another source or "
        "split. split and eval_split name the splits of a source (eval_split='': none).")


def split_sets(c: keys.Config, held_out: Sequence[records.Prompt]
               ) -> tuple[list[records.Prompt], dict[str, list[records.Prompt]]]:
  """(the held-out prompts of eval.split, {name: those of a set of eval.sets})."""
  return ([p for p in held_out if p.source not in c.eval.sets],
          {name: [p for p in held_out if p.source == name] for name in sorted(c.eval.sets)}
          if held_out else {})


def _share_out(prompts: list[records.Prompt], weights: Mapping[str, float],
               n: int) -> list[records.Prompt]:
  """At most `n` prompts, of the sources in proportion to weights."""
  by_source = {
      name: some for name in weights if (some := [p for p in prompts if p.source == name])}
  order = mixture.choose_sources(
      {name: weights[name] for name in by_source}, dict.fromkeys(by_source, 0),
      min(n, len(prompts)), {name: len(some) for name, some in by_source.items()})
  rest = {name: iter(some) for name, some in by_source.items()}
  return [next(rest[name]) for name in order]


def make_iterator(c: keys.Config, prompts: list[records.Prompt]) -> iterator.PromptIterator:
  """Iterates over training prompts."""
  options: dict[str, Any] = dict(seed=c.seed, paired=c.prompts.paired)
  if not c.prompts.mixture: return iterator.PromptIterator(prompts, **options)
  return mixture.Mixture(prompts, read_weights(c), **options)


def _check_weights(c: keys.Config, draw: int, prompts: list[records.Prompt]) -> None:
  """Checks that each source has as many prompts as its weight asks for in a draw."""
  weights = read_weights(c) or {}
  for name, weight in weights.items():
    n, share = sum(p.source == name for p in prompts), weight / sum(weights.values())
    if n < share * draw:
      raise ValueError(f"prompts.mixture.{name}.weight={weight:g}: that is {share * draw:.4g} "
                       f"different prompts of a draw of {draw}, and there are {n}; lower it or "
                       "prompts.per_step, or give more rows.")


def load_and_check_prompts(c: keys.Config, draw: int, texts: texts_lib.Texts,
                           splits: Collection[str], report: Callable[..., None] | None = None
                           ) -> Splits:
  """As `load_prompts`, after a check that there are enough prompts."""
  train_prompts, eval_prompts = load_prompts(c, texts, splits, judged=True, report=report)
  source = "prompts.mixture" if c.prompts.mixture else f"prompts.source={c.prompts.source!r}"
  is_suite = not c.eval.split and bool(c.eval.sets) and "train" not in splits
  if "eval" in splits and not is_suite and not split_sets(c, eval_prompts)[0]:
    raise ValueError(f"eval.split={c.eval.split!r} of {source} has no prompts.")
  if "train" in splits and (n := len(train_prompts)) < draw:
    learns = [build_methods.find_trained(c, name) for name in build_methods.list_trained(c)]
    parts = math.lcm(*(x.minibatches * x.microbatches for x in learns), 1 + c.prompts.paired)
    beside = c.rollouts.rehearsal + count_derived(c)  # Those that are not of the data.
    most = (int((n + 0.49) / c.rollouts.oversample) + beside) // parts * parts
    raise ValueError(
        f"{source}: {n} training prompt{'s' * (n != 1)}; a draw takes "
        f"{draw} different ones. " + (f"Set prompts.per_step={most} or lower, or give"
                                      if most > beside else "Give") + " more rows.")
  for p in train_prompts + eval_prompts:
    if p.answers and c.environment.name is not None:
      raise ValueError(f"prompt {p.id!r}: {len(p.answers)} accepted answers; an environment reads "
                       "one.")
  if train_prompts:
    for name, part in sorted(c.scorers.items()):
      if part.get("reference") is not None:
        host_fields.read_references(train_prompts, name, part, texts.tokenizer)
    _check_weights(c, draw, train_prompts)
    note_template(texts, train_prompts)
  return train_prompts, eval_prompts


def find_problems(c: keys.Config, prompts: list[records.Prompt]) -> dict[str, str]:
  """{id: why a prompt cannot be judged, or is judged by tests that a constant passes}."""
  problems: dict[str, str] = {}
  for p, problem, constant in inspect_prompts(c, prompts):
    if not problem and constant and not c.verifier.allow_constant:
      problem = (f"its tests are passed by {constant}, whatever is asked: add tests, leave it "
                 "out, or take it with verifier.allow_constant=true")
    if problem: problems.setdefault(p.id, problem)
  if c.verifier.by_item is not None:
    fn = pool.lookup(c.verifier.by_item)
    count, own = (getattr(fn, name, None) for name in ("count_items", "item_keys"))
    for p in prompts:
      problem = items.find_problem(p, c.verifier.max_items, count, own)
      if problem: problems.setdefault(p.id, problem)
  return problems


def inspect_prompts(c: keys.Config, prompts: list[records.Prompt]
                    ) -> list[tuple[records.Prompt, str | None, str | None]]:
  """Returns [(prompt, problem, constant)] of the prompts whose verifiers inspect prompts.

  A verifier may have `inspect(prompts, unsafe)`, which returns for each prompt why completions
  cannot be verified, and an answer that passes whatever the question is; None without one.
  """
  prompts_of: dict[Callable, dict[str, records.Prompt]] = {}
  for p in prompts:
    own = (path for path in c.verifier.scores if not host_fields.is_scorer(path))
    for path in filter(None, (p.verifier, *own, c.verifier.by_item)):
      if inspector := getattr(pool.lookup(path), "inspect", None):
        prompts_of.setdefault(inspector, {})[p.id] = p
  return [(p, *result) for inspector, by_id in prompts_of.items()
          for p, result in zip(by_id.values(), inspector(list(by_id.values()), c.verifier.unsafe))]


def prompt_lengths(c: keys.Config, texts: texts_lib.Texts) -> list[int]:
  """Number of tokens of each training prompt, also of those that are too long."""
  return [len(texts.prompt_ids(p)) for name, part in list_sources(c).items()
          for p in _read_source(name, part, part.prompts.split)]
