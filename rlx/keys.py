"""What every key of a config may be: that it exists, its type, and the range of a number.

The options of a method have their ranges at the method, see core/ranges.py.
"""
import fnmatch

from rlx.configs import base
from rlx.core import ranges

_LONG = ranges.Range(1, 2**20, is_whole=True)    # Tokens, rows: arrays have so many.
_PARTS = ranges.Range(1, 2**16, is_whole=True)
_GROUP = ranges.Range(1, 4096, is_whole=True)
_SECONDS = ranges.Range(0.001, 1e6)
# The first pattern that a key matches counts; * stands for any text. Texts, lists of them
# and what is True or False are as in configs/base.py, but for those here.
ALLOWED = {
    "*.name": ranges.TEXT_OR_NONE,
    "model.path": ranges.TEXT_OR_NONE,  # None: rlx.loops.sft makes one.
    "advantages.whiten": ranges.SWITCH,
    "sft.fresh.alphabet": ranges.TEXT,
    "seed": ranges.WHOLE,
    "*.seed": ranges.WHOLE,
    "steps": ranges.WHOLE,
    "lora.rank": ranges.Range(0, 4096, is_whole=True),
    "lora.alpha": ranges.Range(1e-6, 1e6),
    "mesh.data": ranges.Range(-1, 2**16, is_whole=True),
    "mesh.*": _PARTS,
    "prompts.per_step": _PARTS,
    "prompts.limit": ranges.COUNT.or_none,
    "prompts.options.size": ranges.Range(1, 10**7, is_whole=True),
    "prompts.options.n_*": ranges.Range(1, 1000, is_whole=True),
    "likelihood.max_tokens": ranges.Range(0, 2**20, is_whole=True),
    "*.max_tokens": _LONG,
    "rollouts.per_prompt": _GROUP,
    "rollouts.chunk": _LONG,
    "rollouts.slots": _LONG.or_none,
    "rollouts.bucket": _LONG,
    # Not 0, which is greedy: training samples.
    "rollouts.decoding.temperature": ranges.Range(1e-3, 1e3),
    "rollouts.decoding.top_k": ranges.WHOLE,
    "rollouts.decoding.top_p": ranges.Range(1e-6, 1),
    "rollouts.decoding.min_p": ranges.BELOW_ONE,
    "rollouts.budget.first": _GROUP,
    "rollouts.rehearsal": ranges.Range(0, 2**16, is_whole=True),
    "rollouts.sync_every": ranges.COUNT,
    "rollouts.oversample": ranges.Range(1, 1000),
    "rollouts.max_draws": ranges.COUNT,
    "verifier.workers": ranges.Range(0, 1024, is_whole=True),
    "verifier.max_error_rate": ranges.SHARE,
    "verifier.test_s": ranges.Range(1, 10**6, is_whole=True),
    "verifier.test_mb": ranges.Range(1, 2**20, is_whole=True),
    "verifier.judge.full": ranges.Range(1e-6, 1e12),
    "verifier.judge.temperature": ranges.Range(0, 1e3),
    "verifier.judge.retries": ranges.Range(0, 10, is_whole=True),
    "verifier.judge.pause_s": ranges.Range(0, 3600),
    "verifier*.timeout_s": _SECONDS,
    "rewards.*.coef": ranges.ANY,
    "advantages.*.gamma": ranges.SHARE,
    "*.warmup_steps": ranges.WHOLE,
    "*.total_steps": ranges.WHOLE,
    "*.final_fraction": ranges.NOT_NEGATIVE,
    "learner.auxiliary.coef": ranges.ANY,
    "learner.entropy_coef": ranges.ANY,
    "learner.max_skipped": ranges.COUNT,
    "*.epochs": ranges.Range(1, 1000, is_whole=True),
    "*.minibatches": _PARTS,
    "*.microbatches": _PARTS,
    "*.optimizer.lr": ranges.Range(0, 10),
    "*.optimizer.b?": ranges.BELOW_ONE,
    "*.optimizer.eps": ranges.Range(1e-20, 1),
    "*.optimizer.weight_decay": ranges.Range(0, 100),
    "*.optimizer.max_grad_norm": ranges.POSITIVE.or_none,
    "kl.coef": ranges.NOT_NEGATIVE,
    "kl.target": ranges.POSITIVE.or_none,
    "kl.horizon": ranges.COUNT,
    "kl.sync_every": ranges.WHOLE,
    "kl.sync_mix": ranges.Range(1e-6, 1),
    "likelihood.steps": ranges.Range(0, 2**16, is_whole=True),
    "distribution.top": ranges.Range(0, 2**16, is_whole=True),
    "distribution.min_p": ranges.SHARE,
    "prm.beta": ranges.Range(1e-6, 1e6),
    "train_prm.prompts": ranges.COUNT,
    "train_prm.step_rollouts": _GROUP,
    "train_prm.max_sampled": ranges.Range(1, 10**15, is_whole=True).or_none,
    "value.clip": ranges.POSITIVE.or_none,
    "sft.steps": ranges.WHOLE,
    "sft.batch": _LONG,
    "sft.fresh.n_*": ranges.Range(1, 1024, is_whole=True),
    "sft.fresh.rope_theta": ranges.POSITIVE,
    "sft.fresh.*": ranges.Range(1, 2**16, is_whole=True),
    "eval.every": ranges.WHOLE,
    "eval.prompts": ranges.COUNT,
    "eval.samples": _GROUP,
    "eval.final_samples": _GROUP,
    "eval.batch": _LONG,
    "eval.buckets": ranges.COUNT,
    "checkpoint.every": ranges.WHOLE,
    "checkpoint.max_to_keep": ranges.COUNT,
    "log.completions": ranges.WHOLE,
    "log.completions_every": ranges.WHOLE,
    "log.silence_s": ranges.Range(0, 1e6),
}
_TYPES = {bool: ranges.SWITCH, str: ranges.TEXT, tuple: ranges.TEXTS,
          type(None): ranges.TEXT_OR_NONE}
