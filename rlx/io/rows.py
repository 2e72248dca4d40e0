"""Rows of prompts from any supported source, as dicts of plain values.

  [{...}, ...]       a list or another iterable of dicts, a datasets.Dataset, or a
                     pandas.DataFrame
  {split: rows}      a dict of these, or a datasets.DatasetDict
  PATH               a .jsonl, .json (a list), .csv or .tsv (all values are strings), or .parquet
                     file; a list in a .jsonl file is read, and so are lines in a .json file
  jsonl:PATH         a file of this format with any suffix; also json:, csv:, tsv: and parquet:
  hf:OWNER/NAME      a data set of the Hugging Face hub; hf:OWNER/NAME:CONFIG is one of its
                     configurations, hf:OWNER/NAME:CONFIG:SPLIT or hf:OWNER/NAME::SPLIT one of
                     its splits or a slice such as train[:512], and hf:OWNER/NAME/FILES files of
                     it, such as data/{split}-*.parquet
  tfds:NAME          a tensorflow-datasets set; TensorFlow is not needed
  gym:TASK,TASK      reasoning-gym tasks, which take turns
  judging:PATH       completions with verdicts, of a file as above, for prompts/datasets/judging.py
  chain              questions of prompts/datasets/chain.py
  generated          {"seed", "index", options}, from which prompts.dataset makes questions

`{split}` in PATH is replaced by the name of the split. In any other file or iterable, the rows of
a split are those with its name in the column `split`.
"""
import collections.abc
from collections.abc import Iterator, Mapping
import csv
import difflib
import functools
import importlib
import inspect
import itertools
import pathlib
from typing import Annotated, Any
import zlib

from rlx.core import ranges
from rlx.io import strict_json

_LONGEST = 1 << 24  # Bytes of a line of JSONL.
_Size = Annotated[int, ranges.whole(1, 10**7)]
_Terms = Annotated[int, ranges.whole(1, 1000)]


def rows(source: Any, split: str | None = None, key: str = "prompts.source", /,
         **options: Any) -> Iterator[Mapping[str, Any]]:
  """Returns an iterator over the rows of one split.

  Args:
    source: one of the forms above.
    split: "train", "test", or whatever the source has; None: all rows, of a source for which
      `find_splits` has none.
    key: what messages call the source.
    **options: keyword-only arguments of the function below that reads this kind of source.
  Raises:
    ValueError: there is no such source, file, data set, task, split or option, or a package is
      missing; while iterating, a row cannot be read. One line that says what is allowed.
  """
  kind, name = _parse_source(source, key)
  shown = key if kind == "rows" else f"{key}={str(source)!r}"
  check(source, options, key)
  if split is None and _names_splits(kind, name): raise ValueError(f"{shown}: name a split.")
  try:
    return _KINDS[kind](name, split, **options)
  except ValueError as e:
    raise ValueError(f"{shown}: {e}") from None


def check(source: Any, options: Mapping[str, Any], key: str = "prompts.source") -> None:
  """Refuses a source of no known form, and options that it does not take; reads nothing."""
  kind, _ = _parse_source(source, key)
  taken, is_open = _find_options(kind)
  if not is_open and (unknown := sorted(set(options) - set(taken))):
    raise ValueError(f"prompts.options.{unknown[0]}: {kind} takes {list(taken)}.")
  for name, value in options.items():
    allowed = ranges.find_option_range(taken[name]) if name in taken else None
    ranges.check(f"prompts.options.{name}", value, allowed)


def take_options(source: Any, options: Mapping[str, Any]) -> dict[str, Any]:
  """The options that a source takes, without those of other kinds of sources."""
  taken, is_open = _find_options(_parse_source(source, "prompts.source")[0])
  return {k: v for k, v in options.items() if is_open or k in taken}


def _find_options(kind):
  """({name: inspect.Parameter}, whether there may be others) of a kind of source."""
  parameters = inspect.signature(_KINDS[kind]).parameters.values()
  return ({p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY},
          any(p.kind is p.VAR_KEYWORD for p in parameters))


