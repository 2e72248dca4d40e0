"""The shipped environments' configs and initial models."""
import importlib
import pathlib

import pytest

from rlx import build
from rlx.build import load, memory
from rlx.io import tokenizer as tokenizer_io
from rlx.loops import rl
from rlx.stages import host_state
from tests import tiny
from tests.verifiers import sandbox

NEEDS = dict(search="bm25s", game="textarena")
CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
NAMES = sorted({path.stem for path in (CONFIGS / "environments").glob("*.py")} - {"__init__"})


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=sandbox.needed if name in ("python", "debug") else ())
    for name in NAMES])
def test_the_smoke_form_samples_episodes_that_earn_rewards(name):
  """One trains on them; for all, whose configs differ in sizes, the update is traced."""
  if name in NEEDS: pytest.importorskip(NEEDS[name])
  c = load.load_config(f"environments/{name}:prime-smoke")
  # Below 128 columns the history has one width, and a sampler one program.
  c.rollouts.max_tokens = min(c.rollouts.max_tokens, 127)
  run, host = build.build(c), host_state.HostState(rehearsed={})
  assert len(list(memory.trace_steps(run, run.shapes()))) > 2
  if name == "calculator":
    *_, metrics = rl.iteration(run, run.init(), host, 0, tiny.CLOCK)
    assert not rl.is_skipped(metrics)
  else: _, metrics = run.collect(run.init(), host, 0, tiny.CLOCK)
  run.close()
  assert 0 < metrics["rollouts/accuracy"] < 1 and metrics["environment/failed"] < 0.5


@pytest.mark.parametrize("name", NAMES)
def test_the_initial_model_is_small_and_knows_all_characters(name):
  folder = CONFIGS / "models" / name
  assert sum(path.stat().st_size for path in folder.iterdir()) < 2e6
  alphabet = importlib.import_module(f"rlx.environments.zoo.{name}").ALPHABET
  tokenizer = tokenizer_io.load(folder)
  assert tokenizer.decode(tokenizer.encode(alphabet, add_bos=False)) == alphabet
