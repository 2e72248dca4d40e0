"""Tool calls: the reward of ToolRL by hand, and what is no call."""
import json

import pytest

from rlx.core import records
from rlx.prompts.datasets import tool_calls as made
from rlx.verifiers import errors, tool_calls
from tests.verifiers import long_texts


def call(name, **parameters): return dict(name=name, parameters=parameters)


def block(*calls): return "\n".join(["<tool_call>", *map(json.dumps, calls), "</tool_call>"])


TWO = (call("a", x=1, y="s"), call("b", z=[1, 2]))  # s_max = 1 + 2 + 3.
PROMPT = records.Prompt("t", "?", "", meta=dict(calls=list(TWO)))


@pytest.mark.parametrize("calls, s", [
    (TWO, 6), (TWO[::-1], 6), ((), 0),
    # Names: 1/2 of two, of three with a foreign one 1/3, and with a call twice 2/3.
    (TWO[:1], 1/2 + 1 + 2), ((TWO[0], call("c")), 1/3 + 1 + 2), ((*TWO, TWO[1]), 2/3 + 2 + 3),
    # Keys x, y against x, v: 1/3; one value is right.
    ((call("a", x=1, v="s"), TWO[1]), 1 + 1/3 + 1 + 1 + 1),
    # The better one of two calls counts, the other is left: names 1/3.
    ((call("a", x=2), call("a", x=1, y="s")), 1/3 + 1 + 2),
    # A true is no 1, a text no number; 1.0 is 1.
    ((call("a", x=True, y="s"), TWO[1]), 6 - 1), ((call("a", x="1", y="s"), TWO[1]), 6 - 1),
    ((call("a", x=1.0, y="s"), TWO[1]), 6), ((call("a", x=1, y="s"), call("b", z=[1, True])),
    6 - 1),
    ((call("a", x=1, y="s"), call("b", z={"0": 1})), 6 - 1)])
def test_matched(calls, s):
  text = block(*calls) if calls else "I cannot."
  assert tool_calls.matched(PROMPT, text) == pytest.approx(s / 6)
  assert tool_calls.exact(PROMPT, text) == (s == 6)
  parts = dict(zip(tool_calls.PARTS, tool_calls.items(PROMPT, text)))
  assert parts["format"] == bool(calls)
  assert parts["names"] + 2 * parts["keys"] + 3 * parts["values"] == pytest.approx(s)
  # ToolRL: 6 s / s_max - 3 and 1 for the form, from -3 to 4.
  reward = 7 * tool_calls.score(PROMPT, text) - 3
  assert reward == pytest.approx(6 * s / 6 - 3 + bool(calls))
  items = made._weigh(TWO)
  p = records.Prompt("t", "?", "", meta=dict(calls=list(TWO), items=items))
  mean = sum(i["weight"] * v for i, v in zip(items, tool_calls.items(p, text), strict=True))
  assert mean / sum(i["weight"] for i in items) == pytest.approx(tool_calls.score(PROMPT, text))


def test_a_call_without_a_common_key_is_left_for_another():
  p = records.Prompt("t", "?", "", meta=dict(calls=[call("a", x=1), call("a", y=2)]))
  assert tool_calls.matched(p, block(call("a", y=2))) == (1/2 + 1 + 1) / 5


@pytest.mark.parametrize("text", [
    block(*TWO).replace("\n", " \n\n"), block(TWO[0]) + "\n" + block(TWO[1]), json.dumps(TWO),
    f"<tool_call>{json.dumps(TWO, indent=2)}</tool_call>", f"<think>{{</think>{block(*TWO)}",
    block(*TWO).replace("parameters", "arguments"), f"So: {block(*TWO)}."])
def test_forms_of_calls(text):
  assert tool_calls.matched(PROMPT, text) == 1.0
  assert tool_calls.items(PROMPT, text)[0] == float("tool" in text and "So" not in text)
  by_answer = records.Prompt("t", "?", text)
  assert tool_calls.matched(by_answer, block(*TWO)) == 1.0


@pytest.mark.parametrize("text", [
    "", "{", "[" * 100_000, '{"name": "a"' + "}" * 9, block(*TWO)[:-3],
    block(*TWO) + "</tool_call>",
    "<tool_call>" + block(*TWO) + "</tool_call>", block(*TWO, 7), block(*TWO, call(3)),
    block(*TWO).replace("[1, 2]", "NaN"), block(*TWO).replace("[1, 2]", "-Infinity"),
    block(*TWO).replace('"x": 1', '"x": 2, "x": 1'), f"<think>{block(*TWO)}",
        "<tool_call></tool_call>",
    block(*TWO).replace('{"x"', '["x"'), json.dumps(TWO) + "so", "null", "7", '"a"'])
def test_what_cannot_be_read_is_no_call(text):
  assert tool_calls.matched(PROMPT, text) == 0.0 and tool_calls.items(PROMPT, text)[1:] == [0] * 3


def test_a_prompt_for_which_no_tool_is_right():
  p = records.Prompt("t", "?", "", meta=dict(calls=[]))
  assert tool_calls.matched(p, "It is noon.") == 1 and tool_calls.matched(p, block(*TWO)) == 0
  assert tool_calls.matched(p, "<tool_call>") == 0 and tool_calls.items(p, "So")[1:] == [1] * 3


def test_the_form_may_have_thoughts():
  p = records.Prompt("t", "?", "", meta=dict(calls=list(TWO), format=dict(tags=["think",
      "tool_call"])))
  assert tool_calls.items(p, f"<think>a</think>\n{block(*TWO)}")[0] == 1
  assert tool_calls.items(p, block(*TWO))[0] == 0 == tool_calls.items(
      p, f"<think>a</think>{block(TWO[0])}{block(TWO[1])}")[0]
  assert tool_calls.score(p, tool_calls.matched.state(p)) == 1


@pytest.mark.parametrize("prompt, message", [
    (records.Prompt("t", "?", "72"), "its reference is '72'; needed are calls"),
    (records.Prompt("t", "?", "", meta=dict(calls=[dict(name=3)])), "its reference is .* needed"),
    (records.Prompt("t", "?", "", meta=dict(calls=[], items=[dict(name="all")])),
    "'all'; there are")])
def test_references_that_are_no_calls_are_refused(prompt, message):
  with pytest.raises(errors.Unknown, match=message): tool_calls.matched(prompt, "")
  assert tool_calls.inspect([prompt, PROMPT])[1] == (None, None)


def test_time_is_linear_in_the_text():
  long_texts.check_times(lambda text: tool_calls.items(PROMPT, text))
  many = block(*[call("a", x=i) for i in range(4000)])
  assert tool_calls.matched(PROMPT, many) < 0.6


def test_options_of_made_requests():
  row = made.generate(0, 0, n_min=2, n_max=2, tools=("timer",))
  assert row["text"].startswith("Tools: timer(minutes). Request: Set a timer of ")
  assert row["answer"].count("timer") == 2
  with pytest.raises(ValueError, match="prompts.options.tools='timer'"): made.generate(
      0, 0, tools="timer")
