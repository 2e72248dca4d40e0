"""iGRPO: Self-Feedback-Driven LLM Reasoning (arXiv:2602.09000). In each step every question is
answered, and is asked again behind the best of its answers, which may be wrong. GRPO learns from
the second answers alone, with a verifier's verdict as the reward of either.

  rlx train papers/igrpo workdir=DIR
  rlx train papers/igrpo:smoke workdir=DIR
  rlx train papers/igrpo base=gsm8k workdir=DIR
  rlx train papers/igrpo:grpo base=gsm8k workdir=DIR

The variant :grpo draws as many completions of as many questions without drafts, the paper's rival.
docs/data.md, "Prompts from own completions", has the mechanism. Held-out questions are asked once,
as in the paper.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: there
are as many drafts of a question as second answers, as in its 8 + 8, and no other split; the
request has other words. A question whose draft is too long for prompts.max_tokens is asked again
without it, which is not trained on.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "does better than GRPO with as many completions",
    "the entropy collapses later",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("drafts", "grpo"))
  c = quickstart.grpo(size)                                                     # P
  questions = c.prompts.per_step // 2
  if kind == "grpo":
    c.prompts.per_step, c.rollouts.per_prompt = questions, 2 * c.rollouts.per_prompt  # P: 16
    return c
  words = base.part("requests about completions", {}).get("draft", {})
  # O: for a completion and the words of a request, of the toy for the question again.
  c.prompts.max_tokens += c.rollouts.max_tokens + (20 if words else 256)
  c.prompts.derived = dict(best=dict(name="derived.draft", per_step=questions, **words))  # P
  c.rollouts.select_completions = dict(name="select_completions.derived")       # P
  return c
