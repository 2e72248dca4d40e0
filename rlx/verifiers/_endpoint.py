"""The client of judges: requests to an OpenAI-compatible endpoint, many at once; kept replies."""
from concurrent import futures
import dataclasses
import hashlib
import http.client
import json
import os
import pathlib
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlx.verifiers import _replies, errors, usage

Options = Mapping[str, Any]  # Of verifier.judge, or of one of verifier.judges.
Scores = list[float] | Exception
Receive = Callable[[int, _replies.Reply | Exception], None]
Send = Callable[[Sequence[tuple[_replies.Request, Options]], Receive], None]
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}  # HTTP errors that a retry may avoid.
_MAX_BYTES = 2**22
_TOP = 20  # Log-probs of so many tokens: the most that endpoints give.
# Options that a reply depends on, and those that its scores depend on, too.
_SENT = ("url", "model", "weights", "temperature", "max_tokens", "probability")
_READ = ("reads", "full")


class NoReply(errors.Unknown):
  """The endpoint did not reply."""


def score_all(asked: Sequence[tuple[_replies.Request, Options]], send: Send) -> list[Scores]:
  """Returns the scores that the replies to requests state, or why they are unknown.

  Equal requests whose replies are read in the same way are sent once. Replies are kept in the
  folder `cache`; one whose scores cannot be read is asked for again.

  Args:
    send: ([(request, options)], receive) -> None, such as `send`. It calls receive(i, reply) for
      each request, with a Reply or the exception that says why there is none.
  """
  if not asked: return []
  first: dict[tuple, tuple[_replies.Request, Options]] = {}
  keys = [(_digest(request, options), *map(options.get, _READ)) for request, options in asked]
  for key, one in zip(keys, asked): first.setdefault(key, one)
  scores = {key: kept for key, one in first.items() if (kept := _load_scores(key, *one))}
  waiting = [key for key in first if key not in scores]

  def receive(i: int, reply: _replies.Reply | Exception) -> None:
    request, options = first[waiting[i]]
    if isinstance(reply, Exception):
      scores[waiting[i]] = reply
      return
    reply = dataclasses.replace(reply, nonce=request.nonce)
    if path := _path_of(waiting[i], options): _store(path, reply)
    scores[waiting[i]] = _read(reply, request, options)

  if waiting: send([first[key] for key in waiting], receive)
  return [scores[key] for key in keys]


def send(asked: Sequence[tuple[_replies.Request, Options]], receive: Receive) -> None:
  """Sends requests to their endpoints, at most `concurrent` at once, see `score_all`.

  If as many requests as may wait at once, at least 8, have failed in a row, the judge is taken to
  be down, and the others are not sent.
  """
  width = min(len(asked), *(options["concurrent"] for _, options in asked))
  failed_in_a_row = 0

  def ask_one(i):
    nonlocal failed_in_a_row
    request, options = asked[i]
    if failed_in_a_row >= max(8, width):
      receive(i, NoReply(f"{options['url']}: no reply to {failed_in_a_row} requests in a row"))
      return
    try:
      reply, failed_in_a_row = ask(request.text, options), 0
    except NoReply as e:
      reply, failed_in_a_row = e, failed_in_a_row + 1
    except errors.Unknown as e:
      reply, failed_in_a_row = e, 0
    receive(i, reply)

  with futures.ThreadPoolExecutor(width) as threads:
    for _ in threads.map(ask_one, range(len(asked))): pass  # It raises what a thread raised.


