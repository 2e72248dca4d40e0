r"""A judge that runs Python before it states its verdict: a prompt of the data set `judging`.

  question      Is the last step right? ... [answer 5e0c] 17 * 23 = 381 [end of answer 5e0c] ...
  reply         I compute it.\n```python\nprint(17 * 23)\n```
  observation   391\n
  reply         The step says 381.\nVerdict 5e0c: no

A reply with a block ```python is a call, of which the last block runs; what it prints is the
observation, as in python.py, and so are the sandbox and the limits. Any other reply ends the
episode with the reward of `judging.verdict` for it, and so does every reply once all calls are
used. What a program prints states no verdict.

Source: GenPRM, Zhao et al. 2025, arXiv:2504.00891, whose rationales contain code that is run.
Differs from the paper: which form code and output have there is not known to us; reasons, code and
verdict may be about any of the forms of judging.
"""
import re
from typing import TYPE_CHECKING

from rlx.core import ranges
from rlx.environments import interface
from rlx.environments.zoo import python
from rlx.prompts.datasets import judging as judging_data
from rlx.verifiers import judging

if TYPE_CHECKING: from rlx.core import records

_BLOCK = re.compile(r"```python\n(.*?)\n?```", re.DOTALL)


class JudgeWithCode(python.Python):
  """Runs the code of a judge, and compares its verdict with the label.

  Args:
    limit: characters of what a program prints.
    Otherwise: as `python.Python`.
  """

  def __init__(self, *, calls: ranges.Count = 2, limit: ranges.Count = 200,
               cpu_s: ranges.Count = 1, total_s: ranges.Positive = 2.0,
               memory_mb: ranges.Count = 256, unsafe: bool = False):
    super().__init__(calls=calls, limit=limit, cpu_s=cpu_s, total_s=total_s, memory_mb=memory_mb,
                     unsafe=unsafe)

  def reset(self, prompt: "records.Prompt") -> str:
    """Starts an episode; returns the request."""
    self._prompt = prompt
    return super().reset(prompt)

  def step(self, reply: str) -> interface.Step:
    """Runs a program or ends the episode.

    Raises:
      errors.Unknown: the sandbox did not start, or the prompt is none of the data set judging.
    """
    if not reply: python.check_start(**self._limits)
    blocks = _BLOCK.findall(reply)
    if not blocks or self._used == self._calls:
      return self._end(judging.verdict(self._prompt, reply))
    self._used += 1
    return interface.Step(self._run(blocks[-1]), info=self._info())


def demonstration(prompt: "records.Prompt", rng) -> list[str]:
  """The replies of an episode: the judgement of the row, cut behind each block of code.

  The judgement has no outputs, which running it gives.
  """
  text, ends = judging_data.demonstration(prompt, rng), [0]
  ends += [m.end() for m in _BLOCK.finditer(text)] + [len(text)]
  return [x for a, z in zip(ends, ends[1:]) if (x := text[a:z].strip("\n"))]
