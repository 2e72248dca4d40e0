"""From Faithfulness to Correctness: Generative Reward Models that Think Critically
(arXiv:2509.25409). A judge says of each sentence of an answer whether the documents support it,
reasons, and then says whether it is correct. The reward of an answer is the share of its sentences
that are correct.

  rlx sft papers/trm prompts.source=judging:FILE prompts.columns.judgement=judgement \
      workdir=DIR/start model.path=MODEL
  rlx train papers/trm prompts.source=judging:FILE workdir=DIR model.path=DIR/start/model
  rlx train papers/trm:policy prompts.source=FOLDER/{split}.jsonl workdir=DIR model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME
  rlx train papers/trm:useful prompts.source=FOLDER/{split}.jsonl workdir=DIR model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME scorers.trained.path=SCORER

A row of FILE is a sentence, {"question", "documents", "completion", "supported", "verdict"}:
whether the documents support it, true or false, and 1 for a correct one. Its judgement has a line
"Support: yes" or "Support: no", and ends with a line "Verdict: yes" or "Verdict: no". The variant
:policy trains a policy with the judge, which a server has, on rows {"question", "documents"}: the
documents are in the question, too, if the policy reads them. In the variant :useful a reward model
adds how useful the answer is.

Letters beside the values: P stated in the paper, O our choice (the words of the requests).
Differences from the paper: the judge reads a sentence without those around it when it learns; how
the rewards for both verdicts, and for correctness and usefulness, are weighed is not known to us.

Confidence in the formula: low.
"""
from rlx.configs import base, bases, quickstart
from rlx.configs.bases import domains

CLAIMS = (
    "finds more incorrect sentences than judges of faithfulness alone",
    "as a reward it raises correctness and usefulness of answers",
)


THINK = (
    "First say whether the documents support it{line}. Then reason about what they and what "
    "you know say of it: documents can be wrong, and what they do not have can be true. ")  # P, O
SENTENCE = domains.request(
    "Is a sentence of an answer to a question correct?",
    THINK.replace("{line}", ", on a line of its own: Support {nonce}: yes, or Support {nonce}: no")
    + "The last line of your reply is: Verdict {nonce}: yes, or Verdict {nonce}: no.",
    question="question", documents="reference", sentence="answer")
ANSWER = domains.request(
    "Which sentences of an answer to a question are correct? They stand below, each between two "
    "lines with its number.",
    "{steps}" + THINK.replace("{line}", "")
    + "Your reply ends with one line for each sentence, with its number in the "
      "place of N: Verdict {nonce} N: yes, or Verdict {nonce} N: no.",
    question="question", documents="reference")


def get_config(arg=""):
  kind, size = base.variant(arg, ("judge", "policy", "useful"))
  if kind == "judge":
    c = domains.judge(size, "verdict", reference="documents", supported="supported",          # P
                      template=SENTENCE)
    c.verifier.scores = ("judging.supported",)                                                # P
    c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0),                          # P
                     faithful=dict(name="outcome.score", coef=1.0))                           # P, O
    c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                          # O
    return c
  with base.over(base.chosen() or "domains"):
    base.part("chat model")
    c = quickstart.grpo(size)
  c.prompts.source, c.prompts.dataset = "ROWS/{split}.jsonl", "jsonl"
  c.prompts.split, c.eval.split, c.prompts.options = "train", "test", {}
  c.prompts.columns = dict(answer="documents", verifier="format.length")  # O: no verdict is read.
  c.prompts.template = dict(name="chat")
  c.prompts.max_tokens = 2048                                                                 # O
  c.rollouts.step_separator = ". "                                                            # O
  c.verifier.judge.update(bases.JUDGE)
  c.verifier.judges = dict(sentences=dict(template=ANSWER))
  c.verifier.steps = "judge.steps/sentences"
  c.rewards = dict(correct=dict(name="steps.completion", coef=1.0, kind="mean"))              # P
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # O
  if kind == "useful":
    c.verifier.scores = base.scored_by(c, "scorer", "reward model", gives="probability")      # O
    c.rewards.useful = dict(name="outcome.score", coef=1.0)                                   # P, O
  return c
