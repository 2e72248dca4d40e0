"""Host fields of a batch, which are computed from its texts and token ids, in numpy.

Each producer runs at most once per step, before the batch is placed on devices, and only if a
method reads its field (core/fields.py). The loop passes these resources: `tokenizer`,
`rollouts` (numpy), `prompts` and `texts` (one per row), `group_prompts` (one per group),
`verify` and `verify_lists` ((path of the verifier, prompts, texts) -> for each row a verdict
or a list of verdicts), `collect_replies` (judge_replies.py), `greedy_outcome` ((prompts) ->
verdicts of greedy completions),
`answer_ids` and `hinted_ids` ({prompt id: token ids}).
"""
import bisect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rlx.core import records
from rlx.core.fields import field
from rlx.io.tokenizer import Tokenizer
from rlx.prompts import derived
from rlx.rollouts import padding, trajectories
from rlx.verifiers import answers as answers_lib, items as items_lib, steps as verifier_steps

SCORERS = "scorers."  # verifier.scores and verifier.steps name the scorer of a section so.
TURN = "<turn>"  # The value of rollouts.step_separator with which each turn is a step.
Prompts = Sequence[records.Prompt]
Rollouts = records.Rollouts
Ids = list[list[int]]  # Of each row: token ids, or columns.
Verify = Callable[[str, Prompts, Sequence[str]], Sequence]
Reasoning = tuple[list[int], int, int]  # See `split`.
Items = list[list[items_lib.Item]]  # Of the verdict of each completion.
Answers = dict[str, list[int]]  # Prompt id -> token ids of the reference answer, or of a prompt.


@field(None)
def completions(rollouts: Rollouts) -> Ids:
  """Token ids of each completion, EOS included."""
  return padding.completions(rollouts)


@field(np.int32)
def tokens_BT(rollouts: Rollouts) -> np.ndarray:
  """The tokens after the prompt."""
  return rollouts.completions_BT


@field(bool, options=dict(group="rollouts.per_prompt"), needs={"rollouts.demonstration.name": None})
def demo_B(rollouts: Rollouts, *, group: int) -> np.ndarray:
  """Rows that are demonstrations, not samples."""
  return np.arange(len(rollouts.finish_B)) % group == group - 1


@field(bool, needs={"rollouts.rehearsal": 0})
def rehearsal_BT(action_BT: np.ndarray, excluded_B: np.ndarray) -> np.ndarray:
  """Tokens of stored completions, which no policy gradient reads."""
  return action_BT & (excluded_B == records.EXCLUDED.index("stored"))[:, None]


@field(bool)
def derived_B(prompts: Prompts) -> list[bool]:
  """Completions of prompts about other completions (`prompts.derived`)."""
  return [p.id.startswith(derived.OWN) for p in prompts]


@field(None, options=dict(separator="rollouts.step_separator"))
def step_columns(completions: Ids, rollouts: Rollouts, tokenizer: Tokenizer, *,
                 separator: str | None) -> Ids:
  """For each completion, the columns in which its reasoning steps end."""
  if separator == TURN: return [np.flatnonzero(ends_T).tolist() for ends_T in ends(rollouts)]
  return columns_of_steps(completions, tokenizer, separator)


@field(bool, needs={"environment.name": None})
def turn_ends_BT(rollouts: Rollouts) -> np.ndarray:
  """The last token of each action of an episode."""
  return ends(rollouts)


@field(np.int32, options=dict(group="rollouts.per_prompt"), needs={"environment.name": None})
def turn_prefix_BT(rollouts: Rollouts, turn_ends_BT: np.ndarray, *, group: int) -> np.ndarray:
  """On the tokens of an action, a number that the prompt's actions with the same history share.

  The history of an action is everything before it; elsewhere -1.
  """
  turn_BT, number_BT = np.asarray(rollouts.turn_BT), np.full(turn_ends_BT.shape, -1, np.int32)
  for first in range(0, len(number_BT), group):
    numbers: dict[tuple[int, ...], int] = {}
    for b in range(first, first + group):
      for turn in np.unique(turn_BT[b, turn_BT[b] >= 0]):
        tokens = np.flatnonzero(turn_BT[b] == turn)
        history = tuple(rollouts.completions_BT[b, :tokens[0]].tolist())
        number_BT[b, tokens] = numbers.setdefault(history, len(numbers))
  return number_BT


