"""The functions of the package: train, evaluate, sample and score.

Nothing heavy is imported before one of them is called.
"""
import difflib
import importlib.util
import itertools
import json
import os
import pathlib
import re
import sys
import types
from typing import Any, Callable, Iterable, Mapping, Sequence
import zlib

from rlx import configs

Reward = Callable[..., Iterable[Any]]
Rewards = Reward | Mapping[str, Reward]
Rows = str | os.PathLike[str] | Iterable[Mapping[str, Any]]
_HELD_OUT = 10  # One row in so many is held out.
_FOLDER = pathlib.Path(configs.__path__[0])


def train(config: Any, *, rows: Rows | None = None, eval_rows: Rows | None = None,
          reward: Rewards | None = None, coefficients: Mapping[str, float] | None = None,
          model: str | None = None, workdir: str | None = None,
          **changes: Any) -> dict[str, Any] | None:
  """Trains a policy with reinforcement learning, on your rows and your reward if you give them.

    >>> def ends_right(completions, answer, **columns):
    ...   return [float(c.endswith(a)) for c, a in zip(completions, answer)]
    >>> rows = [{"prompt": f"{i}M4=", "answer": str(max(i, 4))} for i in range(10)]
    >>> summary = train("quickstart:smoke", rows=rows, reward=ends_right, workdir=folder,
    ...                 **{"steps": 1, "eval.prompts": 2, "prompts.per_step": 8})
    >>> summary["steps"], 0 <= summary["after"]["greedy"]["mean"] <= 1
    (1, True)

  Args:
    config: a config's name, such as quickstart or papers/prime, the path of a .py file, the folder
      of a run, whose config is taken, or a ConfigDict.
    rows: what is asked, one dict for each row, with a text in `prompt`; a list, a
      datasets.Dataset, the path of a .jsonl, .json, .csv or .parquet file, or a name such as
      hf:OWNER/NAME. None: the prompts of the config. Without a reward, the column `verifier`
      names the function below rlx/verifiers that compares a completion with the column `answer`.
    eval_rows: rows held out to measure accuracy, as rows. None: of rows with a column `split`
      those of "test"; else a tenth of rows, at most eval.prompts, chosen by a hash of each row.
    reward: function (completions, columns of the rows by name) -> for each completion a number on
      any scale, or None where it could not tell. Completions and columns are lists of texts and
      of values: those of one prompt, if the function runs in a worker process, which it does if
      it is a function of a module; otherwise all. A function may return a list for each
      completion: one number for each of its steps, which end with rollouts.step_separator, or
      for each of its tokens, if that is "" (or None in the config). A dict name -> function has
      several rewards, each a term of the config's rewards. Held-out accuracy, filters and a
      process reward model read the verdict: the first reward, or the mean of its list, clipped
      to [0, 1]. A completion that makes a function fail gets the lowest number that the others
      get, at most 0; where a function gives lists, each of its steps does.
    coefficients: name -> what the advantages of that reward are multiplied by; 1 by default.
    model: where the policy starts, as model.path: a folder, a .gguf file or hf:OWNER/NAME.
    workdir: folder of the run; a run that has a checkpoint there is continued. None: the folder
      that config names, or runs/CONFIG.
    **changes: keys of the config and their values, such as **{"learner.optimizer.lr": 1e-4}.
      Where a key names a function, the value may be the function itself.
  Returns:
    the summary of the run, see rlx/loops/rl.py: held-out accuracy "before" and "after" with 95%
    intervals, "steps", "seconds", ...; None if SIGTERM ended it early.
  Raises:
    ValueError: one line saying what is wrong and what is allowed.
  """
  config, workdir = _prepare(
      config, rows, eval_rows, reward, coefficients, model, workdir, changes)
  from rlx import cli
  from rlx.loops import rl
  cli.keep_compiled(config.compile_cache, workdir)
  return rl.train(config, workdir)


