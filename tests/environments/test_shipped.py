"""The shipped environments' configs and initial models."""
import importlib
import json
import pathlib

import pytest

from rlx import api
from rlx.io import tokenizer as tokenizer_io
from rlx.loops import rl
from tests.verifiers import sandbox

NEEDS = dict(search="bm25s", game="textarena")
CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
NAMES = sorted({path.stem for path in (CONFIGS / "environments").glob("*.py")} - {"__init__"})


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=sandbox.needed if name in ("python", "debug") else ())
    for name in NAMES])
def test_the_smoke_form_samples_episodes_that_earn_rewards(name, tmp_path):
  if name in NEEDS: pytest.importorskip(NEEDS[name])
  c = api.load_config(f"environments/{name}:prime-smoke")
  # Below 128 columns the history has one width, and a sampler one program.
  c.steps, c.rollouts.max_tokens = 1, min(c.rollouts.max_tokens, 127)
  c.eval.prompts = c.eval.batch = 4
  summary = rl.train(c, tmp_path)
  step = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
  assert summary["steps"] == 1 and 0 < step["rollouts/accuracy"] < 1
  assert step["environment/failed"] < 0.5


@pytest.mark.parametrize("name", NAMES)
def test_the_initial_model_is_small_and_knows_all_characters(name):
  folder = CONFIGS / "models" / name
  assert sum(path.stat().st_size for path in folder.iterdir()) < 2e6
  alphabet = importlib.import_module(f"rlx.environments.{name}").ALPHABET
  tokenizer = tokenizer_io.load(folder)
  assert tokenizer.decode(tokenizer.encode(alphabet, add_bos=False)) == alphabet
