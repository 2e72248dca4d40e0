"""What a policy's judgements of completions are worth: verdicts, votes and p(yes).

Prompts of the data set `judging` are judged by the policy of a run; `rlx evaluate` adds the result
to its metrics.
"""
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlx import build
from rlx.core import records
from rlx.evals import judgements
from rlx.rollouts import padding, trajectories
from rlx.stages import passes as passes_lib
from rlx.verifiers import judging


def measure(run: build.Run, state: records.TrainState, prompts: Sequence[records.Prompt],
            texts: Sequence[str]) -> dict[str, Any]:
  """The metrics of `judgements.measure` of the prompts that ask for a verdict, as "judging/METRIC".

  Where the verdict is one of two words, there are p(yes) without reasons ("p_yes") and the mean of
  it behind the reasons of each reply that states a verdict ("p_yes_reasoned").

  Args:
    prompts: P prompts; texts: of P * G replies.
  """
  g = len(texts) // max(len(prompts), 1)
  judges = [p.meta.get("judged", dict(form="score"))["form"] not in ("score", "critique")
            for p in prompts]
  texts = [texts[i * g + j] for i, x in enumerate(judges) if x for j in range(g)]
  # As the pool of verifiers gives them the marks.
  prompts = [dataclasses.replace(p, meta=dict(p.meta, thoughts=run.texts.thoughts))
             for p, x in zip(prompts, judges) if x]
  if not prompts: return {}
  asked = [p for p in prompts for _ in range(g)]
  stated = [judging.find_stated(p, text) for p, text in zip(asked, texts)]
  p_yes, sides = {}, judging.find_sides(prompts[0])
  if sides and all(judging.find_sides(p) == sides for p in prompts):
    p_yes["p_yes"] = score(run, state, prompts, list(map(judging.start_verdict, prompts)))
    heads = [judging.find_head(p, text) for p, text in zip(asked, texts)]
    at_PG = score(run, state, asked, heads).reshape(-1, g)
    known_PG = ~np.isnan(at_PG)
    p_yes["p_yes_reasoned"] = np.where(known_PG.any(axis=1), np.nansum(at_PG, axis=1)
                                       / np.maximum(known_PG.sum(axis=1), 1), np.nan)
  made = judgements.measure(
      [stated[i:i + g] for i in range(0, len(stated), g)], [p.answer.lower() for p in prompts],
      [p.meta["judged"]["question"] for p in prompts], p_yes, sides[0] if sides else "yes")
  return {f"judging/{name}": x for name, x in made.items()}


def score(run: build.Run, state: records.TrainState, prompts: Sequence[records.Prompt],
          heads: Sequence[str | None]) -> np.ndarray:
  """p_B, the policy's probability of yes against no (`judging.find_sides`) behind texts of replies.

    p = e^yes / (e^yes + e^no)    the log-probs of the tokens in which the two replies differ first

  One forward pass, as of a scorer of kind yes_no. Source: GenRM, Zhang et al. 2024,
  arXiv:2408.15240. Differs from the paper: it reads the probability of yes among all tokens.

  Args:
    prompts: whose verdict is one of two words.
    heads: of each prompt the text of a reply up to the word of the verdict; None gives NaN.
  """
  tokens, rows = run.texts.tokenizer, []
  for b, (p, head) in enumerate(zip(prompts, heads)):
    if head is None: continue
    prompt = run.texts.prompt(p)
    yes, no = (tokens.pair(prompt, head + word)[1] + [tokens.end_id]
               for word in judging.write_sides(p))
    n = next(i for i, (a, z) in enumerate(zip(yes, no)) if a != z)
    rows.append((b, run.texts.prompt_ids(p) + yes[:n], (yes[n], no[n])))
  p_B, size = np.full(len(prompts), np.nan), run.sizes.rows
  width = run.sizes.prompt_tokens + run.sizes.completion_tokens
  for answers in sorted({x for *_, x in rows}):  # Of a usual tokenizer all are equal.
    options = dataclasses.replace(run.passes, scorers=dict(
        policy=passes_lib.Scorer("yes_no", answer_ids=answers)))
    part = [x for x in rows if x[2] == answers]
    for i, batch in zip(range(0, len(part), size), padding.batches(part, size)):
      asked = trajectories.pairs([ids for _, ids, _ in batch], [[answers[0]]] * size, tokens, 1,
                                 width)
      score_B = np.asarray(passes_lib.make_passes(options, state, asked).yes_no_scores(
          "policy", asked))
      n = min(size, len(part) - i)  # The last batch is filled up.
      p_B[[b for b, *_ in batch[:n]]] = score_B[:n]
  return p_B
