"""Cases recorded from the reference implementations: values and gradients.

RLX_GOLDEN names a folder of JSON files (default: golden/ next to this file).
Each file has `inputs` and `cases`; a case has a name, args (literals, or
expressions over the inputs), what the reference returned, and a tolerance. The
function part of the name chooses the comparison; every number is read from the
case. Runs in float64.
"""
import ast
import functools
import json
import operator
import os
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import base
from rlx import build
from rlx import methods
from rlx.advantages import batch
from rlx.advantages import combine
from rlx.advantages import group
from rlx.advantages import normalize
from rlx.advantages import process
from rlx.advantages import temporal
from rlx.core import masked
from rlx.core import records
from rlx.core import resolve
from rlx.evals import best_of_n
from rlx.evals import prm_metrics
from rlx.evals import step_errors
from rlx.learner import optimizer
from rlx.learner import sharding
from rlx.loops import annotate
from rlx.losses import aggregate
from rlx.losses import rollout_correction
from rlx.losses import diagnostics
from rlx.losses import divergence
from rlx.losses import entropy
from rlx.losses import policy
from rlx.losses import prm
from rlx.losses import sequence
from rlx.losses import token_weight
from rlx.losses import value
from rlx.models import logps as logps_lib
from rlx.models import transformer
from rlx.rewards import _segments
from rlx.rewards import implicit
from rlx.rewards import outcome
from rlx.rollouts import filter_groups

FOLDER = pathlib.Path(os.environ.get("RLX_GOLDEN", "golden"))
if not FOLDER.is_absolute(): FOLDER = pathlib.Path(__file__).parent / FOLDER

# ------------------------------------------------------------ reading a case

_BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
           ast.Div: operator.truediv, ast.Pow: operator.pow}
_CALLS = {"exp": np.exp, "log": np.log, "abs": np.abs,
          "sum": lambda x: np.sum(x, axis=-1), "zeros": lambda *n: np.zeros(n),
          "ones": lambda *n: np.ones(n)}


def evaluate(text, names):
  """An arithmetic expression over arrays: names, slices, + - * / **, a few calls."""
  def walk(node):
    match node:
      case ast.Constant(): return node.value
      case ast.Name(): return names[node.id]
      case ast.List(): return [walk(e) for e in node.elts]
      case ast.UnaryOp(op=ast.USub()): return -walk(node.operand)
      case ast.BinOp(): return _BINARY[type(node.op)](walk(node.left), walk(node.right))
      case ast.Call(func=ast.Name()): return _CALLS[node.func.id](*map(walk, node.args))
      case ast.Subscript(slice=ast.Slice()):
        ends = (walk(e) if e else None for e in (node.slice.lower, node.slice.upper))
        return walk(node.value)[slice(*ends)]
      case ast.Subscript(): return walk(node.value)[walk(node.slice)]
    raise ValueError(f"not understood in {text!r}: {ast.dump(node)}")
  return walk(ast.parse(text.strip(), mode="eval").body)


class Case:
  """One case with its file: args evaluated on access, checks at its tolerance."""

  def __init__(self, data, index, path):
    self.data, self.index = data, index
    self.case = data["cases"][index]
    self.name, self.want = self.case["name"], self.case["expected"]
    self.tol = self.case.get("tol", 1e-9)
    self.id = f"{path.stem}:{self.name}"
    self.suffix = ""       # of the name, after the part that chose the adapter

  def other(self, name):
    """Another case of the same file."""
    for i, c in enumerate(self.data["cases"]):
      if c["name"] == name: return Case(self.data, i, pathlib.Path("other"))
    raise KeyError(name)

  def __contains__(self, key): return self.case["args"].get(key) is not None

  def raw(self, key, default=None): return self.case["args"].get(key, default)

  def __getitem__(self, key): return self.read(self.case["args"][key])

  def get(self, key, default=None):
    return self[key] if key in self else default

  def read(self, value):
    """A literal as it is; lists become arrays; '@...' is evaluated."""
    if isinstance(value, list):
      return np.array([[np.nan if x is None else x for x in row] if isinstance(row, list)
                       else np.nan if row is None else row for row in value])
    if not isinstance(value, str) or not re.search(r"@|^\w+\(", value): return value
    text = re.sub(r"(?<=\w) +\([^()]*\)$", "", value.strip())  # "@x (8,)": a comment.
    names = {k: np.asarray(v) for k, v in self.data["inputs"].items()}
    names["mask"] = names.get("response_mask")
    return evaluate(text.replace("@", ""), names)

  def mask(self, key="response_mask"): return jnp.asarray(self[key]) > 0

  def check(self, got, want, where=None, tol=None):
    tol = self.tol if tol is None else tol
    got, want = np.asarray(got, float), np.asarray(want, float)
    assert got.shape == want.shape
    if where is not None: got, want = got[np.asarray(where)], want[np.asarray(where)]
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)

  def metric(self, key, got):
    """Metrics passed through float32 in the reference."""
    if key in self.want.get("metrics", {}):
      self.check(got, self.want["metrics"][key], tol=max(self.tol, 1e-6))


def load():
  cases = []
  for path in sorted(FOLDER.glob("*.json")):
    data = json.loads(path.read_text())
    cases += [Case(data, i, path) for i in range(len(data["cases"]))]
  return cases


ADAPTERS = {}


def adapter(*prefixes):
  def add(fn):
    for prefix in prefixes: ADAPTERS[prefix] = fn
    return fn
  return add


def f64(x): return jnp.asarray(x, jnp.float64)


def ok(rows): return jnp.ones(rows, bool)


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
  """Rows of equal id <-> [P, G]; G is the largest group, the rest not valid."""

  def __init__(self, ids):
    ids = list(ids)
    order = list(dict.fromkeys(ids))
    self.rows = [[i for i, x in enumerate(ids) if x == g] for g in order]
    self.shape = len(order), max(map(len, self.rows))
    self.index_PG = np.zeros(self.shape, int)
    self.learn_PG = np.zeros(self.shape, bool)
    for p, rows in enumerate(self.rows):
      self.index_PG[p, :len(rows)] = rows
      self.learn_PG[p, :len(rows)] = True
    self.lone_B = np.array([ids.count(x) == 1 for x in ids])

  def pack(self, x):
    """[B, ...] -> [P, G, ...]; copies of row 0 of the group fill up."""
    return jnp.asarray(x)[jnp.asarray(self.index_PG)]

  def flat(self, x):
    """[B, ...] -> [P * G, ...]."""
    return self.pack(x).reshape(-1, *np.shape(x)[1:])

  def rows_of(self, x):
    """[P, G, ...] -> [B, ...]."""
    out = np.zeros((len(self.lone_B), *x.shape[2:]))
    out[self.index_PG[self.learn_PG]] = np.asarray(x)[self.learn_PG]
    return out


def by_samples(c, rows):
  """Consecutive groups of n_samples rows."""
  n = c["n_samples"]
  assert rows % n == 0
  return n


# ------------------------------------------------- masks, log-probs, entropy


@adapter("paper.get_eos_mask")
def eos_mask(c):
  tokens_BT, eos = c["response_id"], c["eos_token"]
  is_eos_BT = tokens_BT == eos
  width = tokens_BT.shape[1]
  length_B = np.where(is_eos_BT.any(1), is_eos_BT.argmax(1) + 1, width)
  rollouts = records.Rollouts(
      tokens_BS=jnp.asarray(tokens_BT), prompt_len_B=jnp.zeros(len(tokens_BT), int),
      completion_len_B=jnp.asarray(length_B), finish_B=None, prompt_P=None,
      sampler_logps_BT=jnp.zeros(tokens_BT.shape))
  c.check(rollouts.mask_BT, c.want)