def find_splits(source: Any, key: str = "prompts.source") -> list[str]:
  """The splits of a source; [] where it has one, or its first row has no column `split`. "train"
  and "test" stand for those of a source that makes them. Raises as `rows`."""
  kind, name = _parse_source(source, key)
  if kind == "rows" and isinstance(name, collections.abc.Mapping): return sorted(name)
  if kind == "hf":
    if _hf_split(name): return []
    try:
      return _hf_splits(name)
    except ValueError as e:
      raise ValueError(f"{key}={source!r}: {e}") from None
  if _names_splits(kind, name): return ["test", "train"]
  if "split" not in next(iter(rows(source, None, key)), {}): return []
  return sorted({str(row.get("split")) for row in rows(source, None, key)})


def _parse_source(source, key):
  """(kind, what its function reads) of a source."""
  if isinstance(source, collections.abc.Iterable) and not isinstance(source, str):
    return "rows", source
  kind, _, name = str(source).partition(":")
  if kind in _KINDS and (name or kind in ("chain", "generated")): return kind, name
  suffix = pathlib.Path(str(source)).suffix[1:]
  if suffix in _FILES: return suffix, str(source)
  raise ValueError(f"{key}={str(source)!r:.200}: needed is chain, generated, hf:OWNER/NAME, "
                   "tfds:NAME, gym:TASK,TASK, judging:PATH, jsonl:PATH or the path of a .jsonl, "
                   ".json, .csv, .tsv or .parquet file.")


def _names_splits(kind, name):
  if kind == "rows": return isinstance(name, collections.abc.Mapping)
  if kind == "hf": return not _hf_split(name)
  return kind not in _FILES or "{split}" in name


def _in_memory(source, split):
  if isinstance(source, collections.abc.Mapping):
    if split not in source:
      raise ValueError(f"no split {split!r}; there are {sorted(source)}; a dict is "
                       "{split: rows}.")
    source, split = source[split], None
  if hasattr(source, "itertuples"):  # A data frame of pandas.
    if not source.columns.is_unique:
      raise ValueError(f"a column stands twice in {list(source.columns)}.")
    source = source.to_dict("records")
  return _select_split(((f"row {i}", row) for i, row in enumerate(source)), split, "the source")


def _file(read, name, split):
  path = pathlib.Path(name.replace("{split}", str(split)))
  if not path.is_file():
    near = sorted(p.name for p in path.parent.glob(f"*{path.suffix}"))
    raise ValueError(f"no file {path}; {path.parent} has {near or f'no {path.suffix} file'}.")
  numbered_rows = ((f"{path}:{i}", row) for i, row in read(path))
  return _select_split(numbered_rows, None if "{split}" in name else split, path)


def _select_split(numbered_rows, split, source):
  """The rows whose column `split` has this value; all rows if `split` is None."""
  splits = set()
  for where, row in numbered_rows:
    if not isinstance(row, collections.abc.Mapping):
      raise ValueError(f"{where}: a dict is needed, not {row!r:.60}.")
    if split is not None:
      if not isinstance(row.get("split"), str):
        raise ValueError(f"{where}: the row has no `split`; put {{split}} into the path, or a "
                         "`split` into every row.")
      splits.add(row["split"])
    if split in (None, row.get("split")): yield row
  if split is not None and split not in splits:
    raise ValueError(f"{source}: no row of split {split!r}; there are {sorted(splits)}; "
                     "prompts.split and eval.split name them.")


def read_lines(path: pathlib.Path, *, has_nan: bool = False) -> Iterator[tuple[int, dict]]:
  """(line number, object) of a JSONL file (a pathlib.Path); empty lines are skipped.

  Args:
    has_nan: reads NaN as None.
  Raises:
    ValueError: a line is not an object, or is too long.
  """
  with path.open("rb") as f:
    for i, line in enumerate(iter(lambda: f.readline(_LONGEST + 1), b""), 1):
      if len(line) > _LONGEST:
        raise ValueError(f"{path}:{i}: the line has more than {_LONGEST} bytes.")
      if line.strip():
        yield i, strict_json.parse(line, f"{path}:{i}", any_name=True, has_nan=has_nan)


def _json(path, *, is_lines):
  """Rows of a list, or of lines; what the file looks like decides over its suffix."""
  with path.open("rb") as f:
    lines = [f.readline(_LONGEST).removeprefix(b"\xef\xbb\xbf").strip() for _ in range(2)]
  start = b"".join(lines)
  if start and start[:1] not in b"[{":
    raise ValueError(f"{path}: no JSON in UTF-8: it starts with {start[:8]!r}; csv:, tsv: or "
                     "parquet: before the path reads a file of another form.")
  if start.startswith(b"["): is_lines = False
  elif lines[0].endswith(b"}") and lines[1].startswith(b"{"): is_lines = True
  if is_lines: return read_lines(path, has_nan=True)
  return enumerate(strict_json.read(path, any_name=True, kind=list, has_nan=True))


