"""Incentivizing Reasoning for Advanced Instruction-Following of Large Language Models
(arXiv:2506.01413).

The reward is the share of instructions of a prompt that rules find followed in the answer,
which stands behind a thought. A thought that does not close has no answer.

  rlx train papers/raif workdir=DIR model.path=MODEL
  rlx train papers/raif:smoke workdir=DIR model.path=MODEL
  rlx train papers/raif:superior workdir=DIR model.path=MODEL

The variant :superior also asks each question without reasoning, and learns only from completions
that follow as much as answers without reasoning do in the mean. In :cloned each group ends with an
expert's completion, which is cloned; it is the answer of the row. In :judge a model checks what no
rule can, and its verdict on the whole answer is added (verifier.judge.url, .model).

Letters beside the values: P stated in the paper (rewards by rules for constraints), C taken from
the released code (yuleiqin/RAIF), O our choice (the data). Differences from the paper: half of the
prompts of :superior have no reasoning, a quarter of the completions in the code; what is cloned has
no thought, unless the rows have one; its judge checks each constraint; the instructions are made
(IFEval's kinds). The paper does all three at once.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs import base, bases
from rlx.configs.bases import domains

CLAIMS = (
    "a 1.5B model gains 11.74% and comes near an 8B model on complex instructions",
)


TEMPLATE = domains.request(
    "Does an answer follow all instructions of a request?",
    "The last line of your reply is: Verdict {nonce}: yes, if it follows all; Verdict {nonce}: no, "
    "if it does not.", request="question", answer="answer")                                      # O


def get_config(arg=""):
  kind, size = base.variant(arg, ("all", "superior", "cloned", "judge"))
  c = domains.grpo(size, "instructions", "Think in <think></think>, then follow all instructions "
                   "exactly and reply with the text alone.", verifier="instructions.share",    # P
                   n_min=2, n_max=4)                                                          # O
  if kind == "cloned":
    c.rollouts.demonstration = dict(name="jsonl.demonstration")                               # P
    c.advantages.outcome = dict(name="group.against_sampled", demonstrations="cloned")        # P
    c.learner.auxiliary = dict(name="auxiliary.cloning", coef=0.1)                            # P, O
  if kind == "judge":
    c.verifier.judge.update(bases.JUDGE)
    c.verifier.judge.template, c.verifier.scores = TEMPLATE, ("judge.chat",)                  # P, O
    c.rewards.judged = dict(name="outcome.score", coef=1.0)                                   # O
    c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                          # O
  if kind != "superior": return c
  c.prompts.dataset, c.prompts.paired = "instructions_pairs", True
  c.rollouts.select_completions = dict(name="select_completions.superior")                    # C
  return c
