"""Short writing tasks with instructions that a rule checks (verifiers/instructions.py).

  question    Write about the river. Use at least 12 words. Do not use any commas.
  completion  The river is near the garden. The river is old. The river is quiet.

Synthetic, `prompts.source=generated`: a row has the arguments of `generate`. The instructions are
those of IFEval (Zhou et al. 2023, arXiv:2311.07911) that suit a text of a few sentences.
`prompt.answer` is one that follows all of them.
"""
import functools

from rlx.core import ranges
from rlx.prompts import generated

TOPICS = ("river", "market", "engine", "garden", "window", "letter", "winter", "bridge", "forest",
          "captain", "museum", "island", "station", "kitchen", "teacher", "mountain")
RELATIONS = "less than", "at least"
WORDS = ("old", "quiet", "bright", "small", "famous", "green", "warm", "strange", "busy", "calm")
# What each kind says of its arguments.
KINDS = {
    "keywords:existence": "Include the words {keywords}.",
    "keywords:forbidden_words": "Do not use the words {forbidden_words}.",
    "keywords:frequency": "Use the word {keyword} {relation} {frequency} times.",
    "keywords:letter_frequency": "Use the letter {letter} {let_relation} {let_frequency} times.",
    "length_constraints:number_words": "Use {relation} {num_words} words.",
    "length_constraints:number_sentences": "Write {relation} {num_sentences} sentences.",
    "detectable_content:number_placeholders":
        "Have at least {num_placeholders} placeholder(s) in square brackets, such as [name].",
    "detectable_content:postscript": "Add a postscript, which starts with {postscript_marker}",
    "detectable_format:number_highlighted_sections":
        "Highlight at least {num_highlights} part(s) with asterisks, as in *this*.",
    "detectable_format:number_bullet_lists":
        "Have exactly {num_bullets} bullet point(s), lines that start with an asterisk.",
    "detectable_format:title": "Start with a title in double angular brackets, as in <<title>>.",
    "startend:end_checker": "End with the phrase: {end_phrase}",
    "startend:quotation": "Put the whole answer in double quotation marks.",
    "change_case:english_capital": "Write in capital letters only.",
    "change_case:english_lowercase": "Write in lowercase letters only.",
    "punctuation:no_comma": "Do not use any commas."}
# Of each at most one is asked for, so that there is a text that follows all.
_EXCLUDE = ({"change_case:english_capital", "change_case:english_lowercase"},
            {"keywords:frequency", "keywords:letter_frequency", "length_constraints:number_words",
             "length_constraints:number_sentences"})


def generate(seed, index, n_min=1, n_max=3, kinds=tuple(KINDS), verifier="instructions.followed",
             split="train"):
  """Draws the question of (seed, index): {"text", "answer", "verifier", "meta"}.

  Args:
    n_min, n_max: least and largest number of instructions, which is uniform; all of other kinds.
    kinds: which of KINDS, each equally likely.
    verifier: one of verifiers/instructions.py.
    split: "train" or "test".
  """
  rng = generated.start("instructions", seed, index, split)
  if not kinds or set(kinds) - set(KINDS):
    raise ValueError(f"prompts.options.kinds={kinds!r}: one or more of {', '.join(KINDS)}.")
  most = len(kinds) - sum(max(0, len(one_of & set(kinds)) - 1) for one_of in _EXCLUDE)
  ranges.check("prompts.options.n_min", n_min, ranges.Range(1, most, is_whole=True))
  ranges.check("prompts.options.n_max", n_max, ranges.Range(n_min, most, is_whole=True))
  while True:
    names = rng.sample(sorted(kinds), rng.randint(n_min, n_max))
    if any(len(one_of & set(names)) > 1 for one_of in _EXCLUDE): continue
    topic, *others = rng.sample(TOPICS, 4)
    items = [dict(name=name, weight=1.0, **_draw(rng, name, topic, others)) for name in names]
    said = " ".join(_say(item) for item in items)
    text, answer = f"Write about the {topic}. {said}", _write(rng, topic, others, items)
    if generated.split_of(text) == split:
      return dict(text=text, answer=answer, verifier=verifier, meta=dict(items=items))


prompts = functools.partial(generated.prompts, "instructions", generate)


def _draw(rng, name, topic, others):
  """The arguments of an instruction of this kind."""
  relation = rng.choice(RELATIONS)
  is_least = relation == "at least"
  return {
      "existence": lambda: dict(keywords=sorted(rng.sample(WORDS, 2))),
      "forbidden_words": lambda: dict(forbidden_words=sorted(others[:2])),
      "frequency": lambda: dict(keyword=topic, relation="at least", frequency=rng.randint(2, 4)),
      # The letters of "less than" are in no word here.
      "letter_frequency": lambda: dict(letter=rng.choice("e" if is_least else "jxz"),
                                       let_relation=relation, let_frequency=rng.randint(2, 6)),
      "number_words": lambda: dict(relation=relation,
                                   num_words=rng.choice((10, 15, 20) if is_least else (30, 40))),
      "number_sentences": lambda: dict(relation=relation,
                                       num_sentences=rng.randint(*(2, 4) if is_least else (5, 6))),
      "number_placeholders": lambda: dict(num_placeholders=rng.randint(1, 2)),
      "postscript": lambda: dict(postscript_marker="P.S."),
      "number_highlighted_sections": lambda: dict(num_highlights=rng.randint(1, 2)),
      "number_bullet_lists": lambda: dict(num_bullets=rng.randint(1, 3)),
      "end_checker": lambda: dict(end_phrase=rng.choice(("That is all.", "The end.")))
  }.get(name.partition(":")[2], dict)()


def _say(item):
  shown = {k: " and ".join(x) if isinstance(x, list) else x for k, x in item.items()}
  return KINDS[item["name"]].format(**shown)


def _write(rng, topic, others, items):
  """A text that follows the instructions."""
  by_kind = {item["name"].partition(":")[2]: item for item in items}
  asked = by_kind.get("existence", {}).get("keywords", [])
  rest = [w for w in WORDS if w not in asked]
  words = [*asked, *rng.sample(rest, len(rest))]
  # Six sentences have 24 words, six times the topic and an "e" each.
  least = 6 if any("at least" in item.values() for item in items) else 1
  lines = ["<<A story>>"] if "title" in by_kind else []
  parts = [f"the {topic} is {word}" for word in words[:max(least, len(asked), 1)]]
  body = (" and ".join(parts).capitalize() + "." if least == 1 else
          " ".join(f"{p.capitalize()}." for p in parts))
  body += "".join(f" [{x}]" for x in
                  others[2:] * by_kind.get("number_placeholders", {}).get("num_placeholders", 0))
  body += "".join(f" *{x}*" for x in
                  WORDS[:by_kind.get("number_highlighted_sections", {}).get("num_highlights", 0)])
  lines += [body, *(f"* {x}" for x in WORDS[:by_kind.get("number_bullet_lists", {}).get(
      "num_bullets", 0)])]
  if "postscript" in by_kind: lines.append("P.S. Bye.")
  if "end_checker" in by_kind: lines.append(by_kind["end_checker"]["end_phrase"])
  text = "\n".join(lines)
  if "english_capital" in by_kind: text = text.upper()
  if "english_lowercase" in by_kind: text = text.lower()
  return f'"{text}"' if "quotation" in by_kind else text
