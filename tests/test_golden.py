"""Cases recorded from the reference implementations: values and gradients.

RLX_GOLDEN names a folder of JSON files (default: golden/ next to this file).
Each file has `inputs` and `cases`; a case has a name, args (literals, or
expressions over the inputs), what the reference returned as `expected`, and a
tolerance. The first words of the name choose the adapter; every number is read
from the case. Runs in float64.

A case of a function that has an adapter needs no code. Otherwise add a loss or an
estimator to the tables POLICY, TRL, PAIRS, FORMULAS or GROUP, or write an adapter:

  @adapter("verl.masked_mean")
  def masked_mean(c):
    x, mask = f64(c["values"]), c.mask("mask")
    return {"all": masked.mean(x, mask), "axis_last": masked.mean(x, mask, axis=-1)}

What it returns is compared with `expected`, or with those of its keys that are
returned. Comparisons of another kind are methods of Case: `check` with a mask or a
tolerance, `check_loss` for a loss and its gradient, `metric` for what is only logged.
"""
import functools
import json
import os
import pathlib
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import base
from rlx.advantages import combine
from rlx.build import methods as build_methods, updates
from rlx.core import masked, records, resolve
from rlx.evals import best_of_n, prm_metrics, step_errors
from rlx.learner import optimizer, sharding
from rlx.losses import (
    aggregate, diagnostics, divergence, entropy, prm, rollout_correction, token_weight, value)
from rlx.models import logps as logps_lib, transformer
from rlx.rewards import _segments, implicit, outcome
from rlx.rollouts import filter_groups
from rlx.stages import annotate, passes as passes_lib, place
from tests import whole

masked, prm_metrics = map(whole.compile_module, (masked, prm_metrics))

FOLDER = pathlib.Path(__file__).parent / os.environ.get("RLX_GOLDEN", "golden")

# ------------------------------------------------------------ reading a case

# What an expression may call, besides arithmetic and slices.
_CALLS = {"exp": np.exp, "log": np.log, "abs": np.abs, "sum": lambda x: np.sum(x, axis=-1),
          "zeros": lambda *n: np.zeros(n), "ones": lambda *n: np.ones(n)}


class Case:
  """One case with its file: args evaluated on access, checks at its tolerance."""

  def __init__(self, data, index, stem=""):
    self.data, self.index = data, index
    case = data["cases"][index]
    self.name, self.args, self.want = case["name"], case["args"], case["expected"]
    self.tol, self.is_checked = case.get("tol", 1e-9), False
    self.id = f"{stem}:{self.name}"

  def other(self, name):
    """Another case of the same file."""
    return Case(self.data, [c["name"] for c in self.data["cases"]].index(name))

  def previous(self): return Case(self.data, self.index - 1)

  @property
  def prefix(self):
    """The longest of the adapters' prefixes that are the first words of the name, or None."""
    words = self.name.split(".")
    prefixes = (".".join(words[:n]) for n in range(len(words), 0, -1))
    return next((prefix for prefix in prefixes if prefix in ADAPTERS), None)

  def __contains__(self, key): return self.args.get(key) is not None

  def __getitem__(self, key): return self.read(self.args[key])

  def get(self, key, default=None):
    return self[key] if key in self else default

  def read(self, value):
    """A literal as it is; lists become arrays; '@...' is evaluated."""
    if isinstance(value, list):
      array = np.array(value)
      return array.astype(float) if array.dtype == object else array  # None is NaN.
    if not isinstance(value, str) or not re.search(r"@|^\w+\(", value): return value
    text = re.sub(r"(?<=\w) +\([^()]*\)$", "", value.strip())  # "@x (8,)": a comment.
    names = {k: np.asarray(v) for k, v in self.data["inputs"].items()}
    names["mask"] = names.get("response_mask")
    return eval(  # pylint: disable=eval-used
        text.replace("@", ""), {"__builtins__": {}}, _CALLS | names)

  def compare(self, got):
    """What an adapter returned, with `expected` or with those of its keys."""
    if got is None: return
    pairs = [(got, self.want)] if not isinstance(got, dict) else [
        (x, self.want[key]) for key, x in got.items()]
    for x, want in pairs: self.check(x, want)

  def mask(self, key="response_mask"): return np.asarray(self[key]) > 0

  def input_mask(self): return np.asarray(self.data["inputs"]["response_mask"]) > 0

  def check(self, got, want, where=None, tol=None):
    tol, self.is_checked = self.tol if tol is None else tol, True
    got, want = np.asarray(got, float), np.asarray(want, float)
    assert got.shape == want.shape
    if where is not None: got, want = got[np.asarray(where)], want[np.asarray(where)]
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)

  def check_loss(self, loss, x, grad_key):
    """The loss of the case and its gradient with respect to x."""
    total, grad = jax.value_and_grad(loss)(x)
    self.check(total, self.want["loss"])
    self.check(grad, self.want[grad_key])

  def metric(self, key, got):
    """A metric, if the reference logs it; there it passes through float32."""
    metrics = self.want.get("metrics", self.want)
    if key in metrics: self.check(got, metrics[key], tol=max(self.tol, 1e-6))


def load():
  files = [(path.stem, json.loads(path.read_text())) for path in sorted(FOLDER.glob("*.json"))]
  return [Case(data, i, stem) for stem, data in files for i in range(len(data["cases"]))]


ADAPTERS = {}


def adapter(*prefixes):
  def add(fn):
    for prefix in prefixes: ADAPTERS[prefix] = fn
    return fn
  return add


class Fields(types.SimpleNamespace):
  """What methods read by name; `x_PG` is `x_B` by prompt, of `group` rows each."""

  def __getattr__(self, name):
    rows = vars(self).get(name.removesuffix("PG") + "B") if name.endswith("_PG") else None
    if rows is None: raise AttributeError(name)
    return rows.reshape(-1, self.group)


def call(stage, path, fields, **options):
  """(value, metrics) of a method that a config can name, as a run calls it."""
  return resolve.split_metrics(resolve.resolve(stage, dict(options, name=path))(fields))


def options_of(c, table):
  """{option: the value of the first of these keys that the case has}."""
  present = {option: [k for k in keys.split() if k in c] for option, keys in table.items()}
  return {option: c[keys[0]] for option, keys in present.items() if keys}


def f64(x): return np.asarray(x, np.float64)


def ok(rows): return np.ones(rows, bool)


def rounded(a, b):
  """float32(a / b) / (a / b): the references divide two integers in float32."""
  return float(np.float32(a / b)) / (a / b)


def torch_var(mask):
  """The factor by which the references' masked_var is off: n / (n - 1) in float32."""
  n = int(np.sum(mask))
  return rounded(n, n - 1)


def check_whitened(c, got, want, mask):
  """Whitened in float64, or with the variance of an integer mask, see `torch_var`."""
  got, want, mask = np.asarray(got), np.asarray(want), np.asarray(mask)
  candidates = got, got / np.sqrt(torch_var(mask))
  c.check(min(candidates, key=lambda x: np.abs(x - want)[mask].max()), want, where=mask)


