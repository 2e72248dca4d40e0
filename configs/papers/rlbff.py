"""RLBFF: Binary Flexible Feedback to bridge between Human Feedback & Verifiable Rewards
(arXiv:2509.21319). A reward model says whether an answer satisfies a principle, such as "the
information is accurate": by the probability of yes, or after reasons.

  rlx sft papers/rlbff prompts.source=judging:FILE workdir=DIR/start model.path=MODEL
  rlx train papers/rlbff prompts.source=judging:FILE workdir=DIR model.path=MODEL
  rlx train papers/rlbff:policy prompts.source=FOLDER/{split}.jsonl workdir=DIR model.path=MODEL \
      verifier.judge.model=DIR/start/model

A row of FILE is {"question", "completion", "principle", "verdict"}, with 1 where the principle is
satisfied. The first command trains the model that says yes or no at once, the second one that
reasons first. `rlx evaluate` measures both: `judging/p_yes` without reasons, `judging/accuracy`
with them. The variant :policy trains a policy on rows {"question", "principle"}: the reward is
p(yes) of the first model, which stands beside the policy (verifier.judge.model) or behind an
endpoint that gives log-probs (verifier.judge.url).

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
score is the probability and not the difference of the logits of yes and no, which has the same
order; its principles are taken by a language model from what people write about answers; the words
of the request are ours.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart
from rlx.configs.bases import domains

CLAIMS = (
    "does better than Bradley-Terry models of the same data",
    "86.2% on RM-Bench and 81.4% on JudgeBench",
)


TEMPLATE = domains.request(
    "Does an answer to a question satisfy a principle?",
    "Judge by this principle alone. The last line of your reply is: Verdict {nonce}: yes, or "
    "Verdict {nonce}: no.", question="question", principle="reference", answer="answer")      # P, O


def get_config(arg=""):
  kind, size = base.variant(arg, ("judge", "policy"))
  if kind == "judge":
    return domains.judge(size, "verdict", reference="principle", template=TEMPLATE)           # P
  with base.over(base.chosen() or "domains"):
    base.part("chat model")
    c = quickstart.grpo(size)
  c.prompts.source, c.prompts.dataset = "ROWS/{split}.jsonl", "jsonl"
  c.prompts.split, c.eval.split, c.prompts.options = "train", "test", {}
  c.prompts.columns = dict(answer="principle", verifier="judge.chat")
  c.prompts.template = dict(name="chat")
  c.prompts.max_tokens = 1024                                                                 # O
  c.verifier.judge.update(model="reference", template=TEMPLATE, probability=True)             # P
  return c
