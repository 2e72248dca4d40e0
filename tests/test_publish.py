"""A model goes to the hub, which is a stub on loopback, with a card that says what it is."""
import pathlib
import re
import shutil

import huggingface_hub
from huggingface_hub import constants
import pytest

from rlx.io import hub, strict_json, weights
from rlx.tools import card, convert
from tests import test_convert, test_readme
from tests.io import hub_stub
from tests.io.test_chat import bare  # pylint: disable=unused-import
from tests.test_bases import chat_model  # pylint: disable=unused-import

CHAIN = str(pathlib.Path(__file__).parent.parent / "configs/models/chain")
MAIN = hub_stub.COMMITS["main"]
BEFORE, AFTER = (
    dict(mean=m, low=m - 0.1, high=m + 0.1, prompts=64, unknown=0.0) for m in (0.3, 0.8))


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """An empty folder, the current one, with a token for the hub."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("HF_TOKEN", "secret")
  monkeypatch.setenv("HF_XET_CACHE", str(tmp_path.parent / "xet"))
  monkeypatch.setattr("time.sleep", lambda seconds: None)  # Between tries.
  return tmp_path


def finished_run(workdir, start=CHAIN, **changes):
  """A run as it is after its last step, of random models."""
  test_convert.run_of(workdir, start, **changes)
  strict_json.write(workdir / "summary.json", dict(
      before=dict(greedy=BEFORE), after=dict(greedy=AFTER), steps=4, seed=3, prm_accuracy=None))


def push(server, patch, *, transfer="lfs", cache="cache", **options):
  hub_stub.use(server, pathlib.Path(cache), patch)
  patch.setattr(constants, "HF_HUB_DISABLE_XET", transfer == "lfs")
  convert.convert(**dict(dict(source="run", to="hf:me/chain"), **options))
  return server.repos["me/chain"][MAIN]


@pytest.mark.parametrize("transfer", ["lfs", "xet"])
def test_a_run_is_uploaded_as_it_is_exported(folder, monkeypatch, capsys, transfer):
  if transfer == "xet": pytest.importorskip("hf_xet")
  finished_run(folder / "run")
  convert.convert("run", "exported")
  with hub_stub.serve({}, token="secret") as server:
    there = push(server, monkeypatch, transfer=transfer)
    assert server.public == {"me/chain": "private"} and not (folder / "chain.upload").exists()
    assert capsys.readouterr().out.splitlines()[-1] == f"{server.url}/me/chain  0.9 MB, float32"
    here = {p.name: p.read_bytes() for p in (folder / "exported").iterdir()}
    assert set(there) == set(here)
    assert there["README.md"].decode() == here["README.md"].decode().replace(
        '"exported"', '"me/chain"').replace("serve exported", "serve me/chain").replace(
            "# exported", "# chain")
    if transfer == "xet":  # The stub knows what was sent by its hash.
      assert there["model.safetensors"] == hub_stub._tag(here["model.safetensors"]).encode()
    else:
      assert {k: there[k] for k in here if k != "README.md"} == {
          k: here[k] for k in here if k != "README.md"}
      config, _, _ = weights.load("hf:me/chain")  # And back.
      assert config == weights.load("exported")[0]


def test_the_next_model_replaces_the_last_one_but_no_card_of_a_user(folder, monkeypatch):
  """Weights of other names would be read beside the new ones."""
  finished_run(folder / "run")
  old = {name: b"old" for name in (
      "model-00001-of-00002.safetensors", "model.safetensors.index.json", "adapter_config.json",
      "adapter_model.safetensors", "notes.txt", "README.md", "model.safetensors")}
  with hub_stub.serve({"me/chain": {MAIN: dict(old)}}, token="secret") as server:
    there = push(server, monkeypatch, public=True)
    assert set(there) == {"notes.txt", "README.md", *(
        p.name for p in pathlib.Path(CHAIN).iterdir())}
    assert there["README.md"] == b"old" and len(there["model.safetensors"]) > 10_000
    assert not server.public  # Who may read it is not changed.
    there["README.md"] = f"---\n---\n{card.MARK}\n".encode()
    assert b"after 4 steps" in push(server, monkeypatch, cache="other")["README.md"]


@pytest.mark.parametrize("options, message", [
    *((dict(to=f"hf:{name}"), f"to='hf:{name}': this is no name of a model on the hub; use")
      for name in ("chain", "a/b/c", "", "me/a b", "me/chain@main", "me/--a")),
    (dict(token=None), "to='hf:me/chain': an upload needs a token that may write; log in with `hf"),
    (dict(offline=True), "to='hf:me/chain': HF_HUB_OFFLINE is set"),
    (dict(token="other"), "to='hf:me/chain': http://.* does not accept the token; `hf auth"),
    (dict(to="hf:you/chain"), "to='hf:you/chain': the token may not write to you/chain"),
    (dict(url="http://127.0.0.1:9"), "to='hf:me/chain': http://127.0.0.1:9 does not answer as it"),
    (dict(format="rlx"), "format='rlx', public=False: to=hf:OWNER/NAME needs format=hf"),
    (dict(to="there", public=True), "format='hf', public=True: to=hf:.* public is for it alone"),
    (dict(public="yes"), "public='yes': True or False"),
    (dict(source="lora", adapters="peft"), "adapters='peft': their base '.*chain' is not on the"),
    (dict(source="nowhere"), "source='nowhere' is missing")], ids=str)
def test_refused_before_anything_is_exported(folder, monkeypatch, options, message):
  options = dict(options)
  finished_run(folder / "run")
  finished_run(folder / "lora", lora__rank=2)
  if (token := options.pop("token", "secret")) is None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "none"))
  else: monkeypatch.setenv("HF_TOKEN", token)
  before = sorted(folder.rglob("*"))
  with hub_stub.serve({}, token="secret") as server:
    server.url = options.pop("url", server.url)
    hub_stub.use(server, folder.parent / "cache", monkeypatch, offline="offline" in options)
    options.pop("offline", None)
    monkeypatch.setattr(convert.hf, "save", None)
    with pytest.raises(ValueError, match=message) as e:
      convert.convert(**dict(dict(source="run", to="hf:me/chain"), **options))
    assert "\n" not in str(e.value) and not server.repos
  assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("failing", ["POST .*/commit/", "PUT /lfs/", "POST .*/preupload/",
                                     "POST .*/validate-yaml", "GET .*/tree/"])
def test_what_could_not_be_sent_stays(folder, monkeypatch, command, failing):
  finished_run(folder / "run")
  with hub_stub.serve({}, token="secret", failing={failing: 500}) as server:
    hub_stub.use(server, folder / "cache", monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    done = command("convert", "source=run", "to=hf:me/chain", "public=true")
    line, = [x for x in done.stderr.splitlines() if x.startswith("rlx: ")]
    left = folder / "chain.upload"
    assert done.returncode == 2 and re.search(
        f"does not answer as it should .*; the model is in {left}, and `hf upload me/chain {left}` "
        "sends it", line), done.stderr
    assert server.public == {"me/chain": "public"} and not server.repos["me/chain"][MAIN]
  assert weights.load(left)[0] == weights.load(CHAIN)[0]
  again = command("convert", "source=run", "to=hf:me/chain")
  assert "it exists and is not empty. An upload that failed left it: `hf upload" in again.stderr


# The card.


def read_card(folder):
  loaded = huggingface_hub.ModelCard((folder / "README.md").read_text())
  return loaded.data.to_dict(), loaded.text


def test_a_card_says_what_was_trained_on_what_with_which_results(folder, monkeypatch):
  files = {p.name: p.read_bytes() for p in pathlib.Path(CHAIN).iterdir()}
  files["README.md"] = b"---\nlicense: apache-2.0\nbase_model: x/y\n---\n# The base's own card\n"
  with hub_stub.serve({"a/base": {MAIN: files}}) as server:
    hub_stub.use(server, folder / "cache", monkeypatch)
    finished_run(folder / "run", "hf:a/base", prompts__source="hf:openai/gsm8k:main",
                 learner__epochs=2, log__baseline="/home/me/runs/other")
    convert.convert("run", "out", model="policy")
    convert.convert("run", "prm", model="prm")
  data, text = read_card(folder / "out")
  assert data == dict(library_name="transformers", pipeline_tag="text-generation", tags=["rlx"],
                      base_model="a/base", datasets=["openai/gsm8k"], license="apache-2.0")
  assert "base's own" not in text and "/home/me" not in text
  for line in (f"started from a/base, commit {MAIN[:12]}.", "after 4 steps of training with [rlx](",
               "| greedy | 0.300 [0.200, 0.400] | 0.800 [0.700, 0.900] | 64 |", "learner.epochs=2",
               'learner.loss.name="policy.ppo_clip"', 'log.baseline="other"', "vllm serve out",
               'rewards.process.name="implicit.process"'): assert line in text, line
  assert "learner.minibatches" not in text and "=null" not in text
  assert 'rlx.score("prm", "hf:a/base", [("a prompt", "a completion")], beta=0.05)' in read_card(
      folder / "prm")[1]
  # Results of other steps are not those of the model.
  strict_json.write(folder / "run/summary.json", dict(after=dict(greedy=AFTER), steps=3))
  convert.convert("run", "later")
  assert "0.800" not in read_card(folder / "later")[1]


def test_the_sources_of_a_mixture_are_those_that_are_read():
  mixture = {f"prompts.mixture.{name}.source": x for name, x in dict(a="hf:x/y", b=None).items()}
  for flat, sources in (({}, ["chain"]), (mixture, ["hf:x/y", "chain"]),
                        ({"prompts.mixture.a.source": "hf:x/y"}, ["hf:x/y"])):
    assert card._list_sources({"prompts.source": "chain"} | flat) == sources


def test_a_card_that_comes_with_a_model_is_kept(folder):
  convert.convert(CHAIN, "one")
  data, text = read_card(folder / "one")
  assert "license" not in data and "Converted from chain by [rlx](" in text
  (folder / "one/README.md").write_text("# Mine\n")
  convert.convert("one", "two")
  assert (folder / "two/README.md").read_text() == "# Mine\n"
  (folder / "one/README.md").write_text("---\n- {\n---\n")
  finished_run(folder / "run", "one")
  convert.convert("run", "three")  # What is no metadata is not read.
  assert "license" not in read_card(folder / "three")[0]


@pytest.mark.parametrize("kind", ["plain", "chat", "peft"])
def test_what_a_card_says_of_loading_runs(folder, chat_model, kind):
  """As printed, where PyTorch is installed."""
  pytest.importorskip("torch")
  if kind == "peft": pytest.importorskip("peft")
  shutil.copytree(chat_model, folder / "base")
  if kind == "plain": (folder / "base/chat_template.jinja").unlink()
  finished_run(folder / "run", "base", **dict(lora__rank=2) if kind == "peft" else {})
  convert.convert("run", "out", adapters="peft" if kind == "peft" else "merged")
  text = read_card(folder / "out")[1]
  assert ('"role": "user"' in text) == (kind == "chat")  # Adapters alone have no tokenizer.
  exec(re.search(r"```python\n(.*?)```", text, re.S)[1], {})  # pylint: disable=exec-used


def test_what_the_page_about_serving_says_of_transformers_runs(folder, chat_model, capsys):
  pytest.importorskip("torch")
  finished_run(folder / "run", chat_model)
  convert.convert("run", "models/policy", dtype="bfloat16")
  for block in test_readme.blocks(test_readme.TEXTS["docs/serving.md"], "python"):
    exec(block, {})  # pylint: disable=exec-used
  assert capsys.readouterr().out.strip()
