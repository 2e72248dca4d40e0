"""Questions about people, answered by retrieval (BM25) from a corpus of facts.

  question      ana's boss's city=
  reply         ?ana's boss   observation  ana's boss is bo;
  reply         ?bo's city    observation  bo's city is rome;
  reply         #rome         the episode ends with reward 1.0

The corpus has a document for every person and relation, 288 in all. Several corpora have the same
people and other facts, so an answer cannot be known from the question. A reply that begins with ?
is a query, answered by the best document or the `documents` best ones, or "nothing;" if no word
of it is in one. A reply that begins with # ends the episode: reward 1.0 if what follows is the
answer, else 0.0. Any other reply, and a query longer than QUERY characters, is answered "err;"
and counts as a query. A query when none is left is not searched: it ends the episode with reward
0.0, so an episode has at most queries + 1 turns.

Episodes need the package bm25s (`pip install 'rlx[search]'`), prompts do not.
"""
import functools
import random
import re
import sys
from typing import TYPE_CHECKING, Annotated

import numpy as np

from rlx.core import ranges
from rlx.environments import interface
from rlx.prompts import generated

if TYPE_CHECKING: from rlx.core import records

# Of prompts, an expert's replies and observations.
ALPHABET = "abcdefghijklmnopqrstuvwxyz '=?#,;"
# The longest texts in characters, with the default options; wrong replies of an expert have 16.
LONGEST = dict(prompt=23, reply=14, observation=22)
PEOPLE = ("ana ben bo cleo cy dan dora eli eva finn gil gus hana hugo ida ivan jo joy kai kim "
          "lea leo lou max mia moe nia noa ola otto pam pia quin ray rex rosa sam sue tara ted "
          "tom uma vera vic wes xena yan zoe").split()
# Relations and what they lead to.
RELATIONS = dict(
    boss=PEOPLE, friend=PEOPLE, tutor=PEOPLE,
    city="accra baku bonn cairo delhi kyoto lima milan oslo paris quito riga rome seoul tunis "
         "turin".split(),
    pet="cat cow dog fish frog goat hare hen mouse newt owl pony rat sheep swan toad".split(),
    job="actor baker clerk cook diver judge miner nurse pilot poet smith spy tailor vet waiter "
        "writer".split())
QUERY = 100  # Characters of a query.

_CORPORA = 64  # That a process keeps.
_TO_PEOPLE = [r for r, targets in RELATIONS.items() if targets is PEOPLE]


class Search:
  """Answers queries with documents and checks the final answer.

  Args:
    queries: queries that an episode has, replies that do not parse included.
    documents: documents in an observation, the best first.
    limit: characters of an observation; what is longer is cut.
  Raises:
    ImportError: bm25s is not installed.
  """
  role = "tool"
  is_bounded = True  # It may run in the trainer's process.

  def __init__(self, *, queries: ranges.Count = 4, documents: ranges.Count = 1,
               limit: Annotated[int, ranges.Range(2, 10_000, is_whole=True)] = 60):
    _bm25s()
    self._queries, self._documents, self._limit = queries, documents, limit

  def reset(self, prompt: "records.Prompt") -> str:
    """Starts an episode; returns the question.

    Raises:
      ValueError: the prompt is not one of this module.
    """
    if "corpus" not in prompt.meta:
      raise ValueError(f"search needs prompts with the seed of a corpus, meta['corpus']; meta has "
                       f"{sorted(prompt.meta)}.")
    self._answer, self._corpus, self._used = prompt.answer, prompt.meta["corpus"], 0
    _index(self._corpus)  # Here, so that no step is slow.
    return prompt.text

  def step(self, reply: str) -> interface.Step:
    """Searches, or checks the answer."""
    reply = reply.strip()
    info = dict(queries=float(self._used))
    if reply.startswith("#"):
      return interface.Step(reward=float(reply[1:].strip() == self._answer), done=True, info=info)
    if self._used == self._queries:
      return interface.Step("none left;", reward=0.0, done=True, info=info)
    self._used += 1
    info = dict(queries=float(self._used))
    if not reply.startswith("?") or len(reply) > QUERY: return interface.Step("err;", info=info)
    observation = ",".join(find_best(self._corpus, reply, self._documents)) or "nothing"
    return interface.Step(observation[:self._limit - 1] + ";", info=info)


