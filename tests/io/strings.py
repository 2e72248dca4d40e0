"""Data files of the tests, and strings to try tokenizers on."""
import json
import pathlib
import random
import unicodedata


def fixture(name):
  """The value of fixtures/NAME.json.

  A list ["@repeat", before, unit, times, after] stands for before + times * unit + after.
  """
  file = pathlib.Path(__file__).parent / "fixtures" / f"{name}.json"
  return _expanded(json.loads(file.read_text("utf-8")))


def _expanded(value):
  if isinstance(value, dict): return {key: _expanded(x) for key, x in value.items()}
  if not isinstance(value, list): return value
  value = [_expanded(x) for x in value]
  if value[:1] != ["@repeat"]: return value
  _, before, unit, times, after = value
  return before + times * unit + after


# {kind: strings}: words, numbers, scripts, emoji, marks, spaces, control, code, maths, punctuation,
# special tokens.
_KINDS = fixture("strings")
_LISTS = (*_KINDS.values(), (" ",), (" ",))  # Plain spaces more often than anything else.


def varied(n=2000):
  """`n` different strings, the same on every machine.

  They are each part alone, long runs, mixtures, and random characters.
  """
  rng = random.Random(0)
  def mixture(size):
    return "".join(rng.choice(rng.choice(_LISTS)) for _ in range(size))
  def character():  # One that Unicode 3.2 had: younger ones depend on a library's tables.
    while True:
      c = chr(rng.randrange(rng.choice((0x80, 0x250, 0x3000, 0x10000, 0x20000))))
      if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs"): return c
  out = ["", *(part for parts in _LISTS[:-2] for part in parts)]
  out += [part + extra for part in _KINDS["spaces"] for extra in ("a", " a", "1")]
  out += [unit * 300 for unit in ("a", "ab", "1", " ", "\n", "日", "!", "'", "é")]
  out = dict.fromkeys(out)  # Each once.
  while len(out) < n:
    kind = len(out) % 4
    if kind == 0: text = "".join(character() for _ in range(rng.randrange(1, 30)))
    elif kind == 1:
      text = " ".join(rng.choice(rng.choice(_LISTS[:3])) for _ in range(rng.randrange(1, 40)))
    else: text = mixture(rng.randrange(2, 24))
    out[text] = None
  return list(out)[:n]
