"""Records reference logits of tiny random checkpoints, with torch.

  python tests/models/record_logits.py

Writes tests/models/fixtures/<family>/: config.json and model.safetensors as
transformers saves them, and logits.npz with the tokens, the mask and what
transformers computes. test_families.py compares with the recording.
"""
import pathlib

import numpy as np

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
_SMALL = dict(vocab_size=61, hidden_size=32, intermediate_size=48,
              num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              initializer_range=0.2)


def models():
  """{family: transformers model}, random in every parameter."""
  import torch
  import transformers
  # Wavelengths of 8 dimensions are 6, 63, 628 and 6283: one is kept, one is
  # interpolated, two are divided by the factor.
  llama3 = dict(rope_type="llama3", rope_theta=1e4, factor=8.0, low_freq_factor=1.0,
                high_freq_factor=4.0, original_max_position_embeddings=96)
  configs = {
      "llama": transformers.LlamaConfig(
          **_SMALL, rope_parameters=llama3, tie_word_embeddings=False),
      "smollm2": transformers.LlamaConfig(
          **_SMALL, tie_word_embeddings=True, rms_norm_eps=1e-5,
          rope_parameters=dict(rope_type="default", rope_theta=1e5)),
      "qwen2": transformers.Qwen2Config(
          **_SMALL, tie_word_embeddings=True,
          rope_parameters=dict(rope_type="default", rope_theta=1e6)),
      "qwen3": transformers.Qwen3Config(
          **_SMALL, head_dim=16, tie_word_embeddings=False,
          rope_parameters=dict(rope_type="linear", rope_theta=1e6, factor=2.0)),
      "mistral": transformers.MistralConfig(
          **_SMALL, head_dim=16, tie_word_embeddings=False, sliding_window=None,
          rope_parameters=dict(rope_type="default", rope_theta=1e4)),
      "phi3": transformers.Phi3Config(
          **_SMALL, tie_word_embeddings=False, pad_token_id=None, bos_token_id=1,
          eos_token_id=2, rope_parameters=dict(rope_type="default", rope_theta=1e4))}
  torch.manual_seed(0)
  out = {}
  for family, config in configs.items():
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for name, p in model.named_parameters():
      # Norms start at one and biases at zero: neither would be tested.
      if "norm" in name or "bias" in name:
        p.data += 0.3 * torch.randn_like(p)
    out[family] = model
  return out


def logits(model, tokens, valid):
  """What transformers computes for left-padded tokens."""
  import torch
  positions = np.maximum(np.cumsum(valid, axis=1) - 1, 0)
  with torch.no_grad():
    return model(input_ids=torch.tensor(tokens), attention_mask=torch.tensor(valid),
                 position_ids=torch.tensor(positions)).logits.float().numpy()


def batch():
  """(tokens [3, 40], valid): rows of 40, 33 and 25 tokens, padded on the left."""
  tokens = np.random.default_rng(0).integers(0, 61, (3, 40))
  valid = np.arange(40)[None, :] >= np.array([0, 7, 15])[:, None]
  return tokens, valid


if __name__ == "__main__":
  for name, reference in models().items():
    reference.save_pretrained(FIXTURES / name)
    (FIXTURES / name / "generation_config.json").unlink(missing_ok=True)
    np.savez_compressed(FIXTURES / name / "logits.npz", tokens=batch()[0],
                        valid=batch()[1], logits=logits(reference, *batch()))