def evaluate(config: Any, *, rows: Rows | None = None, reward: Rewards | None = None,
             model: str | None = None, workdir: str | None = None,
             **changes: Any) -> dict[str, Any]:
  """Held-out accuracy of a run's newest checkpoint, or of a model, with 95% intervals.

    >>> result = evaluate("quickstart:smoke", workdir=folder, **{"eval.prompts": 4})
    >>> 0 <= result["greedy"]["low"] <= result["greedy"]["mean"] <= 1
    True

  Args:
    config: as for `train`.
    rows: held-out rows, as eval_rows of `train`; None: those of the config or run.
    reward: as for `train`.
    model: as for `train`.
    workdir: folder of a run, whose newest checkpoint is evaluated if it has one, and where
      evaluate.json is written. None: as for `train`.
    **changes: as for `train`.
  Returns:
    {metric: {"mean", "low", "high", ...}}, see rlx/tools/evaluate.py: "greedy", "sampled",
    "pass@k", "maj@k", ...
  Raises:
    ValueError: one line saying what is wrong and what is allowed.
  """
  config, workdir = _prepare(config, None, rows, reward, None, model, workdir, changes)
  from rlx import cli
  from rlx.tools import evaluate as evaluate_tool
  cli.keep_compiled(config.compile_cache, workdir)
  return evaluate_tool.evaluate(config, workdir)


def sample(model: str, prompts: Sequence[Any], *, per_prompt: int = 1, max_tokens: int = 256,
           temperature: float = 1.0, seed: int = 0) -> list[list[dict[str, Any]]]:
  """Samples completions of prompts.

    >>> chain = "configs/models/chain"
    >>> (completion,), = sample(chain, ["4M7m2M5m9="], max_tokens=18, temperature=0)
    >>> completion["text"]
    '7;2;5;5#5'

  Args:
    model: as model.path: a folder, a .gguf file or hf:OWNER/NAME.
    prompts: texts, or lists of chat messages {"role", "content"}, which the model's chat
      template turns into text.
    per_prompt: completions of each prompt.
    max_tokens: the longest completion, in tokens.
    temperature: 0 is greedy.
    seed: the same seed gives the same completions.
  Returns:
    for each prompt a list of completions {"text", "tokens", "logps", "finish"}: the text of each
    token, its log-prob in nats (at this temperature), and how the completion ended: eos or length.
  Raises:
    ValueError: there is no such model, or the model cannot read a prompt; one line.
  """
  import numpy as np
  from rlx.core import records
  from rlx.core import rng
  from rlx.learner import hosts
  from rlx.rollouts import padding
  from rlx.rollouts import sampler
  config, params, tokenizer = _load(model)
  ids = [_encode(tokenizer, prompt, i) for i, prompt in enumerate(prompts)]
  if not ids: return []
  _check_length(model, config, max(map(len, ids)) + max_tokens)
  draw = sampler.make(config, group=per_prompt, max_tokens=max_tokens, chunk=min(max_tokens, 64),
                      temperature=temperature, eos_ids=tokenizer.eos_ids,
                      pad_id=tokenizer.pad_id)
  rollouts = hosts.fetch(draw(
      params, *padding.left_pad(ids, max(map(len, ids)), tokenizer.pad_id),
      np.arange(len(ids), dtype=np.uint32), rng.key(seed, "sample")))
  completions = [
      dict(text=tokenizer.decode(tokens), tokens=tokenizer.pieces(tokens),
           logps=logps_T[:len(tokens)].tolist(), finish=records.FINISH[finish])
      for tokens, logps_T, finish in zip(
          padding.completions(rollouts), rollouts.sampler_logps_BT, rollouts.finish_B)]
  return [completions[i:i + per_prompt] for i in range(0, len(completions), per_prompt)]


