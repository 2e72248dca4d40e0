"""Exploring Reasoning Reward Model for Agents (arXiv:2601.22154). A reward model reads a whole
episode, reasons about it, writes a critique and states a score, which is added to the reward for
the answer (Reagent-R).

  rlx train papers/agent_rrm workdir=DIR verifier.judge.url=URL verifier.judge.model=NAME
  rlx train papers/agent_rrm base=tools model.path=MODEL workdir=DIR \
      verifier.judge.url=URL verifier.judge.model=NAME

The judge sees what the policy wrote, its thoughts too, and what the environment answered. The
initial model is that of environments/calculator.

Letters beside the values: C taken from the released code (kxfan2002/Reagent, examples/reagent), P
stated in the paper, O our choice (the words of the request). Differences from the paper: its reward
model is trained, first on critiques of other models and then by RL; its critiques also join the
prompt of a second attempt (Reagent-C and -U), which is not here; its agents search the web and run
code.

Confidence in the formula: high.
"""
from rlx.configs import bases
from rlx.configs.bases import domains
from rlx.configs.environments import calculator

CLAIMS = (
    "scores of episodes beside the answer do better than rewards for the answer alone",
    "critiques and scores together do best, 43.7% on GAIA",
)


TEMPLATE = domains.request(
    "How well does an agent go about a task, whatever its answer is?",
    "Reason about each of its steps. Then write a short critique, which says what it should do "
    "otherwise. The last line of your reply is a score from 0 to 1: Score {nonce}: 0.7",  # P, O
    question="question", episode="answer")


def get_config(arg=""):
  c = calculator.get_config(f"outcome-{arg}" if arg else "outcome")
  c.verifier.workers = max(c.verifier.workers, 1)
  c.verifier.judge.update(bases.JUDGE)
  c.verifier.judge.update(template=TEMPLATE, reads=r"Score {nonce}: ([01](?:\.\d+)?)",
                          thoughts=True)                                                       # P
  c.verifier.scores = ("judge.chat",)
  c.rewards = dict(answer=dict(name="outcome.verdict", coef=1.0),                             # C
                   episode=dict(name="outcome.score", coef=0.3))                              # C
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # C
  return c
