"""ToolRL: Reward is All Tool Learning Needs (arXiv:2504.13958).

The reward of a completion is 6 s - 3, with s the share of names, parameters and values of its
tool calls that are right, and 1 more for the right form. The config leaves out the constant -3,
which has no effect on GRPO.

  rlx train papers/toolrl workdir=DIR model.path=MODEL
  rlx train papers/toolrl:smoke workdir=DIR model.path=MODEL

Letters beside the values: C taken from the released code (qiancheng0/ToolRL, rlla.py), O our
choice. Differences from the paper: its schedules of the scale and its term of length, which it
finds to be of no use, are not here; the requests are made. rlx/verifiers/tool_calls.py says
what else differs.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: high.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "rewards for names, parameters and values do better than one for the whole call",
    "17% above the base model and 15% above supervised training",
)


def get_config(arg=""):
  c = domains.grpo(
      arg, "tool_calls", "Think in <think></think>, then call tools in <tool_call></tool_call>, "
      'one call a line: {"name": ..., "parameters": {...}}.', tags=("think", "tool_call"))  # C
  c.verifier.scores = ("format.tags",)                                                        # C
  c.rewards = dict(calls=dict(name="outcome.verdict", coef=6.0),                              # C
                   form=dict(name="outcome.score", coef=1.0))                                 # C
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # C
  return c