def score(model: str, reference: str, texts: Sequence[tuple[Any, str]], *,
          beta: float = 0.05) -> list[dict[str, Any]]:
  """Rewards of tokens by an implicit process reward model.

    r_t = beta (log pi_model(y_t) - log pi_reference(y_t))

    >>> chain = "configs/models/chain"
    >>> scored, = score(chain, chain, [("4M7m2M5=", "7;2;5#5")])
    >>> scored["tokens"], set(scored["rewards"])
    (['7', ';', '2', ';', '5', '#', '5', ''], {0.0})

  Source: Yuan et al. 2024, arXiv:2412.01981, equation 4. Differs from the paper: nothing known.

  Args:
    model: the reward model, as model.path.
    reference: the model that it was trained from, with the same tokenizer.
    texts: pairs (prompt, completion); prompts as for `sample`.
    beta: of the model's training, prm.beta.
  Returns:
    for each text {"tokens", "rewards"}: the text of each token of the completion, end of
    sequence included, and its reward.
  Raises:
    ValueError: there is no such model, the tokenizers differ, or a text cannot be read; one line.
  """
  import functools
  import jax
  import numpy as np
  from rlx.models import logps
  from rlx.rollouts import trajectories
  if not texts: return []
  config, params, tokenizer = _load(model)
  ref_config, ref_params, ref_tokenizer = _load(reference)
  if ref_tokenizer.vocabulary != tokenizer.vocabulary:
    raise ValueError(f"reference={reference!r}: its tokenizer differs from that of {model!r}.")
  prompts, completions = [], []
  for i, text in enumerate(texts):
    if len(text) != 2 or isinstance(text, str):
      raise ValueError(f"text {i}: a pair (prompt, completion) is needed, not {text!r:.60}.")
    prompts.append(_encode(tokenizer, text[0], i))
    _, ids = tokenizer.pair(tokenizer.decode(prompts[-1]), text[1])
    completions.append(ids + [tokenizer.end_id])
  rows = trajectories.pairs(prompts, completions, tokenizer, max(map(len, completions)), bucket=1)
  _check_length(model, config, rows.tokens_BS.shape[1])
  def logps_of(config, params):
    run = jax.jit(functools.partial(
        logps.logps, config=config, completion_width=rows.completions_BT.shape[1],
        with_entropy=False))
    return np.asarray(run(params, tokens_BS=rows.tokens_BS, positions_BS=rows.positions_BS,
                          valid_BS=rows.valid_BS)[0])
  rewards_BT = beta * (logps_of(config, params) - logps_of(ref_config, ref_params))
  return [dict(tokens=tokenizer.pieces(ids), rewards=rewards_T[:len(ids)].tolist())
          for ids, rewards_T in zip(completions, rewards_BT)]


def _load(path):
  from rlx.io import weights
  return weights.load(path)


def _encode(tokenizer, prompt, number):
  try:
    return tokenizer.encode(tokenizer.render(prompt))
  except ValueError as e:
    raise ValueError(f"prompt {number}: {e}") from None


def _check_length(path, config, length):
  if config.max_positions is not None and length > config.max_positions:
    raise ValueError(f"{path!r} supports at most {config.max_positions} positions; prompt and "
                     f"completion have {length}.")


def _prepare(config, rows, eval_rows, reward, coefficients, model, workdir, changes):
  """(ConfigDict, workdir) of a call; rows are written into the workdir."""
  import ml_collections
  if isinstance(config, ml_collections.ConfigDict):
    workdir, config = workdir or "runs/train", config.copy_and_resolve_references()
  else:
    workdir, config = workdir or default_workdir(str(config)), load_config(str(config))
  with config.unlocked():
    if model is not None: config.model.path = str(model)
    for key, value in changes.items(): _set(config, key, value)
    taken: dict[str, Any] = {}
    _name_functions(config, taken)
    if rows is not None or eval_rows is not None or reward is not None:
      splits = _splits(config, rows, eval_rows)
      _use_rows(config, splits, reward, coefficients, pathlib.Path(workdir), taken)
    if reward is not None and "verifier.workers" not in changes and not config.verifier.workers:
      config.verifier.workers = min(os.cpu_count() or 1, 8)
  return config, workdir


def _set(config, key, value):
  """Sets a key by its dotted name."""
  from rlx import keys
  keys.check_exists(config, key)
  *section, name = key.split(".")
  for part in section: config = config[part]
  try:
    if callable(value):
      config.update({name: _name_of(value, {})})
    else:
      config[name] = value
  except (TypeError, ValueError) as e:
    raise ValueError(f"{key}={value!r:.80}: {str(e).splitlines()[0]}") from None


def _name_functions(section, taken):
  """Replaces functions in a config by their names."""
  for key, value in list(section.items()):
    if hasattr(value, "items"):
      _name_functions(value, taken)
    elif callable(value):
      with section.ignore_type(): section[key] = _name_of(value, taken)


def _name_of(fn, taken):
  """"package.module:function" by which this process finds a function.

  One that its module does not have, such as a lambda, is put into the module `rlx.given`.

  Args:
    taken: {name: function} of `rlx.given` that the config names already; it is added.
  """
  from rlx.core import resolve
  path = f"{fn.__module__}:{getattr(fn, '__qualname__', '')}"
  if fn.__module__ in sys.modules:
    try:
      if resolve.lookup("", path) is fn: return path
    except ValueError:
      pass
  module = sys.modules.setdefault("rlx.given", types.ModuleType("rlx.given"))
  stem = re.sub(r"\W", "", getattr(fn, "__name__", "")) or "function"
  name = next(n for n in itertools.chain([stem], (f"{stem}_{i}" for i in itertools.count(2)))
              if taken.get(n, fn) is fn)
  taken[name] = fn
  setattr(module, name, fn)
  return f"rlx.given:{name}"


