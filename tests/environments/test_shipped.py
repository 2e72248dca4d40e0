"""The shipped environments' configs and initial models."""
import importlib
import itertools
import pathlib
import pickle

import numpy as np
import pytest

from rlx import build
from rlx.build import load, memory
from rlx.environments.zoo import debug
from rlx.io import tokenizer as tokenizer_io
from rlx.loops import rl
from rlx.stages import host_state
from tests import tiny
from tests.environments import episode
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


def episodes_of(environment, replies, depth):
  """(total reward, newest verdict) of an episode for each way to write `depth` of these replies."""
  for reply in replies if depth else ():
    after = pickle.loads(pickle.dumps(environment))
    step = after.step(reply)
    total, verdict = step.reward or 0.0, step.verdict
    yield total, verdict
    for more, later in () if step.done else episodes_of(after, replies, depth - 1):
      yield total + more, verdict if later is None else later


# Replies beside those of the expert: junk, calls that repeat or find nothing, and wrong answers.
PLAYED = dict(
    calculator=("", "[", "[1+1]", "#1"), search=("", "?boss", "#x"), game=("", "0", "99"),
    sql=("", "select 1", "select k from t", "!select 1"), python=("", ">print(1)", "#x"),
    debug=("", "x", "[{0},{1}][x>{2}]"))


@pytest.mark.parametrize("name, options", [
    *((name, {}) for name in ("search", "sql", "calculator")),
    *(("calculator", dict(turn_rewards=kind, at_once=n)) for kind in ("calls", "ftrl")
      for n in (1, 2)), ("game", {}), ("game", dict(partial=True)),
    pytest.param("python", {}, marks=sandbox.needed),
    *(pytest.param("debug", dict(decrease=d, sound=s), marks=sandbox.needed)
      for d, s in ((0, 0), (0.5, 0.4), (0, 1), (3, 0)))], ids=str)
def test_nothing_pays_better_than_solving_the_task_at_once(name, options):
  """All episodes of up to four scripted replies, those without the answer among them."""
  if name in NEEDS: pytest.importorskip(NEEDS[name])
  module = importlib.import_module(f"rlx.environments.zoo.{name}")
  environment, rng = getattr(module, name.capitalize())(**options), np.random.default_rng(0)
  for prompt in itertools.islice(module.prompts(
      (dict(seed=1, index=i) for i in itertools.count()), "train"), 2):
    expert = module.expert(prompt, rng)[-4:]
    values = prompt.meta.get("shown", ())
    if name == "debug":
      right = debug.values(prompt.answer)
      values = *(right[x - debug.INPUTS[0]] for x in sorted(values)), min(values)
    replies = [*expert, *(r.format(*values) if name == "debug" else r for r in PLAYED[name])]
    environment.reset(prompt)
    at_once = episode.play(pickle.loads(pickle.dumps(environment)), prompt, expert)
    best = sum(step.reward or 0.0 for step in at_once)
    assert best >= 1 and at_once[-1].done and at_once[-1].verdict in (1.0, None)
    for total, verdict in episodes_of(environment, dict.fromkeys(replies), 4):
      assert total <= best + 1e-9
      if verdict == 0.0: assert total < best


@pytest.mark.parametrize("name", NAMES)
def test_the_initial_model_is_small_and_knows_all_characters(name):
  folder = CONFIGS / "models" / name
  assert sum(path.stat().st_size for path in folder.iterdir()) < 2e6
  alphabet = importlib.import_module(f"rlx.environments.zoo.{name}").ALPHABET
  tokenizer = tokenizer_io.load(folder)
  assert tokenizer.decode(tokenizer.encode(alphabet, add_bos=False)) == alphabet