class Groups:
  """Rows of equal id <-> rows by prompt; copies of a group's first row, which do not learn,
  fill it up to the largest."""

  def __init__(self, ids):
    members = [np.flatnonzero(np.asarray(ids) == i) for i in dict.fromkeys(ids)]
    self.size = max(map(len, members))
    fill = [np.r_[rows, [rows[0]] * (self.size - len(rows))] for rows in members]
    self.index_B = np.concatenate(fill).astype(int)
    self.learn_B = np.concatenate([np.arange(self.size) < len(rows) for rows in members])
    self.lone_B = np.isin(ids, [ids[rows[0]] for rows in members if len(rows) == 1])

  def rows(self, x):
    """[B, ...] by prompt."""
    return jnp.asarray(x)[self.index_B]

  def fields(self, **columns):
    return Fields(group=self.size, learn_B=jnp.asarray(self.learn_B),
                  **{name: self.rows(x) for name, x in columns.items()})

  def restored(self, x):
    """What `rows` gives, in the order of the case."""
    x = np.asarray(x).reshape(len(self.index_B), -1)
    out = np.zeros((len(self.lone_B), x.shape[1]))
    out[self.index_B[self.learn_B]] = x[self.learn_B]
    return out


# ------------------------------------------------- masks, log-probs, entropy


@adapter("paper.get_eos_mask")
def eos_mask(c):
  tokens_BT = c["response_id"]
  is_eos_BT = tokens_BT == c["eos_token"]
  rollouts = records.Rollouts(
      tokens_BS=jnp.asarray(tokens_BT), prompt_len_B=jnp.zeros(len(tokens_BT), int),
      completion_len_B=jnp.asarray(
          np.where(is_eos_BT.any(1), is_eos_BT.argmax(1) + 1, tokens_BT.shape[1])),
      finish_B=None, prompt_P=None, sampler_logps_BT=jnp.zeros(tokens_BT.shape))
  return rollouts.mask_BT


def _read_logits(logits_BTV, targets_BT, mask_BT):
  """logps and entropy of given logits: a head that is the identity."""
  size = logits_BTV.shape[-1]
  config = transformer.DecoderConfig(
      vocab_size=size, d_model=size, n_layers=1, n_heads=1, n_kv_heads=1, head_dim=2,
      d_ff=1, dtype="float64", param_dtype="float64")
  return logps_lib.from_hidden({"embed": {"w_VD": jnp.eye(size, dtype=jnp.float64)}},
                               config, f64(logits_BTV), jnp.asarray(targets_BT), mask_BT)


@adapter("paper.logprobs_from_logits", "trl.selective_log_softmax",
         "paper.entropy_from_logits", "trl.entropy_from_logits")
def logprobs_and_entropy(c):
  shape = c["logits"].shape[:2]
  targets_BT = c.get("labels", c.get("index", np.zeros(shape, int)))
  logps_BT, entropy_BT = _read_logits(c["logits"], targets_BT, ok(shape))
  return entropy_BT if "entropy" in c.name else logps_BT


@adapter("paper.entropy_loss", "verl.entropy_loss")
def entropy_loss(c):
  mask_BT = c.mask()
  _, entropy_BT = _read_logits(c["logits"], np.zeros(mask_BT.shape, int), mask_BT)
  return aggregate.aggregate(-entropy.bonus(entropy_BT, mask_BT, coef=1.0), mask_BT,
                             mode=c.get("loss_agg_mode", "token-mean")).mean()


@adapter("implicit_prm.batch_logps")
def batch_logps(c):
  ids_BS, seen_BS = c["input_ids"], c["attention_mask"] > 0
  column_1S = np.arange(ids_BS.shape[1])[None, :]
  mask_BT = jnp.asarray((seen_BS & (column_1S >= c["prompt_id_lens"][:, None]))[:, 1:])
  logps_BT, _ = _read_logits(c["logits"][:, :-1], ids_BS[:, 1:], mask_BT)
  return {"sum": masked.total(logps_BT, mask_BT, axis=1),
          "mean": masked.mean(logps_BT, mask_BT, axis=1)}


@adapter("paper.masked_mean", "verl.masked_mean")
def masked_mean(c):
  x, mask = f64(c["values"]), c.mask("mask")
  c.tol = max(c.tol, 1e-8)
  return {"all": masked.mean(x, mask), "axis_last": masked.mean(x, mask, axis=-1)}


@adapter("paper.masked_var", "verl.masked_var")
def masked_var(c):
  return masked.var(f64(c["values"]), c.mask("mask")) * torch_var(c.mask("mask"))


@adapter("paper.masked_whiten", "verl.masked_whiten")
def masked_whiten(c):
  x, mask = f64(c["values"]), c.mask("mask")
  want = c.want if isinstance(c.want, dict) else {"shift_mean": c.want}
  check_whitened(c, masked.whiten(x, mask), want["shift_mean"], mask)
  if "no_shift" in want:
    mean = masked.mean(x, mask)
    check_whitened(c, masked.whiten(x, mask, shift_mean=False) - mean,
                   want["no_shift"] - np.asarray(mean), mask)


@adapter("trl.nanstd")
def nanstd(c):
  x = f64(c["x"])
  return masked.root(masked.var(x, ~jnp.isnan(x)))


# -------------------------------------------------------- the implicit reward


def _process(prm_BT, ref_BT, mask_BT, beta=1.0, **options):
  return implicit.process(f64(prm_BT), f64(ref_BT), mask_BT, ok(len(mask_BT)), beta, **options)[0]


def _granularity(c): return {"whole": "completion"}.get(c["granularity"], c["granularity"])


def _norm(c):
  return "max_return" if c.get("prime_norm", "batch_norm") == "batch_norm" else "none"


@adapter("paper.implicit_reward")
def implicit_reward(c):
  mask_BT = c.mask()
  rewards = lambda granularity: _process(
      c["log_probs"], c["ref_log_probs"], mask_BT, norm="none", scale_by_beta=False,
      granularity=granularity)
  c.check(rewards("token"), c.want["q"], where=mask_BT)
  return {"token_level_score": rewards(_granularity(c))}


@adapter("recipe.prime_norm", "formula.batch_norm")
def prime_norm(c):
  if "scores" in c: scores_BT = f64(c["scores"])
  else:
    field, name = re.fullmatch(r"expected\.(\w+) of (.*)", c.args["token_level_scores"]).groups()
    scores_BT = f64(c.other(name).want[field])
  return scores_BT / _segments.denominator(scores_BT)[0]


@functools.partial(jax.jit, static_argnums=2)
def _toy_logps(table_VV, ids_BS, width):
  """Bigram model: log softmax(table[previous token])[token], last `width` columns."""
  start = ids_BS.shape[1] - width
  logps_BTV = jax.nn.log_softmax(table_VV[ids_BS[:, start - 1:-1]], axis=-1)
  return jnp.take_along_axis(logps_BTV, ids_BS[:, start:, None], axis=-1)[..., 0]


