"""How often math_answer takes different answers for equal, and equal ones for different."""
import collections

from tests.verifiers import math_pairs

# What was measured (docs/verifiers.md): false positives as a share of the pairs that are not
# equal at most, recall at least; of all other kinds 0 and 1.
BOUNDS = dict(all=(0.0, 0.998), set=(0.0, 0.97))


def test_precision_and_recall_of_every_kind():
  found, pairs, _ = math_pairs.report()
  labels = collections.Counter(equal for *_, equal in pairs)
  assert labels[True] >= 500 and labels[False] >= 500
  for kind, m in found.items():
    fpr, recall = BOUNDS.get(kind, (0.0, 1.0))
    assert m["unknown"] == 0 and m["fpr"] <= fpr, (kind, m)
    assert not m["recall"] < recall, (kind, m)  # NaN: a kind without equal pairs.
