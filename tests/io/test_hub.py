"""Models of the hub, against a stub on loopback: fetched, cached, offline, refused."""
import json
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

from rlx.io import hub
from rlx.io import weights
from tests.io import hub_stub

ROOT = pathlib.Path(__file__).parent.parent.parent
CHAIN = ROOT / "configs" / "models" / "chain"
FILES = {p.name: p.read_bytes() for p in CHAIN.iterdir()}
OTHERS = {"pytorch_model.bin": b"pickle", "onnx/model.safetensors": b"x", "README.md": b"#",
          "consolidated.safetensors": b"x" * 20_000}
MAIN, OLDER = hub_stub.COMMITS["main"], hub_stub.COMMITS["older"]
SIZE = len(FILES["model.safetensors"])

FOLDER = """
import json, sys
from rlx.io import hub
try:
  found = hub.folder(sys.argv[1])
except ValueError as e:
  sys.exit(f"rlx: {e}")
print(json.dumps([str(found), hub.commit(sys.argv[1]), sorted(p.name for p in found.iterdir())]))
"""


def folder(path, url, home, **environment):
  """(folder, commit, its files, lines on stderr) in a process of its own: huggingface_hub
  reads its environment when it is imported. Of an error only the lines."""
  own = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
  done = subprocess.run(
      [sys.executable, "-c", FOLDER, path], cwd=ROOT, capture_output=True, text=True,
      check=False, env=own | dict(HF_ENDPOINT=url, HF_HOME=str(home), NO_PROXY="127.0.0.1",
                                  HF_HUB_DISABLE_PROGRESS_BARS="1") | environment)
  lines = [l for l in done.stderr.splitlines() if l.startswith("rlx: ")]
  assert "Traceback" not in done.stderr, done.stderr
  if done.returncode: return None, None, None, lines
  found, commit, files = json.loads(done.stdout)
  return pathlib.Path(found), commit, files, lines


def test_fetched_then_cached_then_offline(tmp_path):
  with hub_stub.serve({"a/chain": {MAIN: FILES | OTHERS}}) as server:
    found, commit, files, lines = folder("hf:a/chain", server.url, tmp_path)
    assert commit == MAIN and files == sorted(FILES) and lines == []
    for name, data in FILES.items(): assert (found / name).read_bytes() == data, name
    assert not [x for x in server.asked if any(name in x for name in OTHERS)]
    fetched = len(server.asked)
    again = folder("hf:a/chain", server.url, tmp_path)
    assert again == (found, MAIN, files, [])
    assert all("/api/" in x for x in server.asked[fetched:])  # It is asked, not fetched again.
    asked = len(server.asked)
    offline = folder("hf:a/chain", server.url, tmp_path, HF_HUB_OFFLINE="1")
    assert offline[:3] == (found, MAIN, files) and len(server.asked) == asked
    assert offline[3] == [
        f"rlx: hf:a/chain: HF_HUB_OFFLINE is set; the cached commit {MAIN} is taken."]
  away = folder("hf:a/chain", server.url, tmp_path)  # Nobody is there any more.
  assert away[:3] == (found, MAIN, files)
  assert len(away[3]) == 1 and "does not answer" in away[3][0] and MAIN in away[3][0]


def test_the_model_is_that_of_its_folder(tmp_path):
  with hub_stub.serve({"a/chain": {MAIN: FILES}}) as server:
    found = folder("hf:a/chain", server.url, tmp_path)[0]
  (config, params, text), (expected, numbers, own) = (weights.load(p) for p in (found, CHAIN))
  assert config == expected and text.encode("4M7=") == own.encode("4M7=")
  jax.tree.map(np.testing.assert_array_equal, params, numbers)


def test_a_path_that_is_none_of_the_hub_is_itself():
  assert hub.folder(str(CHAIN)) == CHAIN and hub.commit(str(CHAIN)) is None
  assert hub.folder(CHAIN) == CHAIN and hub.commit(None) is None


