"""Questions that follow a path through a small knowledge graph, with its facts in the text.

  question    Bo is the boss of Ann. Cy is the tutor of Bo. ... Who is the tutor of the boss of Ann?
  answer      Cy

Synthetic, `prompts.source=generated`: a row has the arguments of `generate`. `meta` has what the
verifiers of labels.py and coverage.py read: the names (labels), the facts of the path (path, facts,
evidence, points, and in words reference) and all facts (sources).
"""
import functools

from rlx.core import ranges
from rlx.prompts import generated

NAMES = ("Ann", "Bo", "Cy", "Dee", "Eli", "Fay", "Gus", "Ida", "Jon", "Kai", "Lou", "Max")
RELATIONS = ("boss", "tutor", "doctor", "neighbour", "coach", "editor")


def generate(seed, index, n_min=2, n_max=3, facts=8, tags=(), verifier="labels.label",
             split="train"):
  """Draws the question of (seed, index): {"text", "answer", "verifier", "meta"}.

  Args:
    n_min, n_max: least and largest number of facts on the path, which is uniform.
    facts: number of facts in the text, at least n_max; no two have person and relation in common.
    tags: of the blocks of a completion, which `format.tags` reads.
    verifier: of labels.py, coverage.py or embedding.py. For coverage.points the answer is the path
      in words.
    split: "train" or "test".
  """
  rng = generated.start("facts", seed, index, split)
  ranges.check("prompts.options.n_min", n_min, ranges.Range(1, 6, is_whole=True))
  ranges.check("prompts.options.n_max", n_max, ranges.Range(n_min, 6, is_whole=True))
  ranges.check("prompts.options.facts", facts, ranges.Range(n_max, 60, is_whole=True))
  while True:
    n = rng.randint(n_min, n_max)
    people = rng.sample(NAMES, n + 1)
    steps = [(people[i + 1], rng.choice(RELATIONS), people[i]) for i in range(n)]
    known = {(relation, person): other for other, relation, person in steps}
    while len(known) < facts:
      other, person = rng.sample(NAMES, 2)
      known.setdefault((rng.choice(RELATIONS), person), other)
    said = {(relation, person): f"{other} is the {relation} of {person}."
            for (relation, person), other in known.items()}
    path = [said[relation, person] for _, relation, person in steps]
    listed = rng.sample(sorted(said.values()), len(said))
    asked = " ".join(f"the {relation} of" for _, relation, _ in reversed(steps))
    text = f"{' '.join(listed)} Who is {asked} {people[0]}?"
    if generated.split_of(text) == split:
      reference = " ".join(path)
      answer = reference if verifier == "coverage.points" else people[-1]
      return dict(text=text, answer=answer, verifier=verifier, meta=dict(
          labels=list(NAMES), path=path, facts=path, evidence=path, sources=listed, hops=n,
          reference=reference,
          points=[[[other, relation]] for other, relation, _ in steps]) | (
              dict(format=dict(tags=list(tags))) if tags else {}))


prompts = functools.partial(generated.prompts, "facts", generate)
