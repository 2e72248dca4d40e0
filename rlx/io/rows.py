"""Opens where prompts come from: source -> rows, as dicts of plain values.

  chain               drawn by prompts/datasets/chain.py
  jsonl:PATH          one JSON object a line; {split} in PATH is replaced
  tfds:NAME           a tensorflow-datasets set (no TensorFlow needed)
  gym:TASK,TASK       reasoning-gym tasks, in turn
"""
import difflib
import importlib
import inspect
import pathlib
import zlib

from rlx.io import strict_json

_LONGEST = 1 << 24  # Bytes of a line of JSONL.


def rows(source, split, **options):
  """Iterates over the rows of one split.

  Args:
    source: one of the forms above.
    split: "train", "test", or whatever the source has.
    **options: of the source; see the functions below.
  Raises:
    ValueError: no such source, file, set, task, split or option, or a package
      is missing; one line, with what there is.
  """
  kind, _, name = source.partition(":")
  sources = dict(chain=_chain, gym=_gym, jsonl=_jsonl, tfds=_tfds)
  if kind not in sources or (not name and kind != "chain"):
    raise ValueError(f"prompts.source={source!r}: chain, jsonl:PATH, tfds:NAME "
                     "or gym:TASK,TASK.")
  taken = [p.name for p in inspect.signature(sources[kind]).parameters.values()
           if p.kind is p.KEYWORD_ONLY]
  if unknown := sorted(set(options) - set(taken)):
    raise ValueError(f"prompts.options.{unknown[0]}: {kind} takes {taken}.")
  return sources[kind](name, split, **options)


def _chain(name, split, *, size=4096, seed=0, n_min=2, n_max=6, ops="Mm"):
  """Arguments of `prompts.datasets.chain.generate`, `size` of them."""
  del name, split  # Both splits have the same rows, and no question in common.
  return (dict(seed=seed, index=i, n_min=n_min, n_max=n_max, ops=ops)
          for i in range(size))


def _jsonl(name, split):
  """Lines of a file. Without {split} in its name, rows say it in "split"."""
  path = pathlib.Path(name.replace("{split}", split))
  if not path.is_file():
    near = sorted(p.name for p in path.parent.glob("*.jsonl"))
    raise ValueError(f"prompts.source='jsonl:{name}': no file {path}; "
                     f"{path.parent} has {near or 'no .jsonl file'}.")
  return lines(path, None if "{split}" in name else split)


def lines(path, only_split=None):
  """Objects of a JSONL file (a pathlib.Path); of one split, if `only_split` names it.

  Raises:
    ValueError: a line is no object, or splits are asked for and there are none.
  """
  seen = set()
  for i, row in numbered(path):
    if only_split is not None:
      if not isinstance(row.get("split"), str):
        raise ValueError(f"{path}:{i}: the row has no `split`; put {{split}} into the "
                         "name in prompts.source, or a `split` into every row.")
      seen.add(row["split"])
      if row["split"] != only_split: continue
    yield row
  if only_split is not None and only_split not in seen:
    raise ValueError(f"{path}: no row of split {only_split!r}; there are {sorted(seen)}.")


def numbered(path):
  """(line, object) of a JSONL file; empty lines are passed over.

  Raises:
    ValueError: a line is no object, or too long for one.
  """
  with path.open("rb") as f:
    for i, line in enumerate(iter(lambda: f.readline(_LONGEST + 1), b""), 1):
      if len(line) > _LONGEST:
        raise ValueError(f"{path}:{i}: the line has more than {_LONGEST} bytes.")
      if line.strip(): yield i, strict_json.parse(line, f"{path}:{i}", any_name=True)