@field(bool, needs={"rollouts.step_separator": None})
def step_ends_BT(step_columns: Ids, rollouts: Rollouts) -> np.ndarray:
  """The last token of each reasoning step."""
  ends_BT = np.zeros(rollouts.sampler_logps_BT.shape, bool)
  for ends_T, columns in zip(ends_BT, step_columns): ends_T[columns] = True
  return ends_BT


@field(np.float32, options=dict(verifier="verifier.steps"), needs={"verifier.steps": None})
def step_scores_BT(step_columns: Ids, prompts: Prompts, texts: Sequence[str], rollouts: Rollouts,
                   verify_lists: Verify, *, verifier: str) -> np.ndarray:
  """Score of each step in [0, 1] on its last token, 0 elsewhere; NaN: could not tell.

  A step without a score is NaN. A number instead of a list is the score of every step. If
  several steps end in the same token, the lowest score is used.
  """
  scores_BT = np.zeros(rollouts.sampler_logps_BT.shape, np.float32)
  verdicts = verify_lists(verifier, prompts, texts)
  for scores_T, columns, scores in zip(scores_BT, step_columns, verdicts):
    scores_T[columns] = np.nan
    for column, score in zip(columns, _repeat(scores, len(columns))):
      scores_T[column] = np.fmin(scores_T[column], score)
  return scores_BT


@field(np.float32, options=dict(verifier="verifier.spans"), needs={"verifier.spans": None})
def span_scores_BT(completions: Ids, prompts: Prompts, texts: Sequence[str], rollouts: Rollouts,
                   tokenizer: Tokenizer, verify_lists: Verify, *, verifier: str) -> np.ndarray:
  """Score of the spans that a token belongs to, 1/2 of none, 0 elsewhere; NaN: could not tell.

  A token with several characters has the highest of their scores plus the lowest minus 1/2, where
  each is at least or at most 1/2: that of a span that it touches. A number instead of a list is
  the score of every character.
  """
  scores_BT = np.zeros(rollouts.sampler_logps_BT.shape, np.float32)
  for scores_T, ids, text, values in zip(scores_BT, completions, texts,
                                         verify_lists(verifier, prompts, texts)):
    values = _repeat(values, len(text))
    ends = list(itertools.accumulate(map(len, tokenizer.pieces(ids)), initial=0))
    if len(values) != len(text) or ends[-1] != len(text):
      scores_T[:] = np.nan
      continue
    for t, (start, stop) in enumerate(itertools.pairwise(ends)):
      touched = np.array([0.5, *values[start:stop]])  # Its extremes are NaN if a number is.
      scores_T[t] = touched.max() + touched.min() - 0.5
  return scores_BT


@field(np.float32, options=dict(verifiers="verifier.step_rewards",
                                max_error_rate="verifier.max_error_rate"),
       needs={"verifier.step_rewards": ()})
def step_rewards_BTZ(step_columns: Ids, prompts: Prompts, texts: Sequence[str], rollouts: Rollouts,
                     verify_lists: Verify, *, verifiers: Sequence[str],
                     max_error_rate: float) -> np.ndarray:
  """Reward of each step on its last token, 0 elsewhere; NaN in a row: could not tell.

  Rewards of several steps that end in the same token are added. A number instead of a list is
  the reward of every step. A row is NaN if a reward is, or if there are more or fewer rewards
  than steps.
  """
  rewards_BTZ = np.zeros((*rollouts.sampler_logps_BT.shape, len(verifiers)), np.float32)
  for z, path in enumerate(verifiers):
    lists = _fit_lists(verify_lists(path, prompts, texts), list(map(len, step_columns)), texts,
                       f"verifier.step_rewards: {path}", "steps", max_error_rate,
                       "; rollouts.step_separator ends a step, '' stands for each token")
    for b, (columns, rewards) in enumerate(zip(step_columns, lists)):
      if rewards is None: rewards_BTZ[b, :, z] = np.nan
      else: np.add.at(rewards_BTZ[b, :, z], columns, rewards)
  return rewards_BTZ


