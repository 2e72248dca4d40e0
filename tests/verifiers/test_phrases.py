"""The reasoning pattern reward, worked by hand."""
import pytest

from rlx.core import records
from rlx.verifiers import phrases

PROMPT = records.Prompt(id="a", text="", answer="")
PASSAGE = " ".join(f"w{i}" for i in range(20))


@pytest.mark.parametrize("text, score", [
    # Two different phrases of the 20; the same one twice counts once, in any case.
    ("First, I need to add. Thus 7, and thus 7.", 2 / 20),
    # Whole words: not "since" in "sincere", "thus" in "enthusiasm" or "wait" in "await".
    ("A sincere enthusiasm, await it.", 0), ("", 0),
    # All of them: at most 1. A made-up turn of the user costs 1.
    ("\n".join(phrases.PHRASES), 1), ("\n".join(phrases.PHRASES) + " user: Why?", 0),
    # 19 words that come again are no passage of 20; of 23 passages one is there twice.
    (f"thus, wait, since {PASSAGE} {PASSAGE[:-3]} thus", 3 / 20),
    (f"{PASSAGE} hence {PASSAGE} therefore", 2 / 20 - 1 / 23)])
def test_reasoning(text, score):
  assert phrases.reasoning(PROMPT, text) == pytest.approx(score)


def test_phrases_of_a_prompt():
  prompt = records.Prompt(id="a", text="", answer="", meta=dict(
      phrases=dict(known=["7 is", "7 is PRIME", "so"], full=4)))
  assert phrases.reasoning(prompt, "7 is prime, so") == 2 / 4  # The longer one alone, and "so".
