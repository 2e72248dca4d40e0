import pytest

from rlx.core import records
from rlx.prompts import templates

PROMPT = records.Prompt(id="a", text="What is 2 + 3?")
USER = dict(role="user", content="What is 2 + 3?")


def test_plain():
  assert templates.plain(PROMPT) == "What is 2 + 3?"


def test_chat():
  assert templates.chat(PROMPT) == [USER]
  assert templates.chat(PROMPT, system="Be brief.") == [
      dict(role="system", content="Be brief."), USER]
  assert templates.chat(PROMPT, system="")[0] == dict(role="system", content="")
  assert templates.chat(PROMPT, system="s", examples=[("1 + 1?", "2")]) == [
      dict(role="system", content="s"), dict(role="user", content="1 + 1?"),
      dict(role="assistant", content="2"), USER]


def test_boxed():
  (turn,) = templates.boxed(PROMPT)
  assert turn == dict(role="user", content="What is 2 + 3?\n\n" + templates.BOXED)
  assert r"\boxed{}" in templates.BOXED
  turns = templates.boxed(PROMPT, system="s", instruction="Box it.")
  assert [t["content"] for t in turns] == ["s", "What is 2 + 3?\n\nBox it."]


def test_few_shot():
  examples = [("1 + 1?", "2"), ("2 + 2?", "4")]
  assert templates.few_shot(PROMPT, examples=examples) == (
      "Question: 1 + 1?\nAnswer: 2\n\nQuestion: 2 + 2?\nAnswer: 4\n\n"
      "Question: What is 2 + 3?\nAnswer:")
  assert templates.few_shot(PROMPT, examples=[], question="Q ", answer="A") == (
      "Q What is 2 + 3?\nA")


def test_a_chat_stays_one():
  """Its own system turn precedes the template's; the prompt itself is not changed."""
  chat = records.Prompt(id="a", text=USER["content"], messages=(
      dict(role="system", content="s"), USER, dict(role="assistant", content="So")))
  system, user, start = chat.messages
  assert templates.plain(chat) == templates.chat(chat, system="x") == [system, user, start]
  boxed = dict(role="user", content=USER["content"] + "\n\nBox it.")
  assert templates.boxed(chat, instruction="Box it.") == [system, boxed, start]
  assert templates.plain(chat) == [system, user, start]
  with pytest.raises(ValueError, match="few_shot': its question is a list of messages"):
    templates.few_shot(chat, examples=[])
