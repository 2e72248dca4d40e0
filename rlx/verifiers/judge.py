"""A judge reads a text that is made of question, answer and reference, and scores it.

  chat       a language model behind an OpenAI-compatible endpoint
  function   any Python function text -> score

Options are `verifier.judge` of the config; the pool hands them over in a prompt's
`meta`. What cannot be told, for whatever reason, is unknown (NaN).

An answer is untrusted text. Every request has a nonce, a random word that neither the
answer nor the question or the reference contains. The lines around them carry it, so
that none of them can end early, and so does the verdict, so that an answer that the
judge repeats is no verdict. Neither keeps a model from being talked into a verdict, and
many models pass a lone ":", Zhao et al. 2025, arXiv:2507.08794: measure a judge with
rlx/evals/verifier.py.
"""
import functools
import hashlib
import http.client
import importlib
import itertools
import json
import os
import re
import time
import urllib.error
import urllib.request

from rlx.verifiers import errors

_SLOT = re.compile(r"{(question|answer|reference|nonce)}")
# An answer on lines of its own, between two that carry the nonce.
_FENCED = re.compile(r"^.*{nonce}.*\n{answer}\n(?=.*{nonce})", re.MULTILINE)
_AGAIN = {408, 425, 429, 500, 502, 503, 504}  # What may be different in a moment.
_MAX_BYTES = 2**22


def chat(prompt, text):
  """The score that a language model's reply states, see `read`.

  A request that fails in a way that may pass (no connection, too late, a busy
  server) is made again `retries` times, after `pause_s`, twice that, and so on. The
  reply comes in one piece; a redirection, which would take the key elsewhere, is an error.
  """
  return _judged(prompt, text, _options(prompt, "url"), ask)


def function(prompt, text):
  """`verifier.judge.function`, "package.module:name", of the rendered text.

  It returns a number, which is divided by `full`, or a text that is read as a reply is.
  Whatever it raises is unknown.
  """
  options = _options(prompt, "function")
  fn = _named(options["function"])
  return _judged(prompt, text, options, lambda rendered, _: fn(rendered))


def new_nonce(prompt, text, key=""):
  """12 hex digits that none of question, answer and reference contains.

    blake2b_key(count, id, question, answer, reference)     for the first count that will do

  The same for the same request, so that a resumed run asks the same.

  Args:
    key: text of at most 64 characters, the run's own. Without it whoever knows a request
      can tell its nonce, but cannot put it into the request.
  """
  texts = (prompt.text, text, prompt.answer)
  for count in itertools.count():
    request = json.dumps([count, prompt.id, *texts]).encode()
    found = hashlib.blake2b(request, key=key.encode(), digest_size=6).hexdigest()
    if not any(found in t.lower() for t in texts): return found


def render(prompt, text, template, nonce=""):
  """The template with its slots filled; what looks like a slot in a text stays."""
  slots = dict(question=prompt.text, answer=text, reference=prompt.answer, nonce=nonce)
  return _SLOT.sub(lambda slot: slots[slot[1]], template)


def read(reply, reads, full=1.0, nonce=None):
  """The score that a reply states at the one place for it, over `full`.

  The place is the last line, white space apart; reasoning may stand before it. Without
  a nonce it is the whole reply, and an answer that the judge repeats may pass for it.

  Args:
    reads: what stands there, and nothing beside it.
      yes_no: "Verdict NONCE: yes" or "no", 1 or 0, in upper or lower case, with or without
        a full stop and the marks `*_ of Markdown; without a nonce also the word alone.
      A regular expression with one group, a number; {nonce} in it is the nonce.
    nonce: of the request; None: its template has none.
  Raises:
    errors.Unknown: the place holds anything else, or a number that is not in [0, full],
      or another line states another score.
  """
  if is_yes_no := reads == "yes_no":
    head = rf"verdict {nonce}[*_`]*:" if nonce else "(?:verdict:)?"
    reads, full = rf"(?ai)[*_`]*{head}[*_` ]*(?:(yes)|no)[*_`.]*", 1.0
  pattern = re.compile(reads.replace("{nonce}", nonce or ""))
  lines = [line.strip() for line in (reply.strip().splitlines() if nonce else [reply])]
  found = [match for line in lines if (match := pattern.fullmatch(line))]
  scores = {_score(bool(m[1]) if is_yes_no else m[1], full) for m in found}
  if len(scores) != 1 or not pattern.fullmatch(lines[-1]):
    raise errors.Unknown(f"{'the last line' if nonce else 'the whole'} of a reply is to match "
                         f"{pattern.pattern!r}, and no other score is: {reply[-80:]!r}")
  return scores.pop()


