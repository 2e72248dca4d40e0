"""The functions of the package: train, evaluate, sample and score.

Nothing heavy is imported before one of them is called.
"""
import os
from typing import Any, Callable, Iterable, Mapping, Sequence, Unpack

from rlx.core.typed_keys import Keys

Reward = Callable[..., Iterable[Any]]
Rewards = Reward | Mapping[str, Reward]
Rows = str | os.PathLike[str] | Iterable[Mapping[str, Any]]
_COLUMNS = 16  # `sample` and `score` pad texts to a multiple of so many tokens.


def train(config: Any, *misplaced: Any, rows: Rows | None = None, eval_rows: Rows | None = None,
          reward: Rewards | None = None, coefficients: Mapping[str, float] | None = None,
          columns: Mapping[str, str] | None = None, model: str | None = None,
          base: str | None = None, workdir: str | None = None,
          **changes: Unpack[Keys]) -> dict[str, Any] | None:
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
    *misplaced: refused with the line to write: all other arguments have names.
    rows: what is asked, one dict for each row, with a text or a list of chat messages in `prompt`;
      a list, a datasets.Dataset, a dict of splits, a pandas.DataFrame, the path of a .jsonl,
      .json, .csv, .tsv or .parquet file, hf:OWNER/NAME:CONFIG:SPLIT, or the name of a public set
      such as gsm8k, which needs no reward (docs/data.md). None: the prompts of the config. Without
      a reward, the column `verifier` names the function below rlx/verifiers that compares a
      completion with the column `answer`, a text, a number or a list of accepted ones.
    eval_rows: rows held out to measure accuracy, as rows. None: of rows with splits those of
      "test" or "validation"; else a tenth of rows, at most eval.prompts, chosen by a hash of each
      row.
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
    columns: {"prompt": "question"} where the rows have other names; a dot names a column inside
      another one: {"answer": "reward_model.ground_truth"}.
    model: where the policy starts, as model.path: a folder, a .gguf file or hf:OWNER/NAME.
    base: the model, task and sizes to which the method of a named config is applied: toy, gsm8k,
      math, code, tools or domains (configs/bases), such as base="gsm8k" or "gsm8k:lora". None: the
      config's own, which are those of the toy for most configs.
    workdir: folder of the run; a run that has a checkpoint there is continued. None: the folder
      that config names, or runs/CONFIG; runs/CONFIG-2, ... where that has a run of other methods.
    **changes: keys of the config and their values, such as **{"learner.optimizer.lr": 1e-4}.
      Where a key names a function, the value may be the function itself. `rlx.Keys` has the keys
      with their types, for editors.
  Returns:
    the summary of the run, see rlx/loops/rl.py: held-out accuracy "before" and "after" with 95%
    intervals, "steps", "seconds", ...; None if SIGTERM or Ctrl-C ended it early.
  Raises:
    ValueError: one line saying what is wrong and what is allowed.
  """
  from rlx.build import own_data
  from rlx.io import compile_cache
  from rlx.loops import rl
  if misplaced: own_data.refuse_positional("train", config, misplaced)
  config, workdir = own_data.prepare(
      config, rows, eval_rows, reward, coefficients, model, workdir, dict(changes), base, columns)
  compile_cache.keep_compiled(config.compile_cache, workdir)
  return rl.train(config, workdir)


def evaluate(config: Any, *misplaced: Any, rows: Rows | None = None,
             reward: Rewards | None = None, columns: Mapping[str, str] | None = None,
             model: str | None = None, base: str | None = None, workdir: str | None = None,
             suite: str | None = None, scorer: str | None = None, judge: str | None = None,
             **changes: Unpack[Keys]) -> dict[str, Any]:
  """Held-out accuracy of a run's newest checkpoint, or of a model, with 95% intervals.

    >>> result = evaluate("quickstart:smoke", workdir=folder, **{"eval.prompts": 4})
    >>> 0 <= result["greedy"]["low"] <= result["greedy"]["mean"] <= 1
    True

  Args:
    config: as for `train`.
    *misplaced: as for `train`.
    rows: held-out rows, as eval_rows of `train`; None: those of the config or run.
    columns: as for `train`.
    reward: as for `train`; only the verdict, the first one, is measured. Functions that Python gave
      to the run, and which this process does not have, are given again under their names.
    model: as for `train`.
    base: as for `train`.
    workdir: folder of a run, whose newest checkpoint is evaluated if it has one, and where
      evaluate.json is written. None: as for `train`.
    suite: named benchmarks that are measured instead: "math", "code" or "reason", see
      configs/suites.
    scorer, judge: what is measured instead on rows of completions whose worth is known, see
      rlx/tools/judging.py.
    **changes: as for `train`.
  Returns:
    {metric: {"mean", "low", "high", ...}}, see rlx/tools/evaluate.py: "greedy", "sampled",
    "pass@k", "maj@k", ...; of a scorer or judge what rlx/tools/judging.py returns.
  Raises:
    ValueError: one line saying what is wrong and what is allowed.
  """
  from rlx.build import load, own_data, suites
  from rlx.io import compile_cache
  from rlx.tools import evaluate as evaluate_tool, judging
  if misplaced: own_data.refuse_positional("evaluate", config, misplaced)
  if scorer is not None or judge is not None:
    config, workdir = own_data.prepare(
        config, None, None, reward, None, model, workdir, dict(changes), base, learns=False)
    return judging.evaluate_judge(config, workdir, rows=rows, scorer=scorer, judge=judge,
                                  columns=columns)
  if suite is not None:
    if rows is not None or reward is not None:
      raise ValueError(f"suite={suite!r}: without rows and reward; its sets have their own.")
    if isinstance(config, str | os.PathLike):
      workdir = workdir or load.default_workdir(str(config), base)
      config, base = load.load_config(str(config), base), None
    suites.use_suite(config, suite)
  config, workdir = own_data.prepare(
      config, None, rows, reward, None, model, workdir, dict(changes), base, columns,
      learns=False)
  compile_cache.keep_compiled(config.compile_cache, workdir)
  return evaluate_tool.evaluate(config, workdir)


def sample(model: str, prompts: str | Sequence[Any], *, per_prompt: int = 1, max_tokens: int = 256,
           temperature: float = 1.0, seed: int = 0) -> list[list[dict[str, Any]]]:
  """Samples completions of prompts.

    >>> chain = "configs/models/chain"
    >>> (completion,), = sample(chain, ["4M7m2M5m9="], max_tokens=18, temperature=0)
    >>> completion["text"]
    '7;2;5;5#5'

  Args:
    model: as model.path: a folder, a .gguf file or hf:OWNER/NAME; or the folder of a run, whose
      newest checkpoint is taken.
    prompts: texts, or lists of chat messages {"role", "content"}, which the model's chat
      template turns into text. A single text, or a single list of messages, is one prompt.
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
  if isinstance(prompts, str) or (prompts and isinstance(prompts[0], Mapping)): prompts = [prompts]
  return _sample(model, _load(model), prompts, per_prompt, max_tokens, temperature, seed)


