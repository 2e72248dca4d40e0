"""ToolRM: Outcome Reward Models for Tool-Calling Large Language Models (arXiv:2509.11963). A reward
model learns from right and wrong tool calls for the same request, and chooses the best of several.

  rlx train_scorer papers/tool_rm workdir=DIR model.path=MODEL
  rlx train_scorer papers/tool_rm:smoke workdir=DIR model.path=MODEL

Models write calls for requests whose calls are known; a rule compares them, and a model with a
head learns by the Bradley-Terry loss of all pairs of a right and a wrong one. `best@k` of the
summary is the accuracy of the best of k. For calls of other models, train_scorer.rollouts=FILE has
rows {"question", "chosen", "rejected"}. As a reward, DIR/scorer is scorers.NAME.path.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: one
model writes the calls, and right ones are its own, too; names of tools are not replaced by random
ones; a term that centres the scores, if there is one, is left out (it changes no order). The
requests are made.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: low.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "ranks tool calls better than reward models for text, up to 25% on average by the best of n",
)


def get_config(arg=""):
  c = domains.grpo(
      arg, "tool_calls", "Call tools in <tool_call></tool_call>, one call a line: "
      '{"name": ..., "parameters": {...}}.', verifier="tool_calls.exact")                       # P
  c.eval.samples = c.rollouts.per_prompt                                                      # O
  return domains.learn_scorer(c, "bradley_terry")                                             # P
