"""An OpenAI-compatible endpoint on this machine whose replies a function makes."""
import contextlib
import http.server
import json
import re
import threading
import time


class _Handler(http.server.BaseHTTPRequestHandler):

  def do_POST(self):
    server = self.server
    body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
    with server.lock:
      server.bodies.append(body)
      server.waiting += 1
      server.most = max(server.most, server.waiting)
    time.sleep(server.delay_s)
    reply = server.reply(body["messages"][0]["content"])
    with server.lock: server.waiting -= 1
    choice = reply if isinstance(reply, dict) else dict(message=dict(content=reply))
    usage = dict(prompt_tokens=100, completion_tokens=10)
    body = b"" if reply is None else json.dumps(dict(choices=[choice], usage=usage)).encode()
    self.send_response(503 if reply is None else 200)
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    with contextlib.suppress(OSError): self.wfile.write(body)  # The judge may have left.

  def log_message(self, *args): pass


class _Server(http.server.ThreadingHTTPServer):
  request_queue_size, daemon_threads = 256, True


@contextlib.contextmanager
def serve(reply, delay_s=0.0):
  """A server; `reply` makes a text, or a choice of a chat completion, of the question.

  Its attributes: url, bodies (of the requests), most (requests that waited at once), reply, which
  returns None for status 503, and delay_s.
  """
  with _Server(("127.0.0.1", 0), _Handler) as server:
    server.lock, server.bodies, server.waiting, server.most = threading.Lock(), [], 0, 0
    server.reply, server.delay_s = reply, delay_s
    server.url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield server
    server.shutdown()


def nonce_of(question): return re.search("carry the code ([0-9a-f]{12})", question)[1]


def block(question, name):
  """The text between the lines of this name; None without them."""
  nonce = nonce_of(question)
  found = re.search(rf"^\[{name} {nonce}\]\n(.*?)\n\[end of {name} {nonce}\]$", question,
                    re.DOTALL | re.MULTILINE)
  return found and found[1]


def judge(question):
  """A sound judge: an answer is right if it is the reference, meets a criterion that it contains,
  and is better than another that is shorter."""
  nonce, answer = nonce_of(question), block(question, "answer")
  if answer is None:
    a, b = (len(block(question, f"answer {x}")) for x in "AB")
    return f"Verdict {nonce}: {'A' if a > b else 'B' if a < b else 'tie'}"
  if (criteria := block(question, "criteria")) is not None:
    items = [line.split(". ", 1) for line in criteria.splitlines()]
    return "\n".join(f"Verdict {nonce} {n}: {'yes' if text in answer else 'no'}"
                     for n, text in items)
  return f"Verdict {nonce}: {'yes' if answer == block(question, 'reference') else 'no'}"
