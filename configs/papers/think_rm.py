"""Think-RM: Enabling Long-Horizon Reasoning in Generative Reward Models (arXiv:2505.16265). A
judge of two answers reasons at length and states which is better, and by how much: A3 to B3. It
is fine-tuned on long judgements, and then learns by RL from the labels.

  rlx sft papers/think_rm prompts.source=judging:FILE prompts.columns.judgement=judgement \
      workdir=DIR/start model.path=MODEL
  rlx train papers/think_rm prompts.source=judging:FILE workdir=DIR model.path=DIR/start/model

FILE has pairs {"question", "chosen", "rejected", "strength"}, the strength 1, 2 or 3. The
variant :multiclass pays the same strength alone, the default every verdict for the better
answer. RL of a policy with such a judge is papers/pairwise_rl.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
request is not known to us.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "judges with long reasoning do better than those with short reasoning",
)

WORDS = "A3=1 A2=0.833 A1=0.667 B1=0.333 B2=0.167 B3=0"  # P: strengths from -3 to 3
TEMPLATE = domains.request(
    "Which of two answers to a question is better, and by how much?",
    "Think for as long as you need. The last line of your reply is Verdict {nonce}: and one of A3, "
    "A2, A1, B1, B2, B3: the better answer, and 3 if it is much better, 1 if it is slightly "
    "better.", question="question", answer_A="answer", answer_B="other")  # O


def get_config(arg=""):
  kind, size = base.variant(arg, ("binary", "multiclass"))
  return domains.judge(size, "pair", strength="strength", reads=WORDS, template=TEMPLATE,
                       verifier=dict(binary="judging.side", multiclass="judging.verdict")[kind])
