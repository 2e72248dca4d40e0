"""The judge against an endpoint on this machine that does what the question says."""
import contextlib
import http.server
import json
import re
import threading
import time
import types

import numpy as np
import pytest

from configs import base
from rlx.build import methods as build_methods, validation
from rlx.core import records, rng
from rlx.verifiers import _endpoint, _replies, errors, judge, pool as pool_lib
from tests.verifiers import cases

nan = np.nan
CASES = cases.read("judge.toml")
OPTIONS = base.get_config().verifier.judge.to_dict() | dict(
    model="m", template="{answer}", timeout_s=60.0, retries=2, pause_s=0.01)


REPLIES = dict(
    cut='{"choices": [{"message": {"content": "yes"}, "finish_reason": "length"}]}',
    text="<html>", list="[]", null='{"choices": [{"message": {"content": null}}]}')


class Endpoint(http.server.BaseHTTPRequestHandler):
  """Replies with the question; some questions ask for something else."""

  def do_POST(self):
    body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
    question = body["messages"][0]["content"]
    with self.server.lock:
      self.server.seen.append((dict(self.headers), body))
      tries = sum(b == body for _, b in self.server.seen)
    code, *rest = question.split(" ", 1)
    if code == "once500": code = "500" if tries == 1 else "200"
    if code == "meet":  # Waits until six requests are here at once.
      with contextlib.suppress(threading.BrokenBarrierError):
        self.server.meeting.wait(50)
        code = "200"
    if code == "hang":
      self.server.is_over.wait(60)
      code = "200"
    if code == "drip": return self._drip()
    if not code.isdigit(): code, rest = "200", [question]
    content = json.dumps(dict(choices=[dict(message=dict(content=rest[-1]))]))
    reply = REPLIES.get(rest[-1], content).encode()
    self.send_response(int(code))
    if code == "302": self.send_header("Location", self.server.url + "/elsewhere")
    self.send_header("Content-Length", str(len(reply)))
    self.end_headers()
    self.wfile.write(reply)

  def do_GET(self):
    with self.server.lock: self.server.seen.append(("redirected", {}))

  def _drip(self):
    """A byte every 0.1 s for a minute: no read of it is ever late."""
    self.send_response(200)
    self.end_headers()
    try:
      for _ in range(600):
        self.wfile.write(b" ")
        if self.server.is_over.wait(0.1): break
    except OSError:
      pass  # The judge has left.

  def log_message(self, *args): pass


@pytest.fixture(scope="module")
def endpoint():
  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
    server.lock, server.is_over, server.meeting = (
        threading.Lock(), threading.Event(), threading.Barrier(6))
    server.url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield server
    server.is_over.set()
    server.shutdown()


@pytest.fixture
def server(endpoint):
  endpoint.seen = []
  return endpoint


def verdict(text, verify=judge.chat, **options):
  """(score, None), or (NaN, why it is unknown), of a completion of one prompt."""
  prompt = records.Prompt("p", "2 + 3?", "5", meta=dict(judge=OPTIONS | options))
  try:
    return verify(prompt, text), None
  except errors.Unknown as e:
    return nan, str(e)


@pytest.mark.parametrize("reads, full, reply, score", CASES["replies"])
def test_the_score_of_a_reply(server, reads, full, reply, score):
  stated, _ = verdict(reply, url=server.url, reads=reads, full=full)
  np.testing.assert_allclose(stated, score)


@pytest.mark.parametrize("reads, reply, score", CASES["nonces"])
def test_the_last_line_of_a_reply_carries_the_nonce(reads, reply, score):
  try:
    assert _replies.parse(_replies.Reply(reply, "N0"), reads, 10) == [score]
  except errors.Unknown:
    assert np.isnan(score)


def test_slots_are_filled_once():
  # An answer cannot call up the reference, nor a question the answer.
  slots = dict(question="Q {answer}", answer="{reference} {x}", reference="R", nonce="N0")
  assert _replies.render("{question}|{answer}|{reference}|{y}|{nonce}", slots) == (
      "Q {answer}|{reference} {x}|R|{y}|N0")


