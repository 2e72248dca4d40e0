from rlx.core import records
from rlx.verifiers import answers


def test_stated_takes_the_last_match_behind_the_thoughts():
  cases = [("1#2 3#4", {}, "4"), ("none", {}, None), ("#", {}, None), ("<think>#1", {}, None),
           ("<think>#1</think>#2", {}, "2"), ("#1", dict(begun="<think>"), None),
           ("#1</think>#2", dict(begun="<think>"), "2"), ("[T]#1[/T]#2[T]", {}, None)]
  texts, metas, stated = zip(*cases)
  prompts = [records.Prompt("p", "", meta=meta) for meta in metas]
  marks = ("<think> </think>", "[T] [/T]")
  assert answers.find_stated_answers(texts, prompts, "#(.)", marks) == [*stated]


def test_ids_are_equal_where_answers_are():
  assert answers.ids(["7", None, "3", "7", None]).tolist() == [0, -1, 1, 0, -1]
