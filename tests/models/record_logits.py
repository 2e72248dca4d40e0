"""Records what transformers computes of tiny random checkpoints, with torch.

  python tests/models/record_logits.py [CASE ...]

Writes tests/models/fixtures/<case>/: config.json and model.safetensors as
transformers saves them, and logits.npz: tokens and valid (left and right padding),
logits, sums of the gradients (see `sums`) and how far transformers itself is off in
bfloat16. test_families.py compares with the recording; docs/models.md is its table.
"""
import copy
import pathlib
import sys
import tempfile
import zlib

import numpy as np

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
PROMPT, COMPLETION = 28, 12  # columns
SUMS = 8

# Every field that changes the forward pass is away from its class's default in a case
# of the family; test_families.py checks it. The last token is padding: torch gives its
# row no gradient, so that no text has it.
_SMALL = dict(vocab_size=61, hidden_size=32, intermediate_size=48,
              num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              initializer_range=0.2, rms_norm_eps=1e-2, max_position_embeddings=128,
              bos_token_id=59, eos_token_id=[57, 58], pad_token_id=60)
_LOCAL, _GLOBAL = "sliding_attention", "full_attention"


def _rope(kind="default", theta=1e5, **more):
  return dict(rope_type=kind, rope_theta=theta, **more)


def _longrope(**more):
  return dict(num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
              rope_parameters=_rope("longrope", partial_rotary_factor=0.75,
                                    short_factor=[1.0, 1.1, 1.2, 1.4, 1.7, 2.0],
                                    long_factor=[1.0, 1.5, 2.0, 3.0, 5.0, 8.0]), **more)


