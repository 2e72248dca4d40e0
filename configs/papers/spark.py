"""SPARK: Synergistic Policy And Reward Co-Evolving Framework (arXiv:2509.22624). In each step the
policy's own completions, whose verdicts are known, become further prompts for the same policy: is
this answer right, which of two is, and answer again behind a wrong one. The reward is 1 for the
right verdict, or for a right second answer, so that the policy learns to verify itself without
other labels.

  rlx train papers/spark workdir=DIR
  rlx train papers/spark:smoke workdir=DIR
  rlx train papers/spark base=gsm8k workdir=DIR
  rlx train papers/spark:policy base=gsm8k workdir=DIR

The variant :policy has as many groups of the task alone, the paper's rival. docs/data.md, "Prompts
from own completions", has the mechanism.

Letters beside the values: P as in the published code, O our choice. Differences from the paper: it
collects requests until there are as many as prompts of the task, and makes an update of their own
from them in the next step; here half of each batch are requests about the other half. There a
prompt whose completions differ gives a pair with probability 0.7, else a single judgement; here
each form has its share. Half of its second attempts show the wrong answer alone, here all show the
whole completion. The requests are in other words, and how second attempts are asked for is less
certain than how judgements are. The model of the toy has never seen any request.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "the policy becomes better than with the same RL on the task alone",
    "it becomes a better verifier of its own answers, without other labels",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("both", "policy"))
  c = quickstart.grpo(size)                                                     # P
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k3", "loss"                         # P
  if kind == "policy": return c
  words, quarter = base.part("requests about completions", {}), c.prompts.per_step // 4
  # O: for a completion and the words of a request, of the toy for the question again.
  c.prompts.max_tokens += c.rollouts.max_tokens + (20 if words else 256)
  judge = dict(name="derived.judging", shows="answer")                          # P
  if c.prompts.template.name != "plain": judge["template"] = dict(name="chat")
  c.prompts.derived = dict(
      verdict=dict(judge, form="verdict", per_step=quarter // 2, **words.get("verdict", {})),  # O
      pair=dict(judge, form="pair", per_step=quarter - quarter // 2, **words.get("pair", {})),
      reflection=dict(name="derived.reflection", per_step=quarter,              # P
                      **words.get("reflection", {})))
  return c