def test_a_nonce_is_of_the_run_and_the_request(monkeypatch):
  prompt, other = records.Prompt("p", "Q", "R"), records.Prompt("q", "Q", "R")
  requests = [(prompt, "a", "k"), (prompt, "b", "k"), (other, "a", "k"), (prompt, "a", "l"),
              (prompt, "a", "")]
  drawn = [_replies.new_nonce(*r) for r in requests]
  assert len(set(drawn)) == 5 and drawn == [_replies.new_nonce(*r) for r in requests]
  assert all(re.fullmatch("[0-9a-f]{12}", n) for n in drawn)

  # Digests that stand in the answer, in upper case in the question, in the reference.
  digests = iter(["aa", "bb", "cc", "dd"])
  monkeypatch.setattr(_replies.hashlib, "blake2b",
                      lambda *_, **__: types.SimpleNamespace(hexdigest=lambda: next(digests)))
  assert _replies.new_nonce(records.Prompt("p", "xBBx", "cc"), "aa", "k") == "dd"


def test_a_run_draws_its_key_from_its_seed():
  keys = [rng.secret(seed, name) for seed, name in ((0, "judge"), (1, "judge"), (0, "other"))]
  assert len(set(keys)) == 3 and all(re.fullmatch("[0-9a-f]{32}", k) for k in keys)
  assert keys[0] == rng.secret(0, "judge")


@pytest.mark.parametrize("text, score, requests", CASES["failures"])
def test_what_fails_is_unknown_and_tried_again_if_that_may_help(server, text, score, requests):
  stated, message = verdict(text, url=server.url)
  np.testing.assert_array_equal(stated, score)
  assert len(server.seen) == requests
  if np.isnan(score) and not text.startswith("200"): assert f"HTTP {text[:3]}" in message


@pytest.mark.parametrize("text", ["hang", "drip"])
def test_late_replies_are_unknown(server, text):
  start = time.monotonic()
  stated, message = verdict(text, url=server.url, timeout_s=1.0, retries=1)
  assert np.isnan(stated) and "after 2 attempts: " in message
  assert time.monotonic() - start < 50  # A reply takes a minute.
  while len(server.seen) < 2 and time.monotonic() - start < 100: time.sleep(0.01)
  assert len(server.seen) == 2


def test_pauses_between_requests_double(server, monkeypatch):
  pauses = []
  # Of the judge alone: a thread of the endpoint may still send its slow reply.
  monkeypatch.setattr(
      _endpoint, "time", types.SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic))
  verdict("500 x", url=server.url, retries=3, pause_s=1.5)
  assert pauses == [1.5, 3.0, 6.0]


def test_a_long_reply_is_unknown(server, monkeypatch):
  monkeypatch.setattr(_endpoint, "_MAX_BYTES", 1000)
  assert verdict("yes", url=server.url) == (1.0, None)
  stated, message = verdict(1000 * "x", url=server.url)
  assert np.isnan(stated) and "a reply of more than 1000 bytes" in message


def test_nobody_there_is_unknown():
  stated, message = verdict("yes", url="http://127.0.0.1:9/v1")
  assert np.isnan(stated) and "after 3 attempts: URLError" in message


def test_the_request_has_model_question_and_key(server, monkeypatch):
  monkeypatch.setenv("RLX_TEST_KEY", "sesame")
  stated, _ = verdict("five", url=server.url, template="{answer} {question} {reference} no",
                      api_key_env="RLX_TEST_KEY", temperature=0.5, max_tokens=3)
  assert np.isnan(stated)
  headers, body = server.seen[0]
  assert headers["Authorization"] == "Bearer sesame"
  assert body == dict(model="m", temperature=0.5, max_tokens=3, messages=[
      dict(role="user", content="five 2 + 3? 5 no")])
  assert verdict("yes", url=server.url)[0] == 1.0
  assert "Authorization" not in server.seen[1][0]
  _, message = verdict("401 x", url=server.url, api_key_env="RLX_TEST_KEY")
  assert "HTTP 401" in message and "sesame" not in message
  monkeypatch.delenv("RLX_TEST_KEY")
  stated, message = verdict("yes", url=server.url, api_key_env="RLX_TEST_KEY")
  assert np.isnan(stated) and message == "the environment has no RLX_TEST_KEY"


