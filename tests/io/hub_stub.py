"""A Hugging Face hub on loopback: the requests that huggingface_hub makes to read and to write.

Large files are behind a redirect to a path of their own, as on the hub, and are uploaded before the
commit that names them: to a store of git-lfs, or to one of Xet, of which only the form is kept.
"""
import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

from rlx.io import hub

COMMITS = {"main": "a" * 40, "older": "b" * 40}


@contextlib.contextmanager
def serve(repos, *, access=(), token=None, cut=(), failing=()):
  """A Hub until the end of the `with`.

  Args:
    repos: {"OWNER/NAME": {commit: {file: bytes}}}.
    access: {"OWNER/NAME": what the hub does with it}: "private", 401 for all but the token;
      "gated", shown to all, files to nobody; or the status of every answer.
    cut: of the requests for large files, in order, after how many bytes the connection
      ends; later ones are whole.
    failing: {regular expression of "METHOD PATH": status}.
  """
  server = Hub(("127.0.0.1", 0), _Handler)
  server.repos, server.access, server.token, server.cut, server.asked = (
      repos, dict(access), token, list(cut), [])
  server.failing, server.stored, server.public = dict(failing), {}, {}
  server.url = f"http://127.0.0.1:{server.server_port}"
  threading.Thread(target=server.serve_forever, daemon=True).start()
  try:
    yield server
  finally:
    server.shutdown()
    server.server_close()


def use(server, home, monkeypatch, *, offline=False):
  """Points huggingface_hub of this process, which reads its environment when it is imported, to
  this Hub and to a cache in `home`."""
  import huggingface_hub
  from huggingface_hub import constants
  huggingface_hub.close_session()  # Connections outlive the Hub.
  monkeypatch.setattr(constants, "ENDPOINT", server.url)
  monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE",
                      server.url + "/{repo_id}/resolve/{revision}/{filename}")
  monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home))
  monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
  monkeypatch.setenv("NO_PROXY", "127.0.0.1")
  hub._snapshot.cache_clear()


class Hub(http.server.ThreadingHTTPServer):
  """`url`; in `asked` "METHOD PATH" of every request; in `public` whether a new repository is."""


