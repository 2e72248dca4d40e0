"""What every reward, estimator and loss keeps to, for each one found on disk."""
import functools
import importlib
import inspect
import pkgutil
import re
import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.advantages import combine
from rlx.core import fields, records, resolve, schedule
from rlx.stages import host_fields, model_fields
from tests import whole

NAN = np.nan
# Options without a default, and choices that make a function read more arrays.
OPTIONS = {"rewards.outcome.filled": dict(otherwise=0),
           "rewards.turns.gate": dict(thresholds=(.5, .3, .3)),
           "advantages.group.pass_at_k_training": dict(k=1),
           "losses.distribution.lp_reg": dict(fraction=0.5),
           "losses.policy.clip_cov": dict(fraction=0.3, cov_low=0.0),
           "losses.policy.stable_reinforce": dict(width=0.4),
           "losses.entropy.bonus": dict(coef=0.1),
           "losses.auxiliary.last_token": dict(c_ref=-2.0),
           "advantages.group.self_rewarded": dict(c_ref=-2.0),
           "losses.value.clipped": dict(clip=0.2),
           "rewards.constrained.lagrangian": dict(thresholds=(0.5, 0.5)),
           "rewards.implicit.process": dict(granularity="step", use_outcome=True, lam=0.5),
           "rewards.length.cosine": dict(max_length=4),
           "rewards.length.overlong": dict(max_length=4, buffer=2),
           "rewards.length.surrogate": dict(max_length=4),
           "rewards.noise.backward": dict(false_positive=0.1, false_negative=0.2),
           "rewards.noise.forward": dict(false_negative=0.2),
           "rewards.likelihood.reference": dict(baseline="diff", token_weight="group_std",
                                                len_norm="log10"),
           "rewards.likelihood.efficiency": dict(use_gate=False),
           "rewards.likelihood.last_token": dict(c_ref=-2.0),
           "rewards.shaping.facts": dict(most=4.0),
           "rewards.shaping.hierarchical": dict(thresholds=(0.1, 0.1)),
           "rewards.steps.refine": dict(kind="softmin"),
           "rewards.steps.mix": dict(kind="renorm"),
           "rewards.steps.completion": dict(kind="mean_logit")}
# Helpers with arrays by name that are not methods a config names.
NOT_METHODS = {"combine"}


DECLARED = fields.table(records, host_fields, model_fields)


def _found():
  """stage.module.function of every function that asks only for known arrays."""
  for stage in ("rewards", "advantages", "losses"):
    known = {*DECLARED, *(f"{f.removesuffix('_B')}_PG" for f in DECLARED), "prm_beta"}
    if stage == "advantages": known |= {"rewards_PG", "rewards_BT"}
    package = importlib.import_module(f"rlx.{stage}")
    for m in pkgutil.iter_modules(package.__path__):
      if m.name.startswith("_") or m.name in NOT_METHODS: continue
      module = importlib.import_module(f"rlx.{stage}.{m.name}")
      for name, fn in resolve.list_functions(module).items():
        asked = [p.name for p in inspect.signature(fn).parameters.values()
                 if p.kind is p.POSITIONAL_OR_KEYWORD]
        asked = set(asked) - set(getattr(fn, "whole", ()))
        if asked <= known: yield f"{stage}.{m.name}.{name}"


FOUND = list(_found())


