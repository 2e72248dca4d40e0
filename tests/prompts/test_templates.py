import types


from rlx.prompts import templates

PROMPT = types.SimpleNamespace(text="What is 2 + 3?")
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