class Toy:
  """The tokens of a case, and its models, which are tables {"w_VV"}, see `_toy_logps`."""

  def __init__(self, c):
    self.ids_BS = jnp.asarray(c["input_ids"])
    width = c.input_mask().shape[1]
    self.mask_BT = jnp.asarray(c["attention_mask"])[:, -width:] > 0
    self.outcome_B, self.beta = f64(c["acc"]), c["beta"]
    self.start = f64(c.get("prm", c.get("prm_init")))
    # Another reading of "@old_log_prob (policy ...)" than a table is by its shape.
    ref = f64(c["ref"])
    self.ref_BT = ref if ref.shape == self.mask_BT.shape else self.read(ref)

  def read(self, table_VV): return _toy_logps(table_VV, self.ids_BS, self.mask_BT.shape[1])

  def loss(self, path, prm_BT, rows, group):
    """A loss of the PRM on some rows, with these log-probs of the PRM."""
    return prm_loss(
        path, self.beta, np.arange(rows.stop - rows.start) // group,
        prm_ref_logps_BT=self.ref_BT[rows], prm_old_logps_BT=self.read(self.start)[rows],
        learn_BT=self.mask_BT[rows], outcome_B=self.outcome_B[rows])(prm_BT[rows])


def prm_loss(path, beta, group_B, kl_ratio_B=None, **columns):
  """The loss of a PRM as a function of its log-probs.

  Options of the method are the columns without an axis.
  """
  groups = Groups(group_B)
  options = {k: v for k, v in columns.items() if "_B" not in k}
  rows = {k: v for k, v in columns.items() if "_B" in k}
  method = resolve.resolve("losses", dict(options, name=path))
  return lambda prm_BT: _mean_loss(
      method, groups.size, groups.index_B, dict(rows, prm_logps_BT=prm_BT),
      dict(learn_B=groups.learn_B, prm_beta=beta, kl_ratio_B=kl_ratio_B))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _mean_loss(method, size, index_B, rows, columns):
  rows = {name: jnp.asarray(x)[index_B] for name, x in rows.items()}
  return resolve.split_metrics(method(Fields(group=size, **rows, **columns)))[0].mean()


def _recipe_process(c, toy, prm_BT, **options):
  options = dict(beta=toy.beta, include_last=False, lam=c.get("lam", 0.0),
                 use_outcome=c.get("use_gt", False), norm=_norm(c)) | options
  return _process(prm_BT, toy.ref_BT, toy.mask_BT, **options)


@adapter("recipe.forward_scores")
def forward_scores(c):
  if "raises" in c.want: pytest.skip("the reference raises here; ours gives the sum")
  toy = Toy(c)
  prm_BT = toy.read(toy.start)
  return {"q": masked.where_valid(prm_BT - toy.ref_BT, toy.mask_BT),
          "token_level_score": _recipe_process(
              c, toy, prm_BT, norm="none", granularity=_granularity(c), outcome_B=toy.outcome_B)}


@adapter("recipe.compute_rm_score")
def compute_rm_score(c):
  toy = Toy(c)
  prm_BT = toy.read(toy.start)
  got_BT = _recipe_process(c, toy, prm_BT)
  q_BT = masked.where_valid(prm_BT - toy.ref_BT, toy.mask_BT)
  c.metric("reward_model/reward", jnp.mean(jnp.sum(got_BT, axis=1)))
  c.metric("reward_model/raw_reward", jnp.mean(jnp.sum(q_BT, axis=1)))
  return {"rm_scores": got_BT, "q": q_BT}


@functools.cache
def _prm_stages(mesh, text, max_grad_norm, **changes):
  """The stages of a config with these values, and AdamW, whose options a case gives as a text."""
  number = lambda key: float(re.search(key + r"=([\d.e+-]+)", text).group(1))
  b1, b2 = map(float, re.search(r"betas=\(([^,]+),([^)]+)\)", text).groups())
  transform = optimizer.adamw(
      lr=number("lr"), b1=b1, b2=b2, eps=number("eps"), weight_decay=number("weight_decay"),
      decay="all", max_grad_norm=max_grad_norm)
  config = base.get_config()
  config.update_from_flattened_dict(changes)
  return updates.device_stages(
      config, build_methods.resolve_methods(config),
      dict.fromkeys(("policy", "prm", "value"), "table"),
      mesh, dict.fromkeys(("learner", "prm", "value"), transform), learns="prm"), transform


@pytest.fixture(autouse=True)
def _tables(monkeypatch):
  """Models are tables {"w_VV"}, see `_toy_logps`."""
  def read(params, config, tokens_BS, positions_BS, valid_BS, *, completion_width, **_):
    return _toy_logps(params["w_VV"], tokens_BS, completion_width), None
  monkeypatch.setattr(logps_lib, "logps", read)


