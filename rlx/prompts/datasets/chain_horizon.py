"""Sequences of chain tasks, each of which starts from the answer of the previous one.

  4M7m2=  and  3m5M1=   ->   4M7m2m5M1=   whose first answer is 2

R-Horizon, Lu et al. 2025, arXiv:2510.08189: a number of problem i + 1 is replaced by
the answer of problem i plus a difference, and all answers must be right. Differs from
the paper: the number is the first digit and the difference 0, which is all that chains can
express; so the problems are written as one chain, whose steps include the inner answers.
"""
import itertools
from typing import Annotated

from rlx.core import ranges, records
from rlx.prompts import generated
from rlx.prompts.datasets import chain


def prompts(rows, split, *, problems: Annotated[int, ranges.Range(1, 1000, is_whole=True)] = 2):
  """Rows -> Prompts, one for every `problems` rows, without those of the other split.

  `meta["ends"]` has the number, from 0, of the last step of each problem.
  """
  for group in zip(*[iter(rows)] * problems):  # Rows in order, `problems` at a time.
    texts = [chain.generate(split=split, **r)["text"] for r in group]
    text = texts[0][0] + "".join(t[1:-1] for t in texts) + "="
    seed, index = group[0]["seed"], group[0]["index"] // problems
    if generated.split_of(text) != split: continue
    ends = [n - 1 for n in itertools.accumulate((len(t) - 2) // 2 for t in texts)]
    yield records.Prompt(
        id=f"chain_horizon/{split}/{seed}/{problems}/{index}", text=text,
        answer=str(chain.solve(text)[-1]), verifier="chain.milestones", meta=dict(ends=ends))