# case -> (model_type, fields). The test's sequences have 40 positions, so that windows
# of 9 and contexts of 24 are short.
CASES = {
    # Wavelengths of 8 dimensions are 6, 63, 628 and 6283: one is kept, one is
    # interpolated, two are divided by the factor.
    "llama": ("llama", dict(rope_parameters=_rope(
        "llama3", 1e4, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=96))),
    "llama_biases": ("llama", dict(
        attention_bias=True, mlp_bias=True, head_dim=16,
        rope_parameters=_rope("linear", factor=2.0))),
    "llama_yarn": ("llama", dict(head_dim=16, rope_parameters=_rope(
        "yarn", 1e4, factor=4.0, beta_fast=4.0, beta_slow=0.5, attention_factor=1.3,
        truncate=False, original_max_position_embeddings=32))),
    "llama_dynamic": ("llama", dict(
        max_position_embeddings=24, rope_parameters=_rope("dynamic", factor=4.0))),
    "llama_dynamic_short": ("llama", dict(
        rope_parameters=_rope("dynamic", factor=4.0))),
    "smollm2": ("llama", dict(tie_word_embeddings=True, rope_parameters=_rope())),
    "smollm3": ("smollm3", dict(no_rope_layers=[1, 0], rope_parameters=_rope(theta=5e6))),
    "smollm3_window": ("smollm3", dict(
        no_rope_layers=[0, 1], tie_word_embeddings=False, attention_bias=True,
        mlp_bias=True, use_sliding_window=True, sliding_window=9,
        rope_parameters=_rope())),
    "qwen2": ("qwen2", dict(tie_word_embeddings=True, rope_parameters=_rope(theta=1e6))),
    "qwen2_window": ("qwen2", dict(
        use_sliding_window=True, sliding_window=9, max_window_layers=1,
        rope_parameters=_rope())),
    "qwen3": ("qwen3", dict(
        head_dim=16, rope_parameters=_rope("linear", 1e6, factor=2.0))),
    "qwen3_yarn": ("qwen3", dict(
        head_dim=16, tie_word_embeddings=True, attention_bias=True,
        use_sliding_window=True, sliding_window=9, max_window_layers=1,
        rope_parameters=_rope("yarn", 1e6, factor=4.0,
                              original_max_position_embeddings=32768))),
    "mistral": ("mistral", dict(
        head_dim=16, sliding_window=None, rope_parameters=_rope(theta=1e4))),
    "mistral_window": ("mistral", dict(
        sliding_window=9, tie_word_embeddings=True, rope_parameters=_rope())),
    "gemma2": ("gemma2", dict(
        head_dim=16, query_pre_attn_scalar=24, sliding_window=9,
        attn_logit_softcapping=2.0, final_logit_softcapping=3.0,
        rope_parameters=_rope())),
    "gemma2_untied": ("gemma2", dict(
        head_dim=8, query_pre_attn_scalar=8, sliding_window=9, attention_bias=True,
        layer_types=[_GLOBAL, _LOCAL], tie_word_embeddings=False,
        attn_logit_softcapping=None, final_logit_softcapping=None,
        rope_parameters=_rope("linear", factor=2.0))),
    "gemma3": ("gemma3_text", dict(
        head_dim=16, query_pre_attn_scalar=24, sliding_window=9,
        layer_types=[_LOCAL, _GLOBAL],
        rope_parameters={_GLOBAL: _rope("linear", 1e6, factor=8.0),
                         _LOCAL: _rope(theta=1e3)})),
    "gemma3_untied": ("gemma3_text", dict(
        head_dim=8, query_pre_attn_scalar=8, sliding_window=9, attention_bias=True,
        layer_types=[_GLOBAL, _LOCAL], tie_word_embeddings=False,
        final_logit_softcapping=3.0,
        rope_parameters={_GLOBAL: _rope(theta=1e5), _LOCAL: _rope(theta=1e4)})),
    "olmo2": ("olmo2", dict(rope_parameters=_rope(theta=5e5))),
    "olmo2_tied": ("olmo2", dict(
        attention_bias=True, tie_word_embeddings=True,
        rope_parameters=_rope("linear", factor=2.0))),
    "phi3": ("phi3", dict(rope_parameters=_rope(theta=1e4))),
    "phi3_window": ("phi3", dict(
        sliding_window=9, rope_parameters=_rope(partial_rotary_factor=0.5))),
    "phi3_longrope": ("phi3", _longrope(original_max_position_embeddings=24)),
    "phi3_longrope_short": ("phi3", _longrope(original_max_position_embeddings=64)),
    "qwen3_moe": ("qwen3_moe", dict(
        head_dim=16, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=16,
        norm_topk_prob=True, rope_parameters=_rope(theta=1e6))),
    "qwen3_moe_tied": ("qwen3_moe", dict(
        head_dim=8, num_experts=4, num_experts_per_tok=3, moe_intermediate_size=24,
        norm_topk_prob=False, attention_bias=True, tie_word_embeddings=True,
        rope_parameters=_rope("linear", factor=2.0))),
    "mixtral": ("mixtral", dict(
        head_dim=16, num_local_experts=5, num_experts_per_tok=3, intermediate_size=16,
        sliding_window=None, rope_parameters=_rope(theta=1e4))),
    "mixtral_window": ("mixtral", dict(
        num_local_experts=4, num_experts_per_tok=2, intermediate_size=24,
        sliding_window=9, tie_word_embeddings=True, rope_parameters=_rope())),
}


def model(case):
  """A transformers model, random in every parameter."""
  import torch
  import transformers
  model_type, fields = CASES[case]
  config = transformers.AutoConfig.for_model(model_type, **{**_SMALL, **fields})
  torch.manual_seed(zlib.crc32(case.encode()))
  out = transformers.AutoModelForCausalLM.from_config(
      config, attn_implementation="eager").eval()
  for name, p in out.named_parameters():
    # Norms start at one and biases at zero: neither would be tested.
    if "norm" in name or "bias" in name:
      p.data += 0.3 * torch.randn_like(p)
    # Experts unlike enough that rounding seldom swaps them, like enough that all are used.
    if name.endswith("mlp.gate.weight"):
      p.data = 0.3 * torch.randn_like(p)
  return out


