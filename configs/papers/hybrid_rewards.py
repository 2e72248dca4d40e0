"""Exploring Data Scaling Trends and Effects in Reinforcement Learning from Human Feedback
(arXiv:2503.22230): prompts that a rule can check have a verifier, all others a judge that knows
the reference answer.

  rlx train papers/hybrid_rewards workdir=DIR
  rlx train papers/hybrid_rewards:smoke workdir=DIR
  rlx train papers/hybrid_rewards base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
judge of open prompts is trained, and where they have no answer it compares with the best of
several completions of the supervised model. Other mathematics with a judge stands in for open
prompts (on the toy, longer chains). The paper trains on the prompts with the lowest first
rewards, and on mathematics and code first; neither is done here.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "verifiers resist reward hacking best, then judges that know the answer, then judges that "
    "compare with the best of several completions",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  base.use_judge(c)
  verified, judged = base.part("prompts for a verifier and for a judge")
  c.prompts.mixture = dict(verified=dict(verified, weight=0.5),                  # O: equal shares
                           judged=dict(judged, columns=dict(verifier="judge.chat"), weight=0.5))
  return c
