"""Is a finished dialogue the prompt, then the reply, then the end of a turn?

rlx trains on the ids that were sampled after a prompt's ids, and on written completions
as `Tokenizer.pair` spells them: a prompt's ids and then the completion's, by construction,
whatever a chat template does. What a template can do is make something else of the same
dialogue when it is finished or goes on. That matters where text becomes a prompt again
(worked examples in prompts.template, a second turn), where others train or serve what was
learned here, and to a start whose own training saw the finished form.
"""
PROBES = ("answer-7", "<think>\nthought-7\n</think>\n\nanswer-7")  # With and without a thought.


def faults(tokenizer, messages, reply):
  """What a chat template does to a dialogue beside writing it down.

  Args:
    tokenizer: io/tokenizer.py Tokenizer with a chat template.
    messages: up to where the assistant speaks.
    reply: its words.
  Returns:
    {kind: what was found}, empty for a template that is stable here:
      turns    words of an earlier turn are not in the prompt
      date     the prompt has the date in it
      prompt   the finished dialogue does not start with the prompt
      before   it has something between the prompt and the reply
      reply    the reply's words are others
      tokens   the ids are not those of prompt and reply, one after the other
      history  when the dialogue goes on, prompt and reply are another text
  Raises:
    ValueError: the template refuses the messages.
  """
  prompt = tokenizer.chat(messages)
  try:
    return _faults(tokenizer, messages, reply, prompt)
  except ValueError as e:
    return dict(prompt=f"a finished dialogue cannot be made: {e}")


def _faults(tokenizer, messages, reply, prompt):
  found, said = {}, [*messages, dict(role="assistant", content=reply)]
  if lost := [m for m in messages if m["content"].strip() not in prompt]:
    found["turns"] = f"the prompt has not all of the {lost[0]['role']}'s {lost[0]['content']!r:.60}"
  if _asks_date(tokenizer, messages):
    found["date"] = "the prompt has the date in it, so it is another one every day"
  missing, closing, kept = _after(tokenizer.chat(said, opens=False), prompt, reply)
  if missing is None:
    found["prompt"] = "a finished dialogue does not start with the prompt"
  elif missing:
    found["before"] = f"before the assistant's words a finished dialogue has {missing!r} more"
  if not kept: found["reply"] = f"a finished dialogue has not the reply {reply!r:.60} as it is"
  prompt_ids, reply_ids = tokenizer.pair(prompt, reply)
  ids, text = prompt_ids + reply_ids, prompt + reply
  if tokenizer.encode(text + closing)[:len(ids)] != ids:
    found["tokens"] = (f"the ids of {prompt[-20:]!r} and {reply[:20]!r} are not those of both "
                       "together")
  more = tokenizer.chat([*said, dict(role="user", content="question-8")])
  if not more.startswith(text):
    found["history"] = "when another turn follows, prompt and reply are another text"
  return found


def _asks_date(tokenizer, messages):
  """Does the template call strftime_now? Without one to call it fails."""
  try:
    tokenizer.chat(messages, strftime_now=None)
  except ValueError:
    return True
  return False


def _after(whole, prompt, reply):
  """(what stands before the reply or None, what after it, is it there as it is?)"""
  if not whole.startswith(prompt): return None, "", reply in whole
  rest = whole[len(prompt):]
  for words in (reply, reply.strip()):
    before, found, after = rest.partition(words)
    if found: return before, after, words == reply
  return "", "", not reply