@functools.cache
def _record(stage, padding):
  """Two prompts of three completions; one verdict is unknown, one row empty.

  Padding and the rows that are not valid hold `padding`.
  """
  lengths_B1 = np.array([[3], [2], [4], [1], [0], [4]])
  mask_BT = np.arange(4)[None] < lengths_B1
  outcome_B = np.array([1.0, 0.0, NAN, 1.0, 0.0, 0.25])
  learn_B = ~np.isnan(outcome_B) & mask_BT.any(1)
  learn_BT = mask_BT & learn_B[:, None]
  draw = np.random.default_rng(0)
  def fill(low=-2.0, high=-0.1):
    x_BT = draw.uniform(low, high, mask_BT.shape)
    return np.float32(np.where(learn_BT, x_BT, padding))
  scored = records.Batch(
      action_BT=mask_BT, outcome_B=outcome_B, group=3,
      old_logps_BT=fill(), logps_BT=fill(), entropy_BT=fill(0.1, 2.0),
      sampler_logps_BT=fill(), prm_logps_BT=fill(), prm_old_logps_BT=fill(),
      prm_ref_logps_BT=fill(), ref_logps_BT=fill(), values_BT=fill(-1.0, 1.0),
      old_values_BT=fill(-1.0, 1.0), returns_BT=fill(-1.0, 1.0),
      advantages_BT=fill(-1.0, 1.0), mean_logps_BT=fill(), old_mean_logps_BT=fill(),
      old_logits_BT=fill(-1.0, 1.0), old_min_p_logps_BT=fill(),
      top_logps_BTK=np.stack([fill(-0.1, -0.05), fill()], axis=2),
      prm_beta_B=np.full(6, 0.5), kl_ratio_B=draw.normal(size=6), step_scores_BT=fill(0.1, 0.9),
      span_scores_BT=np.where(learn_BT, draw.uniform(size=learn_BT.shape), 0.0),
      reward_B=outcome_B * 3,
      step_rewards_BTZ=np.where(learn_BT, draw.normal(size=learn_BT.shape), 0.0)[:, :, None],
      step_ends_BT=draw.uniform(size=mask_BT.shape) < 0.5,
      turn_BT=np.array([[0, 0, 1, -1], [0, 0, -1, -1], [0, 0, 1, 2], [0, -1, -1, -1],
                        [-1] * 4, [0, 1, 1, 2]]),
      turn_ends_BT=np.array([[0, 1, 1, 0], [0, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0],
                             [0] * 4, [1, 0, 1, 1]], bool),
      turn_prefix_BT=np.array([[0, 0, 1, -1], [0, 0, -1, -1], [0, 0, 1, 2], [0, -1, -1, -1],
                               [-1] * 4, [0, 2, 2, 1]]),
      turn_rewards_BT=fill(-1.0, 1.0),
      scores_BE=np.where(learn_B[:, None], draw.uniform(size=(6, 2)), padding),
      score_spreads_BE=np.where(learn_B[:, None], [[.5, .25]] * 6, padding),
      items_BI=np.where(learn_B[:, None], np.array([[1., .5, 0]] * 3 + [[1., 0, 0]] * 3), padding),
      item_weight_BI=np.where(learn_B[:, None], [[2., -1, 0]] * 6, padding),
      item_veto_BI=np.array([[False, True, False]] * 6),
      answer_B=np.array([0, 1, 1, 2, 2, 2]),
      demo_B=np.array([False, False, True, False, True, True]),
      tokens_BT=draw.integers(0, 2, mask_BT.shape), pair_B=np.array([1, 1, 1, 0, 0, 0]),
      better_B=np.float32([1, 1, 1, 0, 0, 0]),
      noise_B=draw.uniform(size=6),
      answer_logps_BM=fill(), base_answer_logps_BM=fill(), noprompt_logps_BT=fill(),
      step_answer_logps_BJM=np.stack([fill(), fill(), fill()], axis=1),
      answer_mask_BM=learn_BT, answer_span_BT=learn_BT, greedy_B=np.repeat([0.5, 1.0], 3),
      old_sum_pi_squared_BT=fill(0.1, 0.5), rehearsal_BT=learn_BT,
      self_logps_B=fill()[:, 0], finish_B=np.array([1, 1, 1, 0, 1, 2]),
      prefix_scores_BT=fill(0.1, 0.9), teacher_logps_BT=fill(), hinted_logps_BT=fill(),
      all_logps_BTV=np.stack([fill(), fill()], axis=2),
      teacher_all_logps_BTV=np.stack([fill(), fill()], axis=2),
      old_all_logps_BTV=np.stack([fill(), fill()], axis=2),
      prm_all_logps_BTV=np.stack([fill(), fill()], axis=2),
      prm_ref_all_logps_BTV=np.stack([fill(), fill()], axis=2))
  return combine.with_rewards(scored, fill(-1.0, 1.0)) if stage == "advantages" else scored


def _call(name):
  stage, _, path = name.partition(".")
  return resolve.resolve(stage, dict(OPTIONS.get(name, {}), name=path))


