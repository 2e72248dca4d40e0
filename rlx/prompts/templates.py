r"""Prompt -> the input of the model: a text, or chat messages.

Messages are a list of {"role", "content"}, which the tokenizer's chat template renders.
"""

from rlx.core import records

BOXED = r"Reason step by step, and put your final answer within \boxed{}."


def plain(prompt: records.Prompt) -> str:
  """The question without changes."""
  return prompt.text


def chat(prompt: records.Prompt, *, system: str | None = None, examples=()) -> list[dict]:
  """One user turn, after a system turn and worked examples if there are any.

  Args:
    system: content of the system turn.
    examples: k pairs (question, worked answer), each a user turn and its reply.
  Example:
    >>> prompt = records.Prompt(id="a", text="1+1?", answer="2", verifier="")
    >>> templates.chat(prompt, system="Be brief.")
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': '1+1?'}]
  """
  turns = [] if system is None else [dict(role="system", content=system)]
  for question, answer in examples:
    turns += [dict(role="user", content=question), dict(role="assistant", content=answer)]
  return turns + [dict(role="user", content=prompt.text)]


def boxed(prompt: records.Prompt, *, system: str | None = None,
          instruction: str = BOXED) -> list[dict]:
  r"""A chat that asks for the answer within \boxed{}."""
  turns = chat(prompt, system=system)
  turns[-1]["content"] += "\n\n" + instruction
  return turns


def few_shot(prompt: records.Prompt, *, examples, question: str = "Question: ",
             answer: str = "Answer: ") -> str:
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
