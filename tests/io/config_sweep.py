"""Random legal config.json files of every family, and how rlx compares with transformers on them.

`draw` makes a file: every field of transformers' config class has a legal value, in the
spelling of transformers 4 or 5 or of both at once, or is left out. Values that published
files have are drawn more often than others. `compare` runs both on it. tests/io/
test_config_sweep.py is the test, docs/models.md has the counts.
"""
import dataclasses
import json
import random

import jax
import numpy as np

from rlx.io import hf
from rlx.models import transformer
from rlx.rollouts import sampler
from tests.io import strings
from tests.models import record_logits

# Largest difference of logits and log-probs, as a part of the largest logit.
BOUND = 1e-4
_ABSENT = object()
_LOCAL, _GLOBAL = "sliding_attention", "full_attention"
# The sequences have 40 tokens.
_WINDOWS = [1, 9, 9, 30, 39, 40, 64, 128]
_LENGTHS = [16, 24, 32, 39, 40, 64, 96]
_GEMMA = ("gemma2", "gemma3_text")

# `inert` does not change the forward pass, in all classes. A row of `switches` has families, a key
# and its values; `chance` is that of the key, 0.03 that of one of the values in `rare`. `scaling`
# has the keys of each kind of rotary scaling: a value, values, or values and the chance of the key.
_TABLES = strings.fixture("config_sweep")
_INERT = _TABLES["inert"]
_MOST_HEADS = {"mistral": 8, "mixtral": 8, "gemma2": 4, "gemma3_text": 4, "smollm3": 4,
               "qwen3_moe": 4}  # Key and value heads of a file that leaves them out.


def draw(family, seed):
  """A config.json of `family`, not necessarily one that transformers takes."""
  r = random.Random(f"{family} {seed}")
  file = {"model_type": family, **_sizes(r, family)}
  file |= {key: _maybe(r, 0.2, values) for key, values in _INERT.items()}
  file |= _windows(r, family, file["num_hidden_layers"]) | _switches(r, family)
  # Its default is beyond a small vocabulary.
  if family in ("phi3", "smollm3"): file["pad_token_id"] = r.choice(_INERT["pad_token_id"])
  file |= _rope(r, family, file)
  return {key: value for key, value in file.items() if value is not _ABSENT}


def _maybe(r, chance, values):
  """One of `values`, or nothing."""
  return r.choice(values) if r.random() < chance else _ABSENT


def _rarely(r, usual, values, chance=0.03):
  """`usual` or left out, and now and then one of `values`."""
  return r.choice(values) if r.random() < chance else _maybe(r, 0.5, usual)


def _sizes(r, family):
  heads = r.choice([4, 4, 8])
  kv = [1, 2, heads]
  if family not in ("mistral", "mixtral", *_GEMMA, "qwen3_moe"): kv += [None]
  if heads == _MOST_HEADS.get(family) or family in ("llama", "olmo2", "phi3"): kv += [_ABSENT]
  size = [8, 16]
  if family in ("llama", "mistral"): size += [None]
  if family not in _GEMMA: size += [_ABSENT, _ABSENT]
  if family == "phi3": size = [_ABSENT]  # transformers does not pass the others on to all of it.
  # Others are refused or too large to be left out.
  return dict(
      vocab_size=r.choice([61, 64, 97]), hidden_size=r.choice([32, 64]),
      intermediate_size=r.choice([48, 24]), num_hidden_layers=r.choice([1, 2, 3, 5]),
      num_attention_heads=heads, num_key_value_heads=r.choice(kv), head_dim=r.choice(size),
      rms_norm_eps=r.choice([1e-2, 1e-5, 1e-6]), tie_word_embeddings=_maybe(r, 0.7, [True, False]),
      max_position_embeddings=_maybe(r, 0.9, _LENGTHS))


def _switches(r, family):
  """The fields of the table `switches` for a family."""
  out = {}
  for row in _TABLES["switches"]:
    if family not in row["families"].split(): continue
    is_rare = "rare" in row and r.random() < 0.03
    if not is_rare and "chance" in row and r.random() >= row["chance"]: continue
    values = row["rare"] if is_rare else row.get("values")
    out[row["key"]] = True if values is None else r.choice(values)
  is_new = out.pop("is_new", family == "mixtral")
  if "experts" in out: out["num_local_experts" if is_new else "num_experts"] = out.pop("experts")
  return out


