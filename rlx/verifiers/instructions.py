r"""Instructions that a rule can check: "at least 300 words", "no commas", "end with ...".

The 25 kinds of IFEval (Zhou et al. 2023, arXiv:2311.07911), by their published names and arguments.
An instruction is an entry of `prompt.meta["items"]`:

  {"name": "length_constraints:number_words", "weight": 1.0,
   "relation": "at least", "num_words": 30}

A row of the published form is read too: meta["instruction_id_list"] and meta["kwargs"], in which
arguments that are None do not count. `followed` is the accuracy by prompt, `share` that by
instruction (weighted), `items` gives a verdict for each instruction. `..._loose` accepts an
instruction that is followed in the answer or in one of seven texts made from it: without its first
line, its last line or both, each with and without asterisks.

An answer is what stands behind the thoughts (thoughts.py). One that is empty follows nothing.

Differs from the published code (google-research, instruction_following_eval):
  keywords        are texts, not regular expressions: "C++" is one
  sentences       are split by rules and a list of abbreviations, not by NLTK's trained model
  change_case     judges the case alone, not whether the language is English, which langdetect
                  often denies of capitals
  letters         any character is counted; the code draws a letter where none of a-z is asked for
  arguments       one that is missing is refused, where the code draws a value at random
response_language needs the package langdetect, whose draws have a fixed seed here.
"""
import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rlx.verifiers import errors, items as items_lib, thoughts

if TYPE_CHECKING: from rlx.core import records

ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
RELATIONS = ("less than", "at least")

# What stands before a full stop that ends no sentence, unless a word of _STARTS follows.
_SHORT = frozenset(
    "mr mrs ms dr prof rev gen col capt lt sgt sen rep gov st jr sr mt ft ave blvd rd vs etc "
    "approx inc ltd co corp bros dept est al e.g i.e cf viz no vol fig pp ed jan feb mar apr "
    "jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun a.m p.m u.s u.k u.n d.c ph.d "
    "m.d b.a m.a p.s n.y l.a".split())
_STARTS = frozenset("the this that these those he she it we they you i in on at but and if when as "
                    "there what how why his her its our their".split())
# The last mark of a word that may end a sentence.
_MARK = re.compile(r".*[.?!](?=[)\";}\]*:@'({\[!?]|$)", re.DOTALL)
_CLOSING = re.compile(r"[\"')\]}]+(?=\s|$)")
_UNSPLIT = re.compile(r"[\s;@#$%&?!*\]\[(){}<>\"«»“”‘’„`]+|--|\.{2,}|[,:](?!\d)")
_SUFFIX = re.compile(r".(?:n't|'(?:s|m|d|ll|re|ve))$", re.IGNORECASE)


def count_sentences(text: str) -> int:
  """The number of sentences.

  Example:
    >>> instructions.count_sentences("Dr. Who? No. It is 3.5 p.m. in Rome!")
    3
  """
  words = [(m.start(), m[0]) for m in re.finditer(r"\S+", text)]
  count = 1
  for i, (start, word) in enumerate(words):
    if not (mark := _MARK.match(word)): continue
    following = words[i + 1][1] if i + 1 < len(words) else ""
    rest = word[mark.end():]
    if closing := _CLOSING.match(rest): rest = rest[closing.end():]
    if (rest or following) and _ends_sentence(mark[0], rest or following): count += 1
  return count


def _ends_sentence(word, following):
  """Whether a sentence ends with a word that has a mark, before the text that follows it."""
  if word[-1] in "?!": return True
  name, following = word[:-1].lstrip("\"'([{*_").lower(), following.lstrip("\"'([{*_")
  starts = following[:1].isupper() and re.sub(r"\W.*", "", following.lower()) in _STARTS
  if name.endswith(".") or name in _SHORT or len(name) == 1 and name.isalpha(): return starts
  return not (name.isdigit() and following[:1].islower())


