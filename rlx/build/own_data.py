"""Rows and reward functions of a call of `rlx.train` as parts of a config."""
import contextlib
import difflib
import functools
import inspect
import itertools
import json
import os
import pathlib
import re
import sys
import types
import zlib
from typing import Any, Callable, Iterable, Mapping, NoReturn

from absl import logging
import ml_collections

from rlx.build import keys, load, prompts as build_prompts, sets
from rlx.configs import base  # type: ignore[attr-defined]  # Found by its __path__.
from rlx.core import records, resolve, schedule
from rlx.io import rows as io_rows
from rlx.prompts import columns as columns_lib, filters
from rlx.prompts.datasets import _rows
from rlx.verifiers import errors, reward_function

Rows = str | os.PathLike[str] | Iterable[Mapping[str, Any]]
Rewards = Callable | Mapping[str, Callable]
_ARGUMENTS = ("config", "rows", "eval_rows", "reward", "coefficients", "columns", "model", "base",
              "workdir")
# What other libraries call the arguments, and keys of the config.
_OTHER_NAMES = {other: right for right, others in {
    "rows": "train_dataset dataset data prompts", "eval_rows": "eval_dataset test_dataset",
    "reward": "rewards reward_fn reward_func reward_funcs reward_function reward_functions",
    "coefficients": "reward_weights weights", "workdir": "output_dir folder",
    "model": "model_name model_path", "config": "args method",
    "**{'learner.optimizer.lr': ...}": "learning_rate lr", "steps": "max_steps num_steps",
    "**{'rollouts.per_prompt': ...}": "num_generations group_size",
    "**{'rollouts.max_tokens': ...}": "max_completion_length max_tokens max_new_tokens",
    "**{'prompts.per_step': ...}": "batch_size per_device_train_batch_size",
    "**{'kl.coef': ...}": "beta", "**{'rollouts.decoding.temperature': ...}": "temperature",
}.items() for other in others.split()}
_HELD_OUT = 10  # One row in so many is held out.
_EVAL_SPLITS = ("test", "validation", "valid", "val", "dev", "eval")  # The first one is used.


def prepare(config: Any, rows: Rows | None, eval_rows: Rows | None, reward: Rewards | None,
            coefficients: Mapping[str, float] | None, model: str | None, workdir: str | None,
            changes: dict[str, Any], over: str | None = None,
            columns: Mapping[str, str] | None = None, *, learns: bool = True,
            default: str = "runs/train") -> tuple[keys.Config, str]:
  """(ConfigDict, workdir) of a call; rows are written into the workdir.

  Args:
    learns: False: nothing is trained. A reward is then the verdict alone, the terms of the config
      stay, and rows are written beside those of the run.
    default: the folder where no workdir is given, if config is a ConfigDict.
  """
  if isinstance(config, ml_collections.ConfigDict):
    if over is not None: raise ValueError(f"base={over!r}: only with the name of a config.")
    is_moved, config = True, config.copy_and_resolve_references()
  else:
    default = load.default_workdir(name := str(config), over)
    is_moved, config = default != name, load.load_config(name, over)
  load.check_workdir(workdir or default)
  def choose() -> str:
    if workdir is None and learns and is_moved: return load.find_free_workdir(default, config)
    return workdir or default
  with config.unlocked():
    if model is not None: config.model.path = str(model)
    sets.fill(config)
    changes, is_own = sets.change_source(config, changes), rows is not None or eval_rows is not None
    rows, eval_rows = _use_set(config, rows, eval_rows, columns)
    for key, value in changes.items():
      _check_argument(config, key, value)
      _set(config, key, value)
    if "max_tokens" in (columns or {}): config.prompts.columns["max_tokens"] = "max_tokens"
    taken: dict[str, Any] = {}
    _name_functions(config, taken)
    if is_own or reward is not None: leave_mixture(config, learns or not is_own)
    if rows is not None or eval_rows is not None or reward is not None:
      read = functools.partial(_read, columns=columns or {}, wanted=_find_wanted(reward))
      splits = _splits(config, rows, eval_rows, read)
      workdir = _use_rows(config, splits, reward, coefficients, choose, taken, learns)
    if reward is not None and "verifier.workers" not in changes and not config.verifier.workers:
      config.verifier.workers = min(os.cpu_count() or 1, 8)
  return config, choose()


