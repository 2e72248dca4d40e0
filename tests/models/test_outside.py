"""Ids that the tokenizer does not have: never drawn, and without probability or gradient."""
import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.build import sft as build_sft
from rlx.core import rng
from rlx.io import hf, tokenizer, weights
from rlx.loops import rl
from rlx.models import logps, transformer
from rlx.rollouts import padding, sampler
from rlx.stages import host_state
from tests import tiny
from tests.models import test_logps

TOKENS, V, D = 20, 32, 16
CONFIG = transformer.DecoderConfig(vocab_size=V, d_model=D, n_layers=1, n_heads=2, n_kv_heads=1,
                                   head_dim=8, d_ff=16, tied_head=False)
OUTSIDE = {"end": ((TOKENS, V),), "holes": ((3, 5), (TOKENS, 21), (25, V))}


def config_of(outside): return dataclasses.replace(CONFIG, outside=OUTSIDE[outside])


def without(config):
  """The ids that there are."""
  return np.flatnonzero(~transformer.is_outside(config))


@pytest.fixture(scope="module")
def params():
  """Of a model whose ids outside of the tokenizer would have nearly all of the probability."""
  tree = tiny.draw_decoder(CONFIG)
  for ranges in OUTSIDE.values():
    for first, end in ranges:
      tree["head"]["w_DV"][:, first:end] = 60 * np.sign(
          np.random.default_rng(first).normal(size=(D, end - first)))
  return tree


@pytest.mark.parametrize("rule", [{}, dict(temperature=0.7, top_k=30), dict(top_k=31, top_p=0.999),
                                  dict(temperature=0.0)], ids=str)
@pytest.mark.parametrize("outside", OUTSIDE)
def test_none_is_drawn_and_trainer_and_sampler_agree(params, outside, rule):
  config, t = config_of(outside), 25
  tokens_PX, lengths_P = padding.pad_left([[5, 6], [7], [8, 9, 10], [11]], 4, 0)
  def draw(config):
    sample = sampler.make(config, group=100, max_tokens=t, chunk=t, eos_ids=(), pad_id=0, keeps=True,
                          **dict(temperature=1.0) | rule)
    return jax.device_get(sample(params, tokens_PX, lengths_P, np.arange(4, dtype=np.uint32),
                                 rng.key(0, "sample")))
  drawn = draw(config)
  assert drawn.completions_BT.size == 10_000 and drawn.completion_len_B.min() == t
  assert np.isin(drawn.completions_BT, without(config)).all()
  if not rule:
    assert np.isin(draw(CONFIG).completions_BT, without(config)).mean() < 0.5  # Otherwise most are.
  scored_BT, _ = logps.of_rollouts(params, config, drawn, among_kept=True,
                                   temperature=rule.get("temperature") or 1.0)
  np.testing.assert_allclose(drawn.sampler_logps_BT, scored_BT, atol=2e-4)
  p_BTV = jax.nn.softmax(logps.logits(params, config, drawn))[..., without(config)]
  np.testing.assert_allclose(np.sum(p_BTV, axis=-1), 1, atol=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.3, 100.0])
@pytest.mark.parametrize("outside", OUTSIDE)
def test_equals_the_model_without_them(params, outside, temperature):
  """Log-probs, entropy, statistics and gradients; rows of these ids have gradient 0."""
  config, ids = config_of(outside), without(config_of(outside))
  small = dataclasses.replace(config, vocab_size=len(ids), outside=())
  draw = np.random.default_rng(0)
  tokens_BS = draw.integers(0, len(ids), (3, 6)).astype(np.int32)
  weights_ = draw.normal(size=(8, 3, 4))
  def score(params, config, tokens_BS):
    positions_BS = jnp.broadcast_to(jnp.arange(6), (3, 6))
    out = logps.logps(params, config, tokens_BS, positions_BS, tokens_BS >= 0, completion_width=4,
                      temperature=temperature, chunk=4, statistics=test_logps.ALL)
    return sum(jnp.sum(w[..., None] * x.reshape(3, 4, -1)) for w, x in zip(weights_, out)), out
  (_, out), grads = jax.value_and_grad(score, has_aux=True)(params, config, ids[tokens_BS])
  small_params = dict(params, head=dict(w_DV=params["head"]["w_DV"][:, ids]), embed=dict(
      w_VD=params["embed"]["w_VD"][ids]))
  (_, expected), expected_grads = jax.value_and_grad(score, has_aux=True)(
      small_params, small, tokens_BS)
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-4), out, expected)
  gone = np.flatnonzero(transformer.is_outside(config))
  assert not np.any(grads["head"]["w_DV"][:, gone]) and not np.any(grads["embed"]["w_VD"][gone])
  grads["head"]["w_DV"], grads["embed"]["w_VD"] = (
      grads["head"]["w_DV"][:, ids], grads["embed"]["w_VD"][ids])
  scale = max(float(np.abs(x).max()) for x in jax.tree.leaves(expected_grads))
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5 * scale),
               grads, expected_grads)


def test_what_is_outside_follows_from_the_tokenizer():
  text = types.SimpleNamespace(vocabulary={"a": 0, "b": 1, "c": 4}, eos_ids=(6,))
  config = dataclasses.replace(CONFIG, vocab_size=9)
  assert weights.match_tokens(config, text, "m").outside == ((2, 4), (5, 6), (7, 9))
  config = dataclasses.replace(CONFIG, vocab_size=7)
  assert weights.match_tokens(config, text, "m").outside == ((2, 4), (5, 6))
  text.vocabulary = {str(i): i for i in range(7)}
  assert weights.match_tokens(config, text, "m") == config
  with pytest.raises(ValueError, match="m: the tokenizer has token 6, the embedding only rows 0"):
    weights.match_tokens(dataclasses.replace(config, vocab_size=6), text, "m")


def test_a_run_whose_models_pad_differently(tiny_files, tmp_path):
  """The policy, a PRM of another file with the same tokens, its reference, and `rlx sft`."""
  config, params, tokens = weights.load(tiny_files / "model")
  assert config.outside == ()
  for name, rows in (("policy", 24), ("prm", 32)):
    hf.save(tmp_path / name, dataclasses.replace(config, vocab_size=rows), params, tokens)
    file = tmp_path / name / "model.safetensors"
    wide, wide_params, _ = weights.load(tmp_path / name)
    wide_params["embed"]["w_VD"][len(tokens.vocabulary):] = 30  # Their sum is the logit.
    wide_params["embed"]["w_VD"][len(tokens.vocabulary)] = -30
    hf.save(tmp_path / name, wide, wide_params, tokens)
    assert file.exists() and wide.outside == ((20, rows),)
  c = tiny.config(tiny_files, model__path=str(tmp_path / "policy"), prm__path=str(tmp_path / "prm"),
                  steps=1)
  run = tiny.build_run(c)
  assert {name: m.outside for name, m in run.passes.models.items()} == dict(
      policy=((20, 24),), prm=((20, 32),), value=((20, 24),))
  state, *_, metrics = rl.iteration(run, run.init(), host_state.HostState(), 0, tiny.CLOCK)
  assert np.isfinite([float(x) for x in metrics.values()]).all()
  assert metrics["policy/loss"] is not None
  for model, n in ((state.policy, 24), (state.prm, 32)):
    before = 30 * np.where(np.arange(20, n) == 20, -1.0, 1.0)[:, None] * np.ones(16)
    np.testing.assert_allclose(model["embed"]["w_VD"][20:], before)
  run.close()
  c.sft.target, c.sft.batch = dict(name="jsonl.demonstration"), 8
  assert build_sft.build_sft(c).model.outside == ((20, 24),)
