"""RL-PLUS: Countering Capability Boundary Collapse of LLMs in Reinforcement Learning with
Hybrid-policy Optimization (arXiv:2508.00222). One completion of each group is a
demonstration. Its tokens are weighted by an importance ratio to a mixture of policies, and
more if the policy finds them improbable.

  rlx train papers/rl_plus workdir=DIR
  rlx train papers/rl_plus:smoke workdir=DIR

Letters beside the values: C taken from the released code (YihongDong/RL-PLUS), O our choice
(the number of minibatches and the constant length). The demonstrations are solutions
without a wrong step.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "prompts that are never solved by own samples become solvable: pass@k stays above that of GRPO",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.rollouts.demonstration = base.part("demonstration")                # C: one of 8
  c.advantages.outcome = dict(name="group.against_sampled")  # C
  c.learner.loss = dict(name="policy.rl_plus", focal_exponent=0.5)              # C
  c.learner.aggregation = "seq-mean-token-sum-norm"                    # C
  c.learner.entropy_coef = 1e-3                                        # C
  c.learner.minibatches = 4                                            # O
  return c