@pytest.mark.parametrize("workers", [1, 6])
def test_requests_are_made_at_once_and_none_is_spent_on_a_trial(server, monkeypatch, workers):
  monkeypatch.setenv("RLX_TEST_KEY", "sesame")
  prompts = [records.Prompt(str(i), "?", "", "judge.chat") for i in range(6)]
  options = dict(judge=OPTIONS | dict(url=server.url, api_key_env="RLX_TEST_KEY", timeout_s=60.0))
  with contextlib.closing(pool_lib.Pool(workers, 200.0, options=options)) as pool:
    # Equal requests of a worker are one. Workers start.
    assert pool.verify(prompts, ["yes"] * 6).tolist() == [1] * 6
    assert len(server.seen) == workers
    assert {headers["Authorization"] for headers, *_ in server.seen} == {"Bearer sesame"}
    texts = [f"meet {word}" + i * " " for i, word in enumerate(["yes", "no"] * 3)]
    np.testing.assert_array_equal(pool.verify(prompts, texts), [1, 0] * 3)
    np.testing.assert_array_equal(pool.verify(prompts[:2], ["404 yes", "no"]), [nan, 0])
    assert pool.errors == dict(unknown=1) and "HTTP 404" in pool.last_error


@pytest.mark.parametrize("function, full, text, score", [
    ("builtins:len", 5, "abc", 0.6), ("builtins:len", 5, "abcdef", nan),
    ("builtins:str", 1, "yes", 1), ("builtins:str", 1, "?", nan)])
def test_any_function_of_text(function, full, text, score):
  stated, _ = verdict(text, judge.function, function=function, full=full)
  np.testing.assert_array_equal(stated, score)


@pytest.mark.parametrize("function, message", [
    ("rlx.nowhere:f", "rlx.nowhere"), ("rlx.verifiers.judge:f", r"judge has \["),
    (None, "^verifier.judge.function=None")])
def test_a_function_that_does_not_exist_is_unknown(function, message):
  stated, problem = verdict("yes", judge.function, function=function)
  assert np.isnan(stated) and re.search(message, problem)


def test_failures_of_judges_are_unknown():
  """See test_what_fails_untried_is_unknown in test_pool.py."""
  assert judge.chat.is_tried is judge.function.is_tried is False


@pytest.mark.parametrize("changes, message", [
    *CASES["options"], (dict(url=None), "^verifier.judge.url=None: judge.chat needs it")])
def test_refused_at_startup(changes, message, monkeypatch):
  monkeypatch.setenv("RLX_TEST_KEY", "two\nlines")
  c = base.get_config()
  c.verifier.scores, c.verifier.workers, c.verifier.timeout_s = ("judge.chat",), 1, 100.0
  c.verifier.judge.update(url="http://localhost/v1", model="m")
  validation.check(c, build_methods.resolve_methods(c))
  c.verifier.judge.update(changes)
  with pytest.raises(ValueError, match=message) as e:
    validation.check(c, build_methods.resolve_methods(c))
  assert "\n" not in str(e.value)


@pytest.mark.parametrize("concurrent, n, seconds", [
    (16, 1, 15 + 1), (4, 4, 15 + 4), (4, 5, 30 + 5)])
def test_the_pool_waits_for_the_judge(concurrent, n, seconds):
  # Four requests of 2 s and pauses of 1, 2 and 4 s: 15 s for each round of requests.
  options = OPTIONS | dict(url="http://localhost/v1", timeout_s=2.0, retries=3, pause_s=1.0,
                           concurrent=concurrent, template=None)
  prompts = [records.Prompt(str(i), "?", "", "judge.chat", dict(judge=options)) for i in range(n)]
  assert judge.chat.limit_s(prompts, ["x"] * n, 1.0) == seconds
