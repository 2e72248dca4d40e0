"""Models of the hub, against a stub on loopback: fetched, cached, offline, refused."""
import pathlib
import time

import pytest

from rlx.io import hub
from tests.io import hub_stub

ROOT = pathlib.Path(__file__).parent.parent.parent
CHAIN = ROOT / "configs" / "models" / "chain"
FILES = {p.name: p.read_bytes() for p in CHAIN.iterdir()} | {"README.md": b"#"}
OTHERS = {"pytorch_model.bin": b"pickle", "onnx/model.safetensors": b"x",
          "consolidated.safetensors": b"x" * 20_000}
MAIN, OLDER = hub_stub.COMMITS["main"], hub_stub.COMMITS["older"]
SIZE = len(FILES["model.safetensors"])

@pytest.fixture
def ask(monkeypatch, tmp_path, capsys):
  """(path, server, offline=False) -> (folder, commit, its files, lines on stderr); of an error only
  the lines."""
  monkeypatch.setattr(time, "sleep", lambda seconds: None)  # Between tries of a download.
  def ask_(path, server, *, offline=False):
    hub_stub.use(server, tmp_path, monkeypatch, offline=offline)
    try:
      folder = hub.folder(path)
    except ValueError as e:
      assert "\n" not in str(e)
      return None, None, None, [str(e)]
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("rlx: ")]
    return folder, hub.commit(path), sorted(p.name for p in folder.iterdir()), lines
  return ask_


def test_a_tokenizer_alone_is_fetched_without_weights(ask):
  with hub_stub.serve({"a/chain": {MAIN: FILES | OTHERS}}) as server:
    ask("hf:a/none", server)  # Points the process to the server.
    folder = hub.folder("hf:a/chain", weights=False)
    assert sorted(p.name for p in folder.iterdir()) == sorted({*FILES} - {"model.safetensors"})
    assert ask("hf:a/chain", server)[2] == sorted(FILES)  # The weights are fetched when needed.


def test_fetched_then_cached_then_offline(ask):
  with hub_stub.serve({"a/chain": {MAIN: FILES | OTHERS}}) as server:
    cached, commit, files, lines = ask("hf:a/chain", server)
    assert commit == MAIN and files == sorted(FILES) and lines == []
    for name, data in FILES.items(): assert (cached / name).read_bytes() == data, name
    assert not [x for x in server.asked if any(name in x for name in OTHERS)]
    fetched = len(server.asked)
    again = ask("hf:a/chain", server)
    assert again == (cached, MAIN, files, [])
    assert all("/api/" in x for x in server.asked[fetched:])  # It is asked, not fetched again.
    asked = len(server.asked)
    offline = ask("hf:a/chain", server, offline=True)
    assert offline[:3] == (cached, MAIN, files) and len(server.asked) == asked
    assert offline[3] == [
        f"rlx: hf:a/chain: HF_HUB_OFFLINE is set; the cached commit {MAIN} is used."]
  away = ask("hf:a/chain", server)  # Nobody is there any more.
  assert away[:3] == (cached, MAIN, files)
  assert len(away[3]) == 1 and "does not answer" in away[3][0] and MAIN in away[3][0]
  (cached / "model.safetensors").unlink()
  line, = ask("hf:a/chain", server, offline=True)[3]
  assert line == "hf:a/chain: HF_HUB_OFFLINE is set, and the cache has no complete copy of it."


def test_a_path_that_is_none_of_the_hub_is_itself():
  assert hub.folder(str(CHAIN)) == CHAIN and hub.commit(str(CHAIN)) is None
  assert hub.folder(CHAIN) == CHAIN and hub.commit(None) is None


def test_a_revision_is_a_branch_or_a_commit(ask):
  older = FILES | {"generation_config.json": b'{"eos_token_id": 1}'}
  with hub_stub.serve({"a/chain": {MAIN: FILES, OLDER: older}}) as server:
    for path, commit in (("hf:a/chain", MAIN), ("hf:a/chain@older", OLDER),
                         (f"hf:a/chain@{OLDER}", OLDER)):
      cached, is_, _, _ = ask(path, server)
      assert is_ == cached.name == commit
      text = (cached / "generation_config.json").read_bytes()
      assert text == (FILES if commit == MAIN else older)["generation_config.json"]
    *_, lines = ask("hf:a/chain@never", server)
    assert lines == [f"hf:a/chain@never: {server.url} has no such revision."]


def test_who_may_read(ask, monkeypatch):
  repos = {name: {MAIN: FILES} for name in ("a/gated", "a/private", "a/down")}
  with hub_stub.serve(repos, token="secret", access={
      "a/gated": "gated", "a/private": "private", "a/down": 500}) as server:
    for path in ("hf:a/private", "hf:a/nobody"):  # The hub says the same of both.
      assert ask(path, server)[3] == [
          f"{path}: {server.url} has no such repository, or it is private: "
          "set HF_TOKEN."]
    assert ask("hf:a/gated", server)[3] == [
        f"hf:a/gated: gated; ask for access at {server.url}/a/gated and set HF_TOKEN; "
        "downloaded parts are kept, run again to continue."]
    line, = ask("hf:a/down", server)[3]
    assert "does not answer as it should (HfHubHTTPError" in line
    assert line.endswith("and the cache has no complete copy of it.")
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert ask("hf:a/private", server)[1] == MAIN


@pytest.mark.parametrize("path", [
    "hf:", "hf:name", "hf:a/b/c", "hf:a/b@", "hf:a b/c", "hf:/b", "hf:a/../b", "hf:a/b.git"])
def test_a_name_that_is_none(path):
  with pytest.raises(ValueError, match="hf:OWNER/NAME or hf:OWNER/NAME@REVISION") as e:
    hub.folder(path)
  assert str(e.value).startswith(repr(path))


@pytest.mark.parametrize("leave_out", ["model.safetensors", "config.json"])
def test_not_a_model_that_can_be_read(ask, leave_out):
  files = {k: v for k, v in (FILES | OTHERS).items() if k != leave_out}
  files.pop("consolidated.safetensors")
  with hub_stub.serve({"a/b": {MAIN: files}}) as server:
    line, = ask("hf:a/b", server)[3]
    assert "config.json and *.safetensors are needed; there are" in line
    assert "'pytorch_model.bin'" in line
    assert not [x for x in server.asked if "/resolve/" in x]  # Said before anything is fetched.


def test_a_cut_download_goes_on_where_it_was(ask):
  with hub_stub.serve({"a/chain": {MAIN: FILES}}, cut=[SIZE // 2]) as server:
    cached, *_ = ask("hf:a/chain", server)
    assert (cached / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert len([x for x in server.asked if x.startswith("GET /cdn/")]) == 2


def test_a_download_that_stays_cut_is_one_line_and_no_model(ask):
  with hub_stub.serve({"a/chain": {MAIN: FILES}}, cut=[SIZE // 2] + [0] * 9) as server:
    line, = ask("hf:a/chain", server)[3]
    assert line.startswith("hf:a/chain: ") and "run again to continue" in line
    # What is there of it is not taken for the model.
    line, = ask("hf:a/chain", server, offline=True)[3]
    assert "the cache has no complete copy of it" in line
    server.cut.clear()
    assert ask("hf:a/chain", server)[1] == MAIN