def ask(question: str, options: Options) -> _replies.Reply:
  """Returns the reply of a model.

  After a transient failure (no connection, a timeout, a busy server) the request is repeated
  up to `retries` times, after `pause_s`, twice that, and so on. The reply is not streamed. A
  redirection is an error, because it would send the key to another address.

  Raises:
    NoReply: no attempt gave a reply; the message names the last failure, not the key.
    errors.Unknown: it is no chat completion, or was cut.
  """
  key, name = None, options["api_key_env"]
  if name is not None and not (key := os.environ.get(name)):
    raise NoReply(f"the environment has no {name}")
  logprobs = dict(logprobs=True, top_logprobs=_TOP) if options["probability"] else {}
  body = json.dumps(dict(
      model=options["model"], messages=[dict(role="user", content=question)],
      temperature=options["temperature"], max_tokens=options["max_tokens"], **logprobs)).encode()
  headers = {"Content-Type": "application/json"}
  if key: headers["Authorization"] = f"Bearer {key}"
  request = urllib.request.Request(options["url"], data=body, headers=headers)
  for attempt in range(options["retries"] + 1):
    if attempt:
      usage.count("judge/retries")
      time.sleep(options["pause_s"] * 2 ** (attempt - 1))
    usage.count("judge/requests")
    try:
      return _reply(_post(request, options["timeout_s"]))
    except urllib.error.HTTPError as e:
      failure = f"HTTP {e.code}"
      e.close()
      if e.code not in _TRANSIENT: break
    except (OSError, http.client.HTTPException) as e:  # URLError, timeouts.
      failure = f"{type(e).__name__}: {e}"
  usage.count("judge/failed")
  raise NoReply(f"{options['url']} after {attempt + 1} attempts: {failure}")


def longest_s(options: Options) -> float:
  """Returns the seconds after which a request has surely ended, with its repeats."""
  pauses = options["pause_s"] * (2 ** options["retries"] - 1)
  return options["timeout_s"] * (options["retries"] + 1) + pauses


def _load_scores(key, request, options):
  """The scores of a kept reply; None if there is none, or it cannot be read."""
  path = _path_of(key, options)
  if not path or not (kept := _load(path)) or isinstance(
      scores := _read(kept, request, options), Exception): return None
  usage.count("judge/cached")
  return scores


def _path_of(key, options):
  """Where the reply with a digest is kept; None without a cache."""
  digest, *_ = key
  return options["cache"] and pathlib.Path(options["cache"], digest[:2], f"{digest}.json")


def _read(reply, request, options):
  try:
    return _replies.read(reply, request, options)
  except errors.Unknown as e:
    return e


def _digest(request, options):
  """Of what the reply depends on; with another nonce it is the same request."""
  content = [request.template, request.slots, *map(options.get, _SENT)]
  return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=20).hexdigest()


def _load(path):
  """The Reply in a file; None if there is none or the file is damaged."""
  try:
    checksum, _, text = path.read_text("utf-8").partition("\n")
    if checksum != _checksum(text): return None
    content, nonce, tokens = json.loads(text)
    return _replies.Reply(content, nonce, tokens and [
        (bytes.fromhex(piece), likely) for piece, likely in tokens])
  except (OSError, ValueError, TypeError):
    return None


def _store(path, reply):
  """Writes a Reply; other processes see the whole file or none. A full disk is counted."""
  text = json.dumps([reply.content, reply.nonce, reply.tokens and [
      (piece.hex(), likely) for piece, likely in reply.tokens]])
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
      file.write(f"{_checksum(text)}\n{text}")
    os.replace(file.name, path)
  except OSError:
    usage.count("judge/not_cached")


def _checksum(text): return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


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


def _reply(body):
  """The Reply in the body of a response; counts its tokens."""
  try:
    parsed = json.loads(body)
    choice = parsed["choices"][0]
    content, finish = choice["message"]["content"], choice.get("finish_reason")
  except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
    parsed = choice = content = finish = None
  if not isinstance(content, str): raise errors.Unknown(f"not a chat completion: {body[:80]!r}")
  used = parsed.get("usage")
  for name in ("prompt_tokens", "completion_tokens"):
    n = used.get(name) if isinstance(used, dict) else None
    if isinstance(n, int) and 0 <= n < 2**31: usage.count(f"judge/{name}", n)
  # The last line may be incomplete, such as 1 of 10.
  if finish == "length": raise errors.Unknown(f"cut by max_tokens: {content[-80:]!r}")
  return _replies.Reply(content, tokens=_tokens(choice))


def _tokens(choice):
  """`Reply.tokens` of a choice; None if it has no log-probs, or malformed ones."""
  def text_of(token):
    raw = token.get("bytes")
    return token["token"].encode() if raw is None else bytes(raw)
  try:
    return [(text_of(token), {top["token"]: min(float(top["logprob"]), 0.0)
                              for top in token["top_logprobs"]})
            for token in choice["logprobs"]["content"]] or None
  except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
    return None
