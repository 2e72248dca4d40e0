"""What every key of a config may be: that it exists, its type, and the range of a number.

The options of a method have their ranges at the method, see core/ranges.py. renamed.toml has the
names of earlier versions.
"""
import difflib
import fnmatch
import pathlib
import tomllib
from typing import Any, TypeAlias

import ml_collections

from rlx.configs import base  # type: ignore[attr-defined]  # Found by its __path__.
from rlx.core import options
from rlx.core import ranges

Config: TypeAlias = ml_collections.ConfigDict
_LONG = ranges.Range(1, 2**20, is_whole=True)    # Tokens, rows: arrays have so many.
_PARTS = ranges.Range(1, 2**16, is_whole=True)
_GROUP = ranges.Range(1, 4096, is_whole=True)
# What keys may be; * stands for any text. A key itself precedes patterns, of which the first
# counts. All other keys may be what their type in configs/base.py allows, see _TYPES.
_RANGES = (
    (ranges.TEXT_OR_NONE, ["*.name", "model.path", "log.baseline"]),  # Without a path rlx.loops.sft makes one.
    (ranges.SWITCH, ["advantages.whiten"]),
    (ranges.TEXT, ["sft.fresh.alphabet"]),
    (ranges.WHOLE, ["*.seed", "*.warmup_steps", "*.total_steps"]),
    (ranges.COUNT, [
        "rollouts.sync_every", "rollouts.max_draws", "learner.max_skipped", "kl.horizon",
        "train_prm.prompts", "eval.prompts", "eval.buckets", "checkpoint.max_to_keep"]),
    (ranges.COUNT.or_none, ["prompts.limit"]),
    (ranges.SHARE, ["verifier.max_error_rate", "advantages.*.gamma", "distribution.min_p"]),
    (ranges.BELOW_ONE, ["rollouts.decoding.min_p", "*.optimizer.b?"]),
    (ranges.POSITIVE, ["sft.fresh.rope_theta"]),
    (ranges.POSITIVE.or_none, ["*.optimizer.max_grad_norm", "kl.target", "value.clip"]),
    (ranges.NOT_NEGATIVE, ["*.final_fraction", "kl.coef"]),
    (ranges.ANY, ["rewards.*.coef", "learner.auxiliary.coef", "learner.entropy_coef"]),
    (_LONG, ["*.max_tokens", "rollouts.chunk", "rollouts.bucket", "sft.batch", "eval.batch"]),
    (_LONG.or_none, ["rollouts.slots", "episodes.turn_tokens"]),
    (_LONG, ["episodes.observation_tokens"]),
    (ranges.Range(1, 1024, is_whole=True), ["episodes.turns"]),
    (ranges.Range(0, 1024, is_whole=True), ["episodes.workers"]),
    (ranges.Range(0.001, 1e6), ["episodes.timeout_s", "episodes.seconds"]),
    (_PARTS, ["mesh.*", "prompts.per_step", "*.minibatches", "*.microbatches"]),
    (_GROUP, ["rollouts.per_prompt", "rollouts.budget.first", "train_prm.step_rollouts",
              "eval.samples", "eval.final_samples"]),
    (ranges.Range(0, 2**20, is_whole=True), ["likelihood.max_tokens"]),
    (ranges.Range(0, 2**16, is_whole=True), [
        "rollouts.rehearsal", "likelihood.steps", "distribution.top"]),
    (ranges.Range(0, 4096, is_whole=True), ["lora.rank"]),
    (ranges.Range(0, 1024, is_whole=True), ["verifier.workers"]),
    (ranges.Range(0, 10, is_whole=True), ["verifier.judge.retries"]),
    (ranges.Range(-1, 2**16, is_whole=True), ["mesh.data"]),
    (ranges.Range(1, 10**15, is_whole=True).or_none, ["train_prm.max_sampled"]),
    (ranges.Range(1, 10**7, is_whole=True), ["prompts.options.size"]),
    (ranges.Range(1, 10**6, is_whole=True), ["verifier.test_s"]),
    (ranges.Range(1, 2**20, is_whole=True), ["verifier.test_mb"]),
    (ranges.Range(1, 1000, is_whole=True), ["prompts.options.n_*", "*.epochs"]),
    (ranges.Range(1, 1024, is_whole=True), ["sft.fresh.n_*"]),
    (_PARTS, ["sft.fresh.*"]),
    (ranges.Range(1e-3, 1e3), ["rollouts.decoding.temperature"]),  # Not 0, which is greedy.
    (ranges.Range(0, 1e3), ["verifier.judge.temperature"]),
    (ranges.Range(1e-6, 1), ["rollouts.decoding.top_p", "kl.sync_mix"]),
    (ranges.Range(1, 1000), ["rollouts.oversample"]),
    (ranges.Range(1e-6, 1e6), ["lora.alpha", "prm.beta"]),
    (ranges.Range(1e-6, 1e12), ["verifier.judge.full"]),
    (ranges.Range(0, 3600), ["verifier.judge.pause_s"]),
    (ranges.Range(0.001, 1e6), ["verifier*.timeout_s"]),
    (ranges.Range(0, 1e6), ["log.silence_s"]),
    (ranges.Range(0, 10), ["*.optimizer.lr"]),
    (ranges.Range(1e-20, 1), ["*.optimizer.eps"]),
    (ranges.Range(0, 100), ["*.optimizer.weight_decay"]),
)
_PATTERNS = {pattern: allowed for allowed, patterns in _RANGES for pattern in patterns}
_TYPES = {bool: ranges.SWITCH, str: ranges.TEXT, tuple: ranges.TEXTS, int: ranges.WHOLE,
          type(None): ranges.TEXT_OR_NONE}
