"""The sampler against brute force: full forward passes, one token at a time."""
import contextlib
import dataclasses
import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records
from rlx.core import rng
from rlx.models import logps
from rlx.models import transformer
from rlx.rollouts import decoding
from rlx.rollouts import padding
from rlx.rollouts import sampler
from rlx.rollouts import slots

CONFIG = transformer.DecoderConfig(
    vocab_size=11, d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=4,
    d_ff=32, rope_theta=1e4, norm_eps=1e-5, qkv_bias=True, qk_norm=None,
    tied_head=True, rope_scaling=None)
PROMPTS = [[3, 4, 5, 6], [7, 2], [1, 1, 8]]
IDS = np.array([rng.number(n) for n in "abc"], np.uint32)
EOS, PAD = 9, 0
T = 12


@pytest.fixture(scope="module")
def params():
  # Larger than at initialisation, so that distributions are far from uniform.
  params = transformer.init(CONFIG, jax.random.key(0))
  return jax.tree.map(lambda x: x * 8 if x.ndim > 2 else x * 2, params)


@functools.cache
def _sampler(config=CONFIG, **options):
  return sampler.make(config, **dict(
      group=2, max_tokens=T, chunk=T, eos_ids=(EOS,), pad_id=PAD) | options)


def _sample(params, prompts=(0, 1, 2), width=5, key=None, **options):
  sample = _sampler(**options)
  tokens, lengths = padding.left_pad([PROMPTS[i] for i in prompts], width, PAD)
  return jax.device_get(sample(params, tokens, lengths, IDS[list(prompts)],
                               rng.key(0, "sample", 3) if key is None else key))


@functools.cache
def _next_by_forward(**rule):
  """Jitted: the next token of one row from a full forward pass, no cache."""
  @jax.jit
  def next_token(params, tokens_1S, n, key):
    columns = jnp.arange(tokens_1S.shape[1])[None, :]
    hidden = transformer.hidden(params, CONFIG, tokens_1S, columns, columns < n)
    logits = transformer.logits(params, CONFIG, hidden)[:, n - 1]
    return decoding.next_token(logits, decoding.uniform(key)[None], **rule)
  return next_token


def _by_hand(params, prompt, prompt_id, g, rule):
  key = jax.random.fold_in(jax.random.fold_in(
      rng.key(0, "sample", 3), prompt_id), g)
  next_token = _next_by_forward(**dict(temperature=1.0) | rule)
  row, n, logps_ = np.zeros((1, 20), np.int32), len(prompt), []
  row[0, :n] = prompt
  for t in range(T):
    token, logp = next_token(params, row, n + t, jax.random.fold_in(key, t))
    row[0, n + t] = token[0]
    logps_.append(float(logp[0]))
    if token[0] == EOS: break
  return row[0, n:n + len(logps_)].tolist(), logps_


@pytest.mark.parametrize("rule", [dict(), dict(temperature=0.7, top_k=3),
                                  dict(temperature=0.0)], ids=str)
def test_equals_full_forward_passes(params, rule):
  out = _sample(params, **rule)
  completions = padding.completions(out)
  for p in range(3):
    for g in range(2):
      ids, found = _by_hand(params, PROMPTS[p], IDS[p], g, rule)
      b = 2 * p + g
      assert completions[b] == ids
      np.testing.assert_allclose(out.sampler_logps_BT[b, :len(ids)], found, atol=1e-5)
      assert records.FINISH[out.finish_B[b]] == ("eos" if ids[-1] == EOS else "length")
  assert len({tuple(c) for c in completions}) > 2  # Not all alike.


@pytest.mark.parametrize("change", [
    dict(chunk=3), dict(chunk=5), dict(width=9), dict(slots=2, chunk=4),
    dict(slots=4, chunk=2), dict(moves=False, chunk=4)], ids=str)
