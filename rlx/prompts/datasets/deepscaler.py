r"""DeepScaleR-Preview, 40,315 problems of AIME, AMC, Omni-MATH and STILL.

Luo et al. 2025, "DeepScaleR: Surpassing O1-Preview with a 1.5B Model by Scaling RL";
`hf:agentica-org/DeepScaleR-Preview-Dataset`. It has no test split. Most solutions are empty, so
the column answer is read alone.
"""
from rlx.prompts.datasets import _published

SETS = {"deepscaler": (
    "hf:agentica-org/DeepScaleR-Preview-Dataset", "train[512:]", "train[:512]")}


def prompts(rows, split, *, verifier="math_answer.boxed"):
  """Rows with "problem", "answer" and "solution"."""
  return _published.make_prompts("deepscaler", rows, split, lambda row, where: (
      _published.read_problem(row, where, verifier=verifier)))