@field(None, options=dict(verifier="verifier.by_item", max_items="verifier.max_items",
                          max_error_rate="verifier.max_error_rate"),
       needs={"verifier.by_item": None}, measure=items_lib.mean_by_name, show=items_lib.show)
def items(prompts: Prompts, texts: Sequence[str], verify_lists: Verify, *, verifier: str,
          max_items: int, max_error_rate: float) -> Items:
  """For each completion, the items of its verdict: name, weight and value; NaN: could not tell.

  A prompt that does not say how many items it has, has those of its completions' longest list.
  """
  lists = verify_lists(verifier, prompts, texts)
  counts = dict.fromkeys((p.id for p in prompts), 1)
  for p, values in zip(prompts, lists):
    rows = items_lib.get_rows(p)
    listed = rows if rows is not None else values if isinstance(values, list) else []
    counts[p.id] = max(counts[p.id], len(listed))
  if (most := max(counts.values())) > max_items:
    raise ValueError(f"verifier.max_items={max_items}: {verifier} gave {most} items for a "
                     "completion; set it higher.")
  lists = _fit_lists(lists, [counts[p.id] for p in prompts], texts,
                     f"verifier.by_item: {verifier}", "items", max_error_rate)
  return [items_lib.read(p, [np.nan] * counts[p.id] if values is None else values)
          for p, values in zip(prompts, lists)]


@field(np.float32, options=dict(max_items="verifier.max_items"), needs={"verifier.by_item": None})
def items_BI(items: Items, *, max_items: int) -> np.ndarray:
  """Values of the items of a verdict in [0, 1], 0 beyond their number; NaN: could not tell."""
  return _pad_items([[x.value for x in row] for row in items], max_items)


@field(np.float32, options=dict(max_items="verifier.max_items"), needs={"verifier.by_item": None})
def item_weight_BI(items: Items, *, max_items: int) -> np.ndarray:
  """Weights of these items, 0 beyond their number."""
  return _pad_items([[x.weight for x in row] for row in items], max_items)


@field(bool, options=dict(max_items="verifier.max_items"), needs={"verifier.by_item": None})
def item_veto_BI(items: Items, *, max_items: int) -> np.ndarray:
  """Whether an item is a veto: the reward is 0 where it is 0."""
  return _pad_items([[x.is_veto for x in row] for row in items], max_items)


@field(np.float32, options=dict(verifiers="verifier.scores"), needs={"verifier.scores": ()})
def scores_BE(prompts: Prompts, texts: Sequence[str], verify: Verify, *,
              verifiers: Sequence[str]) -> np.ndarray:
  """Scores of the verifiers in verifier.scores; NaN: could not tell."""
  return np.stack([verify(path, prompts, texts) for path in verifiers], axis=1)


@field(np.float32, options=dict(verifiers="verifier.scores"), needs={"verifier.scores": ()})
def checked_scores_BE(prompts: Prompts, texts: Sequence[str], verify: Verify, *,
                      verifiers: Sequence[str]) -> np.ndarray:
  """Scores of the verifiers in verifier.scores, 0 in the columns of scorers."""
  return np.stack([np.zeros(len(texts)) if is_scorer(path) else verify(path, prompts, texts)
                   for path in verifiers], axis=1)


@field(None)
def appended_rows(rollouts: Rollouts) -> Rollouts:
  """The rollouts with one more token after each completion, whose hidden state nothing reads."""
  return padding.append(rollouts.rows(), 0)


@field(None, options=dict(scorers="scorers"))
def question_rows(prompt_ids: Ids, completions: Ids, tokenizer: Tokenizer, rollouts: Rollouts, *,
                  scorers: Mapping[str, Mapping]) -> dict[str, Rollouts]:
  """{scorer of kind yes_no: one token after prompt, completion without EOS and question}."""
  return {f"{SCORERS}{name}": ask_rows(
      prompt_ids, completions, tokenizer.encode(options["question"], add_bos=False), tokenizer,
      rollouts.tokens_BS.shape[1])
          for name, options in scorers.items() if options.get("kind") == "yes_no"}


