"""What chat templates put around replies, and whether a finished dialogue keeps its prompt.

rlx trains on the sampled ids after the ids of a prompt, and on written completions as
`Tokenizer.pair` encodes them: by construction the ids of the prompt, then those of the
completion, whatever the chat template does. But a template can render the same dialogue
differently once it is finished or continued. This matters where text becomes a prompt again
(examples in prompts.template, a second turn), where other systems train or serve the model, and
for a start model that was trained on the finished form.
"""
from collections.abc import Mapping, Sequence
from typing import Any

from rlx.io import tokenizer as tokenizer_io

PROBES = ("answer-7", "<think>\nthought-7\n</think>\n\nanswer-7")  # Without and with a thought.
QUESTION = (dict(role="user", content="question-7"),)
# Messages that a template has to render before a run starts.
_TEXTS = ("", " \n", "{\"a\": [1]}\n", "</think>\n<tool_call>'&\\\"", "7")


def faults(tokenizer: tokenizer_io.Tokenizer, messages: list[dict], reply: str) -> dict[str, str]:
  """The differences between a finished dialogue and its prompt followed by the reply.

  Args:
    tokenizer: io/tokenizer.py Tokenizer with a chat template.
    messages: the dialogue before the assistant's reply.
    reply: the text of the reply.
  Returns:
    {kind: description}, empty for a template that is stable here:
      turns    the prompt lacks text of an earlier turn
      date     the prompt contains the date
      prompt   the finished dialogue does not start with the prompt
      before   it has additional text between the prompt and the reply
      reply    it alters the text of the reply
      tokens   its ids are not those of the prompt followed by those of the reply
      history  with another turn after it, prompt and reply are rendered differently
  Raises:
    ValueError: the template refuses the messages.
  """
  prompt = tokenizer.render(messages)
  try:
    return _faults(tokenizer, messages, reply, prompt)
  except ValueError as e:
    return dict(prompt=f"a finished dialogue cannot be rendered: {e}")


def between(tokenizer: tokenizer_io.Tokenizer, role: str,
            opening: Sequence[Mapping[str, Any]] = QUESTION, **values: Any) -> tuple[str, str]:
  """The texts of the chat template before and after a message that follows a reply.

  before: the end of the assistant's turn and the start of the message's; after: the end of the
  message and the start of the next reply. What the policy drew stays as it is, although many
  templates would render earlier turns in another way once others follow.

  Args:
    role: of the message, such as "user" or "tool".
    opening: the messages with which dialogues start.
    **values: variables of the template, as of `Tokenizer.chat`.
  Raises:
    ValueError: the template cannot be extended turn by turn: it refuses the messages, leaves out
      the message, or renders it in another way once others follow, or what it puts around it
      depends on the reply or on the number of the turn.
  """
  texts, fault = set(), "The chat template cannot be extended turn by turn: "
  for reply in PROBES:
    for contents in (("observation-9",), ("observation-8", "observation-9")):
      dialogue = list(opening)
      for content in contents:
        dialogue += [dict(role="assistant", content=reply), dict(role=role, content=content)]
      # Thoughts of earlier turns may be left out, so the last line stands for the reply.
      *earlier, rest = tokenizer.chat(dialogue, **values).split(reply.rpartition("\n")[2])
      before, has_message, after = rest.partition("observation-9")
      if len(earlier) < len(contents) or not has_message:
        raise ValueError(f"{fault}it leaves out a reply or a message of role {role!r}.")
      if after == tokenizer.closing:
        raise ValueError(f"{fault}it renders a message of role {role!r} as a reply.")
      if len(contents) > 1 and not earlier[-1].startswith(before + contents[0]):
        raise ValueError(f"{fault}once others follow, it renders a message of role {role!r} in "
                         "another way.")
      texts.add((before, after))
  if len(texts) > 1:
    raise ValueError(f"{fault}what it puts around a message of role {role!r} depends on the reply "
                     "before it or on the number of the turn.")
  for text in _TEXTS: follow(tokenizer, role, text, opening, **values)
  return texts.pop()


