"""Templates and tokenizers of untrusted files: limits of time and memory, one line for a fault."""
import logging
import json
import re

import pytest

from rlx.io import bounded, terminal, tokenizer
from tests.io import strings

CASES = strings.fixture("bounded")


@pytest.fixture(autouse=True)
def limit(monkeypatch):
  """Function that sets the seconds of a request; before it is called they are enough anywhere."""
  def limit(seconds): monkeypatch.setattr(bounded, "SECONDS", seconds)
  limit(100)
  return limit


TURNS = [dict(role="system", content=" be <b>rief</b> "), dict(role="user", content="7 + 5?"),
         dict(role="assistant", content="é12")]


def with_template(template):
  """A tokenizer with a chat template."""
  text = tokenizer.characters("ab")
  text.hf.chat_template = template
  return text


@pytest.mark.parametrize("template", CASES["renders"])
@pytest.mark.parametrize("opens", [True, False])
def test_the_text_is_that_of_transformers(template, opens):
  text = with_template(template)
  expected = text.hf.apply_chat_template(TURNS, tokenize=False, add_generation_prompt=opens)
  assert text.chat(TURNS, opens=opens) == expected and expected


@pytest.mark.parametrize("template, said", CASES["fails"], ids=lambda x: str(x)[:40])
def test_a_template_that_fails_is_refused(template, said):
  with pytest.raises(ValueError, match="The chat template refuses turns of .*: ") as e:
    with_template(template).chat(TURNS)
  assert re.search(said, str(e.value)) and "\n" not in str(e.value)


def test_a_template_that_was_killed_is_not_asked_again(limit, monkeypatch):
  limit(1)
  text = with_template(
      "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
  assert text.closing == ""  # Takes the second.
  monkeypatch.delattr(bounded, "subprocess")  # It starts no other process.
  with pytest.raises(ValueError, match="more than 1 s or 512 MB"): text.chat(TURNS)


def test_one_process_serves_a_tokenizer_and_ends_with_it():
  text = with_template("{{ messages[0].content }}")
  assert [text.chat([dict(role="user", content=str(i))]) for i in range(50)] == list(
      map(str, range(50)))
  process = text._renderer._process
  assert process.poll() is None
  del text
  assert process.poll() is not None


@pytest.mark.parametrize("change, said", CASES["tokenizers"].values(), ids=CASES["tokenizers"])
def test_a_tokenizer_that_grows_or_hangs_is_refused(limit, tmp_path, change, said):
  if "more than" in said: limit(1)
  tokenizer.characters("abcdeq@?0x").save(tmp_path)
  file = tmp_path / "tokenizer.json"
  file.write_text(json.dumps(json.loads(file.read_text()) | change))
  with pytest.raises(ValueError, match="tokenizer.json: the tokenizer cannot be read: ") as e:
    tokenizer.load(tmp_path)
  assert re.search(said, str(e.value)), e.value


@pytest.mark.parametrize("name, data, said", [
    ("special_tokens_map.json", b"{", "special_tokens_map.json: not JSON"),
    ("added_tokens.json", b"[]", "added_tokens.json: an object is needed"),
    ("added_tokens.json", b'{"x": 2147483648}', "added_tokens.json: 2147483648 is no token id"),
    ("vocab.json", b'{"x": "1"}', "vocab.json: '1' is no token id; they are 0 to 16777215"),
    ("chat_template.jinja", b"\xff", "chat_template.jinja: no text in UTF-8"),
    ("chat_template.jinja", b"a" * (2**20 + 1), "chat_template.jinja: 1048577 bytes; at most"),
    ("tokenizer_config.json", b'{"eos_token": 3}', "^[^:]*: the tokenizer cannot be read")])
def test_the_file_that_is_broken_is_named(tmp_path, name, data, said):
  tokenizer.characters("ab").save(tmp_path)
  (tmp_path / name).write_bytes(data)
  with pytest.raises(ValueError, match=said): tokenizer.load(tmp_path)


def test_a_text_that_is_too_long_is_not_encoded():
  with pytest.raises(ValueError, match="1048577 characters; at most 1048576"):
    tokenizer.characters("ab").encode("a" * (2**20 + 1))


@pytest.mark.parametrize("text, shown", [
    ("plain é 日本", "plain é 日本"), ("\x1b[2J\x07\r\n", r"\x1b[2J\x07\r\n"),
    ("\u202egnp", r"\u202egnp"), ("\ud800", r"\ud800"), ("a" * 3000, "a" * 2000 + "..."),
    ("\a" * 501, r"\x07" * 500 + "...")])
def test_a_line_for_a_terminal(text, shown):
  assert terminal.line(text) == shown


def test_a_log_of_a_library_is_one_line(caplog):
  logger = logging.getLogger("a library")
  logger.addFilter(terminal.make_one_line)
  logger.warning("unknown key %s", "a\n\x1b[2Jb")
  assert caplog.messages == [r"unknown key a\n\x1b[2Jb"]
