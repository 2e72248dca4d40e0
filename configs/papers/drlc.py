"""Beyond Sparse Rewards: Enhancing Reinforcement Learning with Language Model Critique in Text
Generation (arXiv:2401.07382). A critic quotes good and bad spans of a completion; their tokens get
+1 and -1 in addition to the reward at the end.

  rlx train papers/drlc workdir=DIR
  rlx train papers/drlc:smoke workdir=DIR
  rlx train papers/drlc base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME
  rlx train papers/drlc base=gsm8k model.path=MODEL verifier.judge.url='' \
      verifier.judge.model=reference

r_t = alpha_1 r_env,t + alpha_2 r_span,t. The second command of a language model asks a served
critic, the third the initial policy itself.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: it
shows its critic worked examples of each task, this config the instruction alone.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("spans of a critic as rewards learn faster than PPO with the reward at the end alone",)


def get_config(arg=""):
  c = quickstart.ppo(arg)                                                          # P: PPO
  base.use_judge(c)
  c.verifier.spans = "judge.spans"
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0),                 # O: alpha_1
                   spans=dict(name="steps.spans", coef=0.2))                       # O: alpha_2
  return c