def _read_logits(logits_BTV, targets_BT, mask_BT):
  """logps and entropy of given logits: a head that is the identity."""
  size = logits_BTV.shape[-1]
  config = transformer.DecoderConfig(
      vocab_size=size, d_model=size, n_layers=1, n_heads=1, n_kv_heads=1, head_dim=2,
      d_ff=1, dtype="float64", param_dtype="float64")
  return logps_lib.from_hidden({"embed": {"w_VD": jnp.eye(size, dtype=jnp.float64)}},
                               config, f64(logits_BTV), jnp.asarray(targets_BT), mask_BT)


@adapter("paper.logprobs_from_logits", "trl.selective_log_softmax")
def logprobs(c):
  targets_BT = c["labels"] if "labels" in c else c["index"]
  logps_BT, _ = _read_logits(c["logits"], targets_BT, jnp.ones(targets_BT.shape, bool))
  c.check(logps_BT, c.want)


@adapter("paper.entropy_from_logits", "trl.entropy_from_logits")
def entropy_of_logits(c):
  shape = c["logits"].shape[:2]
  _, entropy_BT = _read_logits(c["logits"], np.zeros(shape, int), jnp.ones(shape, bool))
  c.check(entropy_BT, c.want)


@adapter("paper.entropy_loss", "verl.entropy_loss")
def entropy_loss(c):
  mask_BT = c.mask()
  _, entropy_BT = _read_logits(c["logits"], np.zeros(mask_BT.shape, int), mask_BT)
  mode = c.get("loss_agg_mode", "token-mean")
  c.check(aggregate.aggregate(-entropy.bonus(entropy_BT, mask_BT, coef=1.0), mask_BT,
                              mode=mode).mean(), c.want)


@adapter("implicit_prm.batch_logps")
def batch_logps(c):
  ids_BS, seen_BS = c["input_ids"], c["attention_mask"] > 0
  column_1S = np.arange(ids_BS.shape[1])[None, :]
  mask_BT = jnp.asarray((seen_BS & (column_1S >= c["prompt_id_lens"][:, None]))[:, 1:])
  logps_BT, _ = _read_logits(np.asarray(c.raw("logits"))[:, :-1], ids_BS[:, 1:], mask_BT)
  c.check(masked.total(logps_BT, mask_BT, axis=1), c.want["sum"])
  c.check(masked.mean(logps_BT, mask_BT, axis=1), c.want["mean"])


@adapter("paper.masked_mean", "verl.masked_mean")
def masked_mean(c):
  x, mask = f64(c["values"]), c.mask("mask")
  c.check(masked.mean(x, mask), c.want["all"], tol=max(c.tol, 1e-8))
  c.check(masked.mean(x, mask, axis=-1), c.want["axis_last"], tol=max(c.tol, 1e-8))


@adapter("paper.masked_var", "verl.masked_var")
def masked_var(c):
  c.check(masked.var(f64(c["values"]), c.mask("mask")) * torch_var(c.mask("mask")), c.want)


@adapter("paper.masked_whiten", "verl.masked_whiten")
def masked_whiten(c):
  x, mask = f64(c["values"]), c.mask("mask")
  want = c.want if isinstance(c.want, dict) else {"shift_mean": c.want}
  check_whitened(c, normalize.whiten(x, mask), want["shift_mean"], mask)
  if "no_shift" in want:
    mean = masked.mean(x, mask)
    check_whitened(c, masked.whiten(x, mask, shift_mean=False) - mean,
                   want["no_shift"] - np.asarray(mean), mask)


@adapter("trl.nanstd")
def nanstd(c):
  x = f64(c["x"])
  c.check(masked.root(masked.var(x, ~jnp.isnan(x))), c.want)


# -------------------------------------------------------- the implicit reward


def _process(prm_BT, ref_BT, mask_BT, beta=1.0, **options):
  return implicit.process(
      f64(prm_BT), f64(ref_BT), mask_BT, ok(len(mask_BT)), beta, **options)[0]


def _granularity(c): return {"whole": "completion"}.get(c["granularity"], c["granularity"])


@adapter("paper.implicit_reward")
def implicit_reward(c):
  mask_BT = c.mask()
  got_BT = _process(c["log_probs"], c["ref_log_probs"], mask_BT, norm="none",
                    granularity=_granularity(c), scale_by_beta=False)
  c.check(got_BT, c.want["token_level_score"])
  c.check(_process(c["log_probs"], c["ref_log_probs"], mask_BT, norm="none",
                   scale_by_beta=False), c.want["q"], where=mask_BT)


@adapter("recipe.prime_norm", "formula.batch_norm")
def prime_norm(c):
  if "scores" in c: scores_BT = f64(c["scores"])
  else:
    field, name = re.fullmatch(r"expected\.(\w+) of (.*)", c.raw("token_level_scores")).groups()
    scores_BT = f64(c.other(name).want[field])
  c.check(scores_BT / _segments.denominator(scores_BT)[0], c.want)


def _toy_logps(table_VV, ids_BS, width):
  """Bigram model: log softmax(table[previous token])[token], last `width` columns."""
  start = ids_BS.shape[1] - width
  logps_BTV = jax.nn.log_softmax(table_VV[ids_BS[:, start - 1:-1]], axis=-1)
  return jnp.take_along_axis(logps_BTV, ids_BS[:, start:, None], axis=-1)[..., 0]


def _toy(c):
  """ids, completion mask, and the two log-prob tables' readings as a function."""
  ids_BS = jnp.asarray(c["input_ids"])
  width = np.shape(c.data["inputs"]["response_mask"])[1]
  mask_BT = jnp.asarray(c["attention_mask"])[:, -width:] > 0
  return ids_BS, mask_BT, lambda table: _toy_logps(table, ids_BS, width)


def _recipe_options(c):
  lam, norm = c.get("lam", 0.0), c.get("prime_norm", "batch_norm")
  return dict(beta=c["beta"], include_last=False, lam=lam, use_outcome=c.get("use_gt", False),
              norm="max_return" if norm == "batch_norm" else "none")


@adapter("recipe.forward_scores")
def forward_scores(c):
  if "raises" in c.want: pytest.skip("the reference raises here; ours gives the sum")
  _, mask_BT, read = _toy(c)
  prm_BT, ref_BT = read(f64(c["prm"])), read(f64(c["ref"]))
  options = dict(_recipe_options(c), norm="none", granularity=_granularity(c))
  got_BT = _process(prm_BT, ref_BT, mask_BT, outcome_B=f64(c["acc"]), **options)
  c.check(got_BT, c.want["token_level_score"])
  c.check(masked.where_valid(prm_BT - ref_BT, mask_BT), c.want["q"])


@adapter("recipe.compute_rm_score")
def compute_rm_score(c):
  _, mask_BT, read = _toy(c)
  prm_BT, ref_BT = read(f64(c["prm"])), read(f64(c["ref"]))
  got_BT = _process(prm_BT, ref_BT, mask_BT, **_recipe_options(c))
  q_BT = masked.where_valid(prm_BT - ref_BT, mask_BT)
  c.check(got_BT, c.want["rm_scores"])
  c.check(q_BT, c.want["q"])
  c.metric("reward_model/reward", jnp.mean(jnp.sum(got_BT, axis=1)))
  c.metric("reward_model/raw_reward", jnp.mean(jnp.sum(q_BT, axis=1)))


