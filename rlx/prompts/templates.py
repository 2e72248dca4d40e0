r"""Prompt -> the input of the model: a text, or chat messages.

Messages are a list of {"role", "content"}, which the tokenizer's chat template renders.
"""

BOXED = r"Reason step by step, and put your final answer within \boxed{}."


def plain(prompt):
  """The question without changes."""
  return prompt.text


def chat(prompt, *, system=None, examples=()):
  """One user turn, after a system turn and worked examples if there are any.

  Args:
    system: content of the system turn.
    examples: k pairs (question, worked answer), each a user turn and its reply.
  """
  turns = [] if system is None else [dict(role="system", content=system)]
  for question, answer in examples:
    turns += [dict(role="user", content=question),
              dict(role="assistant", content=answer)]
  return turns + [dict(role="user", content=prompt.text)]


def boxed(prompt, *, system=None, instruction=BOXED):
  r"""A chat that asks for the answer within \boxed{}."""
  turns = chat(prompt, system=system)
  turns[-1]["content"] += "\n\n" + instruction
  return turns


def few_shot(prompt, *, examples, question="Question: ", answer="Answer: "):
  """Worked examples, then the question, as one text.

    Question: <example 1>
    Answer: <its answer>

    Question: <the question>
    Answer:

  Args:
    examples: k pairs (question, worked answer).
    question, answer: the text before each.
  """
  shots = [f"{question}{q}\n{answer}{a}\n\n" for q, a in examples]
  # No trailing space: tokenizers attach it to the answer's first word.
  return "".join(shots) + f"{question}{prompt.text}\n{answer}".rstrip()
