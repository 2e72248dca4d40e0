import pytest

from rlx.evals import rewordings


@pytest.mark.parametrize("text, listed, spaced, marks", [
    ("It is 4. Why?", "- **It** is 4.\n- **Why?**", "It is 4 . Why ?", 0),
    ("one\n\ntwo: 3.5, 4", "- **one**\n- **two:** 3.5, 4", "one\n\ntwo : 3.5 , 4", 0),
    ("", "", "", 0), ("## A\n1. **b** `c`\n* d", None, None, 7)])
def test_texts_in_other_forms(text, listed, spaced, marks):
  assert rewordings.count_marks(text) == marks
  if listed is None: return
  assert rewordings.make_list(text) == listed and rewordings.space_punctuation(text) == spaced
  assert rewordings.quote(text) == f'"{text}"' and rewordings.repeat(text).count(text or "\n") >= 2
  if listed: assert rewordings.count_marks(listed) == 3 * len(listed.splitlines())