def ask(question, options):
  """The text a model replies with.

  Raises:
    errors.Unknown: no reply, after all attempts; names the last failure, not the key.
  """
  key, name = None, options["api_key_env"]
  if name is not None and not (key := os.environ.get(name)):
    raise errors.Unknown(f"the environment has no {name}")
  body = json.dumps(dict(
      model=options["model"], messages=[dict(role="user", content=question)],
      temperature=options["temperature"], max_tokens=options["max_tokens"])).encode()
  headers = {"Content-Type": "application/json"}
  if key: headers["Authorization"] = f"Bearer {key}"
  request = urllib.request.Request(options["url"], data=body, headers=headers)
  for attempt in range(options["retries"] + 1):
    if attempt: time.sleep(options["pause_s"] * 2 ** (attempt - 1))
    try:
      return _content(_posted(request, options["timeout_s"]))
    except urllib.error.HTTPError as e:
      failure = f"HTTP {e.code}"
      e.close()
      if e.code not in _AGAIN: break
    except (OSError, http.client.HTTPException) as e:  # URLError, timeouts.
      failure = f"{type(e).__name__}: {e}"
  raise errors.Unknown(f"{options['url']} after {attempt + 1} attempts: {failure}")


def longest_s(options):
  """Seconds that a completion may take before its judge gives up."""
  pauses = options["pause_s"] * (2 ** options["retries"] - 1)
  return options["timeout_s"] * (options["retries"] + 1) + pauses


def problem(options):
  """(key, what is allowed) of the first option that cannot work; None: none."""
  url, fn, env = options["url"], options["function"], options["api_key_env"]
  template, reads = options["template"], options["reads"]
  try:
    groups = 1 if reads == "yes_no" else re.compile(reads).groups
  except re.error:
    groups = 0
  checks = (
      ("url", url is None or re.fullmatch(r"https?://[!-.0-?A-~]+/[!-~]*", url),
       "such as http://localhost:8000/v1/chat/completions; keys belong into api_key_env"),
      ("function", fn is None or re.fullmatch(r"[\w.]+:\w+", fn),
       "package.module:name of a function text -> score"),
      ("model", url is None or options["model"], "the endpoint's name of a model"),
      ("template", "{answer}" in template,
       "a text with {answer}, and {question} or {reference} where they are wanted"),
      ("template", url is None or len(_FENCED.findall(template)) == template.count("{answer}"),
       "{answer} stands on a line of its own, after and before a line with {nonce}"),
      ("reads", groups == 1, "yes_no, or a regular expression with one group, a number"),
      ("reads", reads == "yes_no" or ("{nonce}" in reads) == ("{nonce}" in template),
       "{nonce} is both in it and in verifier.judge.template, or in neither"),
      ("api_key_env", url is None or env is None
       or re.fullmatch("[!-~]+", os.environ.get(env, "")),
       "the name of an environment variable that is set, to ASCII without spaces, or None"))
  return next(((key, allowed) for key, ok, allowed in checks if not ok), None)


# A worker tries a verifier on the prompt's answer before its first completion; that
# would be a request of its own.
chat.is_tried = function.is_tried = False


def _options(prompt, needed):
  options = prompt.meta.get("judge", {})
  if options.get(needed) is None:
    raise errors.Unknown(f"verifier.judge.{needed}=None: a prompt's verifier needs it")
  return options


def _judged(prompt, text, options, judge):
  """The score that judge(rendered text, options) gives."""
  nonce = (new_nonce(prompt, text, options.get("key", ""))
           if "{nonce}" in options["template"] else None)
  found = judge(render(prompt, text, options["template"], nonce), options)
  if isinstance(found, str): return read(found, options["reads"], options["full"], nonce)
  return _score(found, options["full"])


def _score(number, full):
  try:
    score = float(number) / full
  except (TypeError, ValueError):
    raise errors.Unknown(f"not a number: {number!r:.80}") from None
  if not 0 <= score <= 1: raise errors.Unknown(f"{score * full:g} is not in [0, {full:g}]")
  return score


class _Stay(urllib.request.HTTPRedirectHandler):

  def redirect_request(self, *args):
    return None  # It becomes an HTTPError.


def _posted(request, timeout_s):
  """Bytes of the response, all of them before the deadline: a socket's own time
  limit starts anew with every byte."""
  deadline, parts, size = time.monotonic() + timeout_s, [], 0
  with urllib.request.build_opener(_Stay).open(request, timeout=timeout_s) as response:
    while part := response.read1(2**16):
      parts.append(part)
      size += len(part)
      if size > _MAX_BYTES: raise errors.Unknown(f"a reply of more than {_MAX_BYTES} bytes")
      if time.monotonic() > deadline: raise TimeoutError(f"no reply in {timeout_s} s")
  return b"".join(parts)


def _content(body):
  try:
    choice = json.loads(body)["choices"][0]
    content, finish = choice["message"]["content"], choice.get("finish_reason")
  except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
    content = finish = None
  if not isinstance(content, str):
    raise errors.Unknown(f"not a chat completion: {body[:80]!r}")
  # Its last line may lack an end: 1 of what was to be 10.
  if finish == "length": raise errors.Unknown(f"cut by max_tokens: {content[-80:]!r}")
  return content


@functools.lru_cache(maxsize=None)
def _named(path):
  module, _, name = path.partition(":")
  try:
    return getattr(importlib.import_module(module), name)
  except (ImportError, AttributeError) as e:
    raise errors.Unknown(f"verifier.judge.function={path!r}: {e}") from None
