r"""DAPO-17k, competition problems with integers as answers: 14,116 in English.

Yu et al. 2025, arXiv:2503.14476; `hf:open-r1/DAPO-Math-17k-Processed:en`, each question once and
without the instruction that `hf:BytedTsinghua-SIA/DAPO-Math-17k` has around it. That set's rows
are read too: their instruction asks for "Answer: ...", so verifier=math_answer.final.
"""
from rlx.prompts.datasets import _published

SETS = {"dapo_17k": ("hf:open-r1/DAPO-Math-17k-Processed:en", "train[512:]", "train[:512]")}


def prompts(rows, split, *, verifier="math_answer.boxed"):
  """Rows with "prompt", a text or chat messages, and "solution" or "reward_model.ground_truth"."""
  return _published.make_prompts("dapo_17k", rows, split, lambda row, where: (
      _published.read_problem(
          row, where, question="prompt", verifier=verifier,
          answer="solution" if "solution" in row else "reward_model.ground_truth")))
