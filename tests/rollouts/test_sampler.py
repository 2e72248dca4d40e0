"""The sampler against brute force: full forward passes, one token at a time."""
import dataclasses
import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records, rng
from rlx.models import logps, transformer
from rlx.rollouts import decoding, padding, sampler, slots

# One layer has a window, which ends within prompts and completions.
CONFIG = transformer.DecoderConfig(
    vocab_size=11, d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=4,
    d_ff=32, rope_theta=1e4, norm_eps=1e-5, qkv_bias=True, windows=(3, 0), no_rope=(1,))
PROMPTS = [[3, 4, 5, 6], [7, 2], [1, 1, 8]]
IDS = np.array([rng.number(n) for n in "abc"], np.uint32)
EOS, PAD = 6, 0
T = 12
# Six rows take turns in four slots.
MOVING = dict(slots=4, chunk=5)


@pytest.fixture(scope="module")
def params():
  # Larger than at initialisation, so that distributions are far from uniform.
  params = transformer.init(CONFIG, jax.random.key(0))
  return jax.tree.map(lambda x: x * 8 if x.ndim > 2 else x * 2, params)


@functools.cache
def _sampler(**options):
  """(sampler, list of what it fetches)"""
  fetched = []
  return sampler.make(CONFIG, **dict(
      group=2, max_tokens=T, chunk=T, eos_ids=(EOS,), pad_id=PAD,
      fetch=lambda x: fetched.append(x) or jax.device_get(x)) | options), fetched


def _arguments(params, width=5, step=3):
  tokens, lengths = padding.pad_left(PROMPTS, width, PAD)
  return params, tokens, lengths, IDS, rng.key(0, "sample", step)


def _sample(params, *more, width=5, step=3, **options):
  sample, _ = _sampler(**options)
  return jax.device_get(sample(*_arguments(params, width, step), *more))


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
  key = jax.random.fold_in(jax.random.fold_in(rng.key(0, "sample", 3), prompt_id), g)
  next_token = _next_by_forward(**dict(temperature=1.0) | rule)
  row, n, logps_ = np.zeros((1, 20), np.int32), len(prompt), []
  row[0, :n] = prompt
  for t in range(T):
    token, logp = next_token(params, row, n + t, jax.random.fold_in(key, t))
    row[0, n + t] = token[0]
    logps_.append(float(logp[0]))
    if token[0] == EOS: break
  return row[0, n:n + len(logps_)].tolist(), logps_


def compare_with_trainer(params, out, temperature=1.0, top_k=0):
  """The trainer's log-probs are among the tokens that the sampler kept."""
  trained_BT, _ = jax.jit(lambda params, rows: logps.of_rollouts(
      params, CONFIG, rows, temperature=temperature, among_kept=True))(params, out.rows())
  np.testing.assert_allclose(np.where(out.action_BT, trained_BT, 0), out.sampler_logps_BT,
                             atol=2e-5)
  if not top_k: assert out.kept_BTK is None
  else: assert ((out.kept_BTK >= 0).sum(-1) == top_k * out.action_BT).all()


@pytest.mark.parametrize("rule, options, more", [
    ({}, {}, ()), (dict(temperature=0.7, top_k=3), MOVING, (np.ones(T, np.float32),))],
                         ids=["plain", "moving"])
def test_equals_full_forward_passes(params, rule, options, more):
  out = _sample(params, *more, **rule, **options, keeps=True)
  compare_with_trainer(params, out, **rule)
  completions = padding.completions(out)
  for p in range(3):
    for g in range(2):
      ids, logps_ = _by_hand(params, PROMPTS[p], IDS[p], g, rule)
      b = 2 * p + g
      assert completions[b] == ids
      np.testing.assert_allclose(out.sampler_logps_BT[b, :len(ids)], logps_, atol=1e-5)
      assert records.FINISH[out.finish_B[b]] == ("eos" if ids[-1] == EOS else "length")
  assert len({tuple(c) for c in completions}) > 2  # Not all alike.


@pytest.mark.parametrize("change", [dict(chunk=T - 1, width=9), MOVING], ids=str)
def test_results_do_not_depend_on_how_rows_are_decoded(params, change):
  base, other = _sample(params), _sample(params, **change)
  assert padding.completions(base) == padding.completions(other)
  np.testing.assert_allclose(base.sampler_logps_BT, other.sampler_logps_BT, atol=1e-5)
  np.testing.assert_array_equal(base.finish_B, other.finish_B)


@pytest.fixture
def plans(monkeypatch):
  """[(plan, rows that are running after its chunk, steps of the chunk)] of what is sampled."""
  made, following = [], slots.plan_next
  def recorded(plans, running_W, steps_O):
    made.append((plans[0], running_W.sum(), int(steps_O[0])))
    return following(plans, running_W, steps_O)
  monkeypatch.setattr(slots, "plan_next", recorded)
  return made


def test_rows_that_ended_leave_and_waiting_ones_start(params, plans):
  out = _sample(params, **MOVING)
  plans = [plan for plan, *_ in plans]
  assert any((p.row_W >= 4).any() and p.count_W[p.row_W < 4].max(initial=0) > 0
             for p in plans)  # A row started while another was under way.
  started = np.concatenate([p.row_W[(p.source_W < 0) & p.live_W] for p in plans[1:]])
  assert sorted(started) == [4, 5]
  assert (out.finish_B >= 0).all()