def refuse_positional(call: str, config: Any, given: tuple) -> NoReturn:
  """Refuses arguments after the config that have no name, with the line to write.

  Functions are rewards, and the first of the others are rows. In the place of the config may be a
  model, as in TRL.
  """
  words, left = [], ["eval_rows", "rows"] if call == "train" else ["rows"]
  if isinstance(config, str | os.PathLike) and (model := load.find_model(str(config))):
    config, words = "papers/grpo", ["base='gsm8k'", f"model={model!r}"]
  for value in given:
    functions = [*value.values()] if isinstance(value, Mapping) else (
        value if isinstance(value, list | tuple) else [value])
    if functions and all(map(callable, functions)):
      named = [getattr(fn, "__name__", "...") for fn in functions]
      words.append("reward=" + (named[0] if len(named) == 1 else
                                "{" + ", ".join(f"{n!r}: {n}" for n in named) + "}"))
    elif left:
      words.append(f"{left.pop()}={repr(value) if isinstance(value, str | os.PathLike) else '...'}")
  first = repr(config) if isinstance(config, str | os.PathLike) else "config"
  raise ValueError(f"rlx.{call}: arguments after the config have names; write "
                   f"rlx.{call}({', '.join([first, *words])}).")


def leave_mixture(config: keys.Config, is_needed: bool) -> None:
  """Takes the mixture out of a config whose prompts are those of a call, unless it is needed."""
  if not config.prompts.mixture: return
  if is_needed:
    raise ValueError("prompts.mixture: rows and a reward of a call are for one source; of a "
                     "mixture, prompts.mixture.NAME.columns.verifier names what judges the "
                     "completions of a source.")
  with config.unlocked(): config.prompts.mixture = {}


def _use_set(config: keys.Config, rows: Rows | None, eval_rows: Rows | None,
             columns: Mapping[str, str] | None) -> tuple[Rows | None, Rows | None]:
  """(rows, eval_rows) that are left when a public set, named as one of them alone, is the source
  of the config's prompts."""
  given = [x for x in (rows, eval_rows) if x is not None]
  if len(given) != 1 or sets.find_set(given[0], "rows") is None: return rows, eval_rows
  if columns: raise ValueError(f"columns={columns}: rows={given[0]!r} names a set and its columns.")
  sets.change_source(config, {"prompts.source": given[0]})
  return None, None


def _check_argument(config: keys.Config, key: str, value: Any) -> None:
  """Refuses what is called otherwise here, such as an argument of TRL."""
  is_own = isinstance(value, list | Mapping) or callable(value)
  right = _OTHER_NAMES.get(key) if key not in config or is_own else None
  if right is None and key not in config and "." not in key:
    right = next(iter(difflib.get_close_matches(key, _ARGUMENTS, 1)), None)
  if right is not None:
    raise ValueError(f"{key}: rlx.train has no such argument; did you mean {right}?")


def _set(config: keys.Config, key: str, value: Any) -> None:
  """Sets a key by its dotted name."""
  keys.check_exists(config, key)
  keys.open_source(config, key)
  *section, name = key.split(".")
  for part in section: config = config[part]
  try:
    if callable(value) and hasattr(config[name], "name"):  # A method, with its own defaults.
      kept = {k: v for k, v in config[name].items() if k in ("coef", *schedule.OPTIONS)}
      config[name] = ml_collections.ConfigDict(kept | dict(name=_name_of(value, {})))
    elif callable(value):
      config.update({name: _name_of(value, {})})
    else:
      config[name] = value
  except (TypeError, ValueError) as e:
    raise ValueError(f"{key}={value!r:.80}: {str(e).splitlines()[0]}") from None


def _name_functions(section: keys.Config, taken: dict[str, Any]) -> None:
  """Replaces functions in a config by their names."""
  for key, value in list(section.items()):
    if hasattr(value, "items"):
      _name_functions(value, taken)
    elif callable(value):
      with section.ignore_type(): section[key] = _name_of(value, taken)


