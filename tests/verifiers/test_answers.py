from rlx.verifiers import answers


def test_stated_takes_the_last_match():
  assert answers.find_stated_answers(["1#2 3#4", "none", "#"], r"#(.)") == ["4", None, None]


def test_ids_are_equal_where_answers_are():
  assert answers.ids(["7", None, "3", "7", None]).tolist() == [0, -1, 1, 0, -1]
