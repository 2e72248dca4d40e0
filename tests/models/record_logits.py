"""Records what transformers computes of tiny random checkpoints, with torch.

  python tests/models/record_logits.py [CASE ...]

Reads tests/models/fixtures/<case>/config.json and writes next to it model.safetensors as
transformers saves it, random in every parameter, and logits.npz: tokens and valid (left and
right padding), logits, sums of the gradients (see `sums`) and the error of transformers itself
in bfloat16. test_parity.py compares with the recording; docs/models.md has its table.

Every field of config.json that changes the forward pass differs from its class's default in a
case of the family; test_families.py checks it. Sequences have 40 positions, so that windows of
9 and contexts of 24 are short, and no text has the last token, which is padding: torch gives
its row no gradient.
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

def model(case):
  """A transformers model, random in every parameter."""
  import torch
  import transformers
  config = transformers.AutoConfig.from_pretrained(FIXTURES / case)
  torch.manual_seed(zlib.crc32(case.encode()))
  out = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
  for name, p in out.named_parameters():
    # Norms start at one and biases at zero, which would not test them.
    if "norm" in name or "bias" in name: p.data += 0.3 * torch.randn_like(p)
    # Probabilities of experts differ enough that rounding seldom changes which are the
    # largest, and little enough that all experts are used.
    if name.endswith("mlp.gate.weight"): p.data = 0.3 * torch.randn_like(p)
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
  # Saved as weights are, so that they have the same names, shapes and stacking.
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
  def signed(name, x):
    signs = np.random.RandomState(zlib.crc32(name.encode())).randint(0, 2, (SUMS, x.size))
    return (2.0 * signs - 1) @ x.ravel().astype(np.float64)
  return np.array([signed(name, tensors[name]) for name in sorted(tensors)])


def load(path, dtype="float32"):
  """The transformers model of a directory."""
  import transformers
  return transformers.AutoModelForCausalLM.from_pretrained(
      path, dtype=dtype, attn_implementation="eager").eval()


def errors(computed, exact, valid):
  """[largest, typical] difference of logits where valid.

  Typical is the median over tokens of the root mean square: a rounded router may pick
  another expert for some.
  """
  difference = (computed - exact)[valid]
  return np.array([np.abs(difference).max(), np.median(np.sqrt(np.mean(difference**2, axis=1)))])


def main(cases):
  tokens, valid = batch()
  for case in cases:
    path, reference = FIXTURES / case, model(case)
    reference.save_pretrained(path)
    (path / "generation_config.json").unlink(missing_ok=True)
    exact = logits(reference, tokens, valid)
    computed = gradients(reference, tokens, valid)
    rounded = logits(load(path, "bfloat16"), tokens, valid)
    np.savez_compressed(
        path / "logits.npz", tokens=tokens, valid=valid, logits=exact,
        gradient_names=sorted(computed), gradient_sums=sums(computed),
        bfloat16_error=errors(rounded, exact, valid))
    print(case, sum(f.stat().st_size for f in path.iterdir()) // 1024, "KB")


if __name__ == "__main__":
  main(sys.argv[1:] or sorted(path.parent.name for path in FIXTURES.glob("*/config.json")))