def _name_of(fn: Callable, taken: dict[str, Any]) -> str:
  """"package.module:function" by which this process finds a function.

  One that its module does not have, such as a lambda, is put into the module `rlx.given`.

  Args:
    taken: {name: function} of `rlx.given` that the config names already; it is added.
  """
  path = f"{fn.__module__}:{getattr(fn, '__qualname__', '')}"
  if fn.__module__ in sys.modules:
    with contextlib.suppress(ValueError):
      if resolve.lookup("", path) is fn: return path
  module = sys.modules.setdefault("rlx.given", types.ModuleType("rlx.given"))
  stem = re.sub(r"\W", "", getattr(fn, "__name__", getattr(fn, "name", ""))) or "function"
  name = next(n for n in itertools.chain([stem], (f"{stem}_{i}" for i in itertools.count(2)))
              if taken.get(n, fn) is fn)
  taken[name] = fn
  setattr(module, name, fn)
  return f"rlx.given:{name}"


def _name_reward(verifier: reward_function.RewardFunction, taken: dict[str, Any]) -> str:
  """As `_name_of`, so that another process finds a reward function of a module too."""
  module = str(getattr(verifier.fn, "__module__", ""))
  name = getattr(verifier.fn, "__qualname__", "")
  if vars(sys.modules.get(module, resolve)).get(name) is not verifier.fn:
    return _name_of(verifier, taken)
  return f"{reward_function.__name__}:{module.replace('.', '/')}/{name}"


def _use_rows(config: keys.Config, splits: dict[str, list[dict]], reward: Rewards | None,
              coefficients: Mapping[str, float] | None, choose: Callable[[], str],
              taken: dict[str, Any], learns: bool) -> str:
  """Makes rows of `_splits` the config's prompts, in a file of the folder that `choose` returns
  when the methods are known; returns the folder."""
  rows = [*itertools.chain(*splits.values())]
  verifier = "" if learns or reward is not None else config.prompts.columns.get("verifier", "")
  if (reward is None and not verifier and config.environment.name is None
      and not all("verifier" in row["columns"] for row in rows)):
    raise ValueError("rows: without reward=, the column `verifier` of each row names a function "
                     "such as math_answer.final.")
  for row in rows:
    _rows.read_row(row["columns"], row["id"], verifier if reward is None else "reward")
  first = [row["columns"] for row in rows[:2]]
  if reward is not None:
    verifier = (_use_rewards(config, reward, coefficients or {}, first, taken) if learns else
                _use_verdict(config, reward, first, taken))
  workdir = pathlib.Path(choose())
  path = workdir / ("rows.jsonl" if learns else "other_rows.jsonl")
  text = "".join(json.dumps(row | dict(split=split)) + "\n"
                 for split, part in splits.items() for row in part)
  if learns and path.exists() and path.read_text() != text and any(workdir.glob("checkpoints/*")):
    raise ValueError(f"rows: {workdir} has checkpoints of a run with other rows; give the same "
                     "rows or another workdir.")
  workdir.mkdir(parents=True, exist_ok=True)
  path.write_text(text)
  config.prompts.source, config.prompts.dataset = f"jsonl:{path}", "_rows"
  config.prompts.split, config.eval.split = "train", "test"
  config.prompts.options = {}
  limit = config.prompts.columns.get("max_tokens")
  config.prompts.columns = dict(verifier=verifier) | (dict(max_tokens=limit) if limit else {})
  return str(workdir)


def _use_verdict(config: keys.Config, reward: Rewards, rows: list[dict],
                 taken: dict[str, Any]) -> str:
  """Makes a reward function the verdict, and each that Python gave to the run the one of its name;
  returns the name of the verifier."""
  rewards = reward if isinstance(reward, Mapping) else {getattr(reward, "__name__", ""): reward}
  tried = {name: _try_reward(fn, rows)[0] for name, fn in rewards.items()}
  paths = {re.sub(r"\W", "", name): _name_reward(fn, taken) for name, fn in tried.items()}
  for key in ("scores", "step_rewards"):
    config.verifier[key] = tuple(
        paths.get(re.split("[:/]", path)[-1], path) if ":__main__/" in path
        or path.startswith(resolve.GIVEN) else path for path in config.verifier[key])
  return next(iter(paths.values()))