def _holds(relation, count, limit):
  return count < limit if relation == "less than" else count >= limit


def _count(part, text): return len(re.findall(re.escape(part), text, re.IGNORECASE))


def _has_keywords(text, keywords): return all(_count(k, text) for k in keywords)


def _has_keyword(text, keyword, frequency, relation):
  return _holds(relation, _count(keyword.strip(), text), frequency)


def _has_none(text, forbidden_words):
  return not any(re.search(rf"\b{re.escape(w)}\b", text, re.IGNORECASE) for w in forbidden_words)


def _has_letter(text, letter, let_frequency, let_relation):
  return _holds(let_relation, text.lower().count(letter.lower()), let_frequency)


def _is_in_language(text, language):
  import langdetect  # pylint: disable=g-import-not-at-top
  langdetect.DetectorFactory.seed = 0
  try:
    return langdetect.detect(text[:10_000]) == language
  except langdetect.LangDetectException:  # No letters.
    return True


def _has_sentences(text, num_sentences, relation):
  return _holds(relation, count_sentences(text), num_sentences)


def _has_paragraphs(text, num_paragraphs):
  first, *inner = (bool(p.strip()) for p in text.split("***"))
  if not inner: return num_paragraphs == first
  *inner, last = inner
  return all(inner) and first + len(inner) + last == num_paragraphs


def _has_words(text, num_words, relation):
  return _holds(relation, len(re.findall(r"\w+", text)), num_words)


def _starts_paragraph(text, num_paragraphs, nth_paragraph, first_word):
  paragraphs = text.split("\n\n")
  count = sum(bool(p.strip()) for p in paragraphs)
  if count != num_paragraphs or nth_paragraph > count: return False
  word = (paragraphs[nth_paragraph - 1].split() or [""])[0].lstrip("'").lstrip('"')
  return re.split("[.,?!'\"]", word, maxsplit=1)[0].lower() == first_word.lower()


def _has_placeholders(text, num_placeholders):
  count = 0
  for line in text.split("\n"):
    end = 0
    while (start := line.find("[", end)) >= 0 and (end := line.find("]", start) + 1): count += 1
  return count >= num_placeholders


def _has_postscript(text, postscript_marker):
  pattern = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}.get(
      postscript_marker.strip(), re.escape(postscript_marker.strip().lower()))
  return re.search(pattern, text.lower()) is not None


def _has_bullets(text, num_bullets):
  return num_bullets == len(re.findall(r"(?m)^[^\S\n]*(?:\*[^*].*|-.*)$", text))


def _is_option(text): return any(a in text for a in ANSWERS)


def _has_highlights(text, num_highlights):
  parts = [m.strip("*") for m in re.findall(r"\*[^\n*]*\*", text)] + [
      m[2:-2] for m in re.findall(r"\*\*[^\n*]*\*\*", text)]
  return sum(bool(p.strip()) for p in parts) >= num_highlights


def _has_sections(text, section_spliter, num_sections):
  return len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", text)) >= num_sections


def _is_json(text):
  text = text.strip()
  for start in ("```json", "```Json", "```JSON", "```"): text = text.removeprefix(start)
  try:
    json.loads(text.removesuffix("```").strip())
  except (ValueError, RecursionError):
    return False
  return True


def _has_title(text):
  return any(line[start:line.rfind(">>") + 2].lstrip("<").rstrip(">").strip()
             for line in text.split("\n")
             if 0 <= (start := line.find("<<")) < line.rfind(">>") - 2)


def _has_two_answers(text):
  first, *inner = text.split("******")
  if not inner: return False
  *inner, last = inner
  answers = [a for a in (first.strip(), *(a.strip() for a in inner), last.strip()) if a]
  return all(a.strip() for a in inner) and len(answers) == 2 and answers[0] != answers[1]


def _repeats_prompt(text, prompt_to_repeat):
  return text.strip().lower().startswith(prompt_to_repeat.strip().lower())


