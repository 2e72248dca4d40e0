"""Exploring Data Scaling Trends and Effects in Reinforcement Learning from Human Feedback
(arXiv:2503.22230): prompts that a rule can check have a verifier, all others a judge that knows
the reference answer.

  rlx train papers/hybrid_rewards workdir=DIR
  rlx train papers/hybrid_rewards:smoke workdir=DIR
  rlx train papers/hybrid_rewards:best workdir=DIR
  rlx train papers/hybrid_rewards base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME

In the variant :best the judge compares each completion with the answer of the row, as the paper
does where nothing is known to be right: it is then the best of several completions of the
supervised model. In rows of your own a column has the mean reward of the first policy's
completions; prompts.columns.first_reward names it, and prompts.columns.lowest is the share of the
rows, those of the lowest rewards, on which the paper trains.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
judge of open prompts is trained. Other mathematics with a judge stands in for open prompts (on the
toy, longer chains). The paper trains on mathematics and code first, which is not done here.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "verifiers resist reward hacking best, then judges that know the answer, then judges that "
    "compare with the best of several completions",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("answer", "best"))
  c = quickstart.grpo(size)
  base.use_judge(c)
  c.verifier.judge.against = "answer" if kind == "best" else "group"             # P
  verified, judged = base.part("prompts for a verifier and for a judge")
  c.prompts.mixture = dict(verified=dict(verified, weight=0.5),                  # O: equal shares
                           judged=dict(judged, weight=0.5, columns=dict(
                               verifier=dict(answer="judge.chat", best="judge.pairs")[kind])))
  return c
