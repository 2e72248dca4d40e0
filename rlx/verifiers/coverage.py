"""How much of what a prompt names is in a completion: key points, a path, facts, quotes, a start.

All but `prefix` check no answer: a completion that lists everything has the full score of `points`,
`path` and `facts`, and one that copies its sources that of `quotes`.
"""
import collections
import functools
import re
from typing import TYPE_CHECKING

from rlx.verifiers import _words, errors, thoughts

if TYPE_CHECKING: from rlx.core import records

CHARACTERS = 25  # Of an n-gram of QUIP.
WORDS = 3        # Of the shortest answer that `prefix` accepts.


def points(prompt: "records.Prompt", text: str) -> float:
  """How well the key points of a reference occur in its order.

    s = mean_k max_j LCS(a_kj, r_kj) / max(|a_kj|, |r_kj|)

  with a_kj and r_kj the keywords of the j-th wording of point k in the order in which they stand in
  the answer and in the reference, as often as they do; LCS is the length of the longest common
  subsequence. `meta["points"]` has a list for every point, of lists of keywords; `prompt.answer` is
  the reference. Keywords are whole words, in any case.

  Source: the content reward of RLVRR (Jiang et al. 2026, arXiv:2601.18533), as in its released
  code (YJiangcm/RLVRR, reward_fn.py), whose length penalty has the weight 0. Differs from the code:
  a wording that occurs neither in the answer nor in the reference counts 0 here, too, but one of no
  keywords is refused; of two keywords that lie in each other the longer one counts. The checks of
  style are those of verifiers/instructions.py.
  """
  _check(prompt, "points")
  given = prompt.meta["points"]
  answer, reference = thoughts.behind(text, prompt).lower(), prompt.answer.lower()
  return sum(max(_agree(words, answer, reference) for words in wordings)
             for wordings in given) / len(given)


def path(prompt: "records.Prompt", text: str) -> float:
  """The share of a path's words in a completion, less what is repeated.

    s = n / N if n >= meta["least"] (default 1) else 0;   times the share of different sentences

  N is the number of different words of `meta["path"]`, a list of texts such as the entities and
  relations of a path through a knowledge graph; n of them are in the completion, thoughts included.
  Of S sentences and lines that are not empty, S' are different: s is multiplied by S' / S.

  Source: the path reward of "Knowledge Graphs are Implicit Reward Models" (arXiv:2601.15160).
  Differs from the paper: its least number of hits and its penalty are not known; these are ours.
  """
  _check(prompt, "path")
  words = set(re.findall(r"\w+", " ".join(prompt.meta["path"]).lower()))
  hits = len(words & set(re.findall(r"\w+", text.lower())))
  if hits < prompt.meta.get("least", 1): return 0.0
  parts = [p.strip() for p in re.split(r"[.\n]", text.lower()) if p.strip()]
  return hits / len(words) * len(set(parts)) / len(parts)


def facts(prompt: "records.Prompt", text: str) -> float:
  """The share of the facts of a question that a completion states, thoughts included.

    s = |{f in F: f stands in the text}| / |F|

  F are the different texts of `meta["facts"]`. They stand in it as whole words, in any case; runs
  of white space are one space.

  Source: the coverage of knowledge of Fin-PRM, Zhou et al. 2025, arXiv:2508.15202 (from memory,
  unverified). Differs from the paper: a language model says there which facts are used; here a fact
  in other words counts as missing. `judge.rubric` asks a model, with the facts as items of a row.
  """
  _check(prompt, "facts")
  stated, known = _join_words(text), set(map(_join_words, prompt.meta["facts"]))
  return sum(bool(_words.compile_phrases((f,)).search(stated)) for f in known) / len(known)


def _join_words(text): return " ".join(text.lower().split())


def quotes(prompt: "records.Prompt", text: str) -> float:
  """QUIP: the share of the 25-character n-grams of an answer that stand in its sources.

  `meta["sources"]` is a list of texts, `meta["characters"]` another length. Runs of white space are
  one space; case counts. An answer shorter than an n-gram scores 0, also if it stands in a source.

  Source: Zhang et al. 2024, arXiv:2404.03862, with the measure of Weller et al. 2023,
  arXiv:2305.13252. Differs from the papers: the n-grams of the sources are a set and not a Bloom
  filter, which has false positives and is made for corpora that do not fit into memory.
  """
  _check(prompt, "sources")
  n, sources = prompt.meta.get("characters", CHARACTERS), prompt.meta["sources"]
  answer = " ".join(thoughts.behind(text, prompt).split())
  grams = [answer[i:i + n] for i in range(len(answer) - n + 1)]
  known = _grams(tuple(sources), n)
  return sum(g in known for g in grams) / len(grams) if grams else 0.0


