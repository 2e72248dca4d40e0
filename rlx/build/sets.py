"""Public data sets by name: `prompts.source=gsm8k` stands for an address, a reader and splits.

The readers are those of rlx/prompts/datasets that have SETS, see `_published.py` there. A config
holds the resolved values before anything reads them, so that the record of a run shows them.
"""
import difflib
import functools
import importlib
import pathlib
import pkgutil
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from rlx.build import keys
from rlx.configs import base  # type: ignore[attr-defined]  # Found by its __path__.
from rlx.io import rows as io_rows
from rlx.prompts import datasets


class PublicSet(NamedTuple):
  """What a name stands for: prompts.source, dataset and split, and eval.split."""
  source: str
  dataset: str
  split: str
  held_out: str


@functools.cache
def list_sets() -> dict[str, PublicSet]:
  """{name: PublicSet} of all public sets.

    >>> list_sets()["gsm8k"]
    PublicSet(source='hf:openai/gsm8k:main', dataset='gsm8k', split='train', held_out='test')
  """
  by_name = {}
  for reader in sorted(m.name for m in pkgutil.iter_modules(datasets.__path__)):
    module = importlib.import_module(f"{datasets.__name__}.{reader}")
    for name, (source, *splits) in getattr(module, "SETS", {}).items():
      by_name[name] = PublicSet(source, reader, *splits)
  return dict(sorted(by_name.items()))


def find_set(source: Any, key: str = "prompts.source") -> PublicSet | None:
  """The public set that a source names, in any spelling such as DAPO-17k, or what judging:FILE
  stands for, which has a reader of its own, too; None: it is another one.

    >>> find_set("DAPO-17k").dataset
    'dapo_17k'

  Args:
    key: what messages call the source.
  Raises:
    ValueError: it looks like the name of a set, and is none; one line with all names.
  """
  if isinstance(source, str) and source.startswith("judging:"):
    return PublicSet(source, "judging", "train", "test")
  is_name = isinstance(source, str) and re.fullmatch(r"[A-Za-z][\w .-]*", source)
  if not is_name or source in io_rows.KINDS or pathlib.Path(source).suffix[1:] in io_rows.KINDS:
    return None
  by_name = {_normalize(name): name for name in list_sets()}
  if name := by_name.get(_normalize(source)): return list_sets()[name]
  near = difflib.get_close_matches(_normalize(source), by_name, 1)
  if "." in source and not near: return None  # A file of an unknown kind.
  raise ValueError(f"{key}={source!r:.60}: no such data set"
                   + "".join(f"; did you mean {by_name[n]}?" for n in near)
                   + f"{'' if near else '.'} By name there are {', '.join(list_sets())}; others "
                   "are written hf:OWNER/NAME, or as the path of a file.")


def _normalize(name: str) -> str:
  return re.sub(r"[^a-z0-9]", "", name.lower())


def fill_prompts(prompts: keys.Config, key: str = "prompts.source") -> str | None:
  """Resolves the name of a public set in a section of prompts; keys that have a value of their
  own, other than the default of configs/base.py, keep it.

  Args:
    prompts: a section with `source`, and maybe `dataset`, `split`, `columns` and `options`.
    key: what messages call the source.
  Returns:
    the split that the set holds out; None if the source is no name.
  """
  public = find_set(prompts.source, key)
  if public is None: return None
  default = base.get_config().prompts
  with prompts.unlocked():
    prompts.source = public.source
    for name in ("dataset", "split"):
      if prompts.get(name, default[name]) == default[name]: prompts[name] = getattr(public, name)
    prompts.options = _take_options(prompts)
  return public.held_out


def fill(config: keys.Config) -> None:
  """As `fill_prompts`, of a config and its eval.split, of the sources of a mixture, and of
  evaluation sets, which have the split that a public set holds out."""
  held_out = fill_prompts(config.prompts)
  if held_out and config.eval.split == base.get_config().eval.split: config.eval.split = held_out
  for name, part in (config.prompts.get("mixture") or {}).items():
    if not hasattr(part, "keys") or not isinstance(part.get("source"), str): continue
    held_out = fill_prompts(part, f"prompts.mixture.{name}.source")
    if held_out and part.get("eval_split") is None:
      with part.unlocked(): part.eval_split = held_out
  for name, part in (config.eval.get("sets") or {}).items():
    if not hasattr(part, "keys") or not isinstance(part.get("source"), str): continue
    split = part.get("split")
    held_out = fill_prompts(part, f"eval.sets.{name}.source")
    with part.unlocked(): part.split = held_out if split is None else split


def change_source(config: keys.Config, changes: Mapping[str, Any]) -> dict[str, Any]:
  """Sets prompts.source before the other changes of a call, and returns these.

  What belongs to the config's former source does not stay: with the name of a public set its
  reader, columns, options and splits, except from one file of judged completions to another; with
  another source the options that it does not take.
  """
  rest = dict(changes)
  if not isinstance(rest.get("prompts.source"), str): return rest
  prompts, public = config.prompts, find_set(source := rest.pop("prompts.source"))
  with config.unlocked():
    prompts.source = source if public is None else public.source
    is_kept = public and public.dataset == prompts.dataset == "judging"  # The form stays.
    if public: prompts.dataset, prompts.split, config.eval.split = public[1:]
    if public and not is_kept: prompts.columns, prompts.options = {}, {}
    else: prompts.options = _take_options(prompts)
  return rest


def _take_options(prompts: keys.Config) -> dict[str, Any]:
  """The options of a section of prompts that its source takes."""
  return io_rows.take_options(prompts.source, dict(prompts.get("options", {})))