def _optimizer(c):
  number = lambda key: float(re.search(key + r"=([\d.e+-]+)", c["optimizer"]).group(1))
  b1, b2 = map(float, re.search(r"betas=\(([^,]+),([^)]+)\)", c["optimizer"]).groups())
  return optimizer.adamw(
      lr=number("lr"), b1=b1, b2=b2, eps=number("eps"), weight_decay=number("weight_decay"),
      decay="all", max_grad_norm=c.get("grad_clip", 10.0))


@pytest.fixture(autouse=True)
def _tables(monkeypatch):
  """Models are tables {"w_VV"}, see `_toy_logps`."""
  def read(params, config, tokens_BS, positions_BS, valid_BS, *, completion_width, **_):
    return _toy_logps(params["w_VV"], tokens_BS, completion_width), None
  monkeypatch.setattr(logps_lib, "logps", read)


def _learn_prm(c, start, ref_BT, loss="prm.ce", **options):
  """The trainer's update of a PRM that is a table: (table after, Batch, metrics).

  Microbatches are those of the case, but of whole groups.
  """
  ids_BS, mask_BT, read = _toy(c)
  (rows, width), n = mask_BT.shape, c["n_samples"]
  config = base.get_config()
  config.prompts.per_step, config.rollouts.per_prompt = rows // n, n
  config.learner.pack = False
  config.prm.minibatches = rows // c["mini_batch"]
  config.prm.microbatches = c["mini_batch"] // max(c["micro_batch"], n)
  config.prm.loss = dict(name=loss)
  config.prm.update(options)
  transform, prm_BT = _optimizer(c), read(start)
  mesh = sharding.make_mesh()
  learn = build.device_stages(
      config, methods.resolved(config), dict.fromkeys(("policy", "prm"), "table"), mesh,
      dict.fromkeys(("learner", "prm", "value"), transform), learns="prm")["learn_prm"]
  table = {"w_VV": jnp.array(start)}
  state, scored, metrics = learn(
      records.TrainState(step=0, policy=None, policy_opt=None, prm=table,
                         prm_opt=transform.init(table)),
      annotate.Placer(mesh, False)(annotate.Annotated(records.Rollouts(
          tokens_BS=np.asarray(ids_BS), prompt_len_B=np.zeros(rows, int),
          completion_len_B=np.asarray(mask_BT).sum(axis=1),
          sampler_logps_BT=np.zeros((rows, width)),
          finish_B=np.zeros(rows, int), prompt_P=None), records.Batch(action_BT=mask_BT, outcome_B=f64(c["acc"]), group=n, prm_ref_logps_BT=ref_BT,
                     prm_logps_BT=prm_BT, prm_old_logps_BT=prm_BT,
                     prm_beta_B=jnp.full(rows, c["beta"])), {})))
  return state.prm["w_VV"], scored, metrics


def _parts(rows, size): return [slice(i, i + size) for i in range(0, rows, size)]


@adapter("paper.prm_update_after")
def prm_update_after(c):
  if "as_" in c:
    # "one_minibatch but prm_init = @bigram_ref, micro_batch 8"
    base, changes = c.raw("as_").split(" but ")
    args = dict(c.other(f"paper.prm_update_after.{base}").case["args"])
    for change in changes.split(","):
      key, text = re.fullmatch(r"\s*(\w+)\s*=?\s*(.+)", change).groups()
      args[key] = text if text.startswith("@") else int(text)
    c.case = dict(c.case, args=args)
  _, mask_BT, read = _toy(c)
  # Another reading of "@old_log_prob (policy ...)" than a table is by its shape.
  ref = f64(c["ref"])
  ref_BT = ref if ref.shape == mask_BT.shape else read(ref)
  acc_B, size, micro = f64(c["acc"]), c["mini_batch"], c["micro_batch"]
  rows = len(acc_B)
  # The quirk of the reference: part k is scored after k - 1 updates.
  after, scored, metrics = _learn_prm(c, f64(c["prm_init"]), ref_BT, snapshot=False)
  prm_BT, parts = scored.prm_logps_BT, _parts(rows, size)

  def loss(part):
    return prm.ce(prm_BT[part], ref_BT[part], mask_BT[part], acc_B[part], ok(rows)[part],
                  c["beta"]).mean()

  got_BT = _process(prm_BT, ref_BT, mask_BT, scale_by_beta=False,
                    granularity=_granularity(c), norm="max_return"
                    if c["prime_norm"] == "batch_norm" else "none")
  c.check(got_BT, c.want["rm_scores"])
  c.check(after, c.want["prm_after"])
  c.check(metrics["prm/grad_norm"], np.mean(c.want["metrics"]["reward_model/grad_norm"]),
          tol=max(c.tol, 1e-6))
  c.check(metrics["prm/loss"], np.mean([loss(p) for p in parts]))
  # Logged there: the last micro-batch of each mini-batch.
  c.metric("reward_model/prm_loss", [loss(slice(p.stop - micro, p.stop)) for p in parts])
  shape = -1, by_samples(c, rows)
  c.metric("reward_model/dpo_acc_before", [prm_metrics.accuracy(
      prm_BT, ref_BT, mask_BT, acc_B.reshape(shape), ok(rows).reshape(shape),
      ties="reference")])


@adapter("recipe.update_rm")
def update_rm(c):
  if c.raw("optimizer") == "as above":
    previous = Case(c.data, c.index - 1, pathlib.Path("other")).case["args"]
    args = dict(previous) | {k: v for k, v in c.case["args"].items() if v != "as above"}
    c.case = dict(c.case, args=args)
  _, mask_BT, read = _toy(c)
  acc_B, beta, size, micro = f64(c["acc"]), c["beta"], c["mini_batch"], c["micro_batch"]
  rows, n = len(acc_B), c["n_samples"]
  ref_BT, start = read(f64(c["ref"])), f64(c["prm"])
  is_ce = c["loss"] == "ce"
  name = "prm.ce" if is_ce else "prm.detached_dpo"
  after, scored, learned = _learn_prm(c, start, ref_BT, name, snapshot=False)
  prm_BT, parts = scored.prm_logps_BT, _parts(rows, size)

  def loss(part):
    if is_ce:
      return prm.ce(prm_BT[part], ref_BT[part], mask_BT[part], acc_B[part],
                    ok(rows)[part], beta).mean()
    shape = -1, n
    return prm.detached_dpo(
        prm_BT[part], ref_BT[part], mask_BT[part], acc_B[part].reshape(shape),
        ok(rows)[part].reshape(shape), read(start)[part], beta).mean()

  c.check(after, c.want["prm_after"])
  c.check(learned["prm/loss"], np.mean([loss(p) for p in parts]))
  from_update_BT = _process(prm_BT, ref_BT, mask_BT, **_recipe_options(c))
  metrics = c.want["update_metrics" if is_ce else "metrics"]
  check = lambda key, got: c.check(got, metrics["reward_model/" + key], tol=max(c.tol, 1e-6))
  c.check(learned["prm/grad_norm"], np.mean(metrics["reward_model/grad_norm"]),
          tol=max(c.tol, 1e-6))
  check("reward", jnp.mean(jnp.sum(from_update_BT, axis=1)))
  check("raw_reward", jnp.mean(masked.total(prm_BT - ref_BT, mask_BT, axis=1)))
  if not is_ce:
    # Logged per micro-batch of rows; ours needs whole groups: compare the means.
    c.check(from_update_BT, c.want["rm_scores"])
    c.check(learned["prm/loss"], np.mean(metrics["reward_model/dpo_loss"]))
    return
  check("dpo_loss", [loss(slice(i, i + micro)) for p in parts
                     for i in range(p.start, p.stop, micro)])
  _, scored, _ = _learn_prm(c, start, ref_BT, order="double")
  rescored_BT = _process(scored.prm_logps_BT, ref_BT, mask_BT, **_recipe_options(c))
  c.check(from_update_BT, c.want["rm_scores_from_update"])
  c.check(rescored_BT, c.want["rm_scores_rescored"])
  for order, scores_BT in (("after_single_forward", from_update_BT),
                           ("before_double_forward", rescored_BT)):
    _check_rloo(c, c.want["rloo"][order], scores_BT, acc_B, mask_BT, n,
                coefs=(c["reward_dpo_coef"], c["reward_gt_coef"]))


