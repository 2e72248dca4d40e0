"""RL Tango: Reinforcing Generator and Verifier Together for Language Reasoning (arXiv:2505.15034).
A second language model, the verifier, reads each solution of the policy, reasons, and states a
verdict on every step and one on the whole. Its verdicts on the steps reward the policy beside the
exact verdict on the answer. The verifier learns in the same steps, by RL: the reward of a reply is
1 if its verdict on the whole is that of the exact verifier, so that it needs no labels of steps.

  rlx train papers/tango base=gsm8k model.path=MODEL workdir=DIR \
      verifier.judges.verifier.model=VERIFIER
  rlx train papers/tango:frozen base=gsm8k model.path=MODEL workdir=DIR \
      verifier.judges.verifier.model=VERIFIER

VERIFIER is a chat model, the same as MODEL or another one, such as one that `rlx sft` has taught
the form of a verdict (papers/gen_rm). The variant :frozen does not train it, the paper's rival.

Letters beside the values: P stated in the paper, as its summary describes it, O our choice.
Differences from the paper, whose code is not published: it trains the verifier alone first, and
then less often than the policy; here both learn in every step. There a malformed reply costs more
than a wrong verdict; here both get 0. The policy reads the first of the replies to a request. The
advantage of a step is that of process supervision in GRPO.

Confidence in the formula: low.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "the policy becomes better than with rewards of the outcome alone, or with a frozen verifier",
    "the verifier finds wrong steps without having seen labels of steps",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("online", "frozen"))
  with base.over(base.chosen() or "gsm8k"):
    base.part("chat model")
    c = quickstart.grpo(size)                                                     # P
  c.verifier.workers = max(c.verifier.workers, 1)
  c.verifier.steps = "judge.steps/verifier"
  c.verifier.judges = dict(verifier=dict(
      model="runs/verifier/model", temperature=1.0, whole=True,                   # P
      prompt_tokens=c.prompts.max_tokens + 2 * c.rollouts.max_tokens))            # O
  c.rewards.steps = dict(name="steps.refine", coef=0.5, schedule="linear",        # O; P: it decays
                         total_steps=c.steps)
  c.advantages.steps = dict(name="process.grpo")                                  # O
  if kind == "frozen": return c
  c.verifier.judges.verifier.online = dict(
      replies=c.rollouts.per_prompt, balanced=True,                               # O; P: balanced
      advantages=dict(name="group.grpo"),                                         # P
      optimizer=dict(lr=c.learner.optimizer.lr))                                  # O
  return c
