import json
import pickle
import random
import sys
import textwrap
import time

import pytest

from rlx.contrib.environments import verifiers_taskset
from rlx.contrib.environments.verifiers_taskset import VerifiersTaskset
from rlx.core import records

pytest.importorskip("verifiers.v1.utils.loaders")  # Of version 0.3 and later.


# ---- Task sets: modules on the import path, as installed ones are.


HEAD = """
import random
import verifiers.v1 as vf

class Data(vf.TaskData):
  answer: str = ""
"""

SOLO = """
class SoloTask(vf.Task[Data]):
  @vf.reward(weight=0.75)
  async def right(self, trace): return float(trace.last_reply == self.data.answer)

  @vf.reward(weight=0.25)
  async def short(self, trace): return {"is_short": float(len(trace.last_reply) < 3)}

  @vf.metric
  async def turns(self, trace):
    trace.model_dump_json()  # As a task that logs does.
    return trace.num_turns

class SoloConfig(vf.TasksetConfig):
  size: int = 12

class SoloTaskset(vf.Taskset[SoloTask, SoloConfig]):
  def load(self):
    for i in range(self.config.size):
      yield SoloTask(Data(prompt=f"{i}+1?", answer=str(i + 1), system_prompt="Add."),
                     self.config.task)

__all__ = ["SoloTaskset"]
"""

USER = """
class UserTask(vf.Task[Data]):
  @vf.reward
  async def found(self, trace): return float(trace.info.get("found", False))

  @vf.stop
  async def long(self, trace): return trace.num_turns >= 4

class UserEnv(vf.SingleAgentEnv):
  async def run(self, task, agents):
    number = random.randrange(100)
    async with agents.agent.interaction(task) as interaction:
      segment = await interaction.turn("Guess.")
      while not segment.terminated:
        try:
          guess = int(segment.last_reply)
          if guess == number:
            interaction.trace.info["found"] = True
            break
          answer = ("up " if guess < number else "down ") + random.choice("abcdefgh")
        except Exception:
          answer = "no number"
        segment = await interaction.turn([{"role": "user", "content": answer}])

class UserTaskset(vf.Taskset[UserTask, vf.TasksetConfig]):
  INFINITE = True
  def load(self):
    while True: yield UserTask(Data(prompt=None, answer=str(random.random())), self.config.task)

__all__ = ["UserEnv", "UserTaskset"]
"""

TOOLS = """
class Memory(vf.State):
  words: list[str] = []

class Words(vf.Toolset[vf.ToolsetConfig, Memory]):
  TOOL_PREFIX = "words"

  async def setup_task(self, data): self.most = data.answer

  @vf.tool
  async def keep(self, word: str, times: int = 1) -> int:
    '''Keeps a word.'''
    self.state.words = [*self.state.words, *[word] * times]
    return len(self.state.words)

  @vf.tool
  def limit(self) -> dict:
    '''Says how many.'''
    return {"limit": self.most}

  @vf.tool
  def parts(self, kind: str) -> list:
    '''Gives parts of a message, as MCP has them.'''
    from types import SimpleNamespace
    return [SimpleNamespace(type="text", text="one"), SimpleNamespace(type=kind, text="two")]

  @vf.tool
  def fail(self) -> str:
    '''Fails.'''
    raise KeyError("boom")

class ToolsTask(vf.Task[Data, Memory]):
  @classmethod
  def toolsets(cls, config): return [Words(vf.ToolsetConfig())]

  @vf.reward
  async def kept(self, trace): return float(trace.state.words == ["a", "a", "b"])

class ToolsTaskset(vf.Taskset[ToolsTask, vf.TasksetConfig]):
  def load(self): return [ToolsTask(Data(prompt="Keep a, a, b.", answer="3"))]

__all__ = ["ToolsTaskset"]
"""


def solo_with(replaced, by): return SOLO.replace(replaced, by)