def test_results_do_not_depend_on_how_rows_are_decoded(params, change):
  base, other = _sample(params), _sample(params, **change)
  assert padding.completions(base) == padding.completions(other)
  np.testing.assert_allclose(base.sampler_logps_BT, other.sampler_logps_BT, atol=1e-5)
  np.testing.assert_array_equal(base.finish_B, other.finish_B)


def test_rows_that_ended_leave_and_waiting_ones_start(params, monkeypatch):
  """With 6 rows on 4 slots, and what the plans were."""
  plans, following = [], slots.following
  monkeypatch.setattr(slots, "following", lambda plan, *args: plans.append(
      following(plan, *args)) or plans[-1])
  sample = sampler.make(CONFIG, group=2, max_tokens=T, chunk=2, slots=4,
                        eos_ids=(EOS, 2, 5), pad_id=PAD)
  tokens, lengths = padding.left_pad(PROMPTS, 5, PAD)
  out = sample(params, tokens, lengths, IDS, rng.key(0, "sample", 3))
  plans = plans[:-1]
  assert any((p.row_W >= 4).any() and p.count_W[p.row_W < 4].max(initial=0) > 0
             for p in plans)  # A row started while another was under way.
  started = np.concatenate([p.row_W[(p.source_W < 0) & p.live_W] for p in plans])
  assert sorted(started) == [4, 5]
  assert (np.asarray(out.finish_B) >= 0).all()