def _sample(model, loaded, prompts, per_prompt, max_tokens, temperature, seed):
  """As `sample`, of a model that `_load` has read."""
  import numpy as np
  from rlx.core import records, rng
  from rlx.learner import hosts
  from rlx.rollouts import padding, sampler
  config, params, tokenizer = loaded
  ids = [_encode(tokenizer, prompt, i) for i, prompt in enumerate(prompts)]
  if not ids: return []
  longest = max(map(len, ids))
  _check_length(model, config, longest + max_tokens)
  draw = sampler.make(config, group=per_prompt, max_tokens=max_tokens, chunk=min(max_tokens, 64),
                      temperature=temperature, eos_ids=tokenizer.eos_ids, pad_id=tokenizer.pad_id)
  rollouts = hosts.fetch(draw(
      params, *padding.pad_left(ids, _round_up(longest), tokenizer.pad_id),
      np.arange(len(ids), dtype=np.uint32), rng.key(seed, "sample")))
  completions = [
      dict(text=tokenizer.decode(tokens), tokens=tokenizer.pieces(tokens),
           logps=logps_T[:len(tokens)].tolist(), finish=records.FINISH[finish])
      for tokens, logps_T, finish in zip(
          padding.completions(rollouts), rollouts.sampler_logps_BT, rollouts.finish_B)]
  return [completions[i:i + per_prompt] for i in range(0, len(completions), per_prompt)]