# ------------------------------------------------------------------ PRM losses


@adapter("paper.ce_loss", "recipe.ce_loss")
def ce_loss(c):
  mask_BT, q_BT = c.mask(), f64(c["q"])
  loss = lambda q_BT: prm.ce(q_BT, jnp.zeros_like(q_BT), mask_BT, f64(c["acc"]),
                             ok(len(q_BT)), c["beta"]).mean()
  c.check(loss(q_BT), c.want["loss"])
  c.check(jax.grad(loss)(q_BT), c.want["grad_q"])


@adapter("recipe.detached_dpo")
def detached_dpo(c):
  mask_BT, q_BT = c.mask(), f64(c["q"])
  n = int(re.search(r"the (\d+) rows", c.raw("Q_bc")).group(1))
  acc_PG = f64(c["acc"]).reshape(-1, n)
  loss = lambda now_BT: prm.detached_dpo(
      now_BT, jnp.zeros_like(q_BT), mask_BT, acc_PG, ok(len(q_BT)).reshape(-1, n), q_BT,
      c["beta"], weighting=c["bon_mode"]).mean()
  c.check(loss(q_BT), c.want["loss"])
  c.check(jax.grad(loss)(q_BT), c.want["grad_q"])


@adapter("paper.dpo_accuracy", "recipe.dpo_accuracy")
def dpo_accuracy(c):
  scores_BT = f64(c["token_level_scores"])
  shape = -1, by_samples(c, len(scores_BT))
  c.check(prm_metrics.accuracy(
      scores_BT, jnp.zeros_like(scores_BT), c.mask(), f64(c["acc"]).reshape(shape),
      ok(len(scores_BT)).reshape(shape), ties="reference"), c.want)


@adapter("recipe.dpo_abs_accuracy")
def dpo_abs_accuracy(c):
  scores_BT = f64(c["token_level_scores"])
  c.check(prm_metrics.absolute_accuracy(
      scores_BT, jnp.zeros_like(scores_BT), c.mask(), f64(c["acc"]),
      ok(len(scores_BT))), c.want)


def _sequence_logps(c):
  """Sums of log-probs of PRM and reference, as completions of one token: [B, 1]."""
  sums = c.other("implicit_prm.sequence_logps")
  return f64(sums["policy"])[:, None], f64(sums["ref"])[:, None]


@adapter("implicit_prm.sequence_logps")
def sequence_logps(c):
  # The sums that the losses below form: the log-ratio, and each side alone.
  inputs, mask_BT = c.data["inputs"], jnp.asarray(c.data["inputs"]["response_mask"]) > 0
  for side, text in (("policy", c.raw("policy")), ("ref", c.raw("ref"))):
    x_BT = f64(inputs[re.search(r"@(\w+)", text).group(1)])
    c.check(masked.total(x_BT, mask_BT, axis=1), c.want[side])


def _check_sequence_loss(c, loss, key):
  prm_B1, ref_B1 = _sequence_logps(c)
  c.check(loss(prm_B1, ref_B1), c.want["loss"])
  c.check(jax.grad(loss)(prm_B1, ref_B1)[:, 0], c.want[key])


@adapter("implicit_prm.ce")
def implicit_ce(c):
  labels_B = f64(c["labels"])
  _check_sequence_loss(c, lambda a, b: prm.ce(
      a, b, ok(a.shape), labels_B, ok(len(a)), c["beta"]).mean(), "grad")


@adapter("implicit_prm.kto_unpaired")
def kto_unpaired(c):
  if c.get("world_size", 1) != 1: pytest.skip("one process here")
  labels_B = f64(c["labels"])
  ratio_B = f64(c["KL_policy_logps"]) - f64(c["KL_ref_logps"])
  c.check(jnp.maximum(jnp.mean(ratio_B), 0), c.want["KL"])
  _check_sequence_loss(c, lambda a, b: prm.kto(
      a, b, ok(a.shape), labels_B, ok(len(a)), ratio_B, c["beta"],
      weight_correct=c["desirable_weight"], weight_wrong=c["undesirable_weight"]).mean(),
                       "grad_policy_logps")


@adapter("implicit_prm.pairs")
def pairs(c):
  groups = Groups(c["group"])
  is_pair_PGG = prm._pairs(groups.pack(c["acc"]), jnp.asarray(groups.learn_PG))
  got = [[groups.index_PG[p, w], groups.index_PG[p, l]]
         for p, w, l in np.argwhere(np.asarray(is_pair_PGG))]
  c.check(got, c.want)


@adapter("implicit_prm.dpo", "implicit_prm.nca_pair", "implicit_prm.kto_vanilla")
def pair_losses(c):
  fn = {"dpo": prm.dpo, "nca_pair": prm.nca, "kto_vanilla": prm.kto_even}[
      c.name.split(".")[1]]
  source = c.other(c.raw("pairs"))
  groups, pair_list = Groups(source["group"]), source.want
  acc_PG, learn_PG = groups.pack(f64(source["acc"])), jnp.asarray(groups.learn_PG)

  def loss(prm_B1, ref_B1):
    return fn(groups.flat(prm_B1), groups.flat(ref_B1), ok((learn_PG.size, 1)),
              acc_PG, learn_PG, c["beta"]).mean()

  _check_sequence_loss(c, loss, "grad_policy_logps")
  prm_B1, ref_B1 = _sequence_logps(c)
  reward_B = c["beta"] * (prm_B1 - ref_B1)[:, 0]
  for i, key in enumerate(("chosen_rewards", "rejected_rewards")):
    if key in c.want: c.check(reward_B[jnp.asarray([p[i] for p in pair_list])], c.want[key])
  if "per_pair" in c.want:
    c.check([fn(prm_B1[rows], ref_B1[rows], ok((2, 1)), f64([[1, 0]]), ok((1, 2)),
                c["beta"]).mean() for rows in map(jnp.asarray, pair_list)],
            c.want["per_pair"])


@adapter("implicit_prm.step_rewards")
def step_rewards(c):
  ends_BJ = c["special_tokens"][:, 1:]
  mask_BT = c["label_mask"][:, 1:] > 0
  prm_BT, ref_BT = c["policy_token_logps"], c["ref_token_logps"]
  for key, ratio_BT in (("w/ ref", prm_BT - ref_BT), ("w/o ref", prm_BT)):
    values_BJ = best_of_n.step_values(ratio_BT, mask_BT, np.maximum(ends_BJ, -1),
                                      scale=c["coef"])
    want, = c.want[key].values()
    pad = lambda x: np.where(np.isnan(x), 1e3, x)
    c.check(pad(values_BJ), want["accumulative"])
    c.check(pad(best_of_n.step_rewards(values_BJ)), want["single"])


@adapter("implicit_prm.step_rewards_aggregate")
def step_rewards_aggregate(c):
  source = c.other(c.raw("source")).want
  for row, want_row in enumerate(c.want):
    for ref, by_coef in want_row.items():
      for coef, by_kind in by_coef.items():
        for kind, by_name in by_kind.items():
          steps_BJ = np.array(source[ref][coef][kind])
          steps_BJ = np.where(steps_BJ == 1e3, np.nan, steps_BJ)
          for name, want in by_name.items():
            c.check(best_of_n.score(steps_BJ, name)[row], want)


