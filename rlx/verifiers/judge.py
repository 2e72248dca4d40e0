"""Judges score a text that is rendered from the question, the answer and the reference.

  chat       a language model behind an OpenAI-compatible endpoint
  function   any Python function text -> score

The options are `verifier.judge` of the config; the pool adds them to the `meta` of prompts.
If a judge returns no valid score, for whatever reason, the verdict is unknown (NaN).

An answer is untrusted text. Every request contains a nonce, a random word that occurs neither
in the answer nor in the question or the reference. The lines around these texts contain the
nonce, so that no text can imitate its own end. The verdict contains it too, so that an answer
that the judge repeats is not read as a verdict. This does not prevent an answer from persuading
the model, and many models accept a lone ":" (Zhao et al. 2025, arXiv:2507.08794): measure a
judge with rlx/evals/verifier.py.
"""
import hashlib
import http.client
import itertools
import json
import os
import re
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Mapping

from rlx.core import resolve
from rlx.verifiers import errors, thoughts

if TYPE_CHECKING: from rlx.core import records

_SLOT = re.compile(r"{(question|answer|reference|nonce)}")
# An answer on lines of its own, between two lines that contain the nonce.
_FENCED = re.compile(r"^.*{nonce}.*\n{answer}\n(?=.*{nonce})", re.MULTILINE)
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}  # HTTP errors that a retry may avoid.
_MAX_BYTES = 2**22


def chat(prompt: "records.Prompt", text: str) -> float:
  """Returns the score in a language model's reply, see `parse_score`.

  After a transient failure (no connection, a timeout, a busy server) the request is repeated
  up to `retries` times, after `pause_s`, twice that, and so on. The reply is not streamed. A
  redirection is an error, because it would send the key to another address.
  """
  return _score_reply(prompt, text, _options(prompt, "url"), ask)


def function(prompt: "records.Prompt", text: str) -> float:
  """Returns the score that `verifier.judge.function` gives the rendered text.

  The function, "package.module:name", returns a number, which is divided by `full`, or a text
  that `parse_score` parses. If it raises an exception, the verdict is unknown.
  """
  options = _options(prompt, "function")
  try:
    fn = resolve.lookup("verifiers", options["function"], "verifier.judge.function")
  except ValueError as e:
    raise errors.Unknown(str(e)) from None
  return _score_reply(prompt, text, options, lambda rendered, _: fn(rendered))


def new_nonce(prompt: "records.Prompt", text: str, key: str = "") -> str:
  """Returns 12 hex digits that neither question nor answer nor reference contains.

    blake2b_key(count, id, question, answer, reference)     for the smallest count that is valid

  The nonce depends on the request alone, so a resumed run sends the same request.

  Args:
    key: secret of the run, at most 64 characters. Without it, the nonce can be computed from
      the request, but a request cannot contain its own nonce.
  """
  texts = (prompt.text, text, prompt.answer)
  def nonce(count):
    request = json.dumps([count, prompt.id, *texts]).encode()
    return hashlib.blake2b(request, key=key.encode(), digest_size=6).hexdigest()
  return next(x for x in map(nonce, itertools.count()) if not any(x in t.lower() for t in texts))


def render(prompt: "records.Prompt", text: str, template: str, nonce: str = "") -> str:
  """Fills the slots of a template; slots inside the inserted texts stay as they are."""
  slots = dict(question=prompt.text, answer=text, reference=prompt.answer, nonce=nonce)
  return _SLOT.sub(lambda slot: slots[slot[1]], template)


def parse_score(reply: str, reads: str, full: float = 1.0, nonce: str | None = None) -> float:
  """Returns the score that the last line of a reply states, divided by `full`.

  The lines before it may hold reasoning. Without a nonce, the whole reply has to be the score,
  and an answer that the judge repeats may be read as one.

  Args:
    reads: format of the last line.
      yes_no: "Verdict NONCE: yes" is 1 and "Verdict NONCE: no" is 0, in any case, with or
        without a full stop and the Markdown marks `*_; without a nonce also the word alone.
      Otherwise a regular expression with one group, a number; {nonce} stands for the nonce.
    nonce: nonce of the request, None if its template has none.
  Raises:
    errors.Unknown: the last line has another format, the number is not in [0, full], or
      another line states another score.
  """
  if is_yes_no := reads == "yes_no":
    head = rf"verdict {nonce}[*_`]*:" if nonce else "(?:verdict:)?"
    reads, full = rf"(?ai)[*_`]*{head}[*_` ]*(?:(yes)|no)[*_`.]*", 1.0
  pattern = re.compile(reads.replace("{nonce}", nonce or ""))
  lines = [line.strip() for line in (reply.strip().splitlines() if nonce else [reply])]
  matches = filter(None, map(pattern.fullmatch, lines))
  scores = {_score(bool(m[1]) if is_yes_no else m[1], full) for m in matches}
  if len(scores) != 1 or not pattern.fullmatch(lines[-1]):
    raise errors.Unknown(f"{'the last line' if nonce else 'the whole'} of a reply has to match "
                         f"{pattern.pattern!r} and state the only score: {reply[-80:]!r}")
  return scores.pop()


