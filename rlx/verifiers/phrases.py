"""Scores how much a completion talks like reasoning, whatever it says.

It is no check of an answer: a completion that lists the phrases has the full score.
"""
import collections
from typing import TYPE_CHECKING

from rlx.verifiers import _words

if TYPE_CHECKING: from rlx.core import records

# A plan, a ground, a consequence, a case, a doubt, a check, another attempt.
PHRASES = (
    "first, i need to", "i need to", "we need to", "to begin", "let me think", "let us consider",
    "step by step", "next,", "after that", "finally,", "in the end",
    "we know that", "recall that", "note that", "observe that", "given that", "because", "since",
    "therefore", "thus", "hence", "it follows that", "this means", "which gives", "as a result",
    "suppose", "if we", "for example", "for instance", "in the case of", "in other words",
    "wait", "however", "on second thought", "that cannot be", "does not work", "is not correct",
    "let me check", "let me verify", "to double-check", "alternatively", "another way", "try again")
FULL = 20    # Different phrases of the full score.
REPEATED = 20  # Words of a passage that counts as repeated.


def reasoning(prompt: "records.Prompt", text: str) -> float:
  """The share of phrases of reasoning, less repeated passages and made-up turns of the user.

    s = max(0, min(1, n / 20) - m / M - u)

  with n the number of different PHRASES, in any case and as whole words; m of the M passages of 20
  words each, those of different words that occur more than once; and u how often "user:" stands
  in the text. `meta["phrases"]` may have other phrases: {"phrases": {"known": [...], "full": 4}}.

  Source: the reasoning pattern reward (RPR) of Lv et al. 2025, arXiv:2505.22653, in its released
  code (trestad/Noisy-Rewards-in-Learning-to-Reason, math_score.py). Differs from the code: the
  phrases are ours, but for "first, I need to" of the abstract, and are whole words; of two that lie
  in each other the longer one counts; a completion that states no answer is not refused.
  """
  own = prompt.meta.get("phrases", {})
  text, words = text.lower(), text.lower().split()
  stated = set(_words.compile_phrases(tuple(own.get("known", PHRASES))).findall(text))
  passages = collections.Counter(zip(*(words[i:] for i in range(REPEATED))))
  repeated = sum(count > 1 for count in passages.values()) / max(passages.total(), 1)
  return max(0.0, min(1.0, len(stated) / own.get("full", FULL)) - repeated - text.count("user:"))


vars(reasoning)["is_bounded"] = True