# Sections whose keys are those of a method, a source or a decoder.
FREE = ("rewards.", "advantages.", "prompts.options.", "prompts.columns.", "sft.fresh.")
RENAMED = tomllib.loads(pathlib.Path(__file__).with_name("renamed.toml").read_text())


def check(config: Config) -> None:
  """Refuses keys that configs/base.py does not have, and values that are not allowed.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  given, known = options.flat(config.to_dict()), options.flat(base.get_config().to_dict())
  for key, value in given.items():
    section, _, option = key.rpartition(".")
    old = str(value) if option == "name" else f"{given.get(f'{section}.name')}.{option}"
    if old in RENAMED: raise ValueError(f"{key}={value!r}: renamed to {RENAMED[old]}.")
  for key in known:
    if key not in given and not _is_free(key, given): raise ValueError(f"{key} is missing.")
  for key, value in given.items():
    section = key.rpartition(".")[0]
    if section in ("rewards", "advantages") and key != "advantages.whiten":
      raise ValueError(f"{key}={value!r:.80}: a section with the name of a method.")
    if key not in known and not _is_free(key, given):
      check_exists(base.get_config(), key)
      raise ValueError(f"{key}={value!r:.80}: a section of keys.")
    # The function of a section, or the source of prompts, checks its other options.
    is_free = _is_free(key, given)
    ranges.check(key, value, allowed(key, value) or (
        None if is_free else _TYPES[type(known[key])]))


def allowed(key: str, value: Any = None) -> ranges.Range | ranges.Kind | None:
  """The Range or Kind of a key; None: that of its type in configs/base.py, or of the method."""
  if key in _PATTERNS: return _PATTERNS[key]
  for pattern, range_ in _PATTERNS.items():
    if fnmatch.fnmatchcase(key, pattern): return range_
  is_number = isinstance(value, int | float) and not isinstance(value, bool)
  return ranges.ANY if key.startswith("prompts.options.") and is_number else None


def check_exists(config: Config, key: str) -> None:
  """Refuses a dotted name that is no key or section of a config.

    >>> check_exists(base.get_config(), "prm.bata")
    Traceback (most recent call last):
    ValueError: prm.bata: no such key; did you mean prm.beta? There are ...

  Raises:
    ValueError: one line with similar names, or with the new name of a key in RENAMED.
  """
  for old, new in RENAMED.items():
    if key == old or key.startswith(f"{old}."):
      raise ValueError(f"{key}: renamed to {new}{key.removeprefix(old)}.")
  section, path = config, key.split(".")
  for i, part in enumerate(path):
    names: list[str] = sorted(section) if hasattr(section, "keys") else []
    if part not in names:
      prefix = "".join(f"{p}." for p in path[:i])
      near = difflib.get_close_matches(part, names, n=1)
      raise ValueError(f"{key}: no such key; " + (
          f"did you mean {prefix}{near[0]}? There are {names}." if near else
          f"there are {names}." if names else f"{prefix[:-1]} has no keys."))
    section = section[part]


def _is_free(key, given):
  return key.startswith(FREE) or f"{key.rpartition('.')[0]}.name" in given