@adapter("implicit_prm.processbench_threshold")
def processbench_threshold(c):
  rows = c.raw("data")
  threshold, f1 = step_errors.tune(
      best_of_n.padded([r["reward"] for r in rows]), [r["label"] for r in rows],
      count=c["num_thresholds"])
  c.check(threshold, c.want["threshold"])
  c.check(f1, c.want["f1"])


# ------------------------------------------------------- advantages, PRIME's


def _check_rloo(c, want, rm_BT, acc, mask_BT, n, *, gammas=(1.0, 1.0), coefs=(1.0, 1.0)):
  """PRIME's two terms through combine.estimate, as a run composes them."""
  rows = len(mask_BT)
  scored = records.Batch(action_BT=mask_BT, outcome_B=jnp.zeros(rows), group=n)
  total_BT = jnp.zeros(mask_BT.shape)
  if rm_BT is not None:
    total_BT += combine.estimate(
        coefs[0] * f64(rm_BT), scored, 1.0,
        lambda t: process.rloo(t.rewards_BT, t.learn_BT, t.learn_PG, gamma=gammas[0]))[0]
  if acc is not None:
    # [B], or [B, T] with the verdict on the last token: the same to rewards_PG.
    total_BT += combine.estimate(
        coefs[1] * f64(acc), scored, gammas[1],
        lambda t: group.rloo(t.rewards_PG, t.learn_PG))[0]
  c.check(total_BT, want["returns"])
  check_whitened(c, normalize.whiten(total_BT, mask_BT), want["advantages"], mask_BT)


@adapter("paper.prime_rloo")
def paper_prime_rloo(c):
  mask_BT = c.mask()
  _check_rloo(c, c.want, c.get("rm_scores"), c.get("gt_scores"), mask_BT,
              by_samples(c, len(mask_BT)),
              gammas=(c["reward_model_gamma"], c["verifier_gamma"]))


@adapter("recipe.prime_rloo")
def recipe_prime_rloo(c):
  mask_BT = c.mask()
  _check_rloo(c, c.want, c.get("rm_scores"), c.get("acc"), mask_BT,
              by_samples(c, len(mask_BT)),
              coefs=(c["reward_dpo_coef"], c["reward_gt_coef"]))


def _formula(c):
  mask_BT, rewards_BT, acc_B = c.mask(), f64(c["process_rewards"]), f64(c["acc"])
  shape = -1, by_samples(c, len(acc_B))
  return rewards_BT, mask_BT, acc_B.reshape(shape), ok(len(acc_B)).reshape(shape)


@adapter("formula.prime_rloo_eq5_length_normalised")
def rloo_eq5(c):
  rewards_BT, mask_BT, acc_PG, learn_PG = _formula(c)
  part_BT = process.rloo(rewards_BT, mask_BT, learn_PG, gamma=c["gamma"], loo="strict")
  c.check(part_BT, c.want["process_part"])
  # gamma discounts process rewards only here.
  c.check(part_BT + combine.spread(group.rloo(acc_PG, learn_PG), mask_BT), c.want["total"])


@adapter("formula.prime_rloo_code_closed_form")
def rloo_code(c):
  rewards_BT, mask_BT, acc_PG, learn_PG = _formula(c)
  c.check(process.rloo(rewards_BT, mask_BT, learn_PG, gamma=c["gamma"])
          + combine.spread(group.rloo(acc_PG, learn_PG), mask_BT, gamma=c["gamma"]),
          c.want["returns"])


@adapter("formula.prime_grpo_eq7")
def grpo_eq7(c):
  rewards_BT, mask_BT, acc_PG, learn_PG = _formula(c)
  eps = float(re.search(r"\+ *([\d.e+-]+)", c.raw("std")).group(1))
  c.check(process.grpo(rewards_BT, mask_BT, learn_PG, gamma=c["gamma"], eps=eps)
          + combine.spread(group.grpo(acc_PG, learn_PG, eps=eps), mask_BT),
          c.want["advantages"])


@adapter("formula.prime_reinforce_eq8")
def reinforce_eq8(c):
  rewards_BT, mask_BT, acc_PG, learn_PG = _formula(c)
  c.check(process.reinforce(rewards_BT, mask_BT, learn_PG, gamma=c["gamma"])
          + combine.spread(batch.reinforce(acc_PG, learn_PG), mask_BT),
          c.want["advantages"])


@adapter("formula.prm_as_value")
def prm_as_value(c):
  rewards_BT, mask_BT, acc_PG, learn_PG = _formula(c)
  c.check(process.value_baseline(rewards_BT, mask_BT, learn_PG)
          + combine.spread(batch.reinforce(acc_PG, learn_PG), mask_BT),
          c.want["advantages"])


# --------------------------------------------------------- advantages, generic


@adapter("paper.gae_old", "verl.gae")
def gae(c):
  mask_BT, values_BT = c.mask(), f64(c["values"])
  if c.name.startswith("paper") and np.any(np.asarray(values_BT)[~np.asarray(mask_BT)]):
    pytest.skip("negative example: the reference reads values on padding")
  raw_BT = temporal.gae(f64(c["token_level_rewards"]), mask_BT, values_BT,
                        gamma=c["gamma"], lam=c["lam"])
  check_whitened(c, normalize.whiten(raw_BT, mask_BT), c.want["advantages"], mask_BT)
  c.check(combine.value_targets(raw_BT, values_BT, mask_BT), c.want["returns"], where=mask_BT)


GROUP = {"grpo": group.grpo, "grpo_vectorized": group.grpo, "rloo": group.rloo,
         "rloo_vectorized": group.rloo, "opo": group.opo, "gpg": group.gpg,
         "grpo_passk": group.best_minus_second, "gdpo": group.grpo,
         "reinforce_pp_baseline": batch.reinforce_pp_baseline}


@adapter(*("verl." + name for name in GROUP))
def group_estimators(c):
  name = c.name.split(".")[1]
  mask_BT, groups = c.mask(), Groups(c["index"])
  rewards_B = f64(c["token_level_rewards"]).sum(axis=1)  # All columns, as the reference.
  args, options, fn = [groups.pack(rewards_B), jnp.asarray(groups.learn_PG)], {}, GROUP[name]
  is_whitened = name in ("gdpo", "reinforce_pp_baseline")
  if groups.lone_B.any() and is_whitened:
    pytest.skip("a group of one: the reference keeps its reward, ours gives 0")
  if name.startswith("grpo"):
    use_std = c.get("norm_adv_by_std_in_grpo", True)
    if "epsilon" in c: options["eps"] = c["epsilon"]
    if name == "grpo_passk": options["use_std"] = use_std
    elif not use_std: fn, options = group.mean_baseline, {}
  if name == "opo": args.append(groups.pack(mask_BT.sum(axis=1)))
  if name == "reinforce_pp_baseline":
    args.append(groups.flat(mask_BT) & jnp.asarray(groups.learn_PG).reshape(-1)[:, None])
    flat_BT = fn(*args)
    got_BT = groups.rows_of(flat_BT.reshape(*groups.shape, -1))
  else:
    got_BT = jnp.asarray(groups.rows_of(fn(*args, **options)))[:, None] * mask_BT
  if name == "gdpo": got_BT = normalize.whiten(jnp.asarray(got_BT), mask_BT)
  if name == "gpg":
    got_BT = got_BT * rounded(len(rewards_B), max(int(jnp.sum(rewards_B != 0)), 1))
  if is_whitened: return check_whitened(c, got_BT, c.want["advantages"], mask_BT)
  # A group of one: the reference gives its reward, ours 0 as documented.
  c.check(got_BT, np.where(groups.lone_B[:, None], 0, c.want["advantages"]))


