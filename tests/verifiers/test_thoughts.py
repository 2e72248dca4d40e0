"""Where the thoughts of a completion end, and what the prompt has already opened."""
import dataclasses

import pytest

from rlx.build import keys, prompts as build_prompts
from rlx.configs import base
from rlx.core import records, resolve
from rlx.verifiers import math_answer, pool, thoughts
from tests.verifiers import test_hostile
from tests.io.test_chat import bare  # pylint: disable=unused-import

PROMPT = records.Prompt("p", "1+1?", "2", "math_answer.final")
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n")
OPENS, CLOSED = "<think>\n{% endif %}", "<think>\n\n</think>\n\n{% endif %}"


def prompt(**meta): return dataclasses.replace(PROMPT, meta=meta)


@pytest.mark.parametrize("text, behind, meta", [
    ("5", "5", {}), ("<think>3</think>5", "5", {}), ("3</think>5", "5", {}), ("<think>5", "", {}),
    ("<think>3</think>4<think>5", "", {}), ("<think>3</think>4</think>5", "5", {}),
    ("<reasoning>3</reasoning>5", "5", {}), ("<THINK>3</Think>5", "5", {}),
    ("<thinks>5", "<thinks>5", {}), ("&lt;think&gt;5", "&lt;think&gt;5", {}),
    # In quotes it is text; an apostrophe is no quote.
    ("if a == '<think>': 5", "if a == '<think>': 5", {}), ("`</think>`5", "`</think>`5", {}),
    ('r"<think>.*?</think>"5', 'r"<think>.*?</think>"5', {}), ("`3</think>5", "5", {}),
    ("it's</think>don't 5", "don't 5", {}), ("'I said</think>so' 5", "so' 5", {}),
    ("5", "", dict(begun="<|assistant|><think>")), ("3</think>5", "5", dict(begun="<think>")),
    ("5", "5", dict(begun="</think>")), ("5", "", dict(begun="<think>Let me see: ")),
    ("[THINK]3[/THINK]5", "5", dict(thoughts=("[THINK] [/THINK]",))),
    ("<think>5", "<think>5", dict(thoughts=("[THINK] [/THINK]",))),
    ("<think>5", "<think>5", dict(thoughts=()))])
def test_behind(text, behind, meta):
  assert thoughts.behind(text, prompt(**meta)) == behind
  assert thoughts.behind(text * 2, prompt(**meta))[-1:] == behind[-1:]


@pytest.mark.parametrize("path", sorted(
    set(test_hostile.GOOD) - {"judge.chat", "format.tags", "phrases.reasoning", "labels.score",
                              "coverage.path", "coverage.facts", "judging.gold",
                              "judging.is_critiqued", *test_hostile.OF_STEPS}))
def test_what_stands_in_a_thought_earns_nothing(path):
  """A right completion behind, within and before thoughts, of every verifier on disk.

  format.tags, whose blocks may be thoughts, has its cases in verdicts.toml; phrases.reasoning
  and coverage.path and .facts score the reasoning itself, labels.score has parts that do, and
  judging.gold and .is_critiqued read no completion.
  """
  if not test_hostile.works(path): pytest.skip("needs reasoning_gym or a sandbox")
  p, right = test_hostile.prompt(path), test_hostile.GOOD[path][1].rpartition("</think>")[2]
  p.meta.update(test_hostile.options(20.0))
  fn, begun = resolve.lookup("verifiers", path), dict(begun="<think>")
  for text, verdict, meta in [
      (right, 1.0, {}), ("<think>I see</think>" + right, 1.0, {}), ("<think>" + right, 0.0, {}),
      (right + "<think>", 0.0, {}), (f"<think>{right}</think>", 0.0, {}), (right, 0.0, begun),
      ("I see</think>" + right, 1.0, begun), (right + "</think>", 0.0, begun)]:
    assert fn(dataclasses.replace(p, meta=p.meta | meta), text) == verdict, (text, meta)


def test_marks_of_a_config():
  c = base.get_config()
  c.verifier.thoughts = ("[THINK] [/THINK]",)
  keys.check(c)
  for wrong in (("<think>",), ("a a",), ("a b c",), (3,)):
    with c.ignore_type(): c.verifier.thoughts = wrong
    with pytest.raises(ValueError, match="verifier.thoughts"): keys.check(c)


@pytest.mark.parametrize("template, messages, begun, verdict", [
    (OPENS, (), "<think>", 0.0), (CLOSED, (), "</think>", 1.0), ("{% endif %}", (), None, 1.0),
    (CLOSED, ("<think>I",), "<think>I", 0.0),
    (OPENS, ("<think>I</think>",), "<think>I</think>", 1.0)])
def test_a_thought_that_the_prompt_opens(bare, tmp_path, template, messages, begun, verdict):
  """The verdict of "#### 2" by a pool that a run builds, of prompts as a run loads them."""
  bare.hf.chat_template = TEMPLATE + template
  path = tmp_path / "rows.jsonl"
  path.write_text('{"question": "1+1?", "answer": "2", "split": "train"}\n')
  c = base.get_config()
  c.prompts.source, c.prompts.dataset, c.prompts.template = str(path), "jsonl", dict(name="chat")
  c.prompts.max_tokens = 256
  texts = build_prompts.texts_of(c, bare)
  (p,), _ = build_prompts.load_prompts(c, texts, ["train"])
  if messages:
    p = dataclasses.replace(p, messages=(dict(role="user", content="1+1?"), *(
        dict(role="assistant", content=m) for m in messages)))
    assert texts.start_of_reply(p) == begun
    p.meta["begun"] = begun
  if begun: assert p.meta["begun"] == begun
  assert math_answer.final(p, "#### 2") == verdict
  assert math_answer.final(p, "I add.</think>\n#### 2") == 1.0
  workers = pool.Pool(1, timeout_s=30.0, options=dict(thoughts=tuple(c.verifier.thoughts)))
  try:
    assert workers.verify([p, p], ["#### 2", "</think>#### 2"]).tolist() == [verdict, 1.0]
  finally:
    workers.close()