@functools.cache
def _compile_gradients(names):
  """Function of a record and {name: arguments of the whole minibatch} that gives {name:
  (gradients, value)} of all these methods: one program costs less than one of each.

  XLA leaves out nothing, so that NaN is not hidden.
  """
  def gradients(record, statistics):
    def of(name):
      fn, stage = _call(name), name.split(".")[0]
      x = {f: getattr(record, f) for f in (*fn.fields, *["rewards_BT"] * (stage == "advantages"))
           if f in record.columns and f.endswith(("_BT", "_BM", "_BTK", "_BTV", "_B"))
           and f != "kl_ratio_B" and jnp.issubdtype(getattr(record, f).dtype, jnp.floating)}
      def total(x):
        batch = record.replace(**x)
        if stage == "advantages": batch = combine.with_rewards(batch, batch.rewards_BT)
        out = fn(batch, **statistics.get(name, {}))
        # A weight per entry of a group: a plain sum would cancel in centred advantages.
        return sum((jnp.sum(a * (1 + jnp.arange(a.size).reshape(a.shape) % 3))
                    for a in jax.tree.leaves(out) if jnp.issubdtype(a.dtype, jnp.floating)),
                   jnp.float32(0)), out
      return jax.grad(total, has_aux=True)(x)
    return {name: of(name) for name in names}
  return whole.jit(gradients)


def _compile_stage(stage):
  return _compile_gradients(tuple(name for name in FOUND if name.startswith(stage)))


@functools.cache
def _padded(stage, padding): return _compile_stage(stage)(_record(stage, padding), {})


# A token weight is always given the whole minibatch, see PolicyLoss.compute_whole.
CUT = [n for n in FOUND if n.startswith("losses") and "token_weight" not in n]


@functools.cache
def _cut(is_whole_given):
  """Gradients and values of the losses from two groups, one by one, of those with `whole`."""
  record = _record("losses", 0.0)
  wholes = jax.jit(lambda record: {
      name: {argument: fn(record) for argument, fn in _call(name).whole.items()}
      for name in CUT})(record)
  names = tuple(name for name in CUT if is_whole_given or wholes[name])
  rows = lambda part, tree: jax.tree.map(lambda a: np.asarray(a)[part], tree)
  parts_of = [_compile_gradients(names)(rows(part, record), rows(part, wholes) if is_whole_given
                                        else {}) for part in (slice(0, 3), slice(3, 6))]
  return jax.tree.map(lambda *a: sum(a) if a[0].ndim == 0 else np.concatenate(a), *parts_of)


@pytest.mark.parametrize("name", CUT)
def test_a_loss_of_groups_is_that_of_their_minibatch(name):
  """In value and gradient: what is not of a group is given as `whole`."""
  same = lambda got: jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7),
      got[name], _padded("losses", 0.0)[name])
  same(_cut(True))
  if name in _cut(False):
    with pytest.raises(AssertionError): same(_cut(False))


def _leaves(x): return [np.asarray(a, float) for a in jax.tree.leaves(x)]