def _use_rows(config, splits, reward, coefficients, workdir, taken):
  """Makes rows of `_splits` the config's prompts, in <workdir>/rows.jsonl."""
  first = [row for row in itertools.chain(*splits.values())][:2]
  if reward is not None:
    verifier = _use_rewards(config, reward, coefficients or {},
                            [row["columns"] for row in first], taken)
  elif all("verifier" in row["columns"] for row in itertools.chain(*splits.values())):
    verifier = ""
  else:
    raise ValueError("rows: without reward=, the column `verifier` of each row names a function "
                     "such as math_answer.final.")
  path = workdir / "rows.jsonl"
  text = "".join(json.dumps(row | dict(split=split)) + "\n"
                 for split, part in splits.items() for row in part)
  if path.exists() and path.read_text() != text and any(workdir.glob("checkpoints/*")):
    raise ValueError(f"rows: {workdir} has checkpoints of a run with other rows; give the same "
                     "rows or another workdir.")
  workdir.mkdir(parents=True, exist_ok=True)
  path.write_text(text)
  config.prompts.source, config.prompts.dataset = f"jsonl:{path}", "_rows"
  config.prompts.split, config.eval.split = "train", "test"
  config.prompts.options = {}
  config.prompts.columns = dict(verifier=verifier)


def _use_rewards(config, reward, coefficients, rows, taken):
  """Makes reward functions terms of the config; returns the name of the verifier."""
  from rlx.core import resolve
  from rlx.core import schedule
  rewards = reward if isinstance(reward, Mapping) else {"outcome": reward}
  if unknown := sorted(set(coefficients) - set(rewards)):
    raise ValueError(f"coefficients: no reward {unknown[0]!r}; there are {list(rewards)}.")
  if not rewards: raise ValueError("reward: there are none.")
  tried = {name: _tried(fn, rows) for name, fn in rewards.items()}
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
    path, by = _name_of(fn, taken), estimator
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


def _splits(config, rows, eval_rows):
  """{"train", "test": [{"id", "columns"}]} of the rows given, or of the config's prompts."""
  from rlx.io import rows as io_rows
  if rows is None and eval_rows is None:
    from rlx import inputs
    return {name: [dict(id=p.id, columns=p.meta.get(
        "row", p.meta | dict(prompt=p.text, answer=p.answer)))
                   for p in inputs.read_prompts(config, split)]
            for name, split in (("train", config.prompts.split), ("test", config.eval.split))}
  if eval_rows is not None:
    return dict(train=[] if rows is None else _read(rows, "row", "rows"),
                test=_read(eval_rows, "eval row", "eval_rows"))
  if not isinstance(rows, str | os.PathLike | Mapping): rows = list(rows)
  if io_rows.has_splits(rows, "rows"):
    return {split: _read(rows, f"{split} row", "rows", split) for split in ("train", "test")}
  rows = _read(rows, "row", "rows")
  hashed = sorted(rows, key=lambda row: (_hash(row), row["id"]))
  held_out = [row for row in hashed if not _hash(row) % _HELD_OUT] or hashed[:1]
  held_out = {row["id"] for row in held_out[:config.eval.prompts]}
  return dict(train=[row for row in rows if row["id"] not in held_out],
              test=[row for row in rows if row["id"] in held_out])


def _read(source, name, key, split=None):
  """[{"id", "columns"}] of a source of rows."""
  from rlx.io import rows as io_rows
  if not isinstance(source, str | os.PathLike | Mapping): source = list(source)
  if split is None and io_rows.has_splits(source, key):
    split = "test" if key == "eval_rows" else "train"
  out = []
  for i, row in enumerate(io_rows.rows(source, split, key)):
    columns = {str(column): _plain(value, f"{name} {i}: column {column!r}")
               for column, value in row.items() if column != "split"}
    if not isinstance(columns.get("prompt"), str) or not columns["prompt"]:
      raise ValueError(f"{name} {i}: a text is needed in the column `prompt`; it has "
                       f"{sorted(columns)}.")
    out.append(dict(id=f"{name} {i}", columns=columns))
  if not out: raise ValueError(f"{key}: there are none.")
  return out


def _plain(value, where):
  """The value as json writes and reads it."""
  if hasattr(value, "tolist"): value = value.tolist()  # Of numpy.
  try:
    return json.loads(json.dumps(value, allow_nan=False))
  except (TypeError, ValueError) as e:
    raise ValueError(f"{where}: {value!r:.60} is not plain: text, number, list or dict.") from e