def _csv(path):
  with path.open("rb") as f: header = f.readline(_LONGEST)
  delimiter = max(",;\t", key=lambda mark: header.count(mark.encode()))
  with path.open(newline="", encoding="utf-8-sig") as f:
    reader = csv.DictReader(f, strict=True, delimiter=delimiter)
    try:
      columns = reader.fieldnames or []
      if len(set(columns)) < len(columns):
        raise ValueError(f"the header has a column twice: {columns}")
      for row in reader:
        if None in row or None in row.values():  # More fields than columns, or fewer.
          raise ValueError(f"a row does not have the header's {len(columns)} fields")
        yield reader.line_num, row
    except (ValueError, csv.Error) as e:
      raise ValueError(f"{path}: at or after line {reader.line_num}: {e}.") from None


def _parquet(path):
  import pyarrow
  from pyarrow import parquet
  try:
    with parquet.ParquetFile(path) as file:
      if len(set(names := file.schema_arrow.names)) < len(names):
        raise ValueError(f"{path}: a column stands twice in {names}.")
      for i, row in enumerate(row for batch in file.iter_batches() for row in batch.to_pylist()):
        yield i, row
  except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as e:
    raise ValueError(f"{path}: not a Parquet file: {str(e).splitlines()[0]:.200}") from None


_FILES = dict(jsonl=functools.partial(_json, is_lines=True),
              json=functools.partial(_json, is_lines=False), csv=_csv, tsv=_csv, parquet=_parquet)


def _chain(name: str, split: str | None, *, size: _Size = 4096, seed: ranges.Whole = 0,
           n_min: _Terms = 2, n_max: _Terms = 6, ops: str = "Mm") -> Iterator[dict]:
  """Arguments of `prompts.datasets.chain.generate`, `size` of them."""
  return _generate(name, split, size=size, seed=seed, n_min=n_min, n_max=n_max, ops=ops)


def _generate(name: str, split: str | None, *, size: _Size = 4096, seed: ranges.Whole = 0,
              **options: Any) -> Iterator[dict]:
  """Rows {"seed", "index", **options}, `size` of them."""
  del name, split  # Both splits have the same rows, and no question in common.
  return (dict(seed=seed, index=i, **options) for i in range(size))


def _hf(name: str, split: str | None, *, config: str | None = None,
        revision: str | None = None) -> Iterator[Mapping[str, Any]]:
  """A data set of the hub, downloaded on first use; `config` is one of its configurations."""
  name, _, named = name.partition(":")
  named, _, own = named.partition(":")
  if own and split is not None:
    raise ValueError(f"without :{own}; prompts.split and eval.split name the splits.")
  owner, _, files = name.partition("/")
  name, _, files = files.partition("/")
  name, config, data = f"{owner}/{name}".rstrip("/"), config or named or None, {}
  if files:
    if "{split}" not in files: raise ValueError("needs {split} in the path of the files.")
    kind, base = pathlib.Path(files).suffix[1:], str(own or split).partition("[")[0]
    at = f"{name}@{revision}" if revision else name
    data = {"data_files": {base: f"hf://datasets/{at}/{files.replace('{split}', base)}"}}
    name, config, revision = "json" if kind == "jsonl" else kind, None, None
  return iter(_ask_hub("load_dataset", name, config, split=own or split, revision=revision, **data))


def _hf_split(name):
  """The split that a source of the hub names itself; "" where prompts.split does."""
  return ":".join(name.split(":")[2:])


def _hf_splits(name):
  """The names of the splits of a data set of the hub."""
  name, _, config = name.partition(":")
  if "{split}" in name: return ["test", "train"]
  return sorted(_ask_hub("get_dataset_split_names", name, config or None))


def _ask_hub(function, *args, **options):
  try:
    return getattr(_import("datasets", "datasets"), function)(*args, **options)
  except Exception as e:  # Of HTTP, of the hub, of file formats.
    raise ValueError((str(e).splitlines() or [repr(e)])[0]) from e