def score(model: str, reference: str | None, texts: Sequence[tuple[Any, str]], *,
          beta: float = 0.05) -> list[dict[str, Any]]:
  """Rewards of tokens by an implicit process reward model.

    r_t = beta (log pi_model(y_t) - log pi_reference(y_t))

    >>> chain = "configs/models/chain"
    >>> scored, = score(chain, chain, [("4M7m2M5=", "7;2;5#5")])
    >>> scored["tokens"], set(scored["rewards"])
    (['7', ';', '2', ';', '5', '#', '5', ''], {0.0})

  Source: Yuan et al. 2024, arXiv:2412.01981, equation 4. Differs from the paper: nothing known.

  Args:
    model: the reward model, as model.path, or the folder of a run, whose newest PRM is taken.
    reference: the model that it was trained from, with the same tokenizer. None: of a run, the
      model that its PRM started from.
    texts: pairs (prompt, completion); prompts as for `sample`.
    beta: of the model's training, prm.beta.
  Returns:
    for each text {"tokens", "rewards"}: the text of each token of the completion, end of
    sequence included, and its reward.
  Raises:
    ValueError: there is no such model, the tokenizers differ, or a text cannot be read; one line.
  """
  import jax
  import numpy as np
  from rlx.models import logps
  from rlx.rollouts import trajectories
  if not texts: return []
  config, params, tokenizer = _load(model, "prm")
  if reference is None: reference = _find_start(model)
  ref_config, ref_params, ref_tokenizer = _load(reference)
  if ref_tokenizer.vocabulary != tokenizer.vocabulary:
    raise ValueError(f"reference={reference!r}: its tokenizer differs from that of {model!r}.")
  prompts, completions = [], []
  for i, text in enumerate(texts):
    if len(text) != 2 or isinstance(text, str):
      raise ValueError(f"text {i}: a pair (prompt, completion) is needed, not {text!r:.60}.")
    prompts.append(_encode(tokenizer, text[0], i))
    _, ids = tokenizer.pair(tokenizer.render(text[0]), text[1])
    completions.append(ids + [tokenizer.end_id])
  longest = max(map(len, completions))
  _check_length(model, config, max(map(len, prompts)) + longest)
  # Each shape is a program: there are few, because rows and columns are rounded up.
  fill = (1 << (len(texts) - 1).bit_length()) - len(texts)
  rows = trajectories.pairs(prompts + prompts[:1] * fill, completions + completions[:1] * fill,
                            tokenizer, _round_up(longest), _round_up(max(map(len, prompts))))
  # The same function in every call, so that jax finds what it compiled for an earlier one.
  run = jax.jit(logps.of_rollouts, static_argnames=("config", "with_entropy"))
  logps_BT, ref_logps_BT = (
      np.asarray(run(params, config=config, rollouts=rows, with_entropy=False)[0])
      for config, params in ((config, params), (ref_config, ref_params)))
  return [dict(tokens=tokenizer.pieces(ids), rewards=rewards_T[:len(ids)].tolist())
          for ids, rewards_T in zip(completions, beta * (logps_BT - ref_logps_BT))]


def _round_up(tokens: int) -> int:
  """The number of columns for so many tokens."""
  return -(-tokens // _COLUMNS) * _COLUMNS


def chat(model: str, *, max_tokens: int = 256, temperature: float = 1.0, seed: int = 0) -> None:
  """Answers each line of the standard input, until it ends; what `rlx chat MODEL` runs.

  With a chat template the lines are turns of one dialogue, else each is a prompt of its own.

  Args: as for `sample`; the first reply is that of `sample` for the first line.
  """
  import sys
  loaded, messages = _load(model), []
  has_template = bool(loaded[2].hf.chat_template)
  for line in iter(lambda: _ask(sys.stdin), None):
    messages.append(dict(role="user", content=line))
    (reply,), = _sample(model, loaded, [[*messages] if has_template else line], 1, max_tokens,
                        temperature, seed)
    print(reply["text"], flush=True)
    messages.append(dict(role="assistant", content=reply["text"]))


def run_chat(*words: str) -> None:
  """Runs `chat` with the words of a command line: MODEL key=value ..."""
  from rlx.io import terminal
  options: dict[str, Any] = dict(map(terminal.split_pair, words[1:]))
  kinds: dict[str, Callable] = dict(max_tokens=int, temperature=float, seed=int)
  if not words or "=" in words[0]: raise ValueError("rlx chat MODEL: a model is needed.")
  for name, value in options.items():
    if name not in kinds: raise ValueError(f"{name}: rlx chat takes {list(kinds)}.")
    try:
      options[name] = kinds[name](value)
    except ValueError:
      raise ValueError(f"{name}={value!r}: a number.") from None
  chat(words[0], **options)


def _ask(stream):
  """The next line that is not empty; None at the end."""
  if stream.isatty(): print("> ", end="", flush=True)
  return next((text for line in stream if (text := line.rstrip("\n"))), None)


def _load(path, name="policy"):
  from rlx.io import weights
  from rlx.tools import convert
  return convert.load_run(path, name) if convert.is_run(path) else weights.load(path)


def _find_start(path):
  """The model that the PRM of a run started from."""
  from rlx.io import run_folder
  from rlx.tools import convert
  if not convert.is_run(path):
    raise ValueError(f"reference=None: {path!r} is not the folder of a run; name the model that "
                     "it was trained from.")
  config = run_folder.read_config(path)
  return config["prm"]["path"] or config["model"]["path"]


def _encode(tokenizer, prompt, number):
  try:
    return tokenizer.encode(tokenizer.render(prompt))
  except ValueError as e:
    raise ValueError(f"prompt {number}: {e}") from None


def _check_length(path, config, length):
  if config.max_positions is not None and length > config.max_positions:
    raise ValueError(f"{path!r} supports at most {config.max_positions} positions; prompt and "
                     f"completion have {length}.")
