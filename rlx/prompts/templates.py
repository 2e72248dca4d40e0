r"""Prompt -> the input of the model: a text, or chat messages.

Messages are a list of {"role", "content"}, which the tokenizer's chat template renders. A prompt
that is a chat (`Prompt.messages`) stays one under every template. Other keys of the section
prompts.template than a template's options are variables of the chat template, such as
enable_thinking.
"""

from rlx.core import records

BOXED = r"Reason step by step, and put your final answer within \boxed{}."


def plain(prompt: records.Prompt) -> str | list[dict]:
  """The question without changes."""
  return list(prompt.messages) or prompt.asked


def chat(prompt: records.Prompt, *, system: str | None = None, examples=(),
         wording: str = "{question}") -> list[dict]:
  """The chat, or one user turn, after a system turn and worked examples if there are any.

  Args:
    system: content of the system turn; a chat that has one keeps its own.
    examples: k pairs (question, worked answer), each a user turn and its reply.
    wording: how each question is asked; {question} stands for it, and for the last turn of a chat.
  Example:
    >>> prompt = records.Prompt(id="a", text="1+1?", answer="2", verifier="")
    >>> templates.chat(prompt, system="Be brief.")
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': '1+1?'}]
  """
  asked = list(prompt.messages) or [dict(role="user", content=prompt.asked)]
  turns = [] if system is None else [dict(role="system", content=system)]
  if asked[0]["role"] == "system": turns = [asked.pop(0)]
  ask = lambda text: wording.replace("{question}", text)
  for question, answer in examples:
    turns += [dict(role="user", content=ask(question)), dict(role="assistant", content=answer)]
  last = max((i for i, turn in enumerate(asked) if turn["role"] == "user"), default=None)
  if last is not None: asked[last] = asked[last] | dict(content=ask(asked[last]["content"]))
  return turns + asked


def boxed(prompt: records.Prompt, *, system: str | None = None,
          instruction: str = BOXED) -> list[dict]:
  r"""A chat whose last turn of the user asks for the answer within \boxed{}."""
  turns = chat(prompt, system=system)
  last = max(i for i, turn in enumerate(turns) if turn["role"] == "user")
  turns[last] = turns[last] | dict(content=turns[last]["content"] + "\n\n" + instruction)
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
  Raises:
    ValueError: the prompt is a chat.
  """
  if prompt.messages:
    raise ValueError("prompts.template.name='few_shot': its question is a list of messages; use "
                     "the template chat, which takes examples too.")
  shots = [f"{question}{q}\n{answer}{a}\n\n" for q, a in examples]
  # No trailing space: tokenizers attach it to the answer's first word.
  return "".join(shots) + f"{question}{prompt.asked}\n{answer}".rstrip()
