"""Credentials are not stored with a run."""
import json
import sys

import pytest

from rlx import build
from rlx.build import load
from rlx.io import secrets
from rlx.loops import record
from tests import tiny

HIDDEN = secrets.HIDDEN


@pytest.mark.parametrize("name, value, hidden", [
    ("environment.api_key", "LEAK", HIDDEN), ("environment.token", "LEAK", HIDDEN),
    ("environment.options", dict(password="LEAK", user="me"), dict(password=HIDDEN, user="me")),
    ("x.hf_token", "LEAK", HIDDEN), ("x.client_secret", "LEAK", HIDDEN),
    ("x", "sk-LEAK", HIDDEN), ("x", ("a", "hf_" + "LEAK" * 8), ("a", HIDDEN)),
    ("x", "ghp_LEAKLEAKLEAK", HIDDEN), ("x", "AKIALEAKLEAKLEAK", HIDDEN),
    ("verifier.judge.url", "https://me:LEAK@host/v1", f"https://{HIDDEN}@host/v1"),
    ("verifier.judge.url", "http://h/v1?api_key=LEAK&n=1", f"http://h/v1?api_key={HIDDEN}&n=1"),
    ("x", "eyJhbGciOiJI.LEAKLEAK.x-y", HIDDEN), ("x", "Authorization: Bearer LEAK.1",
                                                 f"Authorization: Bearer {HIDDEN}"),
    ("x", "of a variable: LEAK-of-env!", f"of a variable: {HIDDEN}!"),
    # What is none.
    ("verifier.judge.api_key_env", "OPENAI_API_KEY", None), ("rollouts.max_tokens", 64, None),
    ("x.token", "<|im_end|>", None), ("prompts.columns.key", "id", None),
    ("model.path", "runs/task-abcdef/risk-free", None), ("x", "https://host/a@b", None),
    ("model.path", "hf_models/tiny", None), ("environment.api_key", "", None)])
def test_what_is_hidden(monkeypatch, name, value, hidden):
  monkeypatch.setenv("SOME_API_KEY", "LEAK-of-env")
  monkeypatch.setenv("MONKEY", "verifier")  # No credential, nor is what is short.
  monkeypatch.setenv("A_TOKEN", "model")
  assert secrets.hide(value, name) == (value if hidden is None else hidden)


def test_no_file_of_a_run_has_a_credential(tmp_path, monkeypatch):
  monkeypatch.setenv("WANDB_API_KEY", "LEAK-of-env")
  monkeypatch.setattr(sys, "argv", [
      "rlx", "train", "x", "environment.api_key=sk-LEAK", "--config.model.path=LEAK-of-env",
      "--password", "LEAK", "seed=3"])
  tiny.write(tmp_path)
  c = tiny.config(tmp_path, environment=dict(name="tests.environments.counting:Letters"))
  for key in ("sk-LEAK", "sk-LEAKED"):
    with c.unlocked(): c.environment.api_key, c.log.baseline = key, "http://me:LEAK@host"
    record.record(c, tmp_path / "run")
  (tmp_path / "run" / "checkpoints" / "1").mkdir(parents=True)
  c.steps = 9
  record.record(c, tmp_path / "run")
  texts = {path.name: path.read_text() for path in (tmp_path / "run").iterdir() if path.is_file()}
  assert set(texts) == {"config.json", "versions.json", "changes.jsonl"}
  assert not [name for name, text in texts.items() if "LEAK" in text]
  assert json.loads(texts["versions.json"])["command"] == (
      f"rlx train x 'environment.api_key={HIDDEN}' '--config.model.path={HIDDEN}' --password "
      f"'{HIDDEN}' seed=3")
  again = load.load_config(str(tmp_path / "run"))
  assert again.environment.api_key == HIDDEN
  with pytest.raises(ValueError, match=r"environment.api_key='\(not stored\)': the run's config"):
    build.build(again)


def test_a_folder_is_no_credential(monkeypatch, tmp_path):
  """PWD and OLDPWD are folders, and their names look like that of a password."""
  for name in ("PWD", "OLDPWD"): monkeypatch.setenv(name, str(tmp_path))
  assert secrets.hide({"model": {"path": f"{tmp_path}/model"}}) == {
      "model": {"path": f"{tmp_path}/model"}}
