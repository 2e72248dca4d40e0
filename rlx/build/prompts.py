"""Texts and prompts that a config names: read, filtered and checked."""
import dataclasses
import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any

from rlx.build import keys, options as options_lib
from rlx.core import records, resolve
from rlx.environments import runner
from rlx.io import chat, rows as io_rows, terminal, tokenizer as tokenizer_io
from rlx.learner import hosts
from rlx.prompts import filters
from rlx.stages import dialogue, texts as texts_lib


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
  """The texts.Texts of a config and a tokenizer.

  Raises:
    ValueError: the chat template has no variable of the name of a key of prompts.template.
  """
  template, variables = bind_template(c)
  if variables and (unknown := sorted(set(variables) - set(there := tokenizer.list_variables()))):
    raise ValueError(f"prompts.template.{unknown[0]}: no option of {c.prompts.template.name}, and "
                     f"the model's chat template never reads it; its variables are {there}.")
  return options_lib.read_options(
      texts_lib.Texts, c, stops=tuple(c.rollouts.stops), template=template,
      tokenizer=dataclasses.replace(tokenizer, variables=variables) if variables else tokenizer)


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
  """Returns all prompts of a split; says which rows the data set dropped."""
  path = c.prompts.dataset
  if isinstance(path, str) and ":" not in path: path = f"datasets.{path}.prompts"
  resolve.lookup("prompts", path, "prompts.dataset")
  dataset = resolve.bind("prompts", dict(c.prompts.columns, name=path), "prompts.columns",
                         n_given=2)
  rows = io_rows.rows(c.prompts.source, split, **c.prompts.options)
  return filters.drop_unread(dataset(rows, split), f"{c.prompts.source}, split {split}")


def load_prompts(c: keys.Config, texts: texts_lib.Texts,
                 splits: Collection[str] = ("train", "eval"), *, judged: bool = False) -> Splits:
  """Returns (training prompts, held-out prompts), filtered and without common texts.

  Args:
    judged: True drops prompts of public sets that their verifiers cannot judge.
  """
  is_episode = c.environment.name is not None
  def read(p: records.Prompt) -> str:
    # An episode's opening may be the same for all. The turns are those of dialogues of sft.
    if is_episode: return p.text
    return " ".join([texts.prompt(p), *(m["content"] for m in p.messages)])
  def load(split: str, at_most: int | None = None) -> list[records.Prompt]:
    prompts = list(itertools.islice(read_prompts(c, split), at_most))
    kept = filters.drop_longer(prompts, lambda p: len(texts.prompt_ids(p)), c.prompts.max_tokens)
    kept = filters.drop_duplicates(kept, read, is_episode=is_episode)
    if not judged: return kept
    return filters.drop_unjudged(
        kept, find_problems(c, [p for p in kept if p.is_public]),
        f"{c.prompts.source}, split {split}")
  # Reads twice as many rows as held-out prompts are wanted, because the filters drop some.
  held_out = (load(c.eval.split, 2 * c.eval.prompts)[:c.eval.prompts] if "eval" in splits else [])
  train = filters.drop_held_out(load(c.prompts.split), held_out, read) if "train" in splits else []
  return train[:c.prompts.limit], held_out


def load_and_check_prompts(c: keys.Config, draw: int, texts: texts_lib.Texts,
                           splits: Collection[str]) -> Splits:
  """Returns (training prompts, held-out prompts) after a check that there are enough of them."""
  train_prompts, eval_prompts = load_prompts(c, texts, splits, judged=True)
  if "eval" in splits and not eval_prompts:
    raise ValueError(f"eval.split={c.eval.split!r} of prompts.source="
                     f"{c.prompts.source!r} has no prompts.")
  if "train" in splits and len(train_prompts) < draw:
    raise ValueError(f"prompts.source={c.prompts.source!r}: {len(train_prompts)} "
                     f"training prompts; a draw takes {draw} different ones. Set prompts.per_step="
                     f"{int(len(train_prompts) / c.rollouts.oversample) + c.rollouts.rehearsal} or "
                     "lower, or give more rows.")
  for p in train_prompts + eval_prompts:
    if p.answers and c.environment.name is not None:
      raise ValueError(f"prompt {p.id!r}: {len(p.answers)} accepted answers; an environment reads "
                       "one.")
  if train_prompts: note_template(texts, train_prompts[0])
  return train_prompts, eval_prompts


def find_problems(c: keys.Config, prompts: list[records.Prompt]) -> dict[str, str]:
  """{id: why a prompt cannot be judged, or is judged by tests that a constant passes}."""
  found: dict[str, str] = {}
  for p, problem, constant in inspect_prompts(c, prompts):
    if not problem and constant and not c.verifier.allow_constant:
      problem = (f"its tests are passed by {constant}, whatever is asked: add tests, leave it "
                 "out, or take it with verifier.allow_constant=true")
    if problem: found.setdefault(p.id, problem)
  return found


def inspect_prompts(c: keys.Config, prompts: list[records.Prompt]
                    ) -> list[tuple[records.Prompt, str | None, str | None]]:
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
def _verifier(path: str) -> Callable:
  return resolve.lookup("verifiers", path, "verifier")


def prompt_lengths(c: keys.Config, texts: texts_lib.Texts) -> list[int]:
  """Number of tokens of each training prompt, also of those that are too long."""
  return [len(texts.prompt_ids(p)) for p in read_prompts(c, c.prompts.split)]
