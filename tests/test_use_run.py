"""What can be done with the folder of a run, and what new users write."""
import io
import json
import sys

import numpy as np
import pytest

import rlx
from rlx import api
from rlx.tools import convert
from tests import test_convert


@pytest.fixture(scope="module")
def run(tiny_files, tmp_path_factory):
  """(folder of a run with other parameters than its start, the model converted from it)."""
  folder = tmp_path_factory.mktemp("use")
  test_convert.run_of(folder / "run", tiny_files / "model")
  convert.convert(folder / "run", folder / "policy")
  convert.convert(folder / "run", folder / "prm", model="prm")
  return folder


def test_a_run_s_folder_is_its_newest_policy_and_prm(run, tiny_files, capsys, monkeypatch):
  options = dict(max_tokens=4, temperature=0)
  drawn = rlx.sample(run / "run", "a01", **options)
  assert drawn == rlx.sample(str(run / "policy"), ["a01"], **options)  # One text is one prompt.
  assert drawn != rlx.sample(str(tiny_files / "model"), ["a01"], **options)
  pairs = [("a01", "1234")]
  start = str(tiny_files / "model")
  scored = rlx.score(run / "run", None, pairs)
  assert scored == rlx.score(str(run / "prm"), start, pairs) and np.any(scored[0]["rewards"])
  with pytest.raises(ValueError, match="reference=None: .* is not the folder of a run; name the"):
    rlx.score(start, None, pairs)
  monkeypatch.setattr(sys, "stdin", io.StringIO("a01\n\n"))
  api.chat(run / "run", **options)
  assert capsys.readouterr().out == drawn[0][0]["text"] + "\n"


@pytest.mark.parametrize("words, message", [
    ([], "rlx chat MODEL: a model is needed."),
    (["m", "tokens=3"], "tokens: rlx chat takes ['max_tokens', 'temperature', 'seed']."),
    (["m", "seed=x"], "seed='x': a number.")])
def test_mistakes_of_chat_are_one_line(words, message, command):
  assert command("chat", *words).stderr == f"rlx: {message}\n"