@adapter("verl.reinforce_pp")
def reinforce_pp(c):
  mask_BT, rewards_BT = c.mask(), f64(c["token_level_rewards"])
  got_BT = batch.reinforce_pp(rewards_BT, mask_BT, ok(len(mask_BT)), gamma=c["gamma"])
  check_whitened(c, got_BT, c.want["advantages"], mask_BT)
  c.check(temporal.return_to_go(rewards_BT, mask_BT, gamma=c["gamma"]), c.want["returns"],
          where=mask_BT)


@adapter("verl.remax")
def remax(c):
  mask_BT, rewards_BT = c.mask(), f64(c["token_level_rewards"])
  # Of an outcome; with rewards on several tokens the reference's return-to-go
  # minus the same baseline on every token.
  learn_PG = ok((1, len(mask_BT)))
  base_B1 = batch.remax(jnp.zeros(learn_PG.shape), learn_PG, f64(c["reward_baselines"])).T
  got_BT = temporal.return_to_go(rewards_BT, mask_BT) + combine.spread(base_B1, mask_BT)
  c.check(got_BT, c.want["advantages"])


@adapter("verl.optimal_token_baseline")
def optimal_token_baseline(c):
  groups = Groups(c["index"])
  if groups.lone_B.any(): pytest.skip("a group of one: ours gives 0")
  got_BT = batch.optimal_token_baseline(
      *map(groups.flat, (f64(c["token_level_rewards"]), c.mask())),
      jnp.asarray(groups.learn_PG),
      *map(groups.flat, (f64(c["old_log_probs"]), f64(c["sum_pi_squared"]))))
  # The reference adds 1e-8 to the sum of weights.
  c.check(groups.rows_of(got_BT.reshape(*groups.shape, -1)), c.want["advantages"],
          tol=max(c.tol, 1e-8))


def _trl_rewards(c):
  """Weighted sum of the rewards there are; rows without any are not valid."""
  rewards_BR, weight_R = f64(c.read(c.raw("rewards_per_func"))), f64(c["reward_weights"])
  known_BR = ~jnp.isnan(rewards_BR)
  shape = -1, c["num_generations"]
  return rewards_BR, weight_R, known_BR, shape


# TRL's nanstd multiplies by n / (n - 1) rounded to float32.
TRL_STD_TOL = 1e-7


@adapter("trl.advantages")
def trl_advantages(c):
  rewards_BR, weight_R, known_BR, shape = _trl_rewards(c)
  if c["multi_objective_aggregation"] == "normalize_then_sum":
    if c["scale_rewards"] != "group": pytest.skip("normalize_then_sum is per group here")
    terms = [w * group.grpo(r.reshape(shape), k.reshape(shape), eps=1e-4)
             for w, r, k in zip(weight_R, rewards_BR.T, known_BR.T)]
    learn_PG = known_BR.any(axis=1).reshape(shape)
    total_PG = sum(terms)
    std = masked.root(masked.var(total_PG, learn_PG))
    got_PG = masked.where_valid(
        (total_PG - masked.mean(total_PG, learn_PG)) / (std + 1e-4), learn_PG)
  else:
    fn = {"group": functools.partial(group.grpo, eps=1e-4), "none": group.mean_baseline,
          "batch": functools.partial(batch.group_mean_batch_std, eps=1e-4)}[c["scale_rewards"]]
    total_B = masked.total(rewards_BR * weight_R[None], known_BR, axis=1)
    got_PG = fn(total_B.reshape(shape), known_BR.any(axis=1).reshape(shape))
  c.check(got_PG.reshape(-1), c.want["advantages"], tol=max(c.tol, TRL_STD_TOL))


@adapter("trl.rloo_advantages")
def trl_rloo_advantages(c):
  rewards_BR, weight_R, known_BR, shape = _trl_rewards(c)
  mask_BT = c.mask("mask")
  total_B = masked.total(rewards_BR * weight_R[None], known_BR, axis=1)
  total_B -= c["beta"] * jnp.sum(divergence.estimate(
      f64(c["old_log_prob"]), f64(c["ref_log_prob"]), mask_BT, kind="k1"), axis=1)
  learn_PG = known_BR.any(axis=1).reshape(shape)
  got_PG = group.rloo(total_B.reshape(shape), learn_PG)
  if c["normalize_advantages"]:
    std = masked.root(masked.var(got_PG, learn_PG))
    got_PG = masked.where_valid((got_PG - masked.mean(got_PG, learn_PG)) / (std + 1e-4), learn_PG)
  c.check(got_PG.reshape(-1), c.want["advantages"], tol=max(c.tol, TRL_STD_TOL))


# ------------------------------------------------------------------ KL, rewards

KINDS = {"kl": "k1", "mse": "k2", "low_var_kl": "k3"}


def _kind(name):
  base = name.rstrip("+")
  return KINDS.get(base, base) + ("+" if name.endswith("+") else "")


@adapter("paper.kl_penalty", "verl.kl_penalty")
def kl_penalty(c):
  kind = _kind(c["kind"])
  fn = lambda a_BT: divergence.estimate(a_BT, f64(c["ref_logprob"]), kind=kind)
  logps_BT = f64(c["logprob"])
  if not isinstance(c.want, dict): return c.check(fn(logps_BT), c.want)
  c.check(fn(logps_BT), c.want["value"])
  mask_BT = jnp.asarray(c.data["inputs"]["response_mask"]) > 0
  c.check(jax.grad(lambda x: masked.total(fn(x), mask_BT))(logps_BT),
          c.want["grad_of_masked_sum"])


@adapter("verl.compute_rewards")
def compute_rewards(c):
  kl_BT = divergence.estimate(f64(c["old_log_prob"]), f64(c["ref_log_prob"]), kind="k1")
  c.check(f64(c["token_level_scores"]) - c["kl_ratio"] * kl_BT, c.want)


@adapter("paper.apply_kl_penalty")
def apply_kl_penalty(c):
  mask_BT, coef = c.mask(), c["init_kl_coef"]
  kl_BT = divergence.estimate(f64(c["old_log_probs"]), f64(c["ref_log_prob"]), mask_BT,
                              kind=_kind(c["kind"]))
  c.check(f64(c["token_level_scores"]) - coef * kl_BT, c.want["token_level_rewards"])
  kl = jnp.mean(masked.mean(kl_BT, mask_BT, axis=1))
  c.metric("critic/kl", kl)
  c.check(divergence.adaptive_coef(coef, kl, target=c["target_kl"], horizon=c["horizon"],
                                   count=c["n_steps"]), c.want["coef_after"])


@adapter("verl.adaptive_kl_controller")
def adaptive_kl_controller(c):
  coef, got = c["init_kl_coef"], []
  for kl in c["kls"]:
    coef = divergence.adaptive_coef(coef, kl, target=c["target_kl"],
                                    horizon=c["horizon"], count=c["n_steps"])
    got.append(coef)
  c.check(got, c.want)


@adapter("paper.reward_manager")
def reward_manager(c):
  mask_BT = jnp.asarray(c.data["inputs"]["response_mask"]) > 0
  acc_B = outcome.verdict(f64(c["acc"]), ok(len(mask_BT)))
  gt_BT, rm_BT = combine.place(acc_B, mask_BT), combine.place(f64(c["rm_scores"]), mask_BT)
  all_BT = c["rm_coef"] * rm_BT + c["reward_coef"] * gt_BT
  for key, x_BT in (("gt_scores", gt_BT), ("rm_scores", rm_BT), ("all", all_BT)):
    c.check(x_BT, c.want["rewards"][key])
  for key, x_BT in (("reward_model", rm_BT), ("verifier", gt_BT), ("reward_all", all_BT)):
    c.check(jnp.mean(jnp.sum(x_BT, axis=1)), c.want["metrics"][key])


