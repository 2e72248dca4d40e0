"""GenPRM: Scaling Test-Time Compute of Process Reward Models via Generative Reasoning
(arXiv:2504.00891). A model reasons about each step of a solution and says yes or no. A step is
right if continuations after it succeed, and not much less often than before it.

  rlx sft papers/gen_prm prompts.source=judging:FILE prompts.columns.judgement=judgement \
      workdir=DIR model.path=MODEL
  rlx train papers/gen_prm prompts.source=judging:FILE workdir=DIR model.path=MODEL
  rlx evaluate DIR eval.samples=8

FILE has completions with `values` and `start`, as train_scorer.labels=relative writes them. The
first command is the paper's. The last measures the mean of p(yes) over 8 rationales, and votes.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
rationales contain code that is run, which this judge cannot do.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "labels relative to the step before do better than absolute ones",
    "votes over rationales scale",
)


def get_config(arg=""):
  c = domains.judge(arg, "step", labels="relative")                                           # P
  c.eval.samples = min(8, c.rollouts.per_prompt)                                              # O
  return c
