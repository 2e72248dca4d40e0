"""A judge reads a text that is made of question, answer and reference, and scores it.

  chat       a language model behind an OpenAI-compatible endpoint
  function   any Python function text -> score

Options are `verifier.judge` of the config; the pool hands them over in a prompt's
`meta`. What cannot be told, for whatever reason, raises, which the pool makes NaN.
Verdicts of a model can be farmed: many pass a lone ":", Zhao et al. 2025,
arXiv:2507.08794. rlx/evals/verifier.py measures a judge.
"""
import functools
import http.client
import importlib
import json
import os
import re
import time
import urllib.error
import urllib.request

_SLOT = re.compile(r"{(question|answer|reference)}")
_AGAIN = {408, 425, 429, 500, 502, 503, 504}  # What may be different in a moment.
_MAX_BYTES = 2**22


def chat(prompt, text):
  """The score that a language model's reply states, see `read`.

  A request that fails in a way that may pass (no connection, too late, a busy
  server) is made again `retries` times, after `pause_s`, twice that, and so on. The
  reply comes in one piece; a redirection, which would take the key elsewhere, is an error.
  """
  options = _options(prompt, "url")
  return read(ask(render(prompt, text, options["template"]), options),
              options["reads"], options["full"])


def function(prompt, text):
  """`verifier.judge.function`, "package.module:name", of the rendered text.

  It returns a number, divided by `full`, or a text that is read as a reply is.
  """
  options = _options(prompt, "function")
  found = _named(options["function"])(render(prompt, text, options["template"]))
  if isinstance(found, str): return read(found, options["reads"], options["full"])
  return found / options["full"]


def render(prompt, text, template):
  """The template with its slots filled; what looks like a slot in a text stays."""
  slots = dict(question=prompt.text, answer=text, reference=prompt.answer)
  return _SLOT.sub(lambda slot: slots[slot[1]], template)


def read(reply, reads, full=1.0):
  """The score that a reply states, over `full`.

  Args:
    reads: yes_no, the reply's first or last word (1 or 0); or a regular expression,
      the number that its only group has in its last match.
  Raises:
    ValueError: the reply states none, or its first and last word disagree.
  """
  if reads == "yes_no":
    words = re.findall(r"\w+", reply.lower())
    said = {w for w in words[:1] + words[-1:] if w in ("yes", "no")}
    if len(said) != 1: raise ValueError(f"neither yes nor no: {reply[-80:]!r}")
    return float("yes" in said)
  if not (found := re.findall(reads, reply)):
    raise ValueError(f"no match of {reads!r}: {reply[-80:]!r}")
  return float(found[-1]) / full


def ask(question, options):
  """The text a model replies with.

  Raises:
    RuntimeError: no reply, after all attempts; names the last failure, not the key.
  """
  key, name = None, options["api_key_env"]
  if name is not None and not (key := os.environ.get(name)):
    raise RuntimeError(f"the environment has no {name}")
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
  raise RuntimeError(f"{options['url']} after {attempt + 1} attempts: {failure}")


def longest_s(options):
  """Seconds that a completion may take before its judge gives up."""
  pauses = options["pause_s"] * (2 ** options["retries"] - 1)
  return options["timeout_s"] * (options["retries"] + 1) + pauses


def problem(options):
  """(key, what is allowed) of the first option that cannot work; None: none."""
  url, fn, env = options["url"], options["function"], options["api_key_env"]
  try:
    groups = 1 if options["reads"] == "yes_no" else re.compile(options["reads"]).groups
  except re.error:
    groups = 0
  checks = (
      ("url", url is None or re.fullmatch(r"https?://[^/@\s]+/\S*", url),
       "such as http://localhost:8000/v1/chat/completions; keys belong into api_key_env"),
      ("function", fn is None or re.fullmatch(r"[\w.]+:\w+", fn),
       "package.module:name of a function text -> score"),
      ("model", url is None or options["model"], "the endpoint's name of a model"),
      ("template", "{answer}" in options["template"],
       "a text with {answer}, and {question} or {reference} where they are wanted"),
      ("reads", groups == 1, "yes_no, or a regular expression with one group, a number"),
      ("full", options["full"] > 0, "the number that stands for 1, > 0"),
      ("temperature", options["temperature"] >= 0, "must be >= 0"),
      ("max_tokens", options["max_tokens"] >= 1, "must be >= 1"),
      ("timeout_s", options["timeout_s"] > 0, "must be > 0"),
      ("retries", options["retries"] >= 0, "must be >= 0"),
      ("pause_s", options["pause_s"] >= 0, "must be >= 0"),
      ("api_key_env", url is None or env is None or os.environ.get(env),
       "the name of an environment variable that is set, or None"))
  return next(((key, allowed) for key, ok, allowed in checks if not ok), None)


# A worker tries a verifier on the prompt's answer before its first completion; that
# would be a request of its own.
chat.is_tried = function.is_tried = False


def _options(prompt, needed):
  options = prompt.meta.get("judge", {})
  if options.get(needed) is None:
    raise ValueError(f"verifier.judge.{needed}=None: a prompt's verifier needs it")
  return options


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
      if size > _MAX_BYTES: raise ValueError(f"a reply of more than {_MAX_BYTES} bytes")
      if time.monotonic() > deadline: raise TimeoutError(f"no reply in {timeout_s} s")
  return b"".join(parts)


def _content(body):
  try:
    content = json.loads(body)["choices"][0]["message"]["content"]
  except (ValueError, LookupError, TypeError):
    content = None
  if not isinstance(content, str):
    raise ValueError(f"not a chat completion: {body[:80]!r}")
  return content


@functools.lru_cache(maxsize=None)
def _named(path):
  module, _, name = path.partition(":")
  return getattr(importlib.import_module(module), name)
