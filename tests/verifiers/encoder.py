"""A BERT encoder of a few hundred random weights, in a folder as those of Hugging Face."""
import functools
import json
import pathlib
import tempfile

import numpy as np
import safetensors.numpy
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz0123456789.,?",
         *(f"##{x}" for x in "abcdefghijklmnopqrstuvwxyz0123456789"), "happy", "person")
CONFIG = dict(model_type="bert", hidden_act="gelu", hidden_size=8, num_hidden_layers=2,
              num_attention_heads=2, intermediate_size=12, layer_norm_eps=0.1,
              max_position_embeddings=16, type_vocab_size=2, vocab_size=len(WORDS))


@functools.cache
def _make():
  kept = tempfile.TemporaryDirectory()  # Removed when the process ends.
  write(pathlib.Path(kept.name))
  return kept


def folder():
  """The folder of the encoder, which is written once a process."""
  return _make().name


def write(path, **changes):
  """Writes an encoder to a folder; `changes` are of its config.json."""
  t = tokenizers.Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)},
                                            unk_token="[UNK]"))
  t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
  t.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
  t.enable_truncation(4)
  t.save(str(path / "tokenizer.json"))
  (path / "config.json").write_text(json.dumps(CONFIG | changes))
  d, f = CONFIG["hidden_size"], CONFIG["intermediate_size"]
  shapes = {f"embeddings.{name}_embeddings": (size, d) for name, size in (
      ("word", len(WORDS)), ("position", 16), ("token_type", 2))} | {"embeddings.LayerNorm": (d,)}
  for n in range(CONFIG["num_hidden_layers"]):
    layer = {f"attention.self.{x}": (d, d) for x in ("query", "key", "value")} | {
        "attention.output.dense": (d, d), "attention.output.LayerNorm": (d,),
        "intermediate.dense": (f, d), "output.dense": (d, f), "output.LayerNorm": (d,)}
    shapes |= {f"encoder.layer.{n}.{name}": shape for name, shape in layer.items()}
  rng, weights = np.random.default_rng(0), {}
  for name, shape in shapes.items():
    weights[f"{name}.weight"] = rng.normal(size=shape).astype(np.float32)
    if "embeddings." not in name or "Norm" in name:
      weights[f"{name}.bias"] = rng.normal(size=shape[:1]).astype(np.float32)
  safetensors.numpy.save_file(weights, path / "model.safetensors")