@pytest.mark.parametrize("name", FOUND)
def test_padding_is_inert(name):
  """NaN outside valid tokens reaches neither value nor gradient."""
  stage = name.split(".")[0]
  (grads, got), (_, wanted) = (_padded(stage, x)[name] for x in (NAN, 0.0))
  for a, b in zip(_leaves(got), _leaves(wanted), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert np.isfinite(a).all()
  learn_BT = np.asarray(_record(stage, NAN).learn_BT)
  for a in _leaves(got):
    if a.shape == learn_BT.shape: np.testing.assert_array_equal(a[~learn_BT], 0)
  for key, grad in grads.items():
    if key.endswith("_B"): continue  # That of an unknown verdict is not padding.
    assert np.isfinite(grad).all(), key
    np.testing.assert_array_equal(np.asarray(grad)[~learn_BT], 0, err_msg=key)


@pytest.mark.parametrize("name", [n for n in FOUND if "diagnostics" not in n])
def test_source_is_cited(name):
  stage, module_name, fn_name = name.split(".")
  module = importlib.import_module(f"rlx.{stage}.{module_name}")
  doc = inspect.getdoc(getattr(module, fn_name)) or ""
  cited = (module.__doc__ or "") + doc
  assert re.search(r"arXiv:\d{4}\.\d{5}", cited), f"{name}: cite the paper."
  assert re.search(r"\n  .*=", doc) or "=" in doc, f"{name}: write the equation."
  assert "Source:" in doc, f"{name}: Source: missing."
  assert "Differs from" in " ".join(doc.split()), f"{name}: say how it differs."


@pytest.mark.parametrize("name", FOUND)
def test_a_method_has_type_hints_and_an_example(name):
  """The first are checked by mypy in CI, the second by tests/test_api.py."""
  stage, _, path = name.partition(".")
  fn = resolve.lookup(stage, path)
  assert set(fn.__annotations__) == {*inspect.signature(fn).parameters, "return"}
  assert re.search(rf"  Example:\n(.*\n)*    >>> .*{path}\(", fn.__doc__)


@functools.cache
def _estimates():
  """{estimator: advantages} of rewards, of rewards moved, moved by group, and doubled."""
  batch, rewards_B = _record("advantages", 0.0), np.array([.9, .1, .4, .3, .2, .7], np.float32)
  by_group_B = np.repeat(np.float32([.25, .5]), 3)
  return [{name: resolve.split_metrics(out)[0] for name, (_, out) in _compile_stage("advantages")(
      combine.with_rewards(batch, x_B), {}).items()}
          for x_B in (rewards_B, rewards_B + 0.25, rewards_B + by_group_B, 2 * rewards_B)]


@pytest.mark.parametrize("name", [n for n in FOUND if n.startswith("advantages")])
def test_an_estimator_declares_whether_it_centres_and_scales(name):
  declared = vars(resolve.lookup("advantages", name.partition(".")[2]))
  want, moved, moved_by_group, doubled = (x[name] for x in _estimates())
  same = lambda got: np.allclose(got, want, rtol=1e-3, atol=1e-5)
  if declared.get("centres"): assert same(moved)
  elif want.any(): assert not same(moved_by_group)
  if declared.get("scales"): assert same(doubled) and declared["centres"]


@pytest.mark.parametrize("name", [n for n in FOUND if n.startswith("rewards")])
def test_options_are_not_keys_of_the_term(name):
  """`coef` and its schedule are the term's: an option of such a name could not be set."""
  _, module, fn = name.split(".")
  fn = resolve.lookup("rewards", f"{module}.{fn}")
  assert not {"name", "coef", *schedule.OPTIONS} & set(inspect.signature(fn).parameters)


def _choices():
  """(method, option) of the options whose default is a text."""
  for name in FOUND:
    stage, _, path = name.partition(".")
    for p in inspect.signature(resolve.lookup(stage, path)).parameters.values():
      if p.kind is p.KEYWORD_ONLY and isinstance(p.default, str): yield name, p.name


@pytest.mark.parametrize("name, option", list(_choices()))
def test_an_unknown_choice_is_refused(name, option):
  """Before anything is computed if a config names it, and by the function itself."""
  stage, _, path = name.partition(".")
  options = OPTIONS.get(name, {}) | {option: "x"}
  if typing.get_origin(inspect.signature(resolve.lookup(stage, path)).parameters[
      option].annotation) is typing.Literal:
    with pytest.raises(ValueError, match=rf"^{stage}.{option}='x': one of \("):
      resolve.resolve(stage, options | {"name": path})
  read = resolve.resolve(stage, OPTIONS.get(name, {}) | {"name": path})
  record = _record(stage, 0.0)
  arrays = {field: getattr(record, field) for field in read.required}
  with pytest.raises(ValueError, match=f"^{option}='x': one of "):
    jax.eval_shape(functools.partial(resolve.lookup(stage, path), **options), **arrays)


def test_methods_are_found():
  # The search itself: one of each folder, and helpers left out.
  assert {"rewards.implicit.process", "advantages.group.rloo", "losses.prm.ce",
          "losses.policy.ppo_clip"} <= set(FOUND)
  assert not any("aggregate" in n or "combine" in n for n in FOUND)