def _windows(r, family, layers):
  out = {}
  kinds = lambda: [r.choice([_LOCAL, _GLOBAL]) for _ in range(layers)]
  if family in ("mistral", "mixtral", "phi3"):
    out["sliding_window"] = r.choice([_ABSENT, None, *_WINDOWS])
    if r.random() < (0.2 if family == "mistral" else 0.03): out["layer_types"] = kinds()
  if family in ("qwen2", "qwen3", "smollm3", "qwen3_moe"):
    uses = (_rarely(r, [False], [True]) if family == "qwen3_moe" else
            r.choice([_ABSENT, False, True, True]))
    width = r.choice([_ABSENT, None, *_WINDOWS])
    out |= dict(use_sliding_window=uses, sliding_window=width,
                max_window_layers=r.choice([_ABSENT, 0, 1, 2, 28]))
    has = uses is True and width is not None and (width is not _ABSENT or family != "smollm3")
    if family != "qwen3_moe":
      out["layer_types"] = _maybe(r, 0.4, [None, kinds() if has else [_GLOBAL] * layers])
  if family in _GEMMA:
    out |= dict(sliding_window=_maybe(r, 0.9, _WINDOWS),
                layer_types=_maybe(r, 0.6, [None, kinds(), kinds()]))
  if family == "gemma3_text":
    out |= dict(sliding_window_pattern=_maybe(r, 0.5, [1, 2, 3, 6]),
                _sliding_window_pattern=_maybe(r, 0.2, [6]))
  if family == "smollm3":
    rotates = [r.choice([0, 1]) for _ in range(layers + r.choice([0, 0, 2]))]
    out |= dict(no_rope_layers=_maybe(r, 0.5, [None, rotates, rotates]),
                no_rope_layer_interval=_maybe(r, 0.5, [1, 2, 3]))
  if family in ("llama", "olmo2", "qwen3_moe"):
    out["layer_types"] = _maybe(r, 0.1, [None, [_GLOBAL] * layers])
  return out


def _rope(r, family, file):
  """rope_theta, rope_scaling and rope_parameters, as transformers 4, 5 or both spell them."""
  theta = lambda: r.choice([_ABSENT, 1e4, 10000, 5e5, 1e6])
  style = r.choice(["old", "old", "new", "new", "both", "none"])
  out = {"rope_theta": theta()}
  part = r.choice([_ABSENT, 1.0, 0.5, 0.75]) if family == "phi3" else _rarely(r, [1.0], [0.5])
  if family == "phi3": out["original_max_position_embeddings"] = r.choice([_ABSENT, *_LENGTHS])
  if r.random() < 0.5: out["partial_rotary_factor"], part = part, _ABSENT
  given = out.get("partial_rotary_factor", part)
  scaling = lambda: _scaling(r, family, file, 1.0 if given is _ABSENT else given)
  if style in ("old", "both"): out["rope_scaling"] = scaling()
  if style in ("new", "both"):
    rope_config = lambda scaled: (scaled or {"rope_type": "default"}) | {
        key: value for key, value in (("rope_theta", theta()), ("partial_rotary_factor", part))
        if value is not _ABSENT}
    new = rope_config(scaling())
    if family == "gemma3_text":
      local = r.choice([None, {"rope_type": "default"}, {"rope_theta": 2e4}, rope_config(None)])
      if r.random() < 0.05: local = {r.choice(["type", "rope_type"]): "linear", "factor": 2.0}
      flat = r.random() < 0.05
      new = new if flat else {_GLOBAL: new, _LOCAL: local}
    out["rope_parameters"] = new
  if family == "gemma3_text": out["rope_local_base_freq"] = _maybe(r, 0.5, [1e4, 1e3])
  return out


def _scaling(r, family, file, part):
  """The values of a kind of rotary scaling; None: no scaling."""
  if r.random() < 0.3: return r.choice([None, None, {}, {"type": "default"}])
  kind = "longrope" if family == "phi3" else r.choice(list(_TABLES["scaling"]))
  head = file["head_dim"]
  if not isinstance(head, int): head = file["hidden_size"] // file["num_attention_heads"]
  if family.startswith("qwen3") and file["head_dim"] is _ABSENT: head = 128
  half = int(head * part) // 2
  original = r.choice([_ABSENT, *_LENGTHS])
  # transformers 5 does not read Gemma 3's type, which no published file has.
  old = 0.05 if family == "gemma3_text" else 0.5
  out = {"type" if r.random() < old else "rope_type": kind}
  if r.random() < 0.1: out = {"type": kind, "rope_type": kind}
  def value(drawn):
    if drawn == "original": return original
    if drawn == "factors": return [round(r.uniform(1, 4), 2) for _ in range(half)]
    if isinstance(drawn, dict): return _maybe(r, **drawn)
    return r.choice(drawn) if isinstance(drawn, list) else drawn
  out |= {key: value(drawn) for key, drawn in _TABLES["scaling"][kind].items()}
  if family == "phi3" and r.random() < 0.2: out["type"] = "su"; out.pop("rope_type", None)
  return {key: value for key, value in out.items() if value is not _ABSENT}


