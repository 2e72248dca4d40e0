"""IFDECORATOR: Wrapping Instruction Following Reinforcement Learning with Verifiable Rewards
(arXiv:2508.04632).

The reward is 1 if rules find all instructions of a prompt followed and a judge finds that the
answer does what was asked in earnest, and 0 otherwise.

  rlx train papers/if_decorator workdir=DIR model.path=MODEL
  rlx train papers/if_decorator:smoke workdir=DIR model.path=MODEL
  rlx train papers/if_decorator:judge workdir=DIR model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME

The variant :judge has both gates, the others have the rules alone. The flywheel, in which a
language model makes instructions harder that are mostly followed and drops those that never are, is

  rlx write base task=harder rows=FILE completions=SAMPLED to=HARDER \
      verifier.judge.url=URL verifier.judge.model=NAME

and `prompts.source=HARDER prompts.dataset=jsonl prompts.columns.meta=items`; it turns again with
completions of what was written. How often completions of trip-wire prompts take a short cut says
`rlx.evals.verifier.trip_rates`.

Letters beside the values: C taken from the released code (guox18/IFDecorator,
recipe/reward/cif.py), O our choice (the words of the request). Differences from the paper: a second
request for each instruction, with a checklist, is not made, and the judge reads the prompt with its
instructions; answers that break a rule are judged, too. The flywheel chooses among IFEval's kinds
of instructions, where the paper's model writes a program for each; without it instructions are
made, of these kinds. An answer that is cut off is 0 and not -1.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: high.
"""
from rlx.configs import base, bases
from rlx.configs.bases import domains

CLAIMS = (
    "Qwen2.5-32B-Instruct reaches 87.43% on IFEval",
    "the check of intent lowers the rate of reward hacking that trip-wire prompts show",
)


TEMPLATE = domains.request(
    "Does an answer to a request do what was asked for, in earnest?",
    "It does if it serves the purpose of the request, is complete, makes sense and does no harm. "
    "Rules about words, form and length are checked elsewhere and are no reason, but an answer "
    "that is there for such rules alone serves no purpose. A single failure is enough for no. The "
    "last line of your reply is: Verdict {nonce}: yes, or Verdict {nonce}: no.",
    request="question", answer="answer")                                                   # C, O


def get_config(arg=""):
  kind, size = base.variant(arg, ("rules", "judge"))
  c = domains.grpo(size, "instructions", "Follow all instructions exactly, with the text alone.",
                   verifier="instructions.followed", n_min=2, n_max=5)  # C all of them; O 2 to 5
  if kind == "rules": return c
  c.verifier.judge.update(bases.JUDGE)
  c.verifier.judge.template, c.verifier.scores = TEMPLATE, ("judge.chat",)
  c.rewards.outcome = dict(name="outcome.stages", coef=1.0, weights=(0.0, 1.0),               # C
                           thresholds=(1.0,))
  return c
