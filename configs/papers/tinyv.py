"""TinyV: Reducing False Negatives in Verification Improves RL for LLM Reasoning
(arXiv:2505.14625): a second verifier is asked about what the strict one rejects.

  python -m rlx.train --config=configs/papers/tinyv.py --workdir=DIR
  python -m rlx.train --config=configs/papers/tinyv.py:smoke --workdir=DIR

C (code) uw-nsl/TinyV, tinyv.py and run_grpo_tinyv.sh (8 completions). Its second
verifier is a model of 1.5B; here it is a looser rule, since the verdict on chains
demands their form.
"""
from configs import quickstart

PAPER = dict(
    title="TinyV: Reducing False Negatives in Verification Improves RL for LLM Reasoning",
    arxiv="2505.14625",
    claims=(
        "fewer false negatives: more prompts have a gradient, and the final pass rate is "
        "higher",
    ),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  # Rejected here for its form, accepted there by its last number: "7;2;5;#5".
  c.verifier.scores = ("math_answer.final",)
  c.verifier.workers = 1
  c.rewards = dict(outcome=dict(
      name="outcome.cascade", coef=1.0, mode="addon", weight=1.0))  # C
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)  # C
  c.kl.coef, c.kl.place, c.kl.kind = 0.001, "loss", "k3"  # C also in the reward there
  c.learner.minibatches = 2                       # C 128 prompts in parts of 64
  c.rollouts.keep = dict(name="keep.everything")  # the band would see the strict verdict
  return c