@functools.lru_cache(maxsize=_CORPORA)
def facts(corpus: int) -> dict[tuple[str, str], str]:
  """What the documents of a corpus say: {(person, relation): person or value}, in their order."""
  rng = random.Random(f"search/corpus/{corpus}")
  drawn = [((person, relation), rng.choice([x for x in targets if x != person]))
           for relation, targets in RELATIONS.items() for person in PEOPLE]
  rng.shuffle(drawn)
  return dict(drawn)


def find_best(corpus: int, query: str, n: int) -> list[str]:
  """The n documents with the largest BM25 scores; those with score 0 are left out.

  Of documents with equal scores, the one that stands first in the corpus comes first.

  Raises:
    ImportError: bm25s is not installed.
  """
  words = _words(query)
  if not words: return []
  documents, index = _index(corpus)
  # Rounded: sums that differ in their last bit only, on some processor, are equal, too.
  scores = np.round(index.get_scores(words), 4)
  order = np.argsort(-scores, kind="stable")[:n]
  return [documents[i] for i in order if scores[i] > 0]


@functools.lru_cache(maxsize=_CORPORA)
def _index(corpus):
  """The documents of a corpus and their index, about 0.1 MB."""
  documents = [f"{person}'s {relation} is {target}"
               for (person, relation), target in facts(corpus).items()]
  index = _bm25s().BM25()
  index.index([_words(d) for d in documents], show_progress=False)
  return documents, index


def _words(text):
  """The words of a text, "ana's" being one: it finds what ana has, not whose boss she is."""
  return re.findall("[a-z']+", text.lower())


def _bm25s():
  """The package, without jax, which it would import and compute with to no use here."""
  hidden = sys.modules.get("jax.lax")
  sys.modules["jax.lax"] = None  # type: ignore[assignment]
  try:
    import bm25s  # pylint: disable=g-import-not-at-top
  except ImportError:
    raise ImportError("environment: needs bm25s: `pip install 'rlx[search]'`") from None
  finally:
    del sys.modules["jax.lax"]
    if hidden is not None: sys.modules["jax.lax"] = hidden
  return bm25s


def generate(seed, index, hops=2, corpora=8, split="train"):
  """Draws the question of (seed, index): {"text", "answer", "meta"}.

  No person occurs twice on the way to an answer. Splits have no question in common, also if
  their corpora differ. `meta` has the corpus (its seed) and the number of hops.

  Args:
    hops: relations in a question, all but the last one to people.
    corpora: number of corpora, each equally likely; their seeds are 0, 1, ...
    split: "train" or "test".
  """
  rng = generated.start("search", seed, index, split)
  ranges.check("prompts.options.hops", hops, ranges.Range(1, 4, is_whole=True))
  ranges.check("prompts.options.corpora", corpora, ranges.Range(1, _CORPORA, is_whole=True))
  while True:
    corpus, path = rng.randrange(corpora), [rng.choice(PEOPLE)]
    relations = rng.choices(_TO_PEOPLE, k=hops - 1) + [rng.choice(list(RELATIONS))]
    for relation in relations: path.append(facts(corpus)[path[-1], relation])
    text = "".join(f"{word}'s " for word in [path[0], *relations[:-1]]) + relations[-1] + "="
    if len(set(path)) == len(path) and generated.split_of(text) == split:
      return dict(text=text, answer=path[-1], meta=dict(corpus=corpus, hops=hops))


prompts = functools.partial(generated.prompts, "search", generate)


def expert(prompt: "records.Prompt", rng, *, wrong_rate: ranges.Share = 0.0) -> list[str]:
  """The replies of an episode: a query per hop, then the answer.

  Each reply is wrong with probability `wrong_rate`: a query about another relation, or another
  answer. The replies after a wrong query go on from the last word of what it found.

  Args:
    prompt: Prompt of this module.
    rng: np.random.Generator.
    wrong_rate: share of replies that are wrong.
  Raises:
    ImportError: bm25s is not installed.
  """
  word, *relations = prompt.text.removesuffix("=").replace("'s", "").split()
  environment, replies = Search(queries=len(relations)), []
  environment.reset(prompt)
  for relation in relations:
    if rng.random() < wrong_rate:
      relation = rng.choice([r for r in RELATIONS if r != relation])
    replies.append(f"?{word}'s {relation}")
    word = environment.step(replies[-1]).observation.removesuffix(";").split()[-1]
  if rng.random() < wrong_rate:
    others = next(t for t in RELATIONS.values() if word in t)
    word = rng.choice([x for x in others if x not in (word, prompt.answer)])
  return [*replies, f"#{word}"]
