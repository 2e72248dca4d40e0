"""Big-Math, 251,122 open problems with answers that can be verified.

Albalak et al. 2025, arXiv:2502.17387; `hf:SynthLabsAI/Big-Math-RL-Verified`, whose terms have to be
accepted on the hub (`hf auth login`). It has no test split. eval.difficulty=llama8b_solve_rate
splits accuracy by how often Llama-3.1-8B solved a problem.
"""
from rlx.prompts.datasets import _published

SETS = {"big_math": ("hf:SynthLabsAI/Big-Math-RL-Verified", "train[512:]", "train[:512]")}


def prompts(rows, split, *, verifier="math_answer.boxed"):
  """Rows with "problem", "answer", "source", "domain" and "llama8b_solve_rate"."""
  return _published.make_prompts("big_math", rows, split, lambda row, where: (
      _published.read_problem(row, where, verifier=verifier,
                              meta=("source", "domain", "llama8b_solve_rate"))))
