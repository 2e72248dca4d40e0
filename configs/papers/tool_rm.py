"""ToolRM: Outcome Reward Models for Tool-Calling Large Language Models (arXiv:2509.11963): a reward
model learns from pairs of right and wrong tool calls of the same request, and ranks calls by how
likely all of them are right.

  rlx train_scorer papers/tool_rm model.path=MODEL workdir=DIR
  rlx train_scorer papers/tool_rm:smoke model.path=MODEL workdir=DIR
  rlx train papers/toolrl model.path=MODEL "verifier.scores=('scorers.trained',)" \\
      scorers.trained.path=DIR/scorer rewards.form.coef=0 rewards.calls.name=outcome.score

The last command is RL with its scores in the place of a verifier. Rows of your own are pairs
(train_scorer.rollouts, docs/data.md).

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
wrong calls are those of the policy itself, there of several open models; requests are made. The
loss is not stated in the sources at hand; Bradley-Terry is ours.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "better than reward models of general texts, with up to 25% more in best-of-n",
    "policies can be trained by RL with it, without right answers",
)


def get_config(arg=""):
  c = domains.grpo(
      arg, "tool_calls", 'Call tools in <tool_call></tool_call>, one call a line: {"name": ..., '
      '"parameters": {...}}.', method=implicit_prm.get_config, verifier="tool_calls.exact")  # P
  c.train_scorer.labels = "outcome"                                                          # P
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")                              # O
  return c