# Sections whose keys are those of a method, a source or a decoder.
FREE = ("rewards.", "advantages.", "prompts.options.", "prompts.columns.", "sft.fresh.")


# Keys, sections, methods and options of methods as earlier versions called them: new names.
RENAMED = {
    "learner.behaviour": "learner.rollout_correction",
    "behaviour.icepop": "rollout_correction.icepop",
    "behaviour.opsm": "rollout_correction.opsm",
    "behaviour.seq_mis": "rollout_correction.seq_mis",
    "behaviour.tis": "rollout_correction.tis",
    "rollouts.keep": "rollouts.filter_groups",
    "keep.accuracy_band": "filter_groups.accuracy_band",
    "keep.everything": "filter_groups.with_verdict",
    "rollouts.thin.keep": "rollouts.select_completions.count",
    "rollouts.thin": "rollouts.select_completions",
    "thin.extremes": "select_completions.extremes",
    "thin.nothing": "select_completions.everything",
    "thin.prof": "select_completions.prof",
    "thin.truncated": "select_completions.truncated",
    "learner.keep": "learner.reward_std_filter",
    "keep.ema_std": "reward_std_filter.running_mean",
    "checkpoint.keep": "checkpoint.max_to_keep",
    "group.pass_at_k": "group.best_minus_second",
    "group.passk": "group.pass_at_k_training",
    "auxiliary.last_token.beta": "auxiliary.last_token.beta_v",
    "distribution.lp_reg.coef": "distribution.lp_reg.kl_coef",
    "group.self_rewarded.beta": "group.self_rewarded.beta_v",
    "likelihood.last_token.beta": "likelihood.last_token.beta_v",
    "policy.dro.beta": "policy.dro.ratio_penalty",
    "policy.kl_cov.coef": "policy.kl_cov.kl_coef",
    "policy.rl_plus.gamma": "policy.rl_plus.focal_exponent",
    "sequence.crew_dpo.beta": "sequence.crew_dpo.dpo_beta",
    "sequence.dpo.beta": "sequence.dpo.dpo_beta",
    "sequence.pacs.beta": "sequence.pacs.score_scale",
    "shaping.stratified.alpha": "shaping.stratified.wrong_range",
    "shaping.stratified.beta": "shaping.stratified.right_range",
    "steps.redistribute.beta": "steps.redistribute.share",
}


def check(config):
  """Refuses keys that configs/base.py does not have, and values that are not allowed.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  given, known = flat(config.to_dict()), flat(base.get_config().to_dict())
  for key, value in given.items():
    refuse_renamed(key)
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
      prefix = section and f"{section}."
      there = sorted({k.removeprefix(prefix).partition(".")[0]
                      for k in known if k.startswith(prefix)})
      raise ValueError(f"{key}: no such key; there are {there}.")
    allowed = next((x for k, x in ALLOWED.items() if fnmatch.fnmatchcase(key, k)), None)
    if allowed is None and not _is_free(key, given): allowed = _TYPES[type(known[key])]
    # Options of methods have their ranges there, those of sources may have no range.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if allowed is None and key.startswith("prompts.options.") and is_number: allowed = ranges.ANY
    ranges.check(key, value, allowed)


def refuse_renamed(key):
  """Refuses a key of an earlier version; the message has the new one.

  Raises:
    ValueError: the key, or a section that it is in, is in RENAMED.
  """
  for old, new in RENAMED.items():
    if key == old or key.startswith(f"{old}."):
      raise ValueError(f"{key}: renamed to {new}{key.removeprefix(old)}.")


def flat(tree, prefix=""):
  """{dotted key: value} of nested dicts."""
  out = {}
  for k, v in tree.items():
    out |= flat(v, f"{prefix}{k}.") if isinstance(v, dict) else {prefix + k: v}
  return out


def _is_free(key, given):
  return key.startswith(FREE) or f"{key.rpartition('.')[0]}.name" in given
