"""Reinforcement Learning on Pre-Training Data (arXiv:2509.19249). The policy thinks about a text,
and then writes its next sentence, or one that is missing; the reward is 1 if a judge finds this to
be in meaning a beginning of the true text.

  rlx train papers/rlpt prompts.source=FOLDER/{split}.jsonl workdir=DIR model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME
  rlx train papers/rlpt:words prompts.source=FOLDER/{split}.jsonl workdir=DIR model.path=MODEL

A row is {"text": TEXT} (rlx/prompts/datasets/segments.py). The variant :words needs no judge: the
words of the completion have to be the first ones of the true text.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
texts of its judge and of its questions are not known to us, nor how many sentences an answer has;
here it is the next sentence and one behind it. Both tasks have the same share. Its training begins
with supervised examples of the form, for which `rlx sft` is there.

Confidence in the formula: medium.
"""
from rlx.configs import base, bases, quickstart
from rlx.configs.bases import domains

CLAIMS = (
    "raises Qwen3-4B-Base by 3.0 on MMLU, 8.1 on GPQA-Diamond and 6.6 on AIME24, from texts alone",
)


TEMPLATE = domains.request(
    "Is a prediction of how a text goes on, in its meaning, a beginning of the true text?",
    "It is if everything that it says stands in the true text, from its start on and in the same "
    "order; it may end earlier and use other words. The last line of your reply is: Verdict "
    "{nonce}: yes, or Verdict {nonce}: no.",
    question="question", true_text="reference", prediction="answer")                         # O


def get_config(arg=""):
  kind, size = base.variant(arg, ("judge", "words"))
  with base.over(base.chosen() or "domains"):
    base.part("chat model")
    c = quickstart.grpo(size)
  c.prompts.source, c.prompts.dataset = "TEXTS/{split}.jsonl", "segments"
  c.prompts.split, c.eval.split, c.prompts.options = "train", "test", {}
  c.prompts.columns = dict(form="both", verifier=dict(                                        # P
      judge="judge.chat", words="coverage.prefix")[kind])
  c.prompts.template = dict(name="chat", system="Think in <think></think>, then reply with the "
                            "sentence alone.")                                                # O
  c.prompts.max_tokens = 1024                                                                 # O
  c.eval.answer = r"(?s)\s*(.*\S)"
  if kind == "judge":
    c.verifier.judge.update(bases.JUDGE)
    c.verifier.judge.template = TEMPLATE
  return c