def test_a_chunk_is_over_when_half_of_its_rows_have_ended(params, plans):
  """A chunk almost as long as all, and yet rows move together."""
  out = _sample(params, chunk=T - 1, width=9)
  (first, left, steps), *later = plans
  assert len(first.row_W) == 6 and 0 < left <= 3 and steps < T
  assert [len(p.row_W) for p, _, _ in later] == [3]
  assert (out.completion_len_B == steps).any() and (out.completion_len_B > steps).sum() == left
  plans.clear()
  _sample(params)
  assert len(plans) == 1  # The only chunk goes on to the end.


def test_each_chunk_is_one_transfer_and_nothing_is_compiled_after_warm_up(params, plans):
  sample, fetched = _sampler(**MOVING)
  arguments = jax.device_put(_arguments(params))
  sample(*arguments)
  compiled, handler = [], logging.Handler()
  handler.emit = lambda record: compiled.append(record.getMessage())
  for x in (fetched, plans): x.clear()
  logging.getLogger("jax").addHandler(handler)
  try:
    with jax.transfer_guard("disallow"), jax.log_compiles():
      jax.block_until_ready(sample(*arguments))
  finally:
    logging.getLogger("jax").removeHandler(handler)
  assert [message for message in compiled if "Compiling" in message] == []
  assert [[a.shape for a in x] for x in fetched] == [[plan.row_W.shape, (1,)] for plan, *_ in plans]


def test_padding_is_clean_and_masks_come_from_lengths(params):
  out = _sample(params, pad_id=EOS, eos_ids=(EOS, 2))  # pad = EOS must do no harm.
  for ids, row, logps_T in zip(padding.completions(out), out.completions_BT, out.sampler_logps_BT):
    assert all(i not in (EOS, 2) for i in ids[:-1])
    assert (row[len(ids):] == EOS).all() and (logps_T[len(ids):] == 0).all()
  np.testing.assert_array_equal(out.action_BT.sum(1), out.completion_len_B)


def test_a_temperature_for_each_position(params):
  """Log-probs are of logits / temperature / factor_t, also where rows move."""
  factor_T = np.linspace(2.0, 0.3, T, dtype=np.float32)
  out = _sample(params, factor_T, temperature=0.7, top_k=3, **MOVING)
  logits_BSV = jax.jit(lambda p, *inputs: transformer.logits(
      p, CONFIG, transformer.hidden(p, CONFIG, *inputs)))(
          params, out.tokens_BS, out.positions_BS, out.valid_BS)
  logits_BTV = np.asarray(logits_BSV)[:, 4:-1] / (0.7 * factor_T[None, :, None])
  kept_BTV = logits_BTV >= np.sort(logits_BTV, axis=-1)[..., -3:-2]
  logps_BTV = logits_BTV - np.log((np.exp(logits_BTV) * kept_BTV).sum(axis=-1, keepdims=True))
  logps_BT = np.take_along_axis(logps_BTV, out.completions_BT[..., None], -1)[..., 0]
  np.testing.assert_allclose(out.sampler_logps_BT, np.where(out.action_BT, logps_BT, 0), atol=1e-4)


def test_stop_strings_end_at_the_token_that_completes_them(params):
  decode = lambda ids: "".join("ab"[i % 2] for i in ids)
  base, out = _sample(params), _sample(params, stops=("abb", "baa"), decode=decode)
  stopped = 0
  for ids, ref, finish in zip(padding.completions(out), padding.completions(base), out.finish_B):
    assert ids == ref[:len(ids)]
    text = decode(ids)
    if records.FINISH[finish] == "stop":
      stopped += 1
      assert text.endswith(("abb", "baa"))
      assert not any(s in text[:-1] for s in ("abb", "baa"))
    else:
      assert len(ids) == len(ref) and "abb" not in text and "baa" not in text
  assert 3 <= stopped < 6


def test_accelerators_have_few_widths():
  """4,096 tokens in chunks of 64; on CPUs each chunk has a width of its own."""
  def find_widths(platform, max_tokens, chunk):
    options = sampler._options(dataclasses.replace(CONFIG, platform=platform), group=1, chunk=chunk,
                               max_tokens=max_tokens, eos_ids=(), pad_id=0)
    widths = [sampler._find_width(options, n) for n in range(max_tokens)]
    assert all(n <= w < n + chunk if platform == "cpu" else n <= w < 2 * n + chunk
               for n, w in enumerate(widths))
    return sorted(set(widths))
  assert find_widths("gpu", 4096, 64) == [0, 64, 128, 256, 512, 1024, 2048, 4096]
  assert find_widths("cpu", 4096, 64) == [*range(0, 4097, 64)]
  assert find_widths("tpu", 12, 5) == find_widths("cpu", 12, 5) == [0, 5, 10, 15]


def test_widths_that_double_draw_the_same(params, monkeypatch):
  """Rows that end early move, also to widths that are larger than all columns before."""
  widths, move = set(), sampler._move
  def spy(*args, width, **more):
    widths.add(width)
    return move(*args, width=width, **more)
  expected = _sample(params)
  monkeypatch.setattr(sampler, "_move", spy)
  sample = sampler.make(dataclasses.replace(CONFIG, platform="gpu"), group=2, max_tokens=T, chunk=2,
                        eos_ids=(EOS,), pad_id=PAD)
  out = jax.device_get(sample(*_arguments(params)))
  assert widths == {0, 2, 4, 8, T}
  np.testing.assert_array_equal(out.tokens_BS, expected.tokens_BS)
  np.testing.assert_allclose(out.sampler_logps_BT, expected.sampler_logps_BT, atol=1e-5)