def _tfds(name, split, *, data_dir=None):
  """A tensorflow-datasets set, prepared on first use in `data_dir`."""
  tfds = _import("tensorflow_datasets", f"tfds:{name}", "tensorflow-datasets")
  # Data sets register when their category is imported, which tfds puts off.
  for category in ("text", "question_answering"):
    importlib.import_module(f"tensorflow_datasets.{category}")
  try:
    # The default format is TFRecord when data_dir is set, and needs TensorFlow.
    found = tfds.data_source(name, split=split, data_dir=data_dir,
                             builder_kwargs=dict(file_format="array_record"))
  except tfds.core.DatasetNotFoundError:
    known = tfds.list_builders(with_community_datasets=False)
    if data_dir is not None and pathlib.Path(data_dir).is_dir():
      known += [p.name for p in pathlib.Path(data_dir).iterdir() if p.is_dir()]
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.4)
    raise ValueError(f"prompts.source='tfds:{name}': no such data set; similar "
                     f"names: {sorted(set(near))}.") from None
  except ImportError as e:
    raise ValueError(f"prompts.source='tfds:{name}': preparing it needs the package "
                     f"{e.name!r}; pip install {e.name}.") from None
  except ValueError as e:
    if "split" not in str(e): raise
    raise ValueError(f"prompts.source='tfds:{name}': {str(e).splitlines()[0]}") from None
  return ({k: v.decode("utf-8") if isinstance(v, bytes) else v for k, v in row.items()}
          for row in found)


_HELD_OUT = 4  # One gym question in so many belongs to "test".


def _gym(name, split, *, size=1024, seed=0, config=None):
  """Entries of reasoning-gym tasks, `size` different ones, the tasks taking turns.

  The tasks have no splits: a hash of the question decides which one it is in.

  Args:
    config: {task: its options}, such as {"chain_sum": {"max_terms": 4}}.
  """
  gym = _import("reasoning_gym", f"gym:{name}", "reasoning-gym")
  if split not in ("train", "test"):
    raise ValueError(f"prompts.source='gym:{name}': no split {split!r}; train or test.")
  tasks, config = name.split(","), {k: dict(v) for k, v in (config or {}).items()}
  known = gym.factory.DATASETS
  for task in tasks:
    if task not in known:
      near = difflib.get_close_matches(task, known, n=5, cutoff=0.4) or sorted(known)
      raise ValueError(f"prompts.source='gym:{name}': no task {task!r}; there are {near}.")
  if unknown := sorted(set(config) - set(tasks)):
    raise ValueError(f"prompts.options.config.{unknown[0]}: prompts.source has {tasks}.")
  # Most tasks make an entry when it is read, so their length costs nothing; a
  # few make all at once or refuse a length, so it is no longer than useful.
  limit = 4 * _HELD_OUT * -(-size // len(tasks))
  made = []
  for task in tasks:
    try:
      made.append(gym.create_dataset(task, seed=seed, size=limit, **config.get(task, {})))
    except (AssertionError, TypeError, ValueError) as e:
      raise ValueError(f"prompts.options.config.{task}: {e} (length {limit}).") from None
  return _gym_rows(tasks, made, config, split, size, seed)


def _gym_rows(tasks, made, config, split, size, seed):
  streams = [_gym_entries(task, dataset, split) for task, dataset in zip(tasks, made)]
  for i in range(size):
    task = tasks[i % len(tasks)]
    index, entry = next(streams[i % len(tasks)])
    yield dict(task=task, config=config.get(task, {}), seed=seed, index=index,
               entry=dict(entry))


def _gym_entries(task, dataset, split):
  seen = set()
  for index in range(len(dataset)):
    entry = dataset[index]
    question = entry["question"]
    held_out = zlib.crc32(question.encode()) % _HELD_OUT == 0
    if held_out == (split == "test") and question not in seen:
      seen.add(question)
      yield index, entry
  raise ValueError(f"prompts.source: gym:{task} has {len(seen)} different questions of "
                   f"split {split!r}; lower prompts.options.size.")


def _import(module, source, package):
  try:
    return importlib.import_module(module)
  except ModuleNotFoundError as e:
    raise ValueError(f"prompts.source={source!r} needs {e.name}: "
                     f"pip install {package}.") from None
