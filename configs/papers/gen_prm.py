"""GenPRM: Scaling Test-Time Compute of Process Reward Models via Generative Reasoning
(arXiv:2504.00891). A model reasons about each step of a solution and says yes or no. A step is
right if continuations after it succeed, and not much less often than before it.

  rlx sft papers/gen_prm prompts.source=judging:FILE prompts.columns.judgement=judgement \
      workdir=DIR model.path=MODEL
  rlx train papers/gen_prm prompts.source=judging:FILE workdir=DIR model.path=MODEL
  rlx evaluate DIR eval.samples=8

FILE has completions with `values` and `start`, as train_scorer.labels=relative writes them. The
first command is the paper's. The last measures the mean of p(yes) over 8 rationales, and votes.

In the variant :code, as in `rlx train papers/gen_prm:code ...`, rationales contain code, which runs
in the sandbox before the judge states its verdict (rlx/environments/zoo/judge_code.py). Judgements
have blocks ```python without their output. The policy is then a chat model whose template takes
messages of the role `tool`.

Letters beside the values: P stated in the paper, O our choice (also the number and size of calls).
Differences from the paper: nothing known of the labels and of the code; p(yes) is that without
code.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "labels relative to the step before do better than absolute ones",
    "votes over rationales scale",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("text", "code"))
  c = domains.judge(size, "step", labels="relative")                                          # P
  if kind == "code":
    c.environment = dict(name="zoo.judge_code.JudgeWithCode", calls=2)                        # P, O
    c.episodes.turns, c.episodes.turn_tokens, c.episodes.observation_tokens = 3, 512, 128     # O
    c.episodes.timeout_s = 30.0                                                               # O
    c.rollouts.max_tokens = max(c.rollouts.max_tokens, 2048)                                  # O
    c.rollouts.step_separator = "<turn>"
    c.learner.pack = False  # As in bases/tools.
    c.sft.target = dict(name="rlx.environments.zoo.judge_code:demonstration")
  c.eval.samples = min(8, c.rollouts.per_prompt)                                              # O
  return c