def _use_rewards(config: keys.Config, reward: Rewards, coefficients: Mapping[str, float],
                 rows: list[dict], taken: dict[str, Any]) -> str:
  """Makes reward functions terms of the config; returns the name of the verifier."""
  rewards = reward if isinstance(reward, Mapping) else {"outcome": reward}
  if unknown := sorted(set(coefficients) - set(rewards)):
    raise ValueError(f"coefficients: no reward {unknown[0]!r}; there are {list(rewards)}.")
  if not rewards: raise ValueError("reward: there are none.")
  tried = {name: _try_reward(fn, rows) for name, fn in rewards.items()}
  terms, estimators = dict(config.rewards), dict(config.advantages)
  if "outcome" not in terms: raise ValueError("reward: the config has no term rewards.outcome.")
  outcome, estimator = terms.pop("outcome"), estimators.pop("outcome", None)
  reads_the_reward = getattr(resolve.lookup("rewards", outcome["name"]), "unchanged", False)
  scheduled = {k: outcome[k] for k in schedule.OPTIONS if k in outcome}
  scores, step_rewards = list(config.verifier.scores), list(config.verifier.step_rewards)
  verifier = ""
  for name, (fn, is_list) in tried.items():
    if name in terms or not name.isidentifier():
      raise ValueError(f"reward {name!r}: another name; the config has the rewards {list(terms)}.")
    path, by = _name_reward(fn, taken), estimator
    if is_list:
      term, by = dict(name="steps.given", index=len(step_rewards)), dict(name="process.rloo")
      step_rewards.append(path)
    elif verifier:
      term = dict(name="outcome.score", index=len(scores))
      scores.append(path)
    elif reads_the_reward:
      term = dict(scheduled, name="outcome.reward")
    else:  # A method that reads the verdict of a single reward stays.
      term = outcome if len(tried) == 1 else dict(name="outcome.reward")
    verifier = verifier or path
    terms[name] = dict(term, coef=float(coefficients.get(name, outcome["coef"])))
    if estimator is not None: estimators[name] = by
  if step_rewards and config.rollouts.step_separator is None: config.rollouts.step_separator = ""
  config.verifier.scores, config.verifier.step_rewards = tuple(scores), tuple(step_rewards)
  config.rewards, config.advantages = terms, estimators
  return verifier


def _splits(config: keys.Config, rows: Rows | None, eval_rows: Rows | None,
            read: Callable[..., list[dict]]) -> dict[str, list[dict]]:
  """{"train", "test": [{"id", "columns"}]} of the rows given, or of the config's prompts.

  Args:
    read: `_read` with what is read of a row.
  """
  if eval_rows is not None:
    return dict(train=[] if rows is None else read(_hold(rows), "row", "rows", ("train",)),
                test=read(_hold(eval_rows), "eval row", "eval_rows", (*_EVAL_SPLITS, "train")))
  if rows is None:
    return {name: [dict(id=p.id, columns=_columns_of(p))
                   for p in build_prompts.read_prompts(config, split)]
            for name, split in (("train", config.prompts.split), ("test", config.eval.split))}
  rows = _hold(rows)
  names = io_rows.find_splits(rows, "rows")
  train = read(rows, "train row" if names else "row", "rows", ("train",))
  held_out = next((n for n in _EVAL_SPLITS if n in names), None)
  if held_out: return dict(train=train, test=read(rows, f"{held_out} row", "rows", (held_out,)))
  hashed = sorted(train, key=lambda row: (_hash(row), row["id"]))
  if _hash(hashed[0]) == _hash(hashed[-1]):
    raise ValueError(f"rows: {'there is one' if len(train) == 1 else f'all {len(train)} are equal'}"
                     ", and one is held out to measure accuracy; give at least two different rows, "
                     "or those held out as eval_rows=[...].")
  apart = [row for row in hashed if not _hash(row) % _HELD_OUT]
  if len(apart) in (0, len(hashed)): apart = hashed[:1]
  ids = {row["id"] for row in apart[:config.eval.prompts]}
  return dict(train=[row for row in train if row["id"] not in ids],
              test=[row for row in train if row["id"] in ids])


def _hold(rows: Rows) -> Rows:
  """Rows that can be read several times."""
  if isinstance(rows, str | os.PathLike | Mapping) or hasattr(rows, "itertuples"): return rows
  return list(rows)


def _find_wanted(reward: Rewards | None) -> set[str]:
  """The columns that have to be plain values: those that prompts are made of, or rewards take."""
  functions = reward.values() if isinstance(reward, Mapping) else [reward]
  taken = [p.name for fn in functions if callable(fn)
           for p in inspect.signature(fn).parameters.values() if p.kind != p.VAR_KEYWORD]
  return {"prompt", "answer", "verifier", "tools", *taken}