def _tfds(name, split, *, data_dir=None):
  """A tensorflow-datasets set, prepared on first use in `data_dir`."""
  tfds = _import("tensorflow_datasets", "tensorflow-datasets")
  # Data sets register when their category is imported, which tfds puts off.
  for category in ("text", "question_answering"):
    importlib.import_module(f"tensorflow_datasets.{category}")
  try:
    # The default format is TFRecord when data_dir is set, and needs TensorFlow.
    table = tfds.data_source(name, split=split, data_dir=data_dir,
                             builder_kwargs=dict(file_format="array_record"))
  except tfds.core.DatasetNotFoundError:
    known = tfds.list_builders(with_community_datasets=False)
    if data_dir is not None and pathlib.Path(data_dir).is_dir():
      known += [p.name for p in pathlib.Path(data_dir).iterdir() if p.is_dir()]
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.4)
    raise ValueError(f"no such data set; similar names: {sorted(set(near))}.") from None
  except ImportError as e:
    raise ValueError(f"preparing it needs the package {e.name!r}; pip install {e.name}.") from None
  except ValueError as e:
    if "split" not in str(e): raise
    raise ValueError(str(e).splitlines()[0]) from None
  return ({k: v.decode("utf-8") if isinstance(v, bytes) else v for k, v in row.items()}
          for row in table)


def _judging(name: str, split: str | None) -> Iterator[Mapping[str, Any]]:
  """The rows of a file, of all splits; with {split} in its path those of one, which they name."""
  suffix, is_named = pathlib.Path(name).suffix[1:], "{split}" in name
  rows_ = _file(_FILES.get(suffix, _FILES["jsonl"]), name, split if is_named else None)
  return (dict(row, split=split) if is_named else row for row in rows_)


_HELD_OUT = 4  # Every fourth gym question, on average, belongs to "test".


def _gym(name: str, split: str | None, *, size: _Size = 1024, seed: ranges.Whole = 0,
         config: Mapping | None = None) -> Iterator[dict]:
  """Entries of reasoning-gym tasks, `size` different ones, the tasks taking turns.

  The tasks have no splits: a hash of the question decides which one it is in.

  Args:
    config: {task: its options}, such as {"chain_sum": {"max_terms": 4}}.
  """
  gym = _import("reasoning_gym", "reasoning-gym")
  if split not in ("train", "test"): raise ValueError(f"no split {split!r}; train or test.")
  tasks, config = name.split(","), {k: dict(v) for k, v in (config or {}).items()}
  known = gym.factory.DATASETS
  for task in tasks:
    if task not in known:
      near = difflib.get_close_matches(task, known, n=5, cutoff=0.4) or sorted(known)
      raise ValueError(f"no task {task!r}; there are {near}.")
  if unknown := sorted(set(config) - set(tasks)):
    raise ValueError(f"prompts.options.config.{unknown[0]}: prompts.source has {tasks}.")
  # Most tasks make an entry when it is read, so that their length costs nothing; a few make all
  # entries at once or refuse a length, so the length is not larger than useful.
  limit = 4 * _HELD_OUT * -(-size // len(tasks))
  streams = []
  for task in tasks:
    try:
      entries = gym.create_dataset(task, seed=seed, size=limit, **config.get(task, {}))
    except (AssertionError, TypeError, ValueError) as e:
      raise ValueError(f"prompts.options.config.{task}: {e} (length {limit}).") from None
    streams.append(_gym_entries(task, entries, split))
  return ({"task": task, "config": config.get(task, {}), "seed": seed} | next(stream)
          for _, (task, stream) in zip(range(size), itertools.cycle(zip(tasks, streams))))


def _gym_entries(task, entries, split):
  questions = set()
  for index in range(len(entries)):
    entry = entries[index]
    question = entry["question"]
    is_held_out = zlib.crc32(question.encode()) % _HELD_OUT == 0
    if is_held_out == (split == "test") and question not in questions:
      questions.add(question)
      yield dict(index=index, entry=dict(entry))
  raise ValueError(f"gym:{task} has {len(questions)} different questions of "
                   f"split {split!r}; lower prompts.options.size.")


def _import(module, package):
  try:
    return importlib.import_module(module)
  except ModuleNotFoundError as e:
    raise ValueError(f"it needs {e.name}: pip install {package}.") from None


_KINDS: dict[str, Any] = {
    **dict(rows=_in_memory, chain=_chain, generated=_generate, gym=_gym, hf=_hf, judging=_judging,
         tfds=_tfds),
    **{kind: functools.partial(_file, read) for kind, read in _FILES.items()}}
KINDS = frozenset(_KINDS)  # The first words of sources.