@adapter("paper.prompt_filter")
def prompt_filter(c):
  # "@acc ; second: @acc with truncation filter ; third: [...] ; fourth: float32 [...]"
  first, _, third, fourth = c.raw("acc").split(";")
  n, length = c["n_samples"], c["max_response_length"]
  cut_B = np.asarray(c.mask().sum(axis=1)) >= length
  read = lambda text: np.asarray(c.read("@" + text.replace("@", "").strip()), float)
  runs = {"acc_in_band": (read(first), False), "acc_band_and_truncation": (read(first), True),
          "all_right_dropped_one_right_kept": (read(third.split(":")[1]), False),
          "bounds_float32_0.2_and_0.8": (
              read(fourth.split("float32")[1]).astype(np.float32), False)}
  for key, (acc_B, drop) in runs.items():
    keep_P = filter_groups.accuracy_band(
        acc_B.reshape(-1, n), ok((len(acc_B) // n, n)),
        np.where(cut_B, 0, 1).reshape(-1, n), low=c["accuracy_lower_bound"],
        high=c["accuracy_upper_bound"], drop_truncated=drop)
    c.check(np.flatnonzero(np.repeat(keep_P, n)), c.want[key])


@adapter("recipe.filter_and_downsample")
def filter_and_downsample(c):
  n, (low, high) = c["n"], c["accuracy_band"]
  acc_PG = c["scores"].reshape(-1, n)
  keep_P = filter_groups.accuracy_band(
      acc_PG, ok(acc_PG.shape), np.ones(acc_PG.shape, int), low=low, high=high)
  rows = lambda factor: [int(p) * n + g for p in filter_groups.fill(keep_P, len(keep_P) // factor)
                         for g in range(n)]
  for key, want in c.want.items():
    factor = int(re.search(r"factor(\d+)", key).group(1))
    c.check(sorted(rows(factor)), sorted(want))


# ----------------------------------------------------------------- policy losses


@adapter("verl.agg_loss")
def agg_loss(c):
  mode = c["loss_agg_mode"]
  if "dp_size" not in c:
    got = aggregate.aggregate(f64(c["loss_mat"]), c.mask("loss_mask"), mode=mode,
                              length=c.get("loss_scale_factor"))
    return c.check(got.mean(), c.want)
  # "@advantages rows 0:4 and 4:8", "@mask of the previous case"
  name, *ends = re.fullmatch(r"@(\w+) rows (\d+):(\d+) and (\d+):(\d+)", c.raw("loss_mat")).groups()
  loss_BT, a = f64(c.data["inputs"][name]), list(map(int, ends))
  mask_BT = Case(c.data, c.index - 1, pathlib.Path("other")).mask("loss_mask")
  parts = [aggregate.aggregate(loss_BT[i:j], mask_BT[i:j], mode=mode,
                               length=c["loss_scale_factor"]) for i, j in (a[:2], a[2:])]
  whole = parts[0] + parts[1]
  c.check(whole.mean(), c.want["mean_over_ranks"])
  c.check([p.total / whole.weight * c["dp_size"] for p in parts], c.want["per_rank"])


def _advantages(c, mask_BT):
  a = f64(c["advantages"])
  return jnp.broadcast_to(a[:, None], mask_BT.shape) if a.ndim == 1 else a


def _clip_fraction(removed, mask_BT):
  """On either side, as the references count them."""
  clipped = diagnostics.means(removed, mask_BT)
  return clipped["clip_low"].mean() + clipped["clip_high"].mean()


@adapter("paper.ppo_clip")
def paper_ppo_clip(c):
  mask_BT, eps = c.mask(), c["cliprange"]
  old_BT, a_BT, logps_BT = f64(c["old_log_prob"]), _advantages(c, mask_BT), f64(c["log_prob"])
  fn = lambda x_BT: policy.ppo_clip(x_BT, old_BT, a_BT, mask_BT, clip_low=eps, clip_high=eps)
  loss = lambda x_BT: aggregate.aggregate(fn(x_BT)[0], mask_BT, mode="token-mean").mean()
  c.check(loss(logps_BT), c.want["loss"])
  c.check(jax.grad(loss)(logps_BT), c.want["grad_log_prob"])
  tol = max(c.tol, 1e-6)
  c.check(_clip_fraction(fn(logps_BT)[1], mask_BT), c.want["clipfrac"], tol=tol)
  c.check(diagnostics.token_mean(old_BT - logps_BT, mask_BT).mean(), c.want["ppo_kl"], tol=tol)


def _policy_loss(c, name):
  """The function of a verl loss with the case's options."""
  low, high = (c.get(f"clip_ratio_{side}", c.get("clip_ratio")) for side in ("low", "high"))
  clip = dict(clip_low=low, clip_high=high)
  near = dict(low=low, high=high, ratio_cap=c.get("clip_ratio_c", 20.0))
  fn, options = {
      "vanilla": (policy.ppo_clip, dict(clip, dual_clip=c.get("clip_ratio_c", 3.0))),
      "gspo": (sequence.gspo, clip), "cispo": (policy.cispo, clip),
      "sapo": (policy.sapo, {k: c[k] for k in ("tau_pos", "tau_neg") if k in c}),
      "geo_mean": (sequence.gmpo, clip),
      "kl_cov": (policy.kl_cov, dict(fraction=c.get("kl_cov_ratio", 2e-4),
                                     kl_coef=c.get("ppo_kl_coef", 1.0))),
      "clip_cov": (policy.clip_cov, dict(clip, fraction=c.get("clip_cov_ratio", 2e-4),
                                         cov_low=c.get("clip_cov_lb", 1.0),
                                         cov_high=c.get("clip_cov_ub", 5.0))),
      "dppo_tv": (policy.dppo_tv, near), "dppo_kl": (policy.dppo_kl, near),
      "dro": (policy.dro, dict(ratio_penalty=c.get("dro_beta"))),
      "gpg": (policy.reinforce, {}), "reinforce": (policy.reinforce, {}),
  }[name]
  if fn is policy.reinforce: return lambda x, old, a, m: fn(x, a, m)
  return functools.partial(fn, **options)


POLICY = ("vanilla", "gspo", "cispo", "sapo", "gpg", "geo_mean", "kl_cov", "clip_cov",
          "dppo_tv", "dppo_kl", "dro", "reinforce")


@adapter(*("verl.policy." + name for name in POLICY))
def policy_losses(c):
  name = c.name.split(".")[2]
  mask_BT, logps_BT, old_BT = c.mask(), f64(c["log_prob"]), f64(c["old_log_prob"])
  a_BT, fn = _advantages(c, mask_BT), _policy_loss(c, name)
  weight_BT = f64(c["rollout_is_weights"]) if "rollout_is_weights" in c else 1.0
  if name == "geo_mean":
    if not bool(jnp.all(mask_BT.any(axis=1))): pytest.skip("the reference counts empty rows")
    if "rollout_is_weights" in c:
      # One weight per row: the geometric mean, as the loss itself.
      weight_BT = jnp.exp(masked.mean(jnp.log(weight_BT), mask_BT, axis=1, keepdims=True))
  # verl reduces its geo_mean, gspo and sapo in one way whatever loss_agg_mode says.
  forced = {"geo_mean": sequence.gmpo, "gspo": sequence.gspo, "sapo": policy.sapo}
  mode = (forced[name].aggregation if name in forced else
          c.get("loss_agg_mode", "token-mean"))
  loss = lambda x_BT: aggregate.aggregate(
      resolve.measured(fn(x_BT, old_BT, a_BT, mask_BT))[0] * weight_BT, mask_BT, mode=mode,
      length=c.get("loss_scale_factor")).mean()
  c.check(loss(logps_BT), c.want["loss"])
  c.check(jax.grad(loss)(logps_BT), c.want["grad_log_prob"])
  d_BT = old_BT - logps_BT
  if name == "kl_cov": d_BT = jnp.abs(d_BT)
  c.metric("actor/ppo_kl", diagnostics.token_mean(d_BT, mask_BT).mean())
  if name == "vanilla":
    _, removed = fn(logps_BT, old_BT, a_BT, mask_BT)
    c.metric("actor/pg_clipfrac", _clip_fraction(removed, mask_BT))
    c.metric("actor/pg_clipfrac_lower",
             diagnostics.means(removed, mask_BT)["clip_dual"].mean())


@adapter("paper.value_loss", "verl.value_loss")
def value_loss(c):
  mask_BT, clip = c.mask(), c["cliprange_value"]
  old_BT, returns_BT, values_BT = f64(c["values"]), f64(c["returns"]), f64(c["vpreds"])
  loss = lambda x_BT: aggregate.aggregate(
      value.clipped(x_BT, old_BT, returns_BT, mask_BT, clip=clip), mask_BT,
      mode=c.get("loss_agg_mode", "token-mean")).mean()
  c.check(loss(values_BT), c.want["loss"])
  c.check(jax.grad(loss)(values_BT), c.want["grad_vpreds"])
  c.check(diagnostics.value_clip_fraction(values_BT, old_BT, returns_BT, mask_BT,
                                          clip=clip).mean(), c.want["clipfrac"],
          tol=max(c.tol, 1e-6))


TRL_MODES = {"grpo": "seq-mean-token-mean", "sapo": "seq-mean-token-mean",
             "bnpo": "token-mean", "dapo": "token-mean", "cispo": "token-mean",
             "vespo": "token-mean", "dr_grpo": "seq-mean-token-sum-norm",
             "luspo": sequence.luspo.aggregation}


@adapter("trl.loss")
def trl_loss(c):
  kind, level = c.get("loss_type", "grpo"), c.get("importance_sampling_level", "token")
  if "use_bias_correction_kl" in c: pytest.skip("no ratio-weighted KL in the loss")
  mask_BT, logps_BT = c.mask("mask"), f64(c["log_prob"])
  is_on_policy = str(c.raw("old_log_prob")).startswith("None")
  old_BT = logps_BT if is_on_policy else f64(c["old_log_prob"])
  a_BT = _advantages(c, mask_BT)
  low, high = c.get("epsilon_low", 0.2), c.get("epsilon_high", 0.2)
  clip = dict(clip_low=low, clip_high=high)
  if kind == "cispo":
    fn = functools.partial(policy.cispo, clip_high=high - 1, level=level)
  elif kind == "sapo":
    fn = functools.partial(policy.sapo, tau_pos=c.get("sapo_temperature_pos", 1.0),
                           tau_neg=c.get("sapo_temperature_neg", 1.05), level=level)
  elif kind == "vespo":
    fn = sequence.vespo     # What drew the tokens is the old policy.
  elif level == "sequence":
    fn = functools.partial(sequence.luspo if kind == "luspo" else sequence.gspo, **clip)
  else:
    fn = functools.partial(policy.ppo_clip, ratio_cap=c.get("delta"), **clip)
  entropy_BT, weight_BT, token_BT = f64(c["entropies"]), 1.0, 1.0
  if "importance_sampling_ratio" in c: weight_BT = f64(c["importance_sampling_ratio"])
  if "top_entropy_quantile" in c:
    # TRL's key is the share that is dropped.
    token_BT = token_weight.top(entropy_BT, mask_BT, fraction=1 - c["top_entropy_quantile"])
  beta = c.get("beta", 0.0)
  ref_BT = f64(c.read("@ref_log_prob"))

  def loss(x_BT):
    loss_BT, _ = resolve.measured(fn(x_BT, old_BT, token_BT * a_BT, mask_BT))
    if "off_policy_mask_threshold" in c:
      loss_BT = loss_BT * rollout_correction.opsm(x_BT, old_BT, a_BT, mask_BT,
                                         delta=c["off_policy_mask_threshold"])
    loss_BT = loss_BT * weight_BT
    if beta: loss_BT = loss_BT + beta * divergence.estimate(x_BT, ref_BT, mask_BT, kind="k3")
    total = aggregate.aggregate(loss_BT, mask_BT, mode=TRL_MODES[kind],
                                length=c["max_completion_length"]).mean()
    if c.get("_entropy_bonus_enabled"):
      total += aggregate.aggregate(
          entropy.bonus(entropy_BT, mask_BT, coef=c["entropy_coef"]), mask_BT,
          mode="token-mean").mean()
    return total / c.get("current_gradient_accumulation_steps", 1.0)

  c.check(loss(logps_BT), c.want["loss"])
  c.check(jax.grad(loss)(logps_BT), c.want["grad_log_prob"])
  token_mean = lambda x_BT: diagnostics.token_mean(x_BT, mask_BT).mean()
  c.metric("entropy", token_mean(entropy_BT))
  if beta: c.metric("kl", token_mean(divergence.estimate(logps_BT, ref_BT, kind="k3")))
  _, removed = resolve.measured(fn(logps_BT, old_BT, a_BT, mask_BT))
  if level == "token" and removed:
    c.metric("clip_ratio/region_mean", _clip_fraction(removed, mask_BT))


# -------------------------------------------------------------------- the test


@pytest.fixture(autouse=True)
def _float64():
  with jax.enable_x64(True):
    yield


@pytest.mark.parametrize("case", load(), ids=lambda c: c.id)
def test_case(case):
  parts = case.name.split(".")
  for n in range(len(parts), 0, -1):
    if fn := ADAPTERS.get(".".join(parts[:n])): return fn(case)
  pytest.skip(f"nothing here does {'.'.join(parts[:3])}")


def test_what_the_rewards_of_an_order_are_of():
  """Two minibatches: the table before both, before each one's own update, or after both."""
  name = "paper.prm_update_after.two_minibatches"
  c = next(case for case in load() if case.name == name)
  mask_BT, read = _toy(c)[1:]
  start, ref_BT = f64(c["prm_init"]), read(f64(c["ref"]))
  learned = lambda **options: _learn_prm(c, start, ref_BT, **options)
  after, single, _ = learned(order="single")
  half = mask_BT.shape[0] // 2
  c.check(after, c.want["prm_after"])
  np.testing.assert_array_equal(single.prm_logps_BT, read(start))
  params, double, _ = learned(order="double")
  np.testing.assert_array_equal(params, after)
  c.check(double.prm_logps_BT, read(after))
  params, cut, _ = learned(order="single", snapshot=False)
  np.testing.assert_array_equal(params, after)
  c.check(cut.prm_logps_BT[:half], read(start)[:half])
  for table in (start, after):
    assert jnp.abs(cut.prm_logps_BT - read(table))[half:].max() > 1e-3
  params, none, metrics = learned(order="none")
  np.testing.assert_array_equal(params, start)
  np.testing.assert_array_equal(none.prm_logps_BT, read(start))
  assert not metrics
  for scored in (single, double, cut):  # What metrics are of stays.
    np.testing.assert_array_equal(scored.prm_old_logps_BT, read(start))