def batch():
  """(tokens [3, 40], valid): rows of 40, 33 and 21 tokens, padded on both sides."""
  tokens = np.random.default_rng(0).integers(0, 60, (3, PROMPT + COMPLETION))
  columns = np.arange(PROMPT + COMPLETION)[None, :]
  return tokens, ((columns >= np.array([0, 7, 15])[:, None])
                  & (columns < np.array([40, 40, 36])[:, None]))


def positions(valid):
  """Position of each token in its own sequence."""
  return np.maximum(np.cumsum(valid, axis=1) - 1, 0)


def _forward(model_, tokens, valid):
  import torch
  return model_(input_ids=torch.tensor(tokens), attention_mask=torch.tensor(valid),
                position_ids=torch.tensor(positions(valid))).logits.float()


def logits(model_, tokens, valid):
  """What transformers computes; 0 on padding."""
  import torch
  with torch.no_grad():
    return np.where(valid[:, :, None], _forward(model_, tokens, valid).numpy(), 0)


def gradients(model_, tokens, valid):
  """{name in a checkpoint: gradient of the completions' mean log-prob}."""
  import safetensors.numpy
  import torch
  model_.zero_grad()
  logps = torch.log_softmax(_forward(model_, tokens, valid)[:, PROMPT - 1:-1], dim=-1)
  chosen = logps.gather(2, torch.tensor(tokens[:, PROMPT:, None]))[..., 0]
  chosen[torch.tensor(valid[:, PROMPT:])].mean().backward()
  # Saved like weights, so that they are named, cut and stacked like them.
  out = copy.deepcopy(model_)
  for p, computed in zip(out.parameters(), model_.parameters(), strict=True):
    p.data = computed.grad.clone()
  with tempfile.TemporaryDirectory() as path:
    out.save_pretrained(path)
    return safetensors.numpy.load_file(pathlib.Path(path) / "model.safetensors")


def sums(tensors):
  """[tensors by name, SUMS]: sums over each tensor with random signs.

  The square of such a sum of differences is on average the sum of the differences'
  squares: where all sums agree so do the tensors, entry by entry.
  """
  def of(name, x):
    signs = np.random.RandomState(zlib.crc32(name.encode())).randint(0, 2, (SUMS, x.size))
    return (2.0 * signs - 1) @ x.ravel().astype(np.float64)
  return np.array([of(name, tensors[name]) for name in sorted(tensors)])


def load(path, dtype="float32"):
  """The transformers model of a directory."""
  import transformers
  return transformers.AutoModelForCausalLM.from_pretrained(
      path, dtype=dtype, attn_implementation="eager").eval()


def bfloat16_error(path, tokens, valid, exact):
  """`errors` of transformers' own bfloat16 logits."""
  return errors(logits(load(path, "bfloat16"), tokens, valid), exact, valid)


def errors(found, exact, valid):
  """[largest, typical] difference of logits where valid.

  Typical is the median over tokens of the root mean square: a rounded router may pick
  another expert for some.
  """
  difference = (found - exact)[valid]
  return np.array([np.abs(difference).max(),
                   np.median(np.sqrt(np.mean(difference**2, axis=1)))])


def main(cases):
  tokens, valid = batch()
  for case in cases:
    path, reference = FIXTURES / case, model(case)
    reference.save_pretrained(path)
    (path / "generation_config.json").unlink(missing_ok=True)
    exact = logits(reference, tokens, valid)
    found = gradients(reference, tokens, valid)
    np.savez_compressed(
        path / "logits.npz", tokens=tokens, valid=valid, logits=exact,
        gradient_names=sorted(found), gradient_sums=sums(found),
        bfloat16_error=bfloat16_error(path, tokens, valid, exact))
    print(case, sum(f.stat().st_size for f in path.iterdir()) // 1024, "KB")


if __name__ == "__main__":
  main(sys.argv[1:] or CASES)
