"""RM-R1: Reward Modeling as Reasoning (arXiv:2505.02387). A judge of two answers first says
what kind of question it is, writes a rubric of its own or solves it, and then judges. It learns
from the judgements of stronger models, and then by RL with the reward 1 or -1 for its verdict.

  rlx sft papers/rm_r1 prompts.source=judging:FILE prompts.columns.judgement=judgement \
      workdir=DIR/start model.path=MODEL
  rlx train papers/rm_r1 prompts.source=judging:FILE workdir=DIR model.path=DIR/start/model

The column `judgement` has judgements that end with a line "Verdict: A" or "Verdict: B"; those
with another verdict than the label are dropped.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
wording of the request is not known to us.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "judges that reason do better than reward models with a head",
)


TEMPLATE = domains.request(
    "Which of two answers to a question is better?",
    "First say whether it is a question of reasoning or of chat. If it is one of reasoning, solve "
    "it yourself in <solution></solution>. Otherwise write the criteria by which you judge, and "
    "their weights, in <rubric></rubric>. Then judge both answers. The last line of your reply is: "
    "Verdict {nonce}: A, or Verdict {nonce}: B.",  # P: what is asked; O: its words
    question="question", answer_A="answer", answer_B="other")


def get_config(arg=""):
  c = domains.judge(arg, "pair", template=TEMPLATE, reads="A=1 B=0")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=2.0))  # P: 1 or -1, less a constant
  return c