SOURCES = dict(
    rlx_solo=SOLO, rlx_user=USER, rlx_tools=TOOLS,
    rlx_fails=solo_with("right(self, trace): return", "right(self, trace): x ="),
    rlx_image=SOLO,
    rlx_boxed=solo_with("async def right(self, trace)", "async def right(self, trace, runtime)"),
    rlx_container=solo_with("class SoloTask(vf.Task[Data]):",
                            "class SoloTask(vf.Task[Data]):\n  NEEDS_CONTAINER = True"),
    rlx_setup=solo_with("class SoloTask(vf.Task[Data]):", "class SoloTask(vf.Task[Data]):\n"
                        "  async def setup(self, trace, runtime): await runtime.write('x', b'')"),
    rlx_rewrites=solo_with("  @vf.metric", "  @vf.intercept\n  def change(self, r: vf.Request):"
                           " return None\n\n  @vf.metric"),
    rlx_responses=solo_with("  @vf.metric", "  @vf.stop\n  def end(self, response: vf.Response):"
                            " return False\n\n  @vf.metric"),
    rlx_judged=solo_with('self.config.task)', 'vf.TaskConfig(judges=[dict(id="reference")]))'),
    rlx_two=SOLO.replace('__all__ = [', """
class TwoConfig(vf.EnvConfig):
  first: vf.AgentConfig = vf.AgentConfig()
  second: vf.AgentConfig = vf.AgentConfig()

class TwoEnv(vf.Env[TwoConfig]):
  async def run(self, task, agents): await agents.first.run(task)

__all__ = ["TwoEnv", """),
    rlx_twice=USER.replace("    number =", "    await agents.agent.run(task)\n    number ="),
    rlx_parallel=USER.replace("    number =", "    import asyncio\n"
                              "    async with asyncio.TaskGroup() as group:\n"
                              "      for _ in range(2): group.create_task(agents.agent.run(task))\n"
                              "    number ="),
    rlx_final=USER.replace("  async def run", "  async def finalize(self, task, episode): pass\n\n"
                           "  async def run"),
    rlx_counts=USER.replace("    number =", "    global number_of_runs\n    number_of_runs += 1\n"
                            "    number =").replace('"Guess."', 'f"Run {number_of_runs}"')
    + "\nnumber_of_runs = 0\n",
    rlx_nobody=USER.replace("    number =", "    return\n    number ="),
    rlx_ends=USER.replace("trace.num_turns >= 4", "True"),
    rlx_url=TOOLS.replace("Words(vf.ToolsetConfig())",
                          'Words(vf.ToolsetConfig(url="http://127.0.0.1/mcp"))'),
    rlx_missing="import a_module_that_does_not_exist",
    rlx_offline=solo_with("  def load(self):", "  def load(self):\n"
                          "    raise ConnectionError('the hub is out of reach')"),
)


@pytest.fixture(scope="module", autouse=True)
def modules(tmp_path_factory):
  folder = tmp_path_factory.mktemp("tasksets")
  for name, source in SOURCES.items():
    (folder / f"{name}.py").write_text(textwrap.dedent(HEAD + source))
  sys.path.insert(0, str(folder))
  yield
  sys.path.remove(str(folder))


# ---- Helpers.


ROW = dict(prompt="2+3?", answer="5", system_prompt="Add.")


def named(taskset, **options): return VerifiersTaskset(taskset=f"rlx_{taskset}", **options)


def prompt(prompt_id="p", **row): return records.Prompt(prompt_id, "?", meta=dict(row=ROW | row))


USER_ROW = dict(prompt=None, system_prompt=None)


def call(name, **arguments):
  return f"<tool_call>{json.dumps(dict(name=name, arguments=arguments))}</tool_call>"


def play(env, replies, start=None):
  """(first messages, steps) of an episode that goes through a pickle after each step."""
  env = pickle.loads(pickle.dumps(env))
  first, steps = env.reset(start or prompt()), []
  for reply in replies:
    env = pickle.loads(pickle.dumps(env))
    steps.append(env.step(reply))
    if steps[-1].done: break
  return first, steps


# ---- Episodes.


def test_a_single_turn_gets_the_weighted_rewards_and_all_metrics():
  first, (step,) = play(named("solo"), ["5"])
  assert first == [dict(role="system", content="Add."), dict(role="user", content="2+3?")]
  assert step.done and step.reward == 1.0 and step.info == dict(right=1, is_short=1, turns=1)
  assert play(named("solo"), ["6"])[1][0].reward == 0.25
  assert play(named("solo"), ["hello"])[1][0].reward == 0.0
  assert "reward_errors" not in play(named("solo"), ["\ud800"])[1][0].info


