"""CAPO: Towards Enhancing LLM Reasoning through Verifiable Generative Credit Assignment
(arXiv:2508.02298). Every token gets the outcome reward of its completion, tokens of a
wrong step get a penalty in addition, and each token is compared with all tokens of the
group.

  rlx train papers/capo workdir=DIR
  rlx train papers/capo:smoke workdir=DIR
  rlx train papers/capo:judge base=gsm8k model.path=MODEL verifier.judge.url='' \
      verifier.judge.model=reference

The variant :judge asks a generative PRM, which writes a verdict for each step: a served model
(verifier.judge.url), or one beside the policy, here the initial policy.

Letters beside the values: P stated in the paper, O our choice.

Differences from the paper: the paper finds wrong steps by votes of a language model, this
config by an exact checker, or with :judge by one reply; the paper samples 16 completions per
prompt, this config 8.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = ("penalties of steps do better than GRPO with outcomes alone",)


def get_config(arg=""):
  kind, size = base.variant(arg, ("checker", "judge"))
  c = quickstart.grpo(size)
  if kind == "judge":
    base.use_judge(c)
    c.rollouts.step_separator = c.rollouts.step_separator or "\n\n"  # O
  c.verifier.steps = "judge.steps" if kind == "judge" else base.part("checker of steps")  # O
  c.rewards = dict(
      process=dict(name="steps.wrong_step_penalty", coef=1.0, outcome=2.0,
                   penalty=1.0))  # P
  c.advantages = dict(process=dict(name="process.grpo_tokens"), whiten=False)  # P
  return c