def _has_end(text, end_phrase):
  return text.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def _has_capital_words(text, capital_frequency, capital_relation):
  # As Treebank's rules split words: "DON'T" is DO and N'T.
  count = sum(1 + bool(_SUFFIX.search(word)) for word in _UNSPLIT.split(text) if word.isupper())
  return _holds(capital_relation, count, capital_frequency)


def _has_no_comma(text): return "," not in text


def _is_quoted(text): return len(text := text.strip()) > 1 and text[0] == text[-1] == '"'


KINDS: dict[str, Callable[..., bool]] = {
    "keywords:existence": _has_keywords, "keywords:frequency": _has_keyword,
    "keywords:forbidden_words": _has_none, "keywords:letter_frequency": _has_letter,
    "language:response_language": _is_in_language,
    "length_constraints:number_sentences": _has_sentences,
    "length_constraints:number_paragraphs": _has_paragraphs,
    "length_constraints:number_words": _has_words,
    "length_constraints:nth_paragraph_first_word": _starts_paragraph,
    "detectable_content:number_placeholders": _has_placeholders,
    "detectable_content:postscript": _has_postscript,
    "detectable_format:number_bullet_lists": _has_bullets,
    "detectable_format:constrained_response": _is_option,
    "detectable_format:number_highlighted_sections": _has_highlights,
    "detectable_format:multiple_sections": _has_sections,
    "detectable_format:json_format": _is_json, "detectable_format:title": _has_title,
    "combination:two_responses": _has_two_answers, "combination:repeat_prompt": _repeats_prompt,
    "startend:end_checker": _has_end, "startend:quotation": _is_quoted,
    "change_case:capital_word_frequency": _has_capital_words,
    "change_case:english_capital": str.isupper, "change_case:english_lowercase": str.islower,
    "punctuation:no_comma": _has_no_comma}
# What the arguments are; all that begin with num_, and frequencies, are whole numbers.
_TEXT_ARGUMENTS = ("keyword", "letter", "language", "first_word", "postscript_marker",
                   "section_spliter", "prompt_to_repeat", "end_phrase")


def items(prompt: "records.Prompt", text: str) -> list[float]:
  """1.0 or 0.0 for each instruction, in order.

  Raises:
    errors.Unknown: the prompt has none, or one that `inspect` refuses.

  Example:
    >>> import types
    >>> prompt = types.SimpleNamespace(meta={"items": [
    ...     {"name": "punctuation:no_comma"}, {"name": "startend:quotation"}]})
    >>> instructions.items(prompt, "It is so.")
    [1.0, 0.0]
  """
  answer = thoughts.behind(text, prompt)
  return [float(_follows(answer, item)) for item in _read(prompt)]


def items_loose(prompt: "records.Prompt", text: str) -> list[float]:
  """As `items`, each for the best of the eight texts of the module's docstring."""
  lines = thoughts.behind(text, prompt).split("\n")
  texts = ["\n".join(lines), *("\n".join(x).strip() for x in (lines[1:], lines[:-1], lines[1:-1]))]
  texts += [t.replace("*", "") for t in texts]
  return [float(any(_follows(t, item) for t in texts)) for item in _read(prompt)]


def share(prompt: "records.Prompt", text: str) -> float:
  """The weighted share of instructions that are followed: strict accuracy by instruction."""
  return items_lib.average(items_lib.read(prompt, items(prompt, text)))


def share_loose(prompt: "records.Prompt", text: str) -> float:
  """Loose accuracy by instruction."""
  return items_lib.average(items_lib.read(prompt, items_loose(prompt, text)))


def followed(prompt: "records.Prompt", text: str) -> float:
  """1.0 if all instructions are followed: strict accuracy by prompt."""
  return min(items(prompt, text))


def followed_loose(prompt: "records.Prompt", text: str) -> float:
  """Loose accuracy by prompt."""
  return min(items_loose(prompt, text))