def ask(question: str, options: Mapping[str, Any]) -> str:
  """Returns the reply of a model.

  Raises:
    errors.Unknown: no attempt gave a reply; the message names the last failure, not the key.
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
      return _content(_post(request, options["timeout_s"]))
    except urllib.error.HTTPError as e:
      failure = f"HTTP {e.code}"
      e.close()
      if e.code not in _TRANSIENT: break
    except (OSError, http.client.HTTPException) as e:  # URLError, timeouts.
      failure = f"{type(e).__name__}: {e}"
  raise errors.Unknown(f"{options['url']} after {attempt + 1} attempts: {failure}")


def longest_s(options: Mapping[str, Any]) -> float:
  """Returns the seconds after which a judge stops trying to score a completion."""
  pauses = options["pause_s"] * (2 ** options["retries"] - 1)
  return options["timeout_s"] * (options["retries"] + 1) + pauses


def problem(options: Mapping[str, Any]) -> tuple[str, str] | None:
  """Returns (key, allowed values) of the first invalid option, None if all are valid."""
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
       "a text with {answer}, and optionally {question} and {reference}"),
      ("template", url is None or len(_FENCED.findall(template)) == template.count("{answer}"),
       "{answer} has a line of its own, after and before a line with {nonce}"),
      ("reads", groups == 1, "yes_no, or a regular expression with one group, a number"),
      ("reads", reads == "yes_no" or ("{nonce}" in reads) == ("{nonce}" in template),
       "{nonce} is both in it and in verifier.judge.template, or in neither"),
      ("api_key_env", url is None or env is None or re.fullmatch("[!-~]+", os.environ.get(env, "")),
       "the name of an environment variable that is set, to ASCII without spaces, or None"))
  return next(((key, allowed) for key, ok, allowed in checks if not ok), None)


# Calling a judge with the prompt's answer, as the pool does with other verifiers, would cost a
# request.
for _fn in (chat, function): vars(_fn)["is_tried"] = False


def _options(prompt, needed):
  options = prompt.meta.get("judge", {})
  if options.get(needed) is None:
    raise errors.Unknown(f"verifier.judge.{needed}=None: a prompt's verifier needs it")
  return options


def _score_reply(prompt, text, options, reply_to):
  """Returns the score in what reply_to(rendered text, options) returns.

  The judge reads what stands behind the thoughts; a completion that is all thought scores 0.
  """
  text, completion = thoughts.behind(text, prompt), text
  if completion and not text: return 0.0
  nonce = (new_nonce(prompt, text, options.get("key", ""))
           if "{nonce}" in options["template"] else None)
  reply = reply_to(render(prompt, text, options["template"], nonce), options)
  if isinstance(reply, str): return parse_score(reply, options["reads"], options["full"], nonce)
  return _score(reply, options["full"])


def _score(number, full):
  try:
    score = float(number) / full
  except (TypeError, ValueError):
    raise errors.Unknown(f"not a number: {number!r:.80}") from None
  if not 0 <= score <= 1: raise errors.Unknown(f"{score * full:g} is not in [0, {full:g}]")
  return score


class _NoRedirects(urllib.request.HTTPRedirectHandler):

  def redirect_request(self, *args): return None  # The redirection becomes an HTTPError.


def _post(request, timeout_s):
  """Returns the response; raises at the deadline, which a socket's own timeout does not."""
  deadline, body = time.monotonic() + timeout_s, bytearray()
  with urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout_s) as response:
    while part := response.read1(2**16):
      body += part
      if len(body) > _MAX_BYTES: raise errors.Unknown(f"a reply of more than {_MAX_BYTES} bytes")
      if time.monotonic() > deadline: raise TimeoutError(f"no reply in {timeout_s} s")
  return bytes(body)


def _content(body):
  try:
    choice = json.loads(body)["choices"][0]
    content, finish = choice["message"]["content"], choice.get("finish_reason")
  except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
    content = finish = None
  if not isinstance(content, str): raise errors.Unknown(f"not a chat completion: {body[:80]!r}")
  # The last line may be incomplete, such as 1 of 10.
  if finish == "length": raise errors.Unknown(f"cut by max_tokens: {content[-80:]!r}")
  return content
