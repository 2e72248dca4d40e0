"""What judges completions, from a config: verifiers, rewards of environments, reference answers.

Verifiers are those of prompts and of the config. All of it runs on the host.
"""
import dataclasses
import functools
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlx.build import (
    judges as build_judges, keys, options as options_lib, plan as plan_lib,
    prompts as build_prompts, validation)
from rlx.core import fields, records, resolve, rng
from rlx.io import tokenizer as tokenizer_io
from rlx.learner import hosts
from rlx.stages import (
    host_fields, judge_replies, judging, methods as methods_lib, outcomes, texts as texts_lib)
from rlx.verifiers import _encoder, pool


def readers_of(c: keys.Config, methods: methods_lib.Methods) -> list[str]:
  """Config keys of the methods that read the verdict."""
  readers = methods.readers()
  if methods.needs("prm_logps_BT") and c.prm.order != "none": readers["prm.loss"] = methods.prm
  return [key for key, fn in readers.items() if "outcome_B" in map(fields.column, fn.required)]


def pool_of(c: keys.Config, prompts: Sequence[records.Prompt],
            judges: judging.Judges | None = None) -> pool.Pool:
  """Returns the pool of verifiers, after a check that it can run all verifiers of the run.

  Args:
    judges: those in process; None: there are none, or no models.
  """
  make = functools.partial(
      pool.Pool, timeout_s=c.verifier.timeout_s, gather=hosts.gather, is_first=hosts.is_first(),
      variables=c.verifier.variables, functions=build_judges.verifiers_of(c, judges),
      options=dict(
          thoughts=tuple(c.verifier.thoughts),
          judge=build_judges.list_judges(c),
          embedding=c.verifier.embedding,
          code=dict(unsafe=c.verifier.unsafe, test_s=c.verifier.test_s,
                    test_mb=c.verifier.test_mb, total_s=0.8 * c.verifier.timeout_s,
                    tolerance=c.verifier.test_tolerance)))
  has_environment, verifiers = c.environment.name is not None, make(c.verifier.workers)
  verifiers.require(validation.verifiers(c))
  named = {p.verifier: f"prompt {p.id!r}" for p in prompts if p.verifier or not has_environment}
  # An environment may give all rewards; the process starts if a verifier is asked after all.
  if has_environment and any(map(verifiers.needs_process, named)):
    verifiers = make(max(c.verifier.workers, 1))
  verifiers.require(named)
  validation.check_judges(c, named)
  build_judges.check_labels(c, named)
  asked = {path: [p for p in prompts if p.verifier == path] for path in named}
  build_judges.check_requests(judges, build_judges.list_judges(c), asked | {
      path: prompts for path in validation.verifiers(c)})
  if any(str(path).startswith("embedding.") for path in (*validation.verifiers(c), *named)):
    _encoder.find(c.verifier.embedding)  # Refuses a missing one.
  return verifiers


def outcomes_of(c: keys.Config, methods: methods_lib.Methods, texts: texts_lib.Texts,
                pool_: pool.Pool, judges: judging.Judges | None,
                prompts: Sequence[records.Prompt]) -> outcomes.Outcomes:
  """The Outcomes of a run. Raises as `prompt_rows_of`."""
  verifiers = outcomes.Verifiers(pool_, c.verifier.step_rewards, c.verifier.by_item, judges)
  return outcomes.Outcomes(texts, prompt_rows_of(c, methods, texts.tokenizer, pool_, prompts),
                           verifiers, readers_of(c, methods))


def prompt_rows_of(c: keys.Config, methods: methods_lib.Methods, tokenizer: tokenizer_io.Tokenizer,
                   pool_: pool.Pool, prompts: Sequence[records.Prompt]) -> outcomes.PromptRows:
  """The PromptRows of a run.

  Raises:
    ValueError: a verifier reads a field that nothing computes on the host.
  """
  named = [*c.verifier.scores,
           *filter(None, [c.verifier.steps, c.verifier.spans, c.verifier.by_item]),
           *c.verifier.step_rewards]
  paths = dict.fromkeys([*(p.verifier for p in prompts if p.verifier),
                         *(path for path in named if not host_fields.is_scorer(path))])
  read = {path: wanted for path in paths if (wanted := pool_.fields_of(path))}
  declared = fields.table(*dict.fromkeys(inspect.getmodule(pool_.lookup(path)) for path in read))
  planned = fields.plan(
      methods.list_fields() | declared, [fields.Reader(*item) for item in read.items()],
      plan_lib.RESOURCES, options_lib.setting(c))
  if c.verifier.scores and c.verifier.scores[0] in read and methods.needs("prefix_scores_BT"):
    raise ValueError(f"verifier.scores={c.verifier.scores!r}: one that reads the text alone comes "
                     "first, as it is asked about prefixes of completions.")
  for f in planned:
    if f.where != "host" and f.name not in outcomes.FROM_ROLLOUTS:
      raise ValueError(f"a verifier reads {f.name}, which is computed after the verdicts.")
  return outcomes.PromptRows(planned, plan_lib.field_options(c, planned), tokenizer)