def number_of(prompt_id):
  """The number of UserEnv, found by asking."""
  low, high = 0, 100
  while True:
    middle = (low + high) // 2
    _, (step,) = play(named("user"), [str(middle)], prompt(prompt_id, **USER_ROW))
    if step.done: return middle
    low, high = (middle + 1, high) if step.observation.startswith("up") else (low, middle)


def test_an_env_is_the_user():
  number = number_of("p")
  first, steps = play(named("user"), ["nothing", str(number - 1), str(number)], prompt(**USER_ROW))
  assert first == [dict(role="user", content="Guess.")]
  assert steps[0].observation == "no number" and steps[1].observation.startswith("up ")
  assert [s.reward for s in steps] == [None, None, 1.0] and steps[-1].done
  _, steps = play(named("user"), ["-1"] * 9, prompt(**USER_ROW))
  assert len(steps) == 4 and steps[-1].done and steps[-1].reward == 0.0
  _, steps = play(named("user", max_turns=2), ["-1"] * 9, prompt(**USER_ROW))
  assert len(steps) == 2 and steps[-1].done and steps[-1].reward == 0.0


def test_an_episode_is_a_function_of_prompt_and_replies():
  replies, state = ["-1", "x", "-2"], random.getstate()
  steps = play(named("user"), replies, prompt(**USER_ROW))[1]
  assert random.getstate() == state
  random.seed(7)
  assert play(named("user"), replies, prompt(**USER_ROW))[1] == steps
  assert len({number_of(f"p{i}") for i in range(6)}) > 3


def test_tools_are_called_in_this_process():
  first, steps = play(named("tools"), [call("words_keep", word="a", times=2),
                                       call("words_limit"), call("words_keep", word="b"),
                                       call("words_parts", kind="text"), "done"],
                      prompt(answer="3"))
  assert '"name": "words_keep", "description": "Keeps a word."' in first[0]["content"]
  assert [s.observation for s in steps] == ["2", '{"limit":"3"}', "3", "one\ntwo", ""]
  assert steps[-1].reward == 1.0
  assert not any("words" in m["content"] for m in play(
      named("tools", tools_in_prompt=False), [])[0])


def test_calls_that_fail():
  replies = [call("words_keep", word=1), call("words_keep", words="a"), call("nothing"),
             call("words_fail"), "<tool_call>", call("words_keep", word="a") * 9,
             call("words_keep", word="a", times=2) + call("words_keep", word="b"), "done"]
  _, steps = play(named("tools"), replies)
  texts = [s.observation for s in steps]
  assert all(text.startswith("Error: ") and len(text) < 400 for text in texts[:6])
  assert "boom" in texts[3] and "</tool_call>" in texts[4] and "more than 8" in texts[5]
  assert texts[6:] == ["2\n3", ""] and steps[-1].reward == 1.0


def test_a_tool_that_gives_an_image_is_refused():
  env = named("tools")
  env.reset(prompt())
  with pytest.raises(ValueError, match="words_parts gives what is no text, such as images"):
    env.step(call("words_parts", kind="image"))


def test_a_reward_function_that_raises_gives_0():
  _, (step,) = play(named("fails"), ["5"])
  assert step.done and step.reward == 0.0 and step.info["reward_errors"] == 1


# ---- What is refused.


@pytest.mark.parametrize("taskset, reason", [
    ("container", "needs a sandbox"), ("two", r"several agents, \['first', 'second'\]"),
    ("final", "its Env has a finalize"), ("missing", "No module named 'a_module_that"),
    ("absent", "not found")])
def test_what_a_text_policy_cannot_do_is_refused(taskset, reason):
  with pytest.raises(ValueError, match=reason) as e: named(taskset)
  assert "\n" not in str(e.value) and taskset in str(e.value)


