"""CompassVerifier: A Unified and Robust Verifier for LLMs Evaluation and Outcome Reward
(arXiv:2508.03686). A model learns to say whether an answer agrees with a reference: correct,
incorrect, or invalid, where the answer is cut off, repeats itself or refuses.

  rlx sft papers/compass_verifier prompts.source=judging:FILE workdir=DIR model.path=MODEL
  rlx train papers/compass_verifier prompts.source=judging:FILE workdir=DIR model.path=MODEL

A row has the columns question, reference, completion and verdict, one of the three words. The
paper trains by the first command; the second is RL on the same verdicts. `rlx evaluate` gives
the accuracy by verdict and its mean over the three. Each completion has copies that follow patterns
of errors (rlx/prompts/error_patterns.py); `prompts.columns.patterns` chooses them, and
eval.difficulty=pattern shows on which ones the verifier errs.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
data are not here, and its patterns are not known to us, so that ours are other ones; it reports
macro-F1, and the mean of the accuracies by verdict stands for it here. Its formula is known from
its abstract.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains
from rlx.prompts import error_patterns

CLAIMS = (
    "training on three verdicts does better than on two",
)


TEMPLATE = domains.request(
    "Does an answer to a question agree with the reference answer?",
    "The last line of your reply is: Verdict {nonce}: correct, if it agrees; Verdict {nonce}: "
    "incorrect, if it does not; Verdict {nonce}: invalid, if it is cut off, repeats itself or "
    "refuses to answer.", question="question", reference="reference", answer="answer")  # O


def get_config(arg=""):
  return domains.judge(arg, "verdict", reference="reference", template=TEMPLATE,
                       reads="correct=1 incorrect=0 invalid=0.5", invalid=0.5,                # P
                       patterns=error_patterns.PATTERNS)                                      # P, O