@field(None, options=dict(scorers="scorers"))
def reference_rows(appended_rows: Rollouts, prompts: Prompts, tokenizer: Tokenizer, *,
                   scorers: Mapping[str, Mapping]) -> dict[str, Rollouts]:
  """{scorer that reads the reference answer: appended_rows with it before the completion}."""
  return _insert_references(appended_rows, prompts, tokenizer, scorers)


def _insert_references(rows: Rollouts, prompts: Prompts, tokenizer: Tokenizer,
                       scorers: Mapping[str, Mapping]) -> dict[str, Rollouts]:
  """{scorer that reads it: the rows with the reference answer between prompt and completion}."""
  x, inserted = rows.prompt_width, {}
  for name, options in scorers.items():
    if options.get("reference") is None: continue
    ids_of = read_references(prompts, name, options, tokenizer)
    tokens_BX, prompt_len_B = padding.pad_left(
        [ids + ids_of[p.id] for ids, p in zip(prompt_ids(rows), prompts)],
        x + options["reference_tokens"], tokenizer.pad_id)
    inserted[f"{SCORERS}{name}"] = rows.replace(
        tokens_BS=np.concatenate([tokens_BX, rows.completions_BT], axis=1),
        prompt_len_B=prompt_len_B)
  return inserted


def read_references(prompts: Prompts, name: str, options: Mapping,
                    tokenizer: Tokenizer) -> dict[str, list[int]]:
  """{id of a prompt: the tokens of its reference answer, as the scorer of that name reads it}.

  Raises:
    ValueError: a prompt has none, one that the tokenizer cannot encode, or a too long one.
  """
  try:
    ids_of = {p.id: reference_ids(p, options["reference"], tokenizer) for p in prompts}
  except ValueError as e:
    raise ValueError(f"{SCORERS}{name}.reference={options['reference']!r}: {e}") from None
  for id_, ids in ids_of.items():
    if len(ids) > (most := options["reference_tokens"]):
      raise ValueError(f"{SCORERS}{name}.reference_tokens={most}: the reference answer of "
                       f"{id_!r} has {len(ids)} tokens.")
  return ids_of


def reference_ids(prompt: records.Prompt, template: str, tokenizer: Tokenizer) -> list[int]:
  """The tokens of a prompt's reference answer in a template with {}.

  Raises:
    ValueError: it has none.
  """
  if not prompt.answer:
    raise ValueError(f"the prompt {prompt.id!r} has no reference answer, which a scorer reads "
                     f"({template!r}).")
  return tokenizer.encode(template.replace("{}", prompt.answer), add_bos=False)


def ask_rows(prompt_ids: Sequence[list[int]], completions: Sequence[list[int]],
             asked: Sequence[int], tokenizer: Tokenizer, width: int) -> Rollouts:
  """Rollouts of one token after prompt, completion without EOS and the ids of a question.

  Args:
    width: most tokens of a prompt and its completion.
  """
  ids = [[*p, *x[:-1], *[i for i in x[-1:] if i not in tokenizer.eos_ids], *asked]
         for p, x in zip(prompt_ids, completions)]
  return trajectories.pairs(ids, [list(asked[:1])] * len(ids), tokenizer, 1, width + len(asked))


