"""Good Learners Think Their Thinking: Generative PRM Makes Large Reasoning Model More Efficient
Math Learner (arXiv:2507.23317). A judge says of each step whether it is right. Consecutive steps
with the same verdict are one thought, which has one reward; wrong thoughts cost less on prompts
that the policy seldom solves.

  rlx train papers/tp_grpo workdir=DIR
  rlx train papers/tp_grpo:smoke workdir=DIR
  rlx train papers/tp_grpo:judge base=gsm8k model.path=MODEL verifier.judge.url='' \
      verifier.judge.model=reference

The variant :judge asks a generative PRM, which writes a verdict for each step: a served model
(verifier.judge.url), or one beside the policy, here the initial policy.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
formula is known from the abstract, so that how ability changes the reward, the weights and the
baseline are ours; its judge compares steps with signals in the solution itself, here it is asked
whether each step is right; completions are on-policy here.

Confidence in the formula: low.
"""
from rlx.configs import base, quickstart

CLAIMS = ("reaches higher accuracy than rewards of outcomes alone, with fewer samples",)


def get_config(arg=""):
  kind, size = base.variant(arg, ("checker", "judge"))
  c = quickstart.grpo(size)
  if kind == "judge":
    base.use_judge(c)
    c.rollouts.step_separator = c.rollouts.step_separator or "\n\n"                           # O
  c.verifier.steps = "judge.steps" if kind == "judge" else base.part("checker of steps")      # O
  c.rewards.thoughts = dict(name="steps.thoughts", coef=0.2, right=1.0, wrong=1.0)            # P, O
  c.advantages.thoughts = dict(name="process.totals_loo")                                     # O
  return c