def prefix(prompt: "records.Prompt", text: str) -> float:
  """1.0 if the words of an answer are the first ones of the reference, in any case, else 0.0.

  `meta["words"]`, 3 by default, is the least number of words of an answer.

  Source: ours, in the place of the judge of Reinforcement Learning on Pre-Training Data (Li et al.
  2025, arXiv:2509.19249), which rewards a prediction that is in meaning a beginning of the true
  text. Differs from the paper: other words of the same meaning count 0.
  """
  if problem := _describe_reference(prompt): raise errors.Unknown(problem)
  ours = _list_words(thoughts.behind(text, prompt))
  enough = len(ours) >= prompt.meta.get("words", WORDS)
  return float(enough and ours == _list_words(prompt.answer)[:len(ours)])


def _describe_reference(prompt):
  if problem := _describe_number(prompt, "words"): return problem
  least = prompt.meta.get("words", WORDS)
  if len(_list_words(prompt.answer)) >= least: return None
  return f"its answer {prompt.answer!r:.60} has fewer than {least} words"


def _list_words(text): return re.findall(r"\w+", text.lower())


def _inspect(key, prompts, unsafe=False):
  """For each prompt, (why nothing can be covered, or None; None)."""
  del unsafe
  return [(_describe(p, key), None) for p in prompts]


for _fn, _key in ((points, "points"), (path, "path"), (facts, "facts"), (quotes, "sources")):
  vars(_fn).update(is_bounded=True, inspect=functools.partial(_inspect, _key))
vars(points)["state"] = lambda prompt: prompt.answer or None
vars(prefix).update(
    is_bounded=True, state=lambda prompt: prompt.answer or None,
    inspect=lambda prompts, unsafe=False: [(_describe_reference(p), None) for p in prompts])


_IS_RIGHT = dict(
    points=lambda x: all(w and all(w) and all(isinstance(k, str) for words in w for k in words)
                         and not isinstance(w, str) for w in x),
    path=lambda x: re.search(r"\w", " ".join(x)) and not isinstance(x, str),
    facts=lambda x: all(re.search(r"\w", f) for f in x) and not isinstance(x, str),
    sources=lambda x: all(isinstance(s, str) for s in x) and not isinstance(x, str))
_NUMBERS = dict(path="least", sources="characters")  # {column: that of a number beside it}.
_FORMS = dict(points="list of points, each a list of lists of keywords",
              path="list of texts with a word", facts="list of texts, each with a word",
              sources="list of texts to quote from")


def _describe_number(prompt, key):
  given = prompt.meta.get(key, 1)
  if type(given) is int and given >= 1: return None
  return f"meta[{key!r}] is {given!r:.60}; needed is a whole number from 1"


def _describe(prompt, key):
  if key in _NUMBERS and (problem := _describe_number(prompt, _NUMBERS[key])): return problem
  given = prompt.meta.get(key)
  try:
    if given and _IS_RIGHT[key](given): return None
  except TypeError:
    pass  # A number where a list or text is needed.
  return f"meta[{key!r}] is {given!r:.60}; needed is a {_FORMS[key]}"


def _check(prompt, key):
  if problem := _describe(prompt, key): raise errors.Unknown(problem)


@functools.lru_cache(maxsize=64)
def _grams(sources, n):
  """All n-grams of texts."""
  return frozenset(t[i:i + n] for t in (" ".join(s.split()) for s in sources)
                   for i in range(len(t) - n + 1))


def _agree(words, answer, reference):
  pattern = _words.compile_phrases(tuple(words))
  ours, theirs = pattern.findall(answer), pattern.findall(reference)
  return _subsequence(ours, theirs) / max(len(ours), len(theirs), 1)


def _subsequence(ours, theirs):
  """Length of the longest common subsequence, bit by bit (Hyyro 2004)."""
  where: dict = collections.defaultdict(int)
  for i, word in enumerate(theirs): where[word] |= 1 << i
  full = (1 << len(theirs)) - 1
  left = full
  for word in ours:
    matched = left & where.get(word, 0)
    left = ((left + matched) | (left - matched)) & full
  return len(theirs) - left.bit_count()