def test_one_look_per_chunk_and_nothing_else_crosses(params):
  looks = []
  sample = _sampler(chunk=3, eos_ids=(), fetch=lambda x: looks.append(x) or jax.device_get(x))
  tokens, lengths = padding.left_pad(PROMPTS, 5, PAD)
  args = jax.device_put((params, tokens, lengths, IDS, rng.key(0, "sample", 3)))
  sample(*args)
  looks.clear()
  with jax.transfer_guard("disallow"):
    jax.block_until_ready(sample(*args))
  assert [[a.shape for a in x] for x in looks] == [[(6,), ()]] * (T // 3)


def test_a_chunk_is_over_when_half_of_its_rows_have_ended(params, monkeypatch):
  """A chunk almost as long as all, and yet rows move together, with the same result."""
  plans, following = [], slots.following
  monkeypatch.setattr(slots, "following", lambda plan, running_W, steps, moves: plans.append(
      (plan, running_W.sum(), int(steps))) or following(plan, running_W, steps, moves))
  ends = dict(eos_ids=(EOS, 2, 5))
  out = _sample(params, chunk=T - 1, **ends)
  (first, left, steps), *later = plans
  assert len(first.row_W) == 6 and 0 < left <= 3 and steps < T
  assert [len(p.row_W) for p, _, _ in later] == [3]
  np.testing.assert_array_equal(out.completion_len_B, _sample(params, **ends).completion_len_B)
  assert (out.completion_len_B == steps).any() and (out.completion_len_B > steps).sum() == left
  plans.clear()
  _sample(params, chunk=T, **ends)
  assert len(plans) == 1  # The only chunk goes on to the end.


def test_nothing_is_compiled_after_warm_up(params):
  sample = _sampler(chunk=2, slots=4)
  tokens, lengths = padding.left_pad(PROMPTS, 5, PAD)
  args = jax.device_put((params, tokens, lengths, IDS))
  def compiled():
    sample(*args, rng.key(1, "sample", 0))
    with jax.log_compiles(), _counting("Compiling") as found:
      for _ in range(2): sample(*args, rng.key(1, "sample", 0))
    return found
  assert compiled() == []


@contextlib.contextmanager
def _counting(word):
  """Log lines of jax that contain `word`."""
  found = []
  handler = logging.Handler()
  handler.emit = lambda record: (
      found.append(record.getMessage()) if word in record.getMessage() else None)
  logger = logging.getLogger("jax")
  logger.addHandler(handler)
  try: yield found
  finally: logger.removeHandler(handler)


def test_results_do_not_depend_on_who_shares_the_batch(params):
  together, alone = _sample(params), _sample(params, prompts=(1,))
  assert padding.completions(together)[2:4] == padding.completions(alone)
  turned = _sample(params, prompts=(2, 1, 0))
  assert padding.completions(together)[:2] == padding.completions(turned)[4:]


def test_another_step_draws_differently(params):
  other = _sample(params, key=rng.key(0, "sample", 4))
  assert padding.completions(_sample(params)) != padding.completions(other)


def test_padding_is_clean_and_masks_come_from_lengths(params):
  out = _sample(params, pad_id=EOS, eos_ids=(EOS, 2))  # pad = EOS must do no harm.
  for ids, row, logps_T in zip(padding.completions(out), out.completions_BT,
                               out.sampler_logps_BT):
    assert all(i not in (EOS, 2) for i in ids[:-1])
    assert (row[len(ids):] == EOS).all() and (logps_T[len(ids):] == 0).all()
  np.testing.assert_array_equal(out.action_BT.sum(1), out.completion_len_B)


@pytest.mark.parametrize("change, options", [
    ({}, {}), (dict(windows=(3, 0), no_rope=(1,)), dict(slots=4, chunk=2))],
                         ids=["plain", "windows_and_moving_rows"])
def test_sampler_and_trainer_agree(params, change, options):
  config = dataclasses.replace(CONFIG, **change)
  out = _sample(params, config=config, **options)
  assert out.completion_len_B.max() > 5  # Longer than the window.
  found_BT, _ = jax.jit(functools.partial(logps.logps, completion_width=T), static_argnums=1)(
      params, config, out.tokens_BS, out.positions_BS, out.valid_BS)
  np.testing.assert_allclose(out.sampler_logps_BT, found_BT, atol=1e-5)


def test_a_temperature_for_each_position(params):
  """Log-probs are of logits / temperature / factor_t, at any chunk size."""
  def sample(factor_T, **options):
    tokens, lengths = padding.left_pad(PROMPTS, 5, PAD)
    return jax.device_get(_sampler(**options)(
        params, tokens, lengths, IDS, rng.key(0, "sample", 3), factor_T))
  factor_T = np.linspace(2.0, 0.3, T, dtype=np.float32)
  out = sample(factor_T, temperature=1.5)
  np.testing.assert_array_equal(
      out.tokens_BS, sample(factor_T, temperature=1.5, slots=2, chunk=6).tokens_BS)
  hidden_BSD = jax.jit(transformer.hidden, static_argnums=1)(
      params, CONFIG, out.tokens_BS, out.positions_BS, out.valid_BS)
  logits_BTV = transformer.logits(params, CONFIG, hidden_BSD)[:, 4:-1]
  logps_BTV = jax.nn.log_softmax(logits_BTV / (1.5 * factor_T[None, :, None]), axis=-1)
  found_BT = np.take_along_axis(logps_BTV, out.completions_BT[..., None], -1)[..., 0]
  np.testing.assert_allclose(out.sampler_logps_BT, np.where(out.action_BT, found_BT, 0),
                             atol=1e-4)


def test_stop_strings_end_at_the_token_that_completes_them(params):
  decode = lambda ids: "".join("ab"[i % 2] for i in ids)
  base = padding.completions(_sample(params, eos_ids=()))
  out = _sample(params, eos_ids=(), stops=("abb", "baa"), decode=decode)
  stopped = 0
  for ids, ref, finish in zip(padding.completions(out), base, out.finish_B):
    assert ids == ref[:len(ids)]
    text = decode(ids)
    if records.FINISH[finish] == "stop":
      stopped += 1
      assert text.endswith(("abb", "baa"))
      assert not any(s in text[:-1] for s in ("abb", "baa"))
    else:
      assert len(ids) == T and "abb" not in text and "baa" not in text
  assert stopped >= 3


def test_stop_strings_need_a_decoder():
  with pytest.raises(ValueError, match="decodes"):
    sampler.make(CONFIG, group=1, max_tokens=4, chunk=4, stops=("x",))
