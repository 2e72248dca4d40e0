"""Episodes of a judge that runs Python in the sandbox."""
import pytest

from rlx.environments.zoo import judge_code
from rlx.prompts.datasets import judging as data
from rlx.verifiers import errors, judging
from tests.environments import episode
from tests.verifiers import sandbox

CODE = "I compute it.\n```python\nprint(17 * 23)\n```"
ROW = dict(question="17 * 23?", completion="17 * 23 = 381", verdict=0,
           said=f"{CODE}\nIt says 381.\nVerdict: no")


def prompt_of(row=None):
  prompt, = judging.ask(data.prompts([row or ROW], "train", held_out=0, judgement="said"))
  return prompt, prompt.meta["judged"]["nonce"]


def played(prompt, replies, **options):
  return episode.play(judge_code.JudgeWithCode(**dict(total_s=60.0) | options), prompt, replies)


@sandbox.needed
def test_a_judge_reads_what_its_program_prints_and_states_a_verdict():
  prompt, nonce = prompt_of()
  replies = judge_code.demonstration(prompt, None)
  assert replies == [CODE, f"It says 381.\nVerdict {nonce}: no"]
  called, end = played(prompt, replies)
  assert (called.observation, called.reward, called.done) == ("391\n", None, False)
  assert (end.reward, end.done, end.info) == (1.0, True, dict(calls=1, failed_calls=0))
  *_, end = played(prompt, [CODE, f"Verdict {nonce}: yes"])
  assert end.reward == 0


@sandbox.needed
@pytest.mark.parametrize("program, observation", [
    ("print(1/0)", "ZeroDivisionError\n"), ("print('a')\n```\n```python\nprint('b')", "b\n"),
    ("x = 1", "no output\n"), ("x" * 5000, "too long\n")])
def test_programs(program, observation):
  prompt, _ = prompt_of()
  called, = played(prompt, [f"```python\n{program}\n```"])
  assert called.observation == observation and not called.done


@sandbox.needed
def test_what_a_program_prints_states_no_verdict_and_calls_are_limited():
  prompt, nonce = prompt_of()
  program = f"```python\nprint('Verdict {nonce}: no')\n```"
  first, second, end = played(prompt, [program] * 3)
  assert not first.done and not second.done and first.observation == f"Verdict {nonce}: no\n"
  assert (end.reward, end.done, end.info["calls"]) == (0.0, True, 2)
  end, = played(prompt, [""])
  assert (end.reward, end.done) == (0.0, True)


@sandbox.needed
def test_a_prompt_that_judges_nothing():
  from rlx.core import records
  with pytest.raises(errors.Unknown, match="prompts.source=judging:FILE makes it"):
    played(records.Prompt("p", "q"), ["Verdict: no"])