def resources_of(c: keys.Config, planned: Sequence[fields.Field],
                 texts: texts_lib.Texts, verifiers: outcomes.Verifiers,
                 prompts: Sequence[records.Prompt],
                 judges: judging.Judges | None = None) -> dict[str, Any]:
  """{name: value} that the producers of host fields read, see stages/host_fields.py."""
  tokenizer = texts.tokenizer
  resources = dict(tokenizer=tokenizer, verify=verifiers.scores, verify_lists=verifiers.lists)
  if judges: resources["collect_replies"] = judge_replies.JudgeReplies(judges)
  if any("hinted_ids" in f.reads for f in planned):
    resources["hinted_ids"] = _encode_hinted(c, texts, prompts)
  if any("answer_ids" in f.reads for f in planned):
    resources["answer_ids"] = _answer_ids(c, tokenizer, prompts)
  return resources


def demonstrations_of(c: keys.Config, texts: texts_lib.Texts,
                      prompts: Sequence[records.Prompt]) -> dict[str, list[int]] | None:
  """{prompt id: token ids} of rollouts.demonstration; None without it.

  Raises:
    ValueError: a demonstration is longer than rollouts.max_tokens.
  """
  if c.rollouts.demonstration.name is None: return None
  written = resolve.bind("prompts.datasets", c.rollouts.demonstration, "rollouts.demonstration")
  ids_of = {}
  for p in prompts:
    draw = np.random.default_rng([c.seed, rng.number(p.id)])
    _, ids = texts.example(texts.prompt(p), written(p, draw))
    ids_of[p.id] = ids
    if len(ids) > (most := p.max_tokens or c.rollouts.max_tokens):
      key = "prompts.columns.max_tokens" if p.max_tokens else "rollouts.max_tokens"
      raise ValueError(f"{key}={most}: the demonstration of {p.id!r} has {len(ids)} tokens.")
  return ids_of


def _answer_ids(c: keys.Config, tokenizer: tokenizer_io.Tokenizer,
                prompts: Sequence[records.Prompt]) -> dict[str, list[int]]:
  """{prompt id: token ids of its reference answer}.

  Raises:
    ValueError: an answer is empty or longer than likelihood.max_tokens.
  """
  ids_of, most = {}, c.likelihood.max_tokens
  for p in prompts:
    ids_of[p.id] = ids = tokenizer.encode(c.likelihood.answer.replace("{}", p.answer),
                                          add_bos=False)
    if not p.answer or len(ids) > most:
      raise ValueError(f"likelihood.max_tokens={most}: the reference answer of {p.id!r} has "
                       f"{len(ids) if p.answer else 0} tokens; 1 to {most} are allowed.")
  return ids_of


def _encode_hinted(c: keys.Config, texts: texts_lib.Texts,
                   prompts: Sequence[records.Prompt]) -> dict[str, list[int]]:
  """{prompt id: token ids of the prompt with teacher.hint}.

  Raises:
    ValueError: a prompt has no reference answer, is a chat, whose last turn need not be a
      question, or is longer than prompts.max_tokens with the hint.
  """
  ids_of, most = {}, c.prompts.max_tokens
  for p in prompts:
    if not p.answer:
      raise ValueError(f"teacher.hint={c.teacher.hint!r}: prompt {p.id!r} has no reference answer.")
    if p.messages:
      raise ValueError(f"teacher.hint={c.teacher.hint!r}: prompt {p.id!r} is a chat; the hint is "
                       "added to the text of a question.")
    hint = c.teacher.hint.replace("{}", p.answer)
    ids_of[p.id] = ids = texts.prompt_ids(dataclasses.replace(p, text=p.text + hint))
    if len(ids) > most:
      raise ValueError(f"prompts.max_tokens={most}: the prompt {p.id!r} has {len(ids)} tokens with "
                       "teacher.hint.")
  return ids_of


def check_prompts(c: keys.Config, prompts: list[records.Prompt]) -> None:
  """Checks that the verifiers support the prompts, and that no constant answer passes them.

  Those of public sets are not checked: `load_prompts` has dropped those that fail.

  Raises:
    ValueError: one line about the first prompt that fails.
  """
  problems = build_prompts.find_problems(c, [p for p in prompts if not p.is_public])
  for id_, problem in problems.items():
    more = f" ({len(problems) - 1} more such prompts)" if len(problems) > 1 else ""
    raise ValueError(f"prompt {id_!r}: {problem.rstrip('.')}.{more}")