def test_a_revision_is_a_branch_or_a_commit(tmp_path):
  older = FILES | {"generation_config.json": b'{"eos_token_id": 1}'}
  with hub_stub.serve({"a/chain": {MAIN: FILES, OLDER: older}}) as server:
    for path, commit in (("hf:a/chain", MAIN), ("hf:a/chain@older", OLDER),
                         (f"hf:a/chain@{OLDER}", OLDER)):
      found, is_, _, _ = folder(path, server.url, tmp_path)
      assert is_ == found.name == commit
      text = (found / "generation_config.json").read_bytes()
      assert text == (FILES if commit == MAIN else older)["generation_config.json"]
    *_, lines = folder("hf:a/chain@never", server.url, tmp_path)
    assert lines == [f"rlx: hf:a/chain@never: {server.url} has no such revision."]


def test_who_may_read(tmp_path):
  repos = {name: {MAIN: FILES} for name in ("a/gated", "a/private", "a/down")}
  with hub_stub.serve(repos, token="secret", access={
      "a/gated": "gated", "a/private": "private", "a/down": 500}) as server:
    ask = lambda path, **more: folder(path, server.url, tmp_path, **more)
    for path in ("hf:a/private", "hf:a/nobody"):  # The hub says the same of both.
      assert ask(path)[3] == [
          f"rlx: {path}: {server.url} has no such repository, or a private one, which takes "
          "HF_TOKEN."]
    assert ask("hf:a/private", HF_TOKEN="secret")[1] == MAIN
    assert ask("hf:a/gated")[3] == [
        f"rlx: hf:a/gated: gated; ask for access at {server.url}/a/gated and set HF_TOKEN; "
        "what has arrived is kept, run again to go on."]
    line, = ask("hf:a/down")[3]
    assert "does not answer as it should (HfHubHTTPError" in line
    assert line.endswith("and the cache has no whole copy of it.")


@pytest.mark.parametrize("path", [
    "hf:", "hf:name", "hf:a/b/c", "hf:a/b@", "hf:a b/c", "hf:/b", "hf:a/../b", "hf:a/b.git"])
def test_a_name_that_is_none(path):
  with pytest.raises(ValueError, match="hf:OWNER/NAME or hf:OWNER/NAME@REVISION") as e:
    hub.folder(path)
  assert str(e.value).startswith(repr(path))


@pytest.mark.parametrize("leave_out", ["model.safetensors", "config.json"])
def test_not_a_model_that_can_be_read(tmp_path, leave_out):
  files = {k: v for k, v in (FILES | OTHERS).items() if k != leave_out}
  files.pop("consolidated.safetensors")
  with hub_stub.serve({"a/b": {MAIN: files}}) as server:
    line, = folder("hf:a/b", server.url, tmp_path)[3]
    assert "config.json and *.safetensors are needed; there are" in line
    assert "'pytorch_model.bin'" in line
    assert not [x for x in server.asked if "/resolve/" in x]  # Said before anything is fetched.


def test_nothing_cached_and_nobody_there(tmp_path):
  with hub_stub.serve({}) as server: pass
  line, = folder("hf:a/chain", server.url, tmp_path)[3]
  assert "does not answer" in line and "the cache has no whole copy of it" in line
  line, = folder("hf:a/chain", server.url, tmp_path, HF_HUB_OFFLINE="1")[3]
  assert line == ("rlx: hf:a/chain: HF_HUB_OFFLINE is set, and the cache has no whole copy "
                  "of it.")


def test_a_cut_download_goes_on_where_it_was(tmp_path):
  with hub_stub.serve({"a/chain": {MAIN: FILES}}, cut=[SIZE // 2]) as server:
    found, *_ = folder("hf:a/chain", server.url, tmp_path)
    assert (found / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert len([x for x in server.asked if x.startswith("GET /cdn/")]) == 2


def test_a_download_that_stays_cut_is_one_line_and_no_model(tmp_path):
  with hub_stub.serve({"a/chain": {MAIN: FILES}}, cut=[SIZE // 2] + [0] * 9) as server:
    line, = folder("hf:a/chain", server.url, tmp_path)[3]
    assert line.startswith("rlx: hf:a/chain: ") and "run again to go on" in line
    # What is there of it is not taken for the model.
    line, = folder("hf:a/chain", server.url, tmp_path, HF_HUB_OFFLINE="1")[3]
    assert "the cache has no whole copy of it" in line
    server.cut.clear()
    assert folder("hf:a/chain", server.url, tmp_path)[1] == MAIN