def inspect(prompts: Sequence["records.Prompt"], unsafe: bool = False) -> list[tuple]:
  """Finds instructions that cannot be checked: of no known kind, or with other arguments.

  Returns:
    for each prompt, (why its answers cannot be judged, or None; None).
  """
  del unsafe
  return [(_describe(p), None) for p in prompts]


for _fn in (items, items_loose, share, share_loose, followed, followed_loose):
  vars(_fn).update(is_bounded=True, inspect=inspect, state=lambda prompt: prompt.answer or None)


def _follows(text, item):
  return bool(text.strip()) and KINDS[item["name"]](text, **_take_arguments(item))


def _take_arguments(item): return {k: x for k, x in item.items() if k not in items_lib.KEYS}


def _read(prompt):
  """The instructions of a prompt, as meta["items"] has them."""
  if problem := _describe(prompt): raise errors.Unknown(problem)
  return _list(prompt.meta)


def _list(meta):
  if "items" in meta or "instruction_id_list" not in meta: return meta.get("items", [])
  return [{"name": name, **{k: x for k, x in given.items() if x is not None}}
          for name, given in zip(meta["instruction_id_list"], meta["kwargs"], strict=True)]


def _describe(prompt):
  """Why the instructions of a prompt cannot be checked; None if they can."""
  try:
    listed = _list(prompt.meta)
    problems = [_describe_item(item) for item in listed]
  except (AttributeError, KeyError, TypeError, ValueError) as e:
    return ("its instructions cannot be read: meta['items'] is a list of dicts with a name, or "
            f"meta has the columns instruction_id_list and kwargs ({type(e).__name__}: {e})")
  if not listed: return "it has no instructions: meta['items'] is a list of dicts with a name"
  return next(filter(None, problems), None)


def _describe_item(item):
  name = item["name"]
  if name not in KINDS: return f"instruction {name!r:.80}: there are {', '.join(KINDS)}"
  given = _take_arguments(item)
  taken = list_arguments(name)
  if set(given) != set(taken):
    return f"instruction {name!r}: it takes {list(taken)}, not {sorted(given)}"
  weight = item.get("weight", 1.0)
  if not (isinstance(weight, int | float) and 0 < weight < float("inf")):
    return f"instruction {name!r}: weight={weight!r:.40}; write a number above 0"
  return next((f"instruction {name!r}: {key}={x!r:.80}; write {wanted}"
               for key, x in given.items() if (wanted := _say_wanted(key, x))), None)


def list_arguments(name: str) -> tuple[str, ...]:
  """The names of the arguments of a kind of instructions.

  Example:
    >>> instructions.list_arguments("keywords:frequency")
    ('keyword', 'frequency', 'relation')
  """
  fn = KINDS[name]
  return () if fn in (str.isupper, str.islower) else fn.__code__.co_varnames[
      1:fn.__code__.co_argcount]


def _say_wanted(key, x):
  """What an argument has to be, if it is something else."""
  if key.endswith("relation"): return "" if x in RELATIONS else " or ".join(map(repr, RELATIONS))
  if key in ("keywords", "forbidden_words"):
    is_right = isinstance(x, list | tuple) and x and all(isinstance(k, str) and k for k in x)
    return "" if is_right else "a list of texts"
  if key in _TEXT_ARGUMENTS:
    if key == "letter" and not (isinstance(x, str) and len(x) == 1): return "one character"
    if not (isinstance(x, str) and x.strip()): return "a text"
    return _find_langdetect() if key == "language" else ""
  lowest = 1 if key == "nth_paragraph" else 0
  is_whole = isinstance(x, int | float) and not isinstance(x, bool) and x == int(x) >= lowest
  return "" if is_whole else f"a whole number, at least {lowest}"


def _find_langdetect():
  import importlib.util  # pylint: disable=g-import-not-at-top
  if importlib.util.find_spec("langdetect"): return ""
  return "other instructions, or install the package langdetect, which judges languages"
