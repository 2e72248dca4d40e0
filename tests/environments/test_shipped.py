"""The shipped environments' configs and initial models."""
import importlib
import itertools
import pathlib
import pickle

import numpy as np
import pytest

from rlx import build
from rlx.build import load, memory, methods as build_methods
from rlx.core import records, resolve
from rlx.environments.zoo import debug
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


def episodes_of(environment, replies, depth, past=()):
  """[(reply, Step)] of each episode of up to `depth` of these replies, cut ones among them."""
  for reply in replies if depth else ():
    after = pickle.loads(pickle.dumps(environment))
    step = after.step(reply)
    episode = (*past, (reply, step))
    yield episode
    if not step.done: yield from episodes_of(after, replies, depth - 1, episode)


# Replies beside those of the expert: junk, calls that repeat or find nothing, and wrong answers.
PLAYED = dict(
    calculator=("", "[", "[1+1]", "#1"), search=("", "?boss", "#x"), game=("", "0", "99"),
    sql=("", "select 1", "select k from t", "!select 1"), python=("", ">print(1)", "#x"),
    debug=("", "x", "[{0},{1}][x>{2}]"))


def searched(name, options, count=2):
  """(expert's replies, other replies, all episodes of up to four replies) of some prompts."""
  if name in NEEDS: pytest.importorskip(NEEDS[name])
  module = importlib.import_module(f"rlx.environments.zoo.{name}")
  environment, rng = getattr(module, name.capitalize())(**options), np.random.default_rng(0)
  for prompt in itertools.islice(module.prompts(
      (dict(seed=1, index=i) for i in itertools.count()), "train"), count):
    expert, values = module.expert(prompt, rng)[-4:], prompt.meta.get("shown", ())
    if name == "debug":
      right = debug.values(prompt.answer)
      values = *(right[x - debug.INPUTS[0]] for x in sorted(values)), min(values)
    others = [r.format(*values) if name == "debug" else r for r in PLAYED[name]]
    if options.get("at_once") == 2: expert = ["".join(expert[:2]), *expert]
    environment.reset(prompt)
    episodes = list(episodes_of(environment, dict.fromkeys([*expert, *others]), 4))
    yield prompt, expert[options.get("at_once") == 2:], others, episodes


def check_that_solving_at_once_pays_most(expert, others, episodes, totals):
  """No episode has more than the right answer as the first reply, or the expert's calls and then
  the answer. Without the right answer none has more than either."""
  replies = [tuple(reply for reply, _ in episode) for episode in episodes]
  solved = [episode[-1][1].verdict == 1 if episode[-1][1].verdict is not None else
            (episode[-1][1].reward or 0) >= 1 for episode in episodes]
  total_of = dict(zip(replies, totals))
  answered, played = total_of[expert[-1],], total_of[tuple(expert)]
  assert all(solved[replies.index(x)] for x in ((expert[-1],), tuple(expert)))
  for reply, is_solved, total in zip(replies, solved, totals):
    assert total <= max(answered, played) + 1e-6, reply
    if not is_solved:
      assert total <= min(answered, played) + 1e-6 and total < max(answered, played), reply
    elif set(reply[:-1]) <= set(others):  # The answer is put off.
      assert total <= answered + 1e-6, reply


@pytest.mark.parametrize("name, options", [
    *((name, {}) for name in ("search", "sql", "calculator")),
    *(("calculator", dict(turn_rewards=kind, at_once=n, calls=3)) for kind in ("calls", "ftrl")
      for n in (1, 2)), ("game", {}), ("game", dict(partial=True)),
    pytest.param("python", {}, marks=sandbox.needed),
    *(pytest.param("debug", dict(decrease=d, sound=s), marks=sandbox.needed)
      for d, s in ((0, 0), (0.5, 0.4), (0, 1), (3, 0)))], ids=str)
def test_no_option_pays_better_than_solving_the_task_at_once(name, options):
  for _, expert, others, episodes in searched(name, options):
    totals = [sum(step.reward or 0.0 for _, step in episode) for episode in episodes]
    check_that_solving_at_once_pays_most(expert, others, episodes, totals)


def with_environments():
  """[(name of a shipped config, name of its environment)], but for those that a model plays."""
  for folder in ("environments", "papers"):
    for path in sorted((CONFIGS / folder).glob("[!_]*.py")):
      c = importlib.import_module(f"configs.{folder}.{path.stem}").get_config()
      if c.environment.name and c.environment.name.startswith("zoo."):
        name = c.environment.name.split(".")[1]
        if name == "person": continue
        yield pytest.param(f"{folder}.{path.stem}", name,
                           marks=sandbox.needed if name in ("python", "debug") else ())


# Their rewards are those of a model.
OF_MODELS = {"implicit.process", "likelihood.turn_gain"}


@pytest.mark.parametrize("path, name", list(with_environments()))
def test_no_config_pays_better_than_solving_the_task_at_once(path, name):
  """In the sum of all rewards that its estimator sees, discounted as there."""
  c = importlib.import_module(f"configs.{path}").get_config()
  methods = build_methods.resolve_methods(c)
  gamma = c.advantages.get("total", {}).get("gamma", 1.0)
  options = {k: x for k, x in c.environment.to_dict().items() if k != "name"}
  for prompt, expert, others, episodes in searched(name, options, count=1):
    shape = len(episodes), max(map(len, episodes))
    turn_BT = np.broadcast_to(np.arange(shape[1]), shape)  # Each turn is a token.
    action_BT = turn_BT < np.array([len(episode) for episode in episodes])[:, None]
    rewards_BT, outcome_B, texts = np.full(shape, np.nan), np.zeros(len(episodes)), []
    for b, episode in enumerate(episodes):
      rewards = [np.nan if step.reward is None else step.reward for _, step in episode]
      rewards_BT[b, :len(episode)], verdict = rewards, episode[-1][1].verdict
      outcome_B[b] = np.clip(np.nansum(rewards) if verdict is None else verdict, 0, 1)
      texts.append("".join(reply + step.observation for reply, step in episode))
    # What a judge says is not known; here it is the same of all episodes.
    scores = [(lambda prompt, text: 1.0) if verifier.startswith("judge.") else
              resolve.lookup("verifiers", verifier, "") for verifier in c.verifier.scores]
    batch = records.Batch(
        action_BT=action_BT, turn_BT=turn_BT, turn_rewards_BT=rewards_BT, outcome_B=outcome_B,
        reward_B=outcome_B, turn_ends_BT=action_BT,
        scores_BE=np.array([[f(prompt, text) for f in scores] for text in texts], np.float32))
    total_B = np.zeros(len(episodes))
    for term, (_, fn) in methods.rewards.items():
      if c.rewards[term].name in OF_MODELS: continue
      rewards, _ = resolve.split_metrics(fn(batch))
      if rewards.ndim == 1:  # On the last token.
        rewards = np.where(turn_BT == action_BT.sum(axis=1, keepdims=True) - 1, rewards[:, None], 0)
      total_B += c.rewards[term].coef * np.sum(rewards * gamma**turn_BT, axis=1)
    check_that_solving_at_once_pays_most(expert, others, episodes, total_B)


@pytest.mark.parametrize("name", NAMES)
def test_the_initial_model_is_small_and_knows_all_characters(name):
  folder = CONFIGS / "models" / name
  assert sum(path.stat().st_size for path in folder.iterdir()) < 2e6
  alphabet = importlib.import_module(f"rlx.environments.zoo.{name}").ALPHABET
  tokenizer = tokenizer_io.load(folder)
  assert tokenizer.decode(tokenizer.encode(alphabet, add_bos=False)) == alphabet