def _learn_prm(c, toy, loss="prm.ce", **options):
  """The trainer's update of a PRM that is a table: (table after, Batch, metrics).

  Microbatches are those of the case, but of whole groups.
  """
  (rows, width), n = toy.mask_BT.shape, c["n_samples"]
  parts = dict(minibatches=rows // c["mini_batch"], **options,
               microbatches=c["mini_batch"] // max(c["micro_batch"], n), **{"loss.name": loss})
  mesh, prm_BT = sharding.make_mesh(), toy.read(toy.start)
  stages, transform = _prm_stages(mesh, c["optimizer"], c.get("grad_clip", 10.0), **{
      "prompts.per_step": rows // n, "rollouts.per_prompt": n, "learner.pack": False,
      **{f"prm.{key}": x for key, x in parts.items()}})
  table = {"w_VV": jnp.array(toy.start)}
  rollouts = records.Rollouts(
      tokens_BS=np.asarray(toy.ids_BS), prompt_len_B=np.zeros(rows, int),
      completion_len_B=np.asarray(toy.mask_BT).sum(axis=1), finish_B=np.zeros(rows, int),
      sampler_logps_BT=np.zeros((rows, width)), prompt_P=None)
  batch = records.Batch(
      action_BT=toy.mask_BT, outcome_B=toy.outcome_B, group=n, prm_ref_logps_BT=toy.ref_BT,
      prm_logps_BT=prm_BT, prm_old_logps_BT=prm_BT, prm_beta_B=jnp.full(rows, toy.beta))
  placed = place.Place(mesh, False)(annotate.Annotated(rollouts, batch, {}))
  state = records.TrainState(step=0, policy=None, policy_opt=None, prm=table,
                             prm_opt=transform.init(table))
  passes = passes_lib.Passes(stages["passes"], state, placed.rollouts.rows(), placed.plan)
  state, placed, metrics = stages["update_prm"](state, placed.replace(passes=passes))
  return state.prm["w_VV"], placed.batch, metrics


def _check_update(c, toy, path, grad_norms, group=1):
  """Checks an update in minibatches, of which part k is scored after k - 1 updates: a quirk of
  the reference. Returns (its log-probs, its loss of some rows, the minibatches, metrics)."""
  after, batch, metrics = _learn_prm(c, toy, path, snapshot=False)
  loss = lambda part: toy.loss(path, batch.prm_logps_BT, part, group)
  size = c["mini_batch"]
  parts = [slice(i, i + size) for i in range(0, len(toy.outcome_B), size)]
  c.check(after, c.want["prm_after"])
  c.check(metrics["prm/loss"], np.mean([loss(part) for part in parts]))
  c.check(metrics["prm/grad_norm"], np.mean(grad_norms), tol=max(c.tol, 1e-6))
  return batch.prm_logps_BT, loss, parts, metrics


@adapter("paper.prm_update_after")
def prm_update_after(c):
  if "as_" in c:
    # "one_minibatch but prm_init = @bigram_ref, micro_batch 8"
    other, changes = c.args["as_"].split(" but ")
    c.args = dict(c.other(f"paper.prm_update_after.{other}").args)
    for change in changes.split(","):
      key, text = re.fullmatch(r"\s*(\w+)\s*=?\s*(.+)", change).groups()
      c.args[key] = text if text.startswith("@") else int(text)
  toy = Toy(c)
  prm_BT, loss, parts, _ = _check_update(
      c, toy, "prm.ce", c.want["metrics"]["reward_model/grad_norm"])
  c.check(_process(prm_BT, toy.ref_BT, toy.mask_BT, scale_by_beta=False, norm=_norm(c),
                   granularity=_granularity(c)), c.want["rm_scores"])
  # Logged there: the last micro-batch of each mini-batch.
  c.metric("reward_model/prm_loss", [loss(slice(p.stop - c["micro_batch"], p.stop)) for p in parts])
  c.metric("reward_model/dpo_acc_before", [_accuracy(c, prm_BT - toy.ref_BT, toy.mask_BT)])


@adapter("recipe.update_rm")
def update_rm(c):
  if c.args["optimizer"] == "as above":
    c.args = c.previous().args | {k: v for k, v in c.args.items() if v != "as above"}
  toy, micro, is_ce = Toy(c), c["micro_batch"], c["loss"] == "ce"
  metrics = c.want["update_metrics" if is_ce else "metrics"]
  prm_BT, loss, parts, learned = _check_update(
      c, toy, "prm.ce" if is_ce else "prm.detached_dpo", metrics["reward_model/grad_norm"],
      1 if is_ce else c["n_samples"])
  from_update_BT = _recipe_process(c, toy, prm_BT)
  check = lambda key, got: c.check(got, metrics["reward_model/" + key], tol=max(c.tol, 1e-6))
  check("reward", jnp.mean(jnp.sum(from_update_BT, axis=1)))
  check("raw_reward", jnp.mean(masked.total(prm_BT - toy.ref_BT, toy.mask_BT, axis=1)))
  if not is_ce:
    # Logged per micro-batch of rows; ours needs whole groups: compare the means.
    c.check(from_update_BT, c.want["rm_scores"])
    c.check(learned["prm/loss"], np.mean(metrics["reward_model/dpo_loss"]))
    return
  check("dpo_loss", [loss(slice(i, i + micro)) for p in parts
                     for i in range(p.start, p.stop, micro)])
  _, batch, _ = _learn_prm(c, toy, order="double")
  rescored_BT = _recipe_process(c, toy, batch.prm_logps_BT)
  c.check(from_update_BT, c.want["rm_scores_from_update"])
  c.check(rescored_BT, c.want["rm_scores_rescored"])
  for order, scores_BT in (("after_single_forward", from_update_BT),
                           ("before_double_forward", rescored_BT)):
    _check_rloo(c, c.want["rloo"][order], scores_BT, toy.outcome_B, toy.mask_BT,
                coefs=(c["reward_dpo_coef"], c["reward_gt_coef"]))


# ------------------------------------------------------------------ PRM losses


@adapter("paper.ce_loss", "recipe.ce_loss", "recipe.detached_dpo")
def token_losses(c):
  q_BT, path, n, more = f64(c["q"]), "prm.ce", 1, {}
  if "detached_dpo" in c.name:
    path, n = "prm.detached_dpo", int(re.search(r"the (\d+) rows", c.args["Q_bc"]).group(1))
    more = dict(prm_old_logps_BT=q_BT, weighting=c["bon_mode"])
  c.check_loss(prm_loss(path, c["beta"], np.arange(len(q_BT)) // n, learn_BT=c.mask(),
                        prm_ref_logps_BT=jnp.zeros_like(q_BT), outcome_B=f64(c["acc"]), **more),
               q_BT, "grad_q")


def _accuracy(c, scores_BT, mask_BT):
  shape = -1, c["n_samples"]
  return prm_metrics.accuracy(
      scores_BT, jnp.zeros_like(scores_BT), mask_BT, f64(c["acc"]).reshape(shape),
      ok(len(scores_BT)).reshape(shape), ties="reference")


@adapter("paper.dpo_accuracy", "recipe.dpo_accuracy")
def dpo_accuracy(c):
  return _accuracy(c, f64(c["token_level_scores"]), c.mask())


@adapter("recipe.dpo_abs_accuracy")
def dpo_abs_accuracy(c):
  scores_BT = f64(c["token_level_scores"])
  return prm_metrics.absolute_accuracy(
      scores_BT, jnp.zeros_like(scores_BT), c.mask(), f64(c["acc"]), ok(len(scores_BT)))


def _sequence_logps(c):
  """Sums of log-probs of PRM and reference."""
  sums = c.other("implicit_prm.sequence_logps")
  return f64(sums["policy"]), f64(sums["ref"])


@adapter("implicit_prm.sequence_logps")
def sequence_logps(c):
  # The sums that the losses below form: the log-ratio, and each side alone.
  return {side: masked.total(f64(c.read(re.search(r"@\w+", c.args[side]).group())),
                             c.input_mask(), axis=1) for side in ("policy", "ref")}


def _sequence_loss(c, path, group_B, outcome_B, **columns):
  """A loss on completions of one token, whose log-prob is the sum; of prm_B."""
  _, ref_B = _sequence_logps(c)
  loss = prm_loss(path, c["beta"], group_B, prm_ref_logps_BT=ref_B[:, None],
                  learn_BT=ok((len(ref_B), 1)), outcome_B=f64(outcome_B), **columns)
  return lambda prm_B: loss(prm_B[:, None])


@adapter("implicit_prm.ce", "implicit_prm.kto_unpaired")
def row_losses(c):
  path, options, grad_key = "prm.ce", {}, "grad"
  if "kto" in c.name:
    if c.get("world_size", 1) != 1: pytest.skip("one process here")
    ratio_B = f64(c["KL_policy_logps"]) - f64(c["KL_ref_logps"])
    c.check(jnp.maximum(jnp.mean(ratio_B), 0), c.want["KL"])
    path, grad_key = "prm.kto", "grad_policy_logps"
    options = dict(kl_ratio_B=ratio_B, weight_correct=c["desirable_weight"],
                   weight_wrong=c["undesirable_weight"])
  prm_B, _ = _sequence_logps(c)
  c.check_loss(_sequence_loss(c, path, range(len(prm_B)), c["labels"], **options), prm_B, grad_key)


@adapter("implicit_prm.pairs")
def pairs(c):
  groups = Groups(c["group"])
  rows = groups.fields(outcome_B=f64(c["acc"]))
  index_PG = groups.index_B.reshape(-1, groups.size)
  return [[index_PG[p, w], index_PG[p, l]] for p, w, l in np.argwhere(
      np.asarray(prm._pairs(rows.outcome_PG, rows.learn_PG)))]


PAIRS = {"implicit_prm.dpo": "prm.dpo", "implicit_prm.nca_pair": "prm.nca",
         "implicit_prm.kto_vanilla": "prm.kto_even"}


@adapter(*PAIRS)
def pair_losses(c):
  path = PAIRS[c.prefix]
  source = c.other(c.args["pairs"])
  (prm_B, ref_B), pair_list = _sequence_logps(c), np.array(source.want)
  loss = _sequence_loss(c, path, source["group"], source["acc"])
  c.check_loss(loss, prm_B, "grad_policy_logps")
  reward_B = c["beta"] * (prm_B - ref_B)
  for i, key in enumerate(("chosen_rewards", "rejected_rewards")):
    if key in c.want: c.check(reward_B[pair_list[:, i]], c.want[key])
  if "per_pair" in c.want:
    c.check([prm_loss(path, c["beta"], [0, 0], prm_ref_logps_BT=ref_B[rows, None],
                      learn_BT=ok((2, 1)), outcome_B=f64([1, 0]))(prm_B[rows, None])
             for rows in pair_list], c.want["per_pair"])


@adapter("implicit_prm.step_rewards")
def step_rewards(c):
  ends_BJ = c["special_tokens"][:, 1:]
  mask_BT = c["label_mask"][:, 1:] > 0
  prm_BT, ref_BT = c["policy_token_logps"], c["ref_token_logps"]
  for key, ratio_BT in (("w/ ref", prm_BT - ref_BT), ("w/o ref", prm_BT)):
    values_BJ = best_of_n.step_values(ratio_BT, mask_BT, np.maximum(ends_BJ, -1), scale=c["coef"])
    want, = c.want[key].values()
    pad = lambda x: np.where(np.isnan(x), 1e3, x)
    c.check(pad(values_BJ), want["accumulative"])
    c.check(pad(best_of_n.step_rewards(values_BJ)), want["single"])


@adapter("implicit_prm.step_rewards_aggregate")
def step_rewards_aggregate(c):
  source = c.other(c.args["source"]).want
  def check(rewards, want, row):
    if isinstance(rewards, dict):
      for key in want: check(rewards[key], want[key], row)
      return
    steps_BJ = np.where(np.array(rewards) == 1e3, np.nan, rewards)
    for name in want: c.check(best_of_n.score(steps_BJ, name)[row], want[name])
  for row, want in enumerate(c.want): check(source, want, row)


@adapter("implicit_prm.processbench_threshold")
def processbench_threshold(c):
  rows = c.args["data"]
  threshold, f1 = step_errors.tune(
      best_of_n.pad([r["reward"] for r in rows]), [r["label"] for r in rows],
      count=c["num_thresholds"])
  return {"threshold": threshold, "f1": f1}


# ------------------------------------------------------- advantages, PRIME's


def _check_rloo(c, want, rm_BT, acc, mask_BT, *, gammas=(1.0, 1.0), coefs=(1.0, 1.0)):
  """PRIME's two terms through combine.estimate, as a run composes them."""
  rows = len(mask_BT)
  batch = records.Batch(action_BT=mask_BT, outcome_B=jnp.zeros(rows), group=c["n_samples"])
  total_BT = jnp.zeros(mask_BT.shape)
  if rm_BT is not None:
    rloo = resolve.resolve("advantages", dict(name="process.rloo", gamma=gammas[0]))
    total_BT += combine.estimate(coefs[0] * f64(rm_BT), batch, 1.0, rloo)[0]
  if acc is not None:
    # [B], or [B, T] with the verdict on the last token: the same to rewards_PG.
    rloo = resolve.resolve("advantages", dict(name="group.rloo"))
    total_BT += combine.estimate(coefs[1] * f64(acc), batch, gammas[1], rloo)[0]
  c.check(total_BT, want["returns"])
  check_whitened(c, masked.whiten(total_BT, mask_BT), want["advantages"], mask_BT)


@adapter("paper.prime_rloo", "recipe.prime_rloo")
def prime_rloo(c):
  one_or = lambda key: c.get(key, 1.0)
  _check_rloo(c, c.want, c.get("rm_scores"), c.get("acc", c.get("gt_scores")), c.mask(),
              gammas=(one_or("reward_model_gamma"), one_or("verifier_gamma")),
              coefs=(one_or("reward_dpo_coef"), one_or("reward_gt_coef")))


FORMULAS = {  # Estimators of process rewards, with options, and of outcomes.
    "formula.prime_rloo_eq5_length_normalised": ("process.rloo", dict(loo="strict"), "group.rloo"),
    "formula.prime_rloo_code_closed_form": ("process.rloo", {}, "group.rloo"),
    "formula.prime_grpo_eq7": ("process.grpo", {}, "group.grpo"),
    "formula.prime_reinforce_eq8": ("process.reinforce", {}, "batch.reinforce"),
    "formula.prm_as_value": ("process.value_baseline", {}, "batch.reinforce")}


@adapter(*FORMULAS)
def formulas(c):
  process_path, options, outcome_path = FORMULAS[c.prefix]
  mask_BT, acc_B = c.mask(), f64(c["acc"])
  rows = Fields(group=c["n_samples"], rewards_B=acc_B, rewards_BT=f64(c["process_rewards"]),
                learn_B=ok(len(acc_B)), learn_BT=mask_BT)
  eps = {}
  if "std" in c: eps = dict(eps=float(re.search(r"\+ *([\d.e+-]+)", c.args["std"]).group(1)))
  part_BT, _ = call("advantages", process_path, rows, **options, **eps,
                    **options_of(c, dict(gamma="gamma")))
  outcome_PG, _ = call("advantages", outcome_path, rows, **eps)
  if "process_part" in c.want: c.check(part_BT, c.want["process_part"])
  # Elsewhere gamma discounts process rewards only.
  gamma = c["gamma"] if "closed_form" in c.name else 1.0
  want, = [c.want[key] for key in ("total", "returns", "advantages") if key in c.want]
  c.check(part_BT + combine.spread(outcome_PG, mask_BT, gamma=gamma), want)


# --------------------------------------------------------- advantages, generic


@adapter("paper.gae_old", "verl.gae")
def gae(c):
  mask_BT, values_BT = c.mask(), f64(c["values"])
  if c.name.startswith("paper") and np.any(np.asarray(values_BT)[~np.asarray(mask_BT)]):
    pytest.skip("negative example: the reference reads values on padding")
  rows = Fields(rewards_BT=f64(c["token_level_rewards"]), learn_BT=mask_BT, values_BT=values_BT)
  raw_BT, _ = call("advantages", "temporal.gae", rows, gamma=c["gamma"], lam=c["lam"])
  check_whitened(c, masked.whiten(raw_BT, mask_BT), c.want["advantages"], mask_BT)
  c.check(raw_BT + values_BT, c.want["returns"], where=mask_BT)


GROUP = {"grpo": "group.grpo", "grpo_vectorized": "group.grpo", "rloo": "group.rloo",
         "rloo_vectorized": "group.rloo", "opo": "group.opo", "gpg": "group.gpg",
         "grpo_passk": "group.best_minus_second", "gdpo": "group.grpo",
         "reinforce_pp_baseline": "batch.reinforce_pp_baseline",
         "optimal_token_baseline": "batch.optimal_token_baseline"}


@adapter(*("verl." + name for name in GROUP))
def group_estimators(c):
  name = c.name.split(".")[1]
  mask_BT, groups, path, options = c.mask(), Groups(c["index"]), GROUP[name], {}
  rewards_BT = f64(c["token_level_rewards"])
  is_per_token = name in ("reinforce_pp_baseline", "optimal_token_baseline")
  is_whitened = name in ("gdpo", "reinforce_pp_baseline")
  if groups.lone_B.any() and (is_whitened or is_per_token):
    pytest.skip("a group of one: the reference keeps its reward, ours gives 0")
  if name.startswith("grpo"):
    use_std = c.get("norm_adv_by_std_in_grpo", True)
    options = options_of(c, dict(eps="epsilon"))
    if name == "grpo_passk": options["use_std"] = use_std
    elif not use_std: path, options = "group.mean_baseline", {}
  # Rewards of all columns, as the reference.
  rows = groups.fields(rewards_B=rewards_BT.sum(axis=1), rewards_BT=rewards_BT, learn_BT=mask_BT,
                       lengths_B=mask_BT.sum(axis=1))
  if name == "reinforce_pp_baseline": rows.learn_BT &= rows.learn_B[:, None]
  if name == "optimal_token_baseline":
    vars(rows).update(old_logps_BT=groups.rows(f64(c["old_log_probs"])),
                      old_sum_pi_squared_BT=groups.rows(f64(c["sum_pi_squared"])))
  got_BT = groups.restored(call("advantages", path, rows, **options)[0])
  if not is_per_token: got_BT = jnp.asarray(got_BT) * mask_BT
  if name == "gdpo": got_BT = masked.whiten(got_BT, mask_BT)
  if name == "gpg":
    got_BT *= rounded(len(rewards_BT), max(int(jnp.sum(rewards_BT.sum(axis=1) != 0)), 1))
  if is_whitened: return check_whitened(c, got_BT, c.want["advantages"], mask_BT)
  # A group of one: the reference gives its reward, ours 0 as documented. To the weights of
  # the token baseline the reference adds 1e-8.
  c.check(got_BT, np.where(groups.lone_B[:, None], 0, c.want["advantages"]),
          tol=max(c.tol, 1e-8) if name == "optimal_token_baseline" else c.tol)


@adapter("verl.reinforce_pp")
def reinforce_pp(c):
  rows = Fields(rewards_BT=f64(c["token_level_rewards"]), learn_BT=c.mask(),
                learn_B=ok(len(c.mask())))
  estimate = lambda path: call("advantages", path, rows, gamma=c["gamma"])[0]
  check_whitened(c, estimate("batch.reinforce_pp"), c.want["advantages"], c.mask())
  c.check(estimate("temporal.return_to_go"), c.want["returns"], where=c.mask())


@adapter("verl.remax")
def remax(c):
  mask_BT = c.mask()
  zero_B = jnp.zeros(len(mask_BT))
  rows = Fields(group=1, rewards_BT=f64(c["token_level_rewards"]), rewards_B=zero_B,
                learn_BT=mask_BT, learn_B=ok(len(mask_BT)), greedy_B=f64(c["reward_baselines"]))
  # Of an outcome; with rewards on several tokens the reference's return-to-go
  # minus the same baseline on every token.
  return {"advantages": call("advantages", "temporal.return_to_go", rows)[0] + combine.spread(
      call("advantages", "batch.remax", rows)[0], mask_BT)}


def _normalised(x_PG, learn_PG):
  """TRL's (x - mean) / (std + 1e-4) over the batch."""
  std = masked.root(masked.var(x_PG, learn_PG))
  return masked.where_valid((x_PG - masked.mean(x_PG, learn_PG)) / (std + 1e-4), learn_PG)


@adapter("trl.advantages", "trl.rloo_advantages")
def trl_advantages(c):
  rewards_BR, weight_R = f64(c["rewards_per_func"]), f64(c["reward_weights"])
  known_BR = ~jnp.isnan(rewards_BR)  # Rows without any reward are not valid.
  rows = Fields(group=c["num_generations"], learn_B=known_BR.any(axis=1),
                rewards_B=masked.total(rewards_BR * weight_R[None], known_BR, axis=1))
  estimate = lambda path, rows, **options: call("advantages", path, rows, **options)[0]
  scale = c.get("scale_rewards")
  if "rloo" in c.name:
    rows.rewards_B -= c["beta"] * jnp.sum(divergence.estimate(
        f64(c["old_log_prob"]), f64(c["ref_log_prob"]), c.mask("mask"), kind="k1"), axis=1)
    got_PG = estimate("group.rloo", rows)
    if c["normalize_advantages"]: got_PG = _normalised(got_PG, rows.learn_PG)
  elif c["multi_objective_aggregation"] == "normalize_then_sum":
    if scale != "group": pytest.skip("normalize_then_sum is per group here")
    got_PG = _normalised(sum(
        w * estimate("group.grpo", Fields(group=rows.group, rewards_B=r_B, learn_B=known_B),
                     eps=1e-4)
        for w, r_B, known_B in zip(weight_R, rewards_BR.T, known_BR.T)), rows.learn_PG)
  else:
    path = {"group": "group.grpo", "none": "group.mean_baseline",
            "batch": "batch.group_mean_batch_std"}[scale]
    got_PG = estimate(path, rows, **({} if scale == "none" else dict(eps=1e-4)))
  # TRL's nanstd multiplies by n / (n - 1) rounded to float32.
  c.check(got_PG.reshape(-1), c.want["advantages"], tol=max(c.tol, 1e-7))


# ------------------------------------------------------------------ KL, rewards

def _kind(name):
  short = name.rstrip("+")
  return {"kl": "k1", "mse": "k2", "low_var_kl": "k3"}.get(short, short) + name[len(short):]


@adapter("paper.kl_penalty", "verl.kl_penalty")
def kl_penalty(c):
  fn = lambda logps_BT: divergence.estimate(logps_BT, f64(c["ref_logprob"]), kind=_kind(c["kind"]))
  logps_BT = f64(c["logprob"])
  if not isinstance(c.want, dict): return fn(logps_BT)
  return {"value": fn(logps_BT), "grad_of_masked_sum": jax.grad(
      lambda x: masked.total(fn(x), c.input_mask()))(logps_BT)}


@adapter("verl.compute_rewards")
def compute_rewards(c):
  kl_BT = divergence.estimate(f64(c["old_log_prob"]), f64(c["ref_log_prob"]), kind="k1")
  return f64(c["token_level_scores"]) - c["kl_ratio"] * kl_BT


def _adapted(c, coef, kl):
  return divergence.adaptive_coef(coef, kl, target=c["target_kl"], horizon=c["horizon"],
                                  count=c["n_steps"])


@adapter("paper.apply_kl_penalty")
def apply_kl_penalty(c):
  mask_BT, coef = c.mask(), c["init_kl_coef"]
  kl_BT = divergence.estimate(f64(c["old_log_probs"]), f64(c["ref_log_prob"]), mask_BT,
                              kind=_kind(c["kind"]))
  kl = jnp.mean(masked.mean(kl_BT, mask_BT, axis=1))
  c.metric("critic/kl", kl)
  return {"token_level_rewards": f64(c["token_level_scores"]) - coef * kl_BT,
          "coef_after": _adapted(c, coef, kl)}


@adapter("verl.adaptive_kl_controller")
def adaptive_kl_controller(c):
  coefs = [c["init_kl_coef"]]
  for kl in c["kls"]: coefs.append(_adapted(c, coefs[-1], kl))
  return coefs[1:]


@adapter("paper.reward_manager")
def reward_manager(c):
  mask_BT = c.input_mask()
  acc_B = outcome.verdict(f64(c["acc"]), ok(len(mask_BT)))
  gt_BT, rm_BT = combine.place(acc_B, mask_BT), combine.place(f64(c["rm_scores"]), mask_BT)
  all_BT = c["rm_coef"] * rm_BT + c["reward_coef"] * gt_BT
  for x_BT, key, metric in ((gt_BT, "gt_scores", "verifier"), (rm_BT, "rm_scores", "reward_model"),
                            (all_BT, "all", "reward_all")):
    c.check(x_BT, c.want["rewards"][key])
    c.check(jnp.mean(jnp.sum(x_BT, axis=1)), c.want["metrics"][metric])


@adapter("paper.prompt_filter")
def prompt_filter(c):
  # "@acc ; second: @acc with truncation filter ; third: [...] ; fourth: float32 [...]"
  first, _, third, fourth = c.args["acc"].split(";")
  n, length = c["n_samples"], c["max_response_length"]
  finish_PG = np.where(c.mask().sum(axis=1) >= length, 0, 1).reshape(-1, n)
  read = lambda text: np.asarray(c.read("@" + text.replace("@", "").strip()), float)
  bounds = read(fourth.split("float32")[1]).astype(np.float32)
  for key, acc_B, drop in (("acc_in_band", read(first), False),
                           ("acc_band_and_truncation", read(first), True),
                           ("all_right_dropped_one_right_kept", read(third.split(":")[1]), False),
                           ("bounds_float32_0.2_and_0.8", bounds, False)):
    keep_P = filter_groups.accuracy_band(
        acc_B.reshape(-1, n), ok((len(acc_B) // n, n)), finish_PG,
        low=c["accuracy_lower_bound"], high=c["accuracy_upper_bound"], drop_truncated=drop)
    c.check(np.flatnonzero(np.repeat(keep_P, n)), c.want[key])


@adapter("recipe.filter_and_downsample")
def filter_and_downsample(c):
  n, (low, high) = c["n"], c["accuracy_band"]
  acc_PG = c["scores"].reshape(-1, n)
  keep_P = filter_groups.accuracy_band(
      acc_PG, ok(acc_PG.shape), np.ones(acc_PG.shape, int), low=low, high=high)
  for key, want in c.want.items():
    count = len(keep_P) // int(re.search(r"factor(\d+)", key).group(1))
    kept = [int(p) * n + g for p in filter_groups.fill(keep_P, count) for g in range(n)]
    c.check(sorted(kept), sorted(want))


# ----------------------------------------------------------------- policy losses


@adapter("verl.agg_loss")
def agg_loss(c):
  mode, length = c["loss_agg_mode"], c.get("loss_scale_factor")
  aggregated = lambda loss_BT, mask_BT: aggregate.aggregate(
      loss_BT, mask_BT, mode=mode, length=length)
  if "dp_size" not in c: return aggregated(f64(c["loss_mat"]), c.mask("loss_mask")).mean()
  # "@advantages rows 0:4 and 4:8", "@mask of the previous case"
  name, *ends = re.fullmatch(r"@(\w+) rows (\d+):(\d+) and (\d+):(\d+)",
                             c.args["loss_mat"]).groups()
  loss_BT, mask_BT = f64(c.data["inputs"][name]), c.previous().mask("loss_mask")
  parts = [aggregated(loss_BT[int(i):int(j)], mask_BT[int(i):int(j)])
           for i, j in (ends[:2], ends[2:])]
  whole = parts[0] + parts[1]
  return {"mean_over_ranks": whole.mean(),
          "per_rank": [p.total / whole.weight * c["dp_size"] for p in parts]}


def _policy_fields(c, mask_BT):
  logps_BT, a = f64(c["log_prob"]), f64(c["advantages"])
  is_on_policy = str(c.args["old_log_prob"]).startswith("None")
  old_BT = logps_BT if is_on_policy else f64(c["old_log_prob"])
  return Fields(logps_BT=logps_BT, old_logps_BT=old_BT, sampler_logps_BT=old_BT, learn_BT=mask_BT,
                advantages_BT=jnp.broadcast_to(a[:, None], mask_BT.shape) if a.ndim == 1 else a)


def _check_policy_loss(c, path, options, fields, total, token_weight_BT=1.0):
  """The loss of the case and its gradient; returns what the method's clipping removes.

  Args:
    total: (loss_BT of the method, logps_BT) -> the loss.
    token_weight_BT: multiplies the advantages of the loss.
  """
  def measured(logps_BT, weight_BT=1.0):
    given = dict(logps_BT=logps_BT, advantages_BT=weight_BT * fields.advantages_BT)
    return call("losses", path, Fields(**vars(fields) | given), **options)
  c.check_loss(lambda logps_BT: total(measured(logps_BT, token_weight_BT)[0], logps_BT),
               fields.logps_BT, "grad_log_prob")
  return measured(fields.logps_BT)[1]


def _clip_fraction(removed, mask_BT):
  """On either side, as the references count them."""
  clipped = diagnostics.means(removed, mask_BT)
  return clipped["clip_low"].mean() + clipped["clip_high"].mean()


_CLIP = dict(clip_low="clip_ratio_low clip_ratio", clip_high="clip_ratio_high clip_ratio")
_NEAR = dict(low=_CLIP["clip_low"], high=_CLIP["clip_high"], ratio_cap="clip_ratio_c")
_TAU = dict(tau_pos="tau_pos sapo_temperature_pos", tau_neg="tau_neg sapo_temperature_neg")
POLICY = {  # The loss and its options, from keys of the case.
    "paper.ppo_clip": ("policy.ppo_clip", dict(clip_low="cliprange", clip_high="cliprange")),
    "verl.policy.vanilla": ("policy.ppo_clip", dict(_CLIP, dual_clip="clip_ratio_c")),
    "verl.policy.gspo": ("sequence.gspo", _CLIP),
    "verl.policy.cispo": ("policy.cispo", _CLIP),
    "verl.policy.sapo": ("policy.sapo", _TAU),
    "verl.policy.geo_mean": ("sequence.gmpo", _CLIP),
    "verl.policy.kl_cov": ("policy.kl_cov", dict(fraction="kl_cov_ratio", kl_coef="ppo_kl_coef")),
    "verl.policy.clip_cov": ("policy.clip_cov", dict(
        _CLIP, fraction="clip_cov_ratio", cov_low="clip_cov_lb", cov_high="clip_cov_ub")),
    "verl.policy.dppo_tv": ("policy.dppo_tv", _NEAR),
    "verl.policy.dppo_kl": ("policy.dppo_kl", _NEAR),
    "verl.policy.dro": ("policy.dro", dict(ratio_penalty="dro_beta")),
    "verl.policy.gpg": ("policy.reinforce", {}),
    "verl.policy.reinforce": ("policy.reinforce", {})}


@adapter(*POLICY)
def policy_losses(c):
  (path, table), mask_BT = POLICY[c.prefix], c.mask()
  fields, options = _policy_fields(c, mask_BT), options_of(c, table)
  weight_BT = f64(c.get("rollout_is_weights", 1.0))
  if path == "sequence.gmpo":
    if not bool(jnp.all(mask_BT.any(axis=1))): pytest.skip("the reference counts empty rows")
    if weight_BT.ndim:
      # One weight per row: the geometric mean, as the loss itself.
      weight_BT = jnp.exp(masked.mean(jnp.log(weight_BT), mask_BT, axis=1, keepdims=True))
  # verl reduces its geo_mean, gspo and sapo in one way whatever loss_agg_mode says.
  mode = getattr(resolve.lookup("losses", path), "aggregation",
                 c.get("loss_agg_mode", "token-mean"))

  removed = _check_policy_loss(c, path, options, fields, lambda loss_BT, _: aggregate.aggregate(
      loss_BT * weight_BT, mask_BT, mode=mode, length=c.get("loss_scale_factor")).mean())
  d_BT = fields.old_logps_BT - fields.logps_BT
  if path == "policy.kl_cov": d_BT = jnp.abs(d_BT)
  for key in ("actor/ppo_kl", "ppo_kl"): c.metric(key, aggregate.mean(d_BT, mask_BT).mean())
  if path == "policy.ppo_clip":
    fraction = _clip_fraction(removed, mask_BT)
    for key in ("actor/pg_clipfrac", "clipfrac"): c.metric(key, fraction)
    c.metric("actor/pg_clipfrac_lower",
             diagnostics.means(removed, mask_BT).get("clip_dual", records.Weighted(0., 1.)).mean())


@adapter("paper.value_loss", "verl.value_loss")
def value_loss(c):
  mask_BT, clip = c.mask(), c["cliprange_value"]
  old_BT, returns_BT, values_BT = f64(c["values"]), f64(c["returns"]), f64(c["vpreds"])
  _, removed = value.clipped(values_BT, old_BT, returns_BT, mask_BT, clip=clip)
  c.check_loss(lambda values_BT: aggregate.aggregate(
      value.clipped(values_BT, old_BT, returns_BT, mask_BT, clip=clip)[0], mask_BT,
      mode=c.get("loss_agg_mode", "token-mean")).mean(), values_BT, "grad_vpreds")
  c.metric("clipfrac", diagnostics.means(removed, mask_BT)["clip"].mean())


_EPSILON = dict(clip_low="epsilon_low", clip_high="epsilon_high")
TRL = {  # loss_type: the loss, its options from keys of the case, the aggregation.
    "grpo": ("policy.ppo_clip", dict(_EPSILON, ratio_cap="delta"), "seq-mean-token-mean"),
    "bnpo": ("policy.ppo_clip", dict(_EPSILON, ratio_cap="delta"), "token-mean"),
    "dapo": ("policy.ppo_clip", dict(_EPSILON, ratio_cap="delta"), "token-mean"),
    "dr_grpo": ("policy.ppo_clip", dict(_EPSILON, ratio_cap="delta"), "seq-mean-token-sum-norm"),
    "luspo": ("policy.ppo_clip", dict(_EPSILON, ratio_cap="delta"), "seq-mean-token-sum"),
    "cispo": ("policy.cispo", dict(level="importance_sampling_level"), "token-mean"),
    "sapo": ("policy.sapo", dict(_TAU, level="importance_sampling_level"), "seq-mean-token-mean"),
    "vespo": ("sequence.vespo", {}, "token-mean")}


@adapter("trl.loss")
def trl_loss(c):
  kind, mask_BT = c.get("loss_type", "grpo"), c.mask("mask")
  is_sequence = c.get("importance_sampling_level") == "sequence"
  if "use_bias_correction_kl" in c: pytest.skip("no ratio-weighted KL in the loss")
  path, table, mode = TRL[kind]
  if is_sequence and path == "policy.ppo_clip":
    path, table = "sequence.luspo" if kind == "luspo" else "sequence.gspo", _EPSILON
  options = options_of(c, table)
  if table.items() >= _EPSILON.items(): options = dict(clip_low=0.2, clip_high=0.2) | options
  if kind == "cispo": options["clip_high"] = c.get("epsilon_high", 0.2) - 1
  fields = _policy_fields(c, mask_BT)
  entropy_BT = f64(c["entropies"])
  weight_BT, token_BT = f64(c.get("importance_sampling_ratio", 1.0)), 1.0
  if "top_entropy_quantile" in c:
    # TRL's key is the share that is dropped.
    token_BT = token_weight.top(entropy_BT, mask_BT, fraction=1 - c["top_entropy_quantile"])
  beta, ref_BT = c.get("beta", 0.0), f64(c.read("@ref_log_prob"))

  def total(loss_BT, logps_BT):
    loss_BT = loss_BT * weight_BT
    if "off_policy_mask_threshold" in c:
      loss_BT = loss_BT * rollout_correction.opsm(
          logps_BT, fields.old_logps_BT, fields.advantages_BT, mask_BT,
          delta=c["off_policy_mask_threshold"])
    if beta: loss_BT += beta * divergence.estimate(logps_BT, ref_BT, mask_BT, kind="k3")
    loss = aggregate.aggregate(loss_BT, mask_BT, mode=mode,
                               length=c["max_completion_length"]).mean()
    if c.get("_entropy_bonus_enabled"):
      loss += aggregate.aggregate(
          entropy.bonus(entropy_BT, mask_BT, coef=c["entropy_coef"]), mask_BT,
          mode="token-mean").mean()
    return loss / c.get("current_gradient_accumulation_steps", 1.0)

  removed = _check_policy_loss(c, path, options, fields, total, token_BT)
  token_mean = lambda x_BT: aggregate.mean(x_BT, mask_BT).mean()
  c.metric("entropy", token_mean(entropy_BT))
  if beta: c.metric("kl", token_mean(divergence.estimate(fields.logps_BT, ref_BT, kind="k3")))
  if not is_sequence and removed:
    c.metric("clip_ratio/region_mean", _clip_fraction(removed, mask_BT))


# -------------------------------------------------------------------- the test


@pytest.fixture(autouse=True)
def _float64():
  with jax.enable_x64(True): yield


@pytest.mark.parametrize("case", load(), ids=lambda c: c.id)
def test_case(case):
  if case.prefix is None: pytest.skip(f"no adapter for {case.name}")
  case.compare(ADAPTERS[case.prefix](case))
  assert case.is_checked


def test_what_the_rewards_of_an_order_are_of():
  """Two minibatches: the table before both, before each one's own update, or after both."""
  name = "paper.prm_update_after.two_minibatches"
  c = next(case for case in load() if case.name == name)
  toy = Toy(c)
  start, half = toy.start, len(toy.outcome_B) // 2
  after, single, _ = _learn_prm(c, toy, order="single")
  c.check(after, c.want["prm_after"])
  np.testing.assert_array_equal(single.prm_logps_BT, toy.read(start))
  params, double, _ = _learn_prm(c, toy, order="double")
  np.testing.assert_array_equal(params, after)
  c.check(double.prm_logps_BT, toy.read(after))
  params, cut, _ = _learn_prm(c, toy, order="single", snapshot=False)
  np.testing.assert_array_equal(params, after)
  c.check(cut.prm_logps_BT[:half], toy.read(start)[:half])
  for table in (start, after):
    assert jnp.abs(cut.prm_logps_BT - toy.read(table))[half:].max() > 1e-3
  params, none, metrics = _learn_prm(c, toy, order="none")
  np.testing.assert_array_equal(params, start)
  np.testing.assert_array_equal(none.prm_logps_BT, toy.read(start))
  assert not metrics
  for batch in (single, double, cut):  # What metrics are of stays.
    np.testing.assert_array_equal(batch.prm_old_logps_BT, toy.read(start))