def _hash(row):
  return zlib.crc32(json.dumps(row["columns"], sort_keys=True).encode())


def _tried(fn, rows):
  """(verifier, does it return lists) of a reward function, which is called on the reference
  answers of a few rows.

  Raises:
    ValueError: it fails, or returns something that is no reward for each completion.
  """
  from rlx.verifiers import errors
  from rlx.verifiers import reward_function
  if not callable(fn): raise ValueError(f"reward={fn!r:.60}: a function is needed.")
  name = getattr(fn, "__name__", type(fn).__name__)
  verifier = reward_function.RewardFunction(name, fn)
  verifier.columns(rows[0])
  try:
    rewards = verifier.rewards([str(row.get("answer") or "") for row in rows], rows)
  except errors.Unknown as e:
    raise ValueError(f"{e}.") from None
  except Exception as e:  # Whatever the function raises.
    raise ValueError(f"reward {name!r}: it fails on the reference answers of the first rows: "
                     f"{type(e).__name__}: {e}") from e
  return verifier, any(isinstance(reward, list) for reward in rewards)


def config_file(name: str) -> str:
  """The file of a config, with its variant if the name has one.

    >>> config_file("quickstart:smoke").endswith("configs/quickstart.py:smoke")
    True

  Args:
    name: a name such as quickstart, quickstart:smoke or papers/prime, or the path of a .py file.
  Raises:
    ValueError: there is no such config.
  """
  path, colon, variant = name.partition(":")
  if path.endswith(".py"):
    if not pathlib.Path(path).is_file(): raise ValueError(f"no config file {path!r}.")
    return name
  if path not in (names := _names()):
    by_last_part = {n.split("/")[-1]: n for n in names}
    near = ([by_last_part[path]] if path in by_last_part else
            difflib.get_close_matches(path, names, n=1)
            or [by_last_part[n] for n in difflib.get_close_matches(path, by_last_part, n=1)])
    papers = sum(n.startswith("papers/") for n in names)
    top = [n for n in names if "/" not in n and n != "base"]
    raise ValueError(
        f"no config {path!r}; " + (f"did you mean {near[0]}? There" if near else "there")
        + f" are {', '.join(top)} and {papers} named papers/...; a file's name ends in .py.")
  return str(_FOLDER / f"{path}.py") + colon + variant


def _names():
  """The names of all configs."""
  return sorted(str(p.relative_to(_FOLDER).with_suffix("")) for p in _FOLDER.rglob("*.py")
                if p.stem != "__init__")


def _is_run(name):
  """Whether this is the folder of a run; a config of the same name precedes it."""
  return (pathlib.Path(name) / "config.json").is_file() and name not in _names()


def load_config(name: str) -> Any:
  """The ml_collections.ConfigDict of a config, locked.

    >>> load_config("quickstart:smoke").steps
    2

  Args:
    name: as of `config_file`, or the folder of a run.
  Raises:
    ValueError: there is no such config or variant, or config.json is not the config of a run.
  """
  if _is_run(name): return _config_of_run(name)
  path, _, variant = config_file(name).partition(":")
  spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
  assert spec and spec.loader
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  if not hasattr(module, "get_config"): raise ValueError(f"{path} has no function get_config.")
  config = module.get_config(*[variant] if variant else [])
  return config.lock()


def _config_of_run(folder):
  """The ConfigDict of a run's config.json; its keys have the types that configs/base.py states."""
  from rlx import cli
  from rlx.configs import base
  def fill(section, values):
    # A section that names another method has other options.
    is_same = values.get("name") == section.get("name")
    for key in set(section) - (set(values) if is_same else {"name"}): del section[key]
    for key, value in values.items():
      if isinstance(value, dict) and key in section: fill(section[key], value)
      else: section[key] = tuple(value) if isinstance(value, list) else value
  config = base.get_config()
  with config.unlocked(): fill(config, cli.run_config(folder))
  return config


def default_workdir(name: str) -> str:
  """The folder of a config's run where none is given; a run's folder is its own.

    >>> default_workdir("papers/prime:smoke")
    'runs/papers-prime-smoke'
  """
  if _is_run(name): return name
  path, _, variant = name.partition(":")
  if path.endswith(".py"): path = pathlib.Path(path).stem
  return "runs/" + re.sub(r"[^\w.-]+", "-", f"{path}-{variant}" if variant else path)
