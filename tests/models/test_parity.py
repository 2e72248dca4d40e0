"""The decoder against transformers: against recordings, which are compared with the
installed transformers if torch is installed.

  python -m pytest tests/models/test_parity.py --record   # writes docs/models.md

record_logits.py writes the recordings and describes the cases.
"""
import dataclasses
import functools
import json
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.io import hf, tables
from rlx.models import decode, families, logps, transformer
from tests.models import record_logits

FIXTURES = record_logits.FIXTURES
CASES = sorted(path.parent.name for path in FIXTURES.glob("*/logits.npz"))
DOCS = pathlib.Path(__file__).parent.parent.parent / "docs" / "models.md"
PROMPT, COMPLETION = record_logits.PROMPT, record_logits.COMPLETION

# Largest difference of logits, and of sums of gradients with random signs (`sums` of
# record_logits.py). For bfloat16, the typical error of our logits over that of transformers'
# (`errors`), both with respect to its float32 logits.
BOUNDS = {"prefill": 1e-4, "decode": 1e-4, "gradients": 1e-4, "bfloat16": 1.25}


def _decoder_config(case):
  file = FIXTURES / case / "config.json"
  published = json.loads(file.read_text())
  return families.find_family(published["model_type"]).decoder_config(published, file)


@functools.cache
def recorded(case):
  return dict(np.load(FIXTURES / case / "logits.npz"))


def _compile(fn):
  """fn(params, config, ..) under jit, with the rotary frequencies as an argument, so that configs
  which differ in nothing else share a program."""
  @functools.partial(jax.jit, static_argnums=1)
  def compiled(params, config, by_rope, *args):
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(transformer, "frequencies", lambda _, rope: by_rope[rope])
      return fn(params, config, *args)

  return lambda params, config, *args: compiled(
      params, dataclasses.replace(config, context=None, length=0, rope_theta=1.0,
                                  rope_scaling=None, local_theta=config.local_theta and 1.0),
      {rope: transformer.frequencies(config, rope) for _, rope in config.kinds}, *args)


@_compile
def _prefill(params, config, tokens_BS, positions_BS, valid_BS):
  return transformer.logits(params, config, transformer.hidden(
      params, config, tokens_BS, positions_BS, valid_BS))


@_compile
def _decode(params, config, tokens_BS, prompt_len_B):
  """Logits of the completion columns, of tokens that are fed one by one."""
  weights = decode.lay_out(params, config)
  prompts = decode.prompts(params, config, tokens_BS[:, :PROMPT], prompt_len_B)
  columns_1T = jnp.arange(COMPLETION)[None]

  def step(suffix, t):
    live_BT = jnp.broadcast_to(columns_1T <= t, (len(tokens_BS), COMPLETION))
    logits_BV, suffix = decode.step(
        weights, config, tokens_BS[:, PROMPT - 1 + t], prompt_len_B - 1 + t, prompts,
        suffix, live_BT, t)
    return suffix, logits_BV

  suffix = decode.empty_suffix(config, len(tokens_BS), COMPLETION)
  return jax.lax.scan(step, suffix, jnp.arange(COMPLETION))[1].swapaxes(0, 1)


@_compile
def _train(params, config, tokens_BS, positions_BS, valid_BS):
  """The gradient of the completions' mean log-prob, and all logits."""
  def mean(params):
    hidden_BSD = transformer.hidden(params, config, tokens_BS, positions_BS, valid_BS)
    logps_BT, _ = logps.from_hidden(
        params, config, hidden_BSD[:, PROMPT - 1:-1], tokens_BS[:, PROMPT:],
        valid_BS[:, PROMPT:], with_entropy=False)
    return (jnp.sum(logps_BT) / jnp.sum(valid_BS[:, PROMPT:]),
            transformer.logits(params, config, hidden_BSD))
  return jax.grad(mean, has_aux=True)(params)


@functools.cache
def measured(case):
  """The differences between a case and its recording, as in BOUNDS."""
  path, reference = FIXTURES / case, recorded(case)
  tokens, valid = record_logits.batch()
  batch = tokens.astype(np.int32), record_logits.positions(valid), valid
  config, params = hf.load(path)
  config = dataclasses.replace(config, length=tokens.shape[1])
  completion, scored = np.s_[:, PROMPT - 1:-1], valid[:, PROMPT - 1:-1]
  gradient, prefill = jax.device_get(_train(params, config, *batch))
  decoded = np.asarray(_decode(params, config, batch[0], valid[:, :PROMPT].sum(axis=1)))
  bfloat16 = dataclasses.replace(config, dtype="bfloat16", param_dtype="bfloat16")
  rounded = np.asarray(_prefill(
      jax.tree.map(lambda x: x.astype("bfloat16"), params), bfloat16, *batch))
  model_type = json.loads((path / "config.json").read_text())["model_type"]
  gradients = {name: np.concatenate([*tensor.parts()]) for name, tensor in tables.write(
      gradient, families.find_family(model_type).tensors, config).items()}
  assert sorted(gradients) == list(reference["gradient_names"])
  rounding = record_logits.errors(rounded, reference["logits"], valid)
  return {
      "prefill": record_logits.errors(prefill, reference["logits"], valid)[0],
      "decode": record_logits.errors(decoded, reference["logits"][completion], scored)[0],
      "gradients": np.abs(record_logits.sums(gradients) - reference["gradient_sums"]).max(),
      "bfloat16": rounding[1] / reference["bfloat16_error"][1], "bfloat16, largest": rounding[0]}


