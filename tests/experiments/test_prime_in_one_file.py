"""experiments/prime_in_one_file.py computes what the product's loop computes, and learns."""
import dataclasses
import itertools

import jax
import numpy as np
import pytest

from experiments import prime_in_one_file as one
from rlx import build
from rlx.configs import quickstart
from rlx.core import resolve
from rlx.io import weights
from rlx.loops import rl
from rlx.stages import host_state
from tests import tiny

STEPS = 3


@pytest.fixture
def small(monkeypatch):
  """The config of the quickstart with the sizes of this file, both smaller than they are.

  Groups without a right completion pass the filter, so that the whitening of advantages that are
  all 0 is compared too. The floor of the normaliser is so high that it counts.
  """
  for name, value in dict(P=8, G=4, QUESTIONS=256, HELD_OUT=16, DRAWS=3, LOW=0.0, HIGH=0.6,
                          FLOOR=4.0).items():
    monkeypatch.setattr(one, name, value)
  c = quickstart.get_config()
  c.prompts.per_step, c.rollouts.per_prompt, c.rollouts.max_draws = one.P, one.G, one.DRAWS
  c.prompts.options.size, c.eval.prompts, c.eval.batch = one.QUESTIONS, one.HELD_OUT, one.HELD_OUT
  c.rollouts.filter_groups.low, c.rollouts.filter_groups.high = one.LOW, one.HIGH
  c.rewards.process.floor = one.FLOOR
  c.learner.pack = False  # Packed rows are rounded differently.
  return c


def test_its_numbers_are_those_of_the_quickstart():
  c = quickstart.get_config()
  assert c.prompts.options.to_dict() == dict(one.OPERATIONS, size=one.QUESTIONS)
  assert (c.model.path, c.seed, c.steps) == (one.MODEL, one.SEED, one.STEPS)
  assert (c.prompts.per_step, c.rollouts.per_prompt) == (one.P, one.G)
  assert (c.prompts.max_tokens, c.rollouts.max_tokens) == (one.X, one.T)
  band = c.rollouts.filter_groups
  assert (band.low, band.high, c.rollouts.max_draws) == (one.LOW, one.HIGH, one.DRAWS)
  assert (c.prm.beta, c.rewards.process.floor) == (one.BETA, one.FLOOR)
  assert c.learner.optimizer.lr == c.prm.optimizer.lr == one.LR
  assert c.eval.prompts == one.HELD_OUT


def steps_of_the_product(c):
  """Yields (state, rollouts, batch, rewards_BT of the process) after each step of the loop."""
  run = build.build(c)
  state, host = run.init(), host_state.HostState()
  for number in itertools.count():
    state, annotated, batch, _ = rl.iteration(run, state, host, number, tiny.CLOCK)
    rewards_BT, _ = resolve.split_metrics(run.methods.rewards["process"][1](batch))
    yield state, annotated.rollouts, batch, rewards_BT


def assert_close_trees(tree, expected):
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=0, atol=1e-6), tree, expected)


def test_it_computes_what_the_loop_computes_and_reports_accuracy(small, monkeypatch, capsys):
  train, steps, verdicts = one.train, [], []
  def train_as_the_product(config, *args):
    config = dataclasses.replace(config, remat=small.model.remat)  # For the same rounding.
    for step in train(config, *args):
      steps.append(jax.tree.map(np.array, step))
      yield step
  monkeypatch.setattr(one, "STEPS", STEPS)
  monkeypatch.setattr(one, "train", train_as_the_product)
  one.main()
  lines = capsys.readouterr().out.splitlines()
  assert [line.split()[:2] for line in lines] == [
      ["before", "greedy"], ["before", "sampled"], ["step", "0"], ["after", "greedy"],
      ["after", "sampled"]]
  assert all(0 < float(line.split()[2]) < 1 for line in lines if "[" in line)

  _, params, _ = weights.load(one.MODEL)
  for number, (policy, prm, done), (state, rollouts, batch, rewards_BT) in zip(
      range(STEPS), steps, steps_of_the_product(small)):
    for name in ("tokens_BS", "completion_len_B", "finish_B"):
      np.testing.assert_array_equal(getattr(done["rollouts"], name), getattr(rollouts, name))
    np.testing.assert_array_equal(done["outcome_PG"], batch.outcome_PG)
    np.testing.assert_allclose(done["rewards_BT"], rewards_BT, rtol=0, atol=1e-6)
    np.testing.assert_allclose(done["advantages_BT"], batch.advantages_BT, rtol=0, atol=1e-5)
    assert (np.asarray(rewards_BT) != 0).any() == (number > 0)
    verdicts.append(done["outcome_PG"])
    assert_close_trees(policy, state.policy)
    assert_close_trees(prm, state.prm)
  assert len(verdicts) == STEPS
  assert not verdicts[0].all(axis=1).any() and (verdicts[0].max(axis=1) == 0).any()
  moved = [np.abs(x - y).max() for x, y in zip(*map(jax.tree.leaves, (policy, params)))]
  assert min(moved) > 1e-4