@field(None, options=dict(pattern="eval.answer", group="rollouts.per_prompt"))
def altered_rows(prompts: Prompts, texts: Sequence[str], prompt_ids: Ids, completions: Ids,
                 outcome_B: np.ndarray, tokenizer: Tokenizer, rollouts: Rollouts, verify: Verify, *,
                 pattern: str, group: int) -> tuple[Rollouts, np.ndarray]:
  """(rows, labels_BT): of each prompt a right completion, 1, and it with another answer, 0.

  The answer, the last match of eval.answer, is replaced by the first one that another completion of
  the batch states and that differs, beginning with those of the prompt itself. A pair is left out,
  its rows empty, if no completion is right, none states another answer, or the prompt's verifier
  does not reject the altered completion. The rows have a token appended, see `padding.append`.
  """
  pieces = list(map(tokenizer.pieces, completions))
  whole = ["".join(x) for x in pieces]
  spans = [_last_match(pattern, x) for x in whole]
  answers = [None if span is None else x[slice(*span)] for x, span in zip(whole, spans)]
  altered: dict[int, tuple[list[int], str]] = {}  # {right row: ids and text with another answer}
  for first in range(0, len(completions), group):
    rows = range(first, first + group)
    b = next((b for b in rows if outcome_B[b] > 0.5 and spans[b]), None)
    if b is None or not texts[b].endswith(whole[b]): continue
    others = [*rows, *range(first + group, len(answers)), *range(first)]
    answer = next((answers[i] for i in others if answers[i] not in (None, answers[b])), None)
    if answer is None: continue
    (start, stop), ends = spans[b] or (0, 0), [0, *itertools.accumulate(map(len, pieces[b]))]
    n = bisect.bisect_right(ends, start) - 1  # Tokens that end before the answer.
    last = [i for i in completions[b][-1:] if i in tokenizer.eos_ids]
    ids = [*completions[b][:n], *tokenizer.encode(
        whole[b][ends[n]:start] + answer + whole[b][stop:], add_bos=False), *last]
    altered[b] = ids, (texts[b].removesuffix(whole[b])
                       + whole[b][:start] + answer + whole[b][stop:])
  verdicts: dict[int, float] = {}
  for path in sorted({prompts[b].verifier for b in altered}):
    asked = [b for b in altered if prompts[b].verifier == path]
    verdicts |= dict(zip(asked, verify(path, [prompts[b] for b in asked],
                                       [altered[b][1] for b in asked])))
  width = rollouts.sampler_logps_BT.shape[1]
  both: list[list[int]] = [[] for _ in range(2 * (len(completions) // group))]
  for b, (ids, _) in altered.items():
    i = 2 * (b // group)
    if verdicts[b] < 0.5 and len(ids) <= width: both[i:i + 2] = completions[b], ids
  labels_BT = np.full((len(both), width), np.nan, np.float32)
  for i, ids in enumerate(both):
    if ids: labels_BT[i, len(ids) - 1] = 1 - i % 2
  return trajectories.pairs([prompt_ids[i // 2 * group] for i in range(len(both))],
                            [[*ids, 0] for ids in both], tokenizer, width + 1,
                            rollouts.prompt_width).rows(), labels_BT


@field(None)
def judge_replies(prompts: Prompts, texts: Sequence[str], outcome_B: np.ndarray,
                  collect_replies: Callable) -> dict[str, tuple[Rollouts, records.Batch]]:
  """{section: (rollouts, batch)} of the judges that learn, see judge_replies.py."""
  return collect_replies(prompts, texts, outcome_B)


@field(None, options=dict(scorers="scorers", group="rollouts.per_prompt"))
def altered_reference_rows(altered_rows: tuple[Rollouts, np.ndarray], prompts: Prompts,
                           tokenizer: Tokenizer, *, scorers: Mapping[str, Mapping],
                           group: int) -> dict[str, Rollouts]:
  """{scorer that reads the reference answer: altered_rows with it before the completion}."""
  return _insert_references(altered_rows[0], [p for p in prompts[::group] for _ in range(2)],
                            tokenizer, scorers)


def _last_match(pattern: str, text: str) -> tuple[int, int] | None:
  """Where the last match of a regular expression is, of its group if it has one."""
  matches = list(re.finditer(pattern, text))
  span = matches[-1].span(matches[-1].re.groups) if matches else (-1, -1)
  return None if span[0] < 0 else span


@field(np.float32, options=dict(verifiers="verifier.scores"),
       needs={"verifier.scores": (), "rollouts.step_separator": None})
def prefix_scores_BT(step_columns: Ids, completions: Ids, prompts: Prompts, tokenizer: Tokenizer,
                     rollouts: Rollouts, verify: Verify, *, verifiers: Sequence[str]) -> np.ndarray:
  """Score of the first verifier in verifier.scores for the text up to the end of each step.

  It is on the step's last token, 0 elsewhere; NaN: could not tell.
  """
  scores_BT = np.zeros(rollouts.sampler_logps_BT.shape, np.float32)
  asked, texts = [], []
  for b, (ids, columns) in enumerate(zip(completions, step_columns)):
    prefixes = list(itertools.accumulate(tokenizer.pieces(ids)))
    asked += [(b, column) for column in columns]
    texts += [prefixes[column] for column in columns]
  if asked: scores_BT[*zip(*asked)] = verify(verifiers[0], [prompts[b] for b, _ in asked], texts)
  return scores_BT


@field(np.int32, options=dict(pattern="eval.answer", marks="verifier.thoughts"))
def answer_B(texts: Sequence[str], prompts: Prompts, *, pattern: str,
             marks: Sequence[str]) -> np.ndarray:
  """Number of the stated answer, equal where answers are equal; -1: none is stated."""
  return answers_lib.ids(answers_lib.find_stated_answers(texts, prompts, pattern, marks))


@field(np.int32, options=dict(group="rollouts.per_prompt"), needs={"prompts.paired": False})
def pair_B(group_prompts: Prompts, *, group: int) -> np.ndarray:
  """Place in the batch of the prompt with the other wording of the same question."""
  place = {p.id: i for i, p in enumerate(group_prompts)}
  return np.repeat([place[p.meta["pair"]] for p in group_prompts], group)


@field(np.float32, options=dict(group="rollouts.per_prompt"), needs={"prompts.paired": False})
def better_B(group_prompts: Prompts, *, group: int) -> np.ndarray:
  """1 for the prompt about the better completion of a pair, 0 for that about the worse one."""
  is_better = [p.meta["label"] == "better" for p in group_prompts]
  return np.repeat(np.asarray(is_better, np.float32), group)


@field(np.float32, options=dict(group="rollouts.per_prompt"), needs={"prompts.paired": False})
def bare_B(group_prompts: Prompts, *, group: int) -> np.ndarray:
  """1 for the prompt of a pair whose replies have no reasoning (meta["bare"]), 0 for the other."""
  is_bare = [bool(p.meta.get("bare")) for p in group_prompts]
  return np.repeat(np.asarray(is_bare, np.float32), group)


@field(np.float32, options=dict(group="rollouts.per_prompt"))
def greedy_B(group_prompts: Prompts, greedy_outcome: Callable[[Prompts], np.ndarray], *,
             group: int) -> np.ndarray:
  """Verdict of the prompt's greedy completion, on each of its rows; NaN: could not tell."""
  return np.repeat(greedy_outcome(group_prompts), group)


# Rows of additional forward passes, for rewards that are likelihoods.


@field(None)
def prompt_ids(rollouts: Rollouts) -> Ids:
  """Token ids of each row's prompt."""
  x = rollouts.prompt_width
  return [ids[x - n:x].tolist() for ids, n in zip(rollouts.tokens_BS, rollouts.prompt_len_B)]


@field(None, options=dict(separator="likelihood.separator"))
def reasoning(completions: Ids, tokenizer: Tokenizer, *, separator: str | None) -> list[Reasoning]:
  """For each completion, the ids of its reasoning and the start and end of its answer."""
  return [split(ids, tokenizer, separator) for ids in completions]


@field(None, options=dict(separator="likelihood.separator"))
def separator_ids(tokenizer: Tokenizer, *, separator: str | None) -> list[int]:
  """Token ids of likelihood.separator."""
  return [] if separator is None else tokenizer.encode(separator, add_bos=False)


# Prompts are as wide as the longest can be: one width is one program.
_ROWS = dict(width="likelihood.max_tokens")


@field(None, options=_ROWS)
def answer_rows(prompt_ids: Ids, reasoning: list[Reasoning], prompts: Prompts, answer_ids: Answers,
                separator_ids: list[int], tokenizer: Tokenizer, rollouts: Rollouts, *,
                width: int) -> Rollouts:
  """The reference answer after each prompt and reasoning, as rollouts."""
  return trajectories.pairs([p + r for p, (r, _, _) in zip(prompt_ids, reasoning)],
                            [answer_ids[p.id] for p in prompts], tokenizer, width,
                            rollouts.tokens_BS.shape[1] + len(separator_ids))


@field(None, options=dict(_ROWS, group="rollouts.per_prompt"))
def base_rows(prompt_ids: Ids, separator_ids: list[int], group_prompts: Prompts,
              answer_ids: Answers, tokenizer: Tokenizer, rollouts: Rollouts, *, width: int,
              group: int) -> Rollouts:
  """The reference answer directly after each prompt, once per group, as rollouts."""
  return trajectories.pairs([p + separator_ids for p in prompt_ids[::group]],
                            [answer_ids[p.id] for p in group_prompts], tokenizer, width,
                            rollouts.prompt_width + len(separator_ids))


@field(None, options=dict(_ROWS, steps="likelihood.steps"))
def step_rows(prompt_ids: Ids, completions: Ids, step_columns: Ids, separator_ids: list[int],
              prompts: Prompts, answer_ids: Answers, tokenizer: Tokenizer, rollouts: Rollouts, *,
              width: int, steps: int) -> list[Rollouts]:
  """The reference answer after the first 1, 2, ... steps of each completion, as rollouts.

  What the policy reads between a step and the next one, in an episode, belongs to the step.
  """
  answers = [answer_ids[p.id] for p in prompts]
  is_read_BT = rollouts.mask_BT & ~rollouts.action_BT
  def upto(b: int, column: int) -> list[int]:
    end = column + 1
    while end < is_read_BT.shape[1] and is_read_BT[b, end]: end += 1
    return completions[b][:end]
  def after(j: int) -> Ids:
    return [p + (upto(b, columns[j]) if j < len(columns) else []) + separator_ids
            for b, (p, columns) in enumerate(zip(prompt_ids, step_columns))]
  widest = rollouts.tokens_BS.shape[1] + len(separator_ids)
  return [trajectories.pairs(after(j), answers, tokenizer, width, widest) for j in range(steps)]


@field(None)
def noprompt_rows(completions: Ids, rollouts: Rollouts, tokenizer: Tokenizer) -> Rollouts:
  """Each completion after BOS alone (EOS if there is no BOS), without its prompt, as rollouts."""
  first = tokenizer.eos_ids[0] if tokenizer.bos_id is None else tokenizer.bos_id
  return trajectories.pairs([[first]] * len(completions), completions, tokenizer,
                            rollouts.sampler_logps_BT.shape[1], bucket=1).replace(
                                kept_BTK=rollouts.kept_BTK)


@field(None, needs={"teacher.hint": None})
def hinted_rows(completions: Ids, prompts: Prompts, hinted_ids: Answers, rollouts: Rollouts,
                tokenizer: Tokenizer) -> Rollouts:
  """Each completion after its prompt with teacher.hint, as rollouts."""
  return trajectories.pairs([hinted_ids[p.id] for p in prompts], completions, tokenizer,
                            rollouts.sampler_logps_BT.shape[1],
                            bucket=rollouts.prompt_width).replace(kept_BTK=rollouts.kept_BTK)


@field(None, options=dict(token="likelihood.token"))
def last_token_rows(prompt_ids: Ids, completions: Ids, tokenizer: Tokenizer, rollouts: Rollouts, *,
                    token: str) -> Rollouts:
  """likelihood.token after each completion, as rollouts."""
  return trajectories.pairs([p + ids for p, ids in zip(prompt_ids, completions)],
                            [[tokenizer.vocabulary[token]]] * len(completions), tokenizer, 1,
                            rollouts.tokens_BS.shape[1])


@field(bool, needs={"likelihood.max_tokens": 0})
def answer_mask_BM(answer_rows: Rollouts) -> np.ndarray:
  """Tokens of the reference answer."""
  return answer_rows.mask_BT


@field(bool, needs={"likelihood.separator": None})
def answer_span_BT(reasoning: list[Reasoning], rollouts: Rollouts) -> np.ndarray:
  """The answer that the completion states."""
  columns_1T = np.arange(rollouts.sampler_logps_BT.shape[1])[None, :]
  _, start_B, end_B = zip(*reasoning)
  return ((columns_1T >= np.array(start_B)[:, None]) & (columns_1T < np.array(end_B)[:, None]))


def is_scorer(path: str | None) -> bool:
  """Whether an entry of verifier.scores, or verifier.steps, names a scorer, not a verifier."""
  return path is not None and path.startswith(SCORERS)


def ends(rollouts: Rollouts) -> np.ndarray:
  """bool [B, T]: the last token of each action."""
  turn_BT = np.where(rollouts.mask_BT, np.asarray(rollouts.turn_BT), -1)
  next_BT = np.pad(turn_BT[:, 1:], ((0, 0), (0, 1)), constant_values=-1)
  return (turn_BT >= 0) & (turn_BT != next_BT)


def _fit_lists(lists: Sequence, counts: Sequence[int], texts: Sequence[str], where: str, what: str,
               max_error_rate: float, hint: str = "") -> list[list[float] | None]:
  """The list of each completion, of as many numbers as it has steps or items; None: it has others.

  A number instead of a list stands for all of them; an empty list is an unknown one.

  Raises:
    ValueError: more than a share `max_error_rate` of the lists are longer or shorter.
  """
  lists = [_repeat(values, n) for values, n in zip(lists, counts)]
  wrong = [b for b, (values, n) in enumerate(zip(lists, counts)) if values and len(values) != n]
  if len(wrong) > max_error_rate * len(lists):
    b = wrong[0]
    raise ValueError(f"{where} gives another number of values than there are {what} for "
                     f"{len(wrong)} of {len(lists)} completions, such as {texts[b]!r:.80}, which "
                     f"has {counts[b]}{hint}.")
  return [values if len(values) == n else None for values, n in zip(lists, counts)]


def _repeat(values: float | list[float], n: int) -> list[float]:
  return values if isinstance(values, list) else [values] * n


def _pad_items(rows: Sequence[Sequence[float]], width: int) -> np.ndarray:
  return np.array([[*row, *[0] * (width - len(row))] for row in rows])


def columns_of_steps(completions: Ids, tokenizer: Tokenizer, separator: str | None) -> Ids:
  """For each list of ids, the columns in which its steps end.

  Args:
    separator: text that ends a step. None: the completion is one step. "": every token with a
      text is a step.
  """
  columns = []
  for ids in completions:
    pieces = tokenizer.pieces(ids)
    whole = "".join(pieces)
    if separator == "":
      columns.append([i for i, piece in enumerate(pieces) if piece])
      continue
    offsets = ([len(whole)] * bool(whole) if separator is None else
               verifier_steps.boundaries(whole, separator))
    columns.append(verifier_steps.token_ends(offsets, pieces))
  return columns


def split(ids: list[int], tokenizer: Tokenizer, separator: str | None) -> Reasoning:
  """A completion's reasoning, and where its own answer begins and ends.

  The reasoning ends with the last `separator`. A token that contains the end of the separator
  and more is not part of the reasoning, because it would reveal how the answer begins; its
  part of the separator is tokenised again.

  Args:
    ids: token ids of a completion.
    separator: text, or None.
  Returns:
    ids of the reasoning, and start and end of the answer in `ids`, without EOS. If there is
    no separator, the whole completion is reasoning and start = end.
  """
  if ids and ids[-1] in tokenizer.eos_ids: ids = ids[:-1]
  pieces = tokenizer.pieces(ids)
  whole = "".join(pieces)
  if not separator or separator not in whole: return ids, len(ids), len(ids)
  cut = whole.rindex(separator) + len(separator)
  ends = [0, *itertools.accumulate(map(len, pieces))]
  n = bisect.bisect_left(ends, cut)  # Number of tokens up to the end of the separator.
  if ends[n] == cut: return ids[:n], n, len(ids)
  respelled = tokenizer.encode(whole[ends[n - 1]:cut], add_bos=False)
  return ids[:n - 1] + respelled, n - 1, len(ids)