class Illegal(Exception):
  """transformers does not take the file."""


def checkpoint(file, path, seed):
  """Writes the file and random weights for it; returns the transformers model of the two."""
  import torch
  import transformers
  path.mkdir()
  said = json.dumps(file, indent=2) + "\n"
  (path / "config.json").write_text(said)
  torch.manual_seed(seed)
  try:
    config = transformers.AutoConfig.from_pretrained(path)
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager").float()
    for name, p in model.named_parameters():
      # Norms start at one and biases at zero: neither would be tested.
      if "norm" in name or "bias" in name: p.data += 0.3 * torch.randn_like(p)
      else: p.data = (0.3 if name.endswith("mlp.gate.weight") else 0.2) * torch.randn_like(p)
    model.save_pretrained(path)
    (path / "config.json").write_text(said)
    model = record_logits.load(path)
    logits(model, *record_logits.batch())
  except Exception as e:  # pylint: disable=broad-except
    raise Illegal(f"{type(e).__name__}: {e}") from e
  return model


def logits(model, tokens, valid):
  """What transformers computes of a batch, 0 on padding."""
  import torch
  with torch.no_grad():
    out = model(input_ids=torch.tensor(tokens), attention_mask=torch.tensor(valid),
                  position_ids=torch.tensor(record_logits.positions(valid)),
                  return_dict=True).logits.float().numpy()
  return np.where(valid[:, :, None], out, 0)


def compare(file, path, model):
  """{what: by how much rlx differs} of what is beyond BOUND, or why rlx refuses the file.

    logits    of whole sequences, longer than windows and original lengths
    decode    of greedy completions: log-probs, and what the chosen token's logit lacks
    saved     logits of transformers on what rlx writes with the file's config.json
    config    keys of that config.json that are not as they were
    as_rlx    logits of transformers on what rlx writes with a config.json of its own
  """
  try:
    config, params = hf.load(path)
  except ValueError as e:
    return {}, str(e).removeprefix(f"{path / 'config.json'}: ")
  tokens, valid = record_logits.batch()
  config = dataclasses.replace(config, length=tokens.shape[1])
  exact = logits(model, tokens, valid)
  size = np.abs(exact).max()
  far = lambda x, y: float(np.nan_to_num(np.abs(x - y).max() / size, nan=np.inf))

  @jax.jit
  def forward(params, *batch):
    return transformer.logits(params, config, transformer.hidden(params, config, *batch))

  ours = np.asarray(forward(params, tokens.astype(np.int32), record_logits.positions(valid), valid))
  out = {"logits": far(np.where(valid[:, :, None], ours, 0), exact),
         "decode": _decoded(config, params, model, far)}
  hf.save(path / "saved", config, params, hf=file)
  said = json.loads((path / "saved" / "config.json").read_text())
  dtypes = {"dtype", "torch_dtype"}
  changed = {key for key in {*said, *file} - dtypes
             if said.get(key, _ABSENT) != file.get(key, _ABSENT)}
  out["saved"] = far(logits(record_logits.load(path / "saved"), tokens, valid), exact)
  hf.save(path / "as_rlx", config, params)
  out["as_rlx"] = far(logits(record_logits.load(path / "as_rlx"), tokens, valid), exact)
  out = {what: x for what, x in out.items() if not x <= BOUND}
  return out | ({"config": sorted(changed)} if changed else {}), None


def _decoded(config, params, model, far):
  tokens, valid = record_logits.batch()
  prompt, completion = record_logits.PROMPT, record_logits.COMPLETION
  tokens, valid = tokens[:, :prompt].astype(np.int32), valid[:, :prompt]
  sample = sampler.make(config, group=1, max_tokens=completion, chunk=completion, temperature=0.0)
  rollouts = jax.device_get(sample(params, tokens, valid.sum(axis=1).astype(np.int32),
                                   np.arange(len(tokens), dtype=np.uint32), jax.random.key(0)))
  filled = np.pad(valid, ((0, 0), (0, completion)), constant_values=True)
  exact_BTV = logits(model, rollouts.tokens_BS.astype(np.int64), filled)[:, prompt - 1:-1]
  chosen_BT = np.take_along_axis(exact_BTV, rollouts.tokens_BS[:, prompt:, None], axis=2)[..., 0]
  most_BT = exact_BTV.max(axis=2)
  logps_BT = chosen_BT - most_BT - np.log(np.exp(exact_BTV - most_BT[..., None]).sum(axis=2))
  return max(far(rollouts.sampler_logps_BT, logps_BT), far(chosen_BT, most_BT))