def follow(tokenizer: tokenizer_io.Tokenizer, role: str, text: str,
           opening: Sequence[Mapping[str, Any]] = QUESTION, **values: Any) -> str:
  """What the template renders after a reply for a message: `between` has what is around it.

  The template may trim, escape or split the message's text, and write it as JSON.

  Args: as `between`; text: the message's.
  Raises:
    ValueError: the template refuses the messages.
  """
  reply = PROBES[0]
  while reply in text: reply += "7"
  return tokenizer.chat([*opening, dict(role="assistant", content=reply),
                         dict(role=role, content=text)], **values).rpartition(reply)[2]


def split_dialogue(tokenizer: tokenizer_io.Tokenizer, messages: Sequence[Mapping],
                   **values: Any) -> list[str]:
  """The texts of a finished dialogue: [prompt, reply, what follows it, reply, ...].

  They are those of the whole dialogue as the template renders it, without what follows the last
  reply. Of a single reply, which ends the dialogue, the template may render anything: the prompt is
  that for which the policy is asked, and the reply stands as it is.

  Args:
    messages: they end with a reply of the assistant.
    **values: variables of the template, as of `Tokenizer.chat`.
  Raises:
    ValueError: there are several replies, and the template renders one of them in another way than
      after its prompt.
  """
  replies = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
  texts, start = [], 0
  whole = tokenizer.chat(messages, opens=False, **values) if len(replies) > 1 else None
  for i in replies:
    prompt, reply = tokenizer.chat(messages[:i], **values), messages[i]["content"]
    if whole is not None and not whole.startswith(prompt + reply):
      raise ValueError(f"the chat template renders message {i}, a reply, in another way than after "
                       "its prompt, so that not every reply can be learned; give each its own row.")
    texts += [prompt[start:], reply]
    start = len(prompt) + len(reply)
  return texts


def _faults(tokenizer, messages, reply, prompt):
  begun = messages[-1:] if messages[-1]["role"] == "assistant" else []
  start = begun[0]["content"] if begun else ""
  before = messages[:len(messages) - len(begun)]
  out: dict[str, str] = {}
  dialogue = [*before, dict(role="assistant", content=start + reply)]
  if lost := [m for m in messages if m["content"].strip() not in prompt]:
    out["turns"] = (f"the prompt does not contain all of the {lost[0]['role']}'s "
                    f"{lost[0]['content']!r:.60}")
  if _asks_date(tokenizer, messages):
    out["date"] = "the prompt contains the date, so it changes every day"
  missing, closing, is_kept = _around(tokenizer.chat(dialogue, opens=False), prompt, reply)
  if missing is None:
    out["prompt"] = "a finished dialogue does not start with the prompt"
  elif missing:
    out["before"] = f"a finished dialogue has {missing!r} in addition before the reply"
  if not is_kept: out["reply"] = f"a finished dialogue alters the reply {reply!r:.60}"
  prompt_ids, reply_ids = tokenizer.pair(prompt, reply)
  ids, text = prompt_ids + reply_ids, prompt + reply
  if tokenizer.encode(text + closing)[:len(ids)] != ids:
    out["tokens"] = (f"the ids of {prompt[-20:]!r} followed by those of {reply[:20]!r} are not "
                     "those of both together")
  if not tokenizer.chat([*dialogue, dict(role="user", content="question-8")]).startswith(text):
    out["history"] = "when another turn follows, prompt and reply are rendered differently"
  return out


def _asks_date(tokenizer, messages):
  """Whether the template calls strftime_now: it fails if that is no function."""
  try:
    tokenizer.chat(messages, strftime_now=None)
  except ValueError:
    return True
  return False


def _around(dialogue, prompt, reply):
  """(text between the prompt and the reply or None, text after the reply, is the reply intact)"""
  if not dialogue.startswith(prompt): return None, "", reply in dialogue
  rest = dialogue[len(prompt):]
  for words in (reply, reply.strip()):
    before, separator, after = rest.partition(words)
    if separator: return before, after, words == reply
  return "", "", not reply
