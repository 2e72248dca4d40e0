"""Texts of 100 kB on which a parser with nested loops would take minutes."""
import time

UNITS = ("a", " ", "\n", "*", "[", "]", "<<", ">", "{", "[[", '{"a":', "(", '"', "'", ". ", "a.",
    "?!",
         "<tool_call>", "</tool_call>", "1", "9.", "-", "\\", "a b ", "x\n\n", "***", "\u2028",
         "é",
         "Section 1 ", "select ", "(select ", ",", "--", "/*", "p. ", "<think>", "100% ", "\ud800")
TEXTS = tuple(unit * (100_000 // len(unit)) + end for unit in UNITS for end in ("", "!", "}"))


def check_times(verify, *, seconds=20.0):
  """Calls a function text -> verdict or verdicts with all TEXTS; all are in [0, 1] and in time."""
  start = time.process_time()
  for text in TEXTS:
    verdict = verify(text)
    assert all(0 <= v <= 1 for v in (verdict if isinstance(verdict, list) else [verdict])), text[:9]
  assert time.process_time() - start < seconds
