"""Replies of judges that learn, as rows with rewards for stages/update_judge.py."""
import dataclasses
from collections.abc import Sequence

import numpy as np

from rlx.core import records
from rlx.rollouts import padding, trajectories
from rlx.stages import judging, outcomes
from rlx.verifiers import judge

_BUCKET = 8  # Widths of requests and replies are multiples of it, few, as each is compiled.
Replies = tuple[records.Rollouts, records.Batch]


@dataclasses.dataclass(frozen=True)
class JudgeReplies:
  """Collects what judges that learn have replied about the completions of a batch."""
  judges: judging.Judges

  def __call__(self, prompts: Sequence[records.Prompt], texts: Sequence[str],
               outcome_B: np.ndarray) -> dict[str, Replies]:
    """{section of a judge: (rollouts, batch) of its replies}.

    The rows are `online.replies` for each completion. They are empty where an equal request came
    before, where the judge was asked nothing or cannot read the request, and where the verdict on
    the completion is unknown. The reward is 1 if a reply states that verdict, 0 if it states the
    other one or cannot be read. The column label_B has the verdict.

    Args:
      outcome_B: the verdicts of the prompts' verifiers; above 1/2 a completion is right.
    """
    return {section: self._collect(section, task, prompts, texts, outcome_B)
            for section, task in self.judges.tasks.items()}

  def _collect(self, section: str, task: judging.Task, prompts: Sequence[records.Prompt],
               texts: Sequence[str], outcome_B: np.ndarray) -> Replies:
    local = self.judges.local[judging.key_of(task.options)]
    group, pad_id = local.sampler.group, local.sampler.texts.tokenizer.pad_id
    asked: dict[str, tuple[int, judge.Request, judge.Options]] = {}
    for b, (prompt, text) in enumerate(zip(prompts, texts)):
      if np.isnan(outcome_B[b]): continue
      prompt = dataclasses.replace(prompt, meta={**prompt.meta, **task.meta})
      planned = judge.plan_request(task.path, prompt, text, task.options)
      if planned: asked.setdefault(planned[0].text, (b, *planned))
    rows = len(texts) * group
    ids, label_B = [[pad_id]] * rows, np.zeros(rows, bool)
    replies: list[judging.Row] = [([], np.zeros(0, np.float32), 0)] * rows
    reward_B = np.full(rows, np.nan, np.float32)
    requests = [(request, options) for _, request, options in asked.values()]
    for (b, request, options), drawn in zip(asked.values(), self.judges.draw(section, requests)):
      if drawn is None: continue
      of_request, is_right = slice(b * group, (b + 1) * group), outcome_B[b] > 0.5
      label_B[of_request] = is_right
      ids[of_request], replies[of_request] = [drawn[0]] * group, drawn[1]
      stated = [judge.read_whole(reply, request, options) for reply in map(local.read, drawn[1])]
      reward_B[of_request] = [x == x and (x > 0.5) == is_right for x in stated]
    fit = lambda lists, most: next(n for n in padding.list_widths(most, _BUCKET)
                                   if n >= max(map(len, lists)))
    tokens = [row[0] for row in replies]
    rollouts = trajectories.rows(
        ids, [[("action", x)] for x in tokens], pad_id=pad_id,
        prompt_width=fit(ids, local.sampler.texts.prompt_tokens),
        width=fit(tokens, local.sampler.max_tokens),
        logps=[logps_T[:len(x)] for x, logps_T, _ in replies])
    rollouts = rollouts.replace(finish_B=np.array([x[2] for x in replies], np.int32))
    return rollouts, records.Batch(
        group, **outcomes.make_columns(rollouts, reward_B), label_B=label_B)