@pytest.mark.parametrize("case", CASES)
def test_recorded(case):
  differences = measured(case)
  assert {k: differences[k] for k, x in BOUNDS.items() if not differences[k] <= x} == {}


@pytest.mark.parametrize("case", CASES)
def test_the_installed_transformers_computes_what_is_recorded(case):
  pytest.importorskip("torch")
  model, (tokens, valid) = record_logits.load(FIXTURES / case), record_logits.batch()
  reference = recorded(case)
  np.testing.assert_allclose(
      record_logits.logits(model, tokens, valid), reference["logits"], atol=1e-5)
  np.testing.assert_allclose(
      record_logits.sums(record_logits.gradients(model, tokens, valid)),
      reference["gradient_sums"], atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_written(case, tmp_path):
  """rlx reads what it writes bit for bit, and transformers computes the same logits of it."""
  config, params = hf.load(FIXTURES / case)
  hf.save(tmp_path, config, params)
  config_again, params_again = hf.load(tmp_path)
  assert config_again == config
  jax.tree.map(np.testing.assert_array_equal, params_again, params)
  pytest.importorskip("torch")
  tokens, valid = record_logits.batch()
  logits = record_logits.logits(record_logits.load(tmp_path), tokens, valid)
  error = record_logits.errors(logits, recorded(case)["logits"], valid)[0]
  assert error <= 1e-5  # A Phi-3 comes back as a Llama, its matrices cut differently.


# Sizes and numbers, which are no switches.
_NO_SWITCH = {"vocab_size", "d_model", "n_layers", "n_heads", "n_kv_heads", "head_dim",
              "d_ff", "context", "norm_eps", "rope_theta"}


def switches(config):
  """{field: value} of what differs from DecoderConfig's default."""
  return {f.name: getattr(config, f.name) for f in dataclasses.fields(config)
          if f.name not in _NO_SWITCH and getattr(config, f.name) != f.default}


def _first_cases():
  """[(case, field)]: one case of each switch, and of each kind of rotary scaling."""
  first = {}
  for case in CASES:
    config = _decoder_config(case)
    for field, value in switches(config).items():
      if field == "rope_dim" and config.rope_scaling: continue  # Which has its size.
      first.setdefault((field, value[0] if field == "rope_scaling" else None), (case, field))
  # Without these there would be other parameters.
  return [x for (field, _), x in first.items()
          if field not in ("tied_head", "norms", "n_experts", "experts_per_token")]


@pytest.mark.parametrize("case, field", _first_cases())
def test_each_switch_changes_the_logits(case, field):
  """So that parity fails without it."""
  tokens, valid = record_logits.batch()
  config, params = hf.load(FIXTURES / case)
  default = {f.name: f.default for f in dataclasses.fields(config)}[field]
  off = dataclasses.replace(config, length=tokens.shape[1], **{field: default})
  logits = _prefill(params, off, tokens.astype(np.int32), record_logits.positions(valid), valid)
  error = record_logits.errors(np.asarray(logits), recorded(case)["logits"], valid)[0]
  assert error > 100 * BOUNDS["prefill"]


def _shown(field, value):
  if value is True: return field
  if field == "rope_scaling": value = value[:1]
  if isinstance(value, tuple): return f"{field}={' '.join(map(str, value))}"
  return f"{field}={value:g}" if isinstance(value, float) else f"{field}={value}"


def _row(case):
  config = _decoder_config(case)
  model_type = json.loads((FIXTURES / case / "config.json").read_text())["model_type"]
  return [model_type, case, ", ".join(_shown(*x) for x in switches(config).items())]


def test_table(request):
  """docs/models.md has a row of each case; --record writes the differences."""
  ordered = sorted(CASES, key=lambda case: _row(case)[:2])
  before, table, after = re.fullmatch(
      r"(.*<!-- parity -->\n)(.*)(<!-- end -->.*)", DOCS.read_text(), re.DOTALL).groups()
  if request.config.getoption("record"):
    head = ["model_type", "case", "away from the defaults",
            *(f"{what} ≤ {bound:g}" for what, bound in BOUNDS.items()), "bfloat16, largest"]
    rows = [_row(case) + [f"{x:.2g}" for x in measured(case).values()] for case in ordered]
    table = "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))
    DOCS.write_text(before + table + after)
  written = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
  assert [row[:3] for row in written] == [_row(case) for case in ordered]