class _Handler(http.server.BaseHTTPRequestHandler):
  protocol_version = "HTTP/1.1"

  def do_HEAD(self): self._answer()
  def do_GET(self): self._answer()
  def do_POST(self): self._write()
  def do_PUT(self): self._write()
  def log_message(self, *args): pass

  def _path(self):
    """The path of a request; None if it has been answered, as one that fails."""
    path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
    self.server.asked.append(asked := f"{self.command} {path}")
    for pattern, status in self.server.failing.items():
      if re.search(pattern, asked): return self._send(status)
    return path

  def _write(self):
    body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
    if (path := self._path()) is None: return None
    if key := re.fullmatch(r"/lfs/(\w+)", path):
      self.server.stored[key[1]] = body
      return self._send(200)
    if path.startswith("/v1/"):  # Of Xet; without /v2/ its client takes these.
      return self._json(dict(result=1) if "shards" in path else dict(was_inserted=True))
    if path == "/api/validate-yaml": return self._json({})
    if path.startswith("/v2/"): return self._send(404)
    if self.headers.get("Authorization") != f"Bearer {self.server.token}": return self._send(401)
    if path == "/api/repos/create": return self._create(**json.loads(body))
    name, what = re.fullmatch(
        r"/(?:api/models/)?(\w+/[\w.-]+?)(?:.git/info)?/([a-z]+)/.*", path).groups()
    if what == "preupload":
      return self._json(dict(files=[
          dict(path=f["path"], uploadMode="lfs" if f["size"] > 10_000 else "regular",
               shouldIgnore=False) for f in json.loads(body)["files"]]))
    if what == "lfs":
      return self._json(dict(objects=[
          dict(x, actions=dict(upload=dict(href=f"{self.server.url}/lfs/{x['oid']}")))
          for x in json.loads(body)["objects"]]))
    files = self.server.repos[name][COMMITS["main"]]
    for line in map(json.loads, body.splitlines()):
      kind, value = line["key"], line["value"]
      if kind == "deletedFile": del files[value["path"]]
      if kind == "file": files[value["path"]] = base64.b64decode(value["content"])
      if kind == "lfsFile":
        files[value["path"]] = self.server.stored.get(value["oid"], value["oid"].encode())
    self._json(dict(commitUrl=f"{self.server.url}/{name}/commit/c", commitOid="c"))

  def _create(self, name, organization, visibility, **_):
    full = f"{organization}/{name}"
    if organization != "me": return self._send(403)
    if is_new := full not in self.server.repos:
      self.server.repos[full], self.server.public[full] = {COMMITS["main"]: {}}, visibility
    self._json(dict(url=f"{self.server.url}/{full}"), 200 if is_new else 409)

  def _answer(self):
    if (path := self._path()) is None: return None
    if re.fullmatch(r"/api/models/.*/xet-write-token/main", path):
      return self._json(dict(casUrl=self.server.url, accessToken="x", exp=2**33))
    api = re.fullmatch(r"/api/models/(\w+/[\w.-]+)(?:/(revision|tree)/(\w+))?", path)
    file = re.fullmatch(r"/(cdn/)?(\w+/[\w.-]+)/resolve/(\w+)/(.+)", path)
    if not api and not file: return self._send(404)
    name, revision = (api[1], api[3]) if api else (file[2], file[3])
    access = self.server.access.get(name, "open" if name in self.server.repos else "private")
    if access == "private" and self.headers.get("Authorization") != f"Bearer {self.server.token}":
      return self._send(401)  # As of a repository that does not exist.
    if isinstance(access, int): return self._send(access)
    if access == "gated" and file: return self._send(403, {"X-Error-Code": "GatedRepo"})
    if name not in self.server.repos: return self._send(404, {"X-Error-Code": "RepoNotFound"})
    repo = self.server.repos[name]
    commit = COMMITS.get(revision or "main", revision)
    if commit not in repo: return self._send(404, {"X-Error-Code": "RevisionNotFound"})
    files = repo[commit]
    if api and api[2] == "tree":
      return self._json([dict(type="file", path=k, size=len(v), oid=_tag(v)[:40])
                         for k, v in files.items()])
    if api:
      return self._json(dict(id=name, sha=commit, siblings=[dict(rfilename=k) for k in files]))
    if file[4] not in files: return self._send(404, {"X-Error-Code": "EntryNotFound"})
    self._file(file, commit, files[file[4]])

  def _file(self, file, commit, data):
    head = {"X-Repo-Commit": commit, "ETag": f'"{_tag(data)}"', "Accept-Ranges": "bytes"}
    if len(data) > 10_000 and not file[1]:  # As files in LFS.
      return self._send(302, head | {
          "X-Linked-Size": str(len(data)), "X-Linked-ETag": head["ETag"],
          "Location": f"{self.server.url}/cdn{self.path}"})
    start = int(re.match(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))[1])
    end = len(data)
    if file[1] and self.command == "GET" and self.server.cut:
      end = min(end, start + self.server.cut.pop(0))
    if start: head["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
    self._send(206 if start else 200, head, data[start:], stop=end - start)

  def _json(self, value, status=200):
    self._send(status, {"Content-Type": "application/json"}, json.dumps(value).encode())

  def _send(self, status, head=(), body=b"", stop=None):
    self.send_response(status)
    for key, value in dict(head).items(): self.send_header(key, value)
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    if self.command != "HEAD": self.wfile.write(body[:stop])
    if stop is not None and stop < len(body):
      self.wfile.flush()
      self.close_connection = True


def _tag(data):
  return hashlib.sha256(data).hexdigest()