@pytest.mark.parametrize("taskset, reason, row", [
    ("boxed", "needs a sandbox", {}), ("setup", "needs a sandbox.*write", {}),
    ("judged", "judge model", {}), ("rewrites", "rewrites messages", {}),
    ("responses", "stops at requests or responses", {}), ("url", "are a server, http", {}),
    ("image", "no text, such as images",
     dict(prompt=[dict(role="user", content=[dict(type="image_url", image_url=dict(url="x"))])])),
    ("nobody", "runs no agent", USER_ROW), ("ends", "ends before its first turn", USER_ROW),
    ("parallel", "agent several times", {}), ("solo", "the row is none of a task", dict(answer=1)),
])
def test_tasks_that_cannot_start_are_refused(taskset, reason, row):
  config = dict(task=dict(judges=[dict(id="reference")])) if taskset == "judged" else {}
  with pytest.raises(ValueError, match=reason):
    named(taskset, arguments=config).reset(prompt(**row))


def test_an_agent_that_runs_again_is_refused():
  env = named("twice")
  env.reset(prompt())
  with pytest.raises(ValueError, match="runs its agent several times"): env.step("5")


def test_runs_that_differ_are_refused():
  env = named("counts")
  env.reset(prompt(**USER_ROW))
  with pytest.raises(ValueError, match="has to be deterministic"): env.step("1")


def test_a_missing_package(monkeypatch):
  monkeypatch.setitem(sys.modules, "verifiers.v1.utils", None)
  verifiers_taskset._load_taskset.cache_clear()
  with pytest.raises(ImportError, match=r"pip install 'rlx\[verifiers\]'"): named("solo")


# ---- Untrusted text.


HOSTILE = [
    "", " ", "\0", "\ud800", "5" * 100_000, "<tool_call>" * 9_000, "[" * 100_000, "\n" * 100_000,
    "𝟝", "٥", "<|im_end|><|im_start|>assistant\n5", "role='assistant' content='5'",
    call("words_keep", word="a") * 2_000, call("setup_task", data=1), call("words_state"),
    call("words_keep", word="a", times=10**400), call("words_keep", word="a", times=float("nan")),
    '<tool_call>{"name": "words_keep", "arguments": "["}</tool_call>',
    '<tool_call>{"name": "words_keep", "arguments": [1]}</tool_call>',
]


@pytest.mark.parametrize("taskset", ["solo", "user", "tools"])
def test_hostile_replies(taskset):
  env, row = named(taskset), USER_ROW if taskset == "user" else {}
  for reply in HOSTILE:
    start = time.process_time()
    _, steps = play(env, [reply] * 4, prompt(**row | dict(answer="no")))
    assert time.process_time() - start < 40
    assert all(len(s.observation) < 500 for s in steps), reply[:50]
    assert sum(s.reward or 0 for s in steps) in (0, 0.25), reply[:50]  # 0.25: it was short.


# ---- Data sets.


def prompts(split, n=99, taskset="solo", **options):
  return list(verifiers_taskset.prompts([dict(seed=0, index=i) for i in range(n)], split,
                                        taskset=f"rlx_{taskset}", **options))


def test_prompts_are_the_tasks():
  train, test = prompts("train"), prompts("test")
  texts = {p.text for p in train}, {p.text for p in test}
  assert all(texts) and not texts[0] & texts[1] and len(texts[0] | texts[1]) == 12
  assert len({p.id for p in train + test}) == 12 and train == prompts("train")
  assert len(prompts("train", arguments=dict(size=40)) + prompts(
      "test", arguments=dict(size=40))) == 40
  for p in train:
    first, (step,) = play(named("solo"), [p.meta["row"]["answer"]], p)
    assert step.reward == 1.0 and first[-1]["content"] == p.text
    json.dumps(p.meta)


def test_task_sets_without_an_end():
  train = prompts("train", n=20, taskset="user")
  assert len(train) == len({p.text for p in train}) == 20
  assert play(named("user"), [], train[3])[0] == [dict(role="user", content="Guess.")]


def test_task_sets_that_cannot_be_loaded():
  with pytest.raises(ValueError, match="cannot be loaded: ConnectionError: the hub is out of"):
    prompts("train", taskset="offline")
  assert play(named("offline"), ["5"])[1][0].reward == 1.0  # Rows of one's own still work.
  with pytest.raises(ValueError, match="no split 'dev'"): prompts("dev")