def _read(source: Rows, name: str, key: str, choices: tuple[str, ...], *,
          columns: Mapping[str, str], wanted: set[str]) -> list[dict]:
  """[{"id", "columns"}] of a source of rows.

  Columns that JSON cannot hold, such as images, are left out of all rows.

  Args:
    choices: splits, of which the first one that the source has is read.
    columns: {name: the row's own name of this column, dotted inside another column}.
    wanted: columns that are refused instead of left out.
  """
  out: list[dict] = []
  left_out: dict[str, str] = {}
  for i, row in enumerate(_rows_of(source, key, choices)):
    where = f"{name} {i}"
    row = {**row, **{new: old if new == "verifier" and {".", ":"} & set(old) else
                     columns_lib.find(row, old, where, f"columns[{new!r}]")
                     for new, old in columns.items()}}
    plain = {}
    for column, value in row.items():
      try:
        plain[str(column)] = _to_json_value(value, f"{where}: column {column!r}")
      except ValueError as e:
        if column in wanted: raise
        left_out.setdefault(str(column), str(e))
    plain.pop("split", None)
    out.append(dict(id=where, columns=plain))
  for row in out:
    for column in left_out: row["columns"].pop(column, None)
  if left_out: logging.warning("left out of %s: %s", key, " ".join(left_out.values()))
  if not out: raise ValueError(f"{key}: there are none.")
  return out


def _rows_of(source: Rows, key: str, choices: tuple[str, ...]) -> Iterable[Mapping[str, Any]]:
  """The rows of the first split of `choices` that a source has; of a public set by its name, those
  of its training or held-out split, with what its reader makes of them."""
  if public := sets.find_set(source, key):
    config = base.get_config()
    sets.change_source(config, {"prompts.source": source})
    part = public.split if choices[0] == "train" else public.held_out
    prompts = list(build_prompts.read_prompts(config, part))
    prompts = filters.drop_unjudged(
        prompts, build_prompts.find_problems(config, prompts), f"{source}, split {part}")
    return ({k: v for k, v in _columns_of(p).items() if k != "answer" or p.answer}
            | dict(verifier=p.verifier) for p in prompts)
  names = io_rows.find_splits(source, key)
  split = next((s for s in choices if s in names), choices[0]) if names else None
  return io_rows.rows(source, split, key)


def _columns_of(p: records.Prompt) -> dict[str, Any]:
  """The columns of a Prompt, as those of a row that a user gives."""
  return p.meta.get("row", p.meta | dict(
      prompt=list(p.messages) or p.text, answer=list(p.answers) or p.answer,
      **dict(tools=list(p.tools)) if p.tools else {}))


def _to_json_value(value: Any, where: str) -> Any:
  """The value as json writes and reads it; NaN, which stands for a missing value, as None."""
  if hasattr(value, "tolist"): value = value.tolist()  # Of numpy.
  if isinstance(value, float) and value != value: return None
  try:
    return json.loads(json.dumps(value, allow_nan=False))
  except (TypeError, ValueError) as e:
    raise ValueError(f"{where}: {value!r:.60} is not plain: text, number, list or dict.") from e


def _hash(row: dict) -> int:
  return zlib.crc32(json.dumps(row["columns"], sort_keys=True).encode())


def _try_reward(fn: Any, rows: list[dict]) -> tuple[reward_function.RewardFunction, bool]:
  """(verifier, does it return lists) of a reward function, which is called on the reference
  answers of a few rows.

  Raises:
    ValueError: it fails, or returns something that is no reward for each completion.
  """
  if not callable(fn): raise ValueError(f"reward={fn!r:.60}: a function is needed.")
  name = getattr(fn, "__name__", type(fn).__name__)
  verifier = reward_function.RewardFunction(name, fn)
  verifier.columns(rows[0])
  try:
    rewards = verifier.rewards([_rows.read_row(row, "row", name).answer for row in rows], rows)
  except errors.Unknown as e:
    raise ValueError(f"{e}.") from None
  except Exception as e:  # Whatever the function raises.
    raise ValueError(f"reward {name!r}: it fails on the reference answers of the first rows: "
                     f"{type(e).__name__}: {e}") from e
  return verifier, any(isinstance(reward, list) for reward in rewards)
