"""What judges completions, from a config: verifiers, rewards of environments, reference answers.

Verifiers are those of prompts and of the config. All of it runs on the host.
"""
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rlx.build import keys
from rlx.build import options as options_lib
from rlx.build import plan as plan_lib
from rlx.build import validation
from rlx.core import fields
from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.io import tokenizer as tokenizer_io
from rlx.learner import hosts
from rlx.rollouts import padding
from rlx.rollouts import trajectories
from rlx.stages import annotate
from rlx.stages import methods as methods_lib
from rlx.stages import sampling as sampling_lib
from rlx.stages import texts as texts_lib
from rlx.verifiers import pool


def readers_of(c: keys.Config, methods: methods_lib.Methods) -> list[str]:
  """Config keys of the methods that read the verdict."""
  readers = methods.readers() | {"rollouts.filter_groups": methods.filter_groups}
  if methods.needs("prm_logps_BT") and c.prm.order != "none": readers["prm.loss"] = methods.prm
  return [key for key, fn in readers.items()
          if "outcome_B" in map(fields.column, fn.required)]


def pool_of(c: keys.Config, prompts: Sequence[records.Prompt]) -> pool.Pool:
  """Returns the pool of verifiers, after a check that it can run all verifiers of the run."""
  verifiers = pool.Pool(
      workers=c.verifier.workers, timeout_s=c.verifier.timeout_s, gather=hosts.gather,
      options=dict(
          judge=dict(c.verifier.judge.to_dict(), key=rng.secret(c.seed, "judge")),
          code=dict(unsafe=c.verifier.unsafe, test_s=c.verifier.test_s,
                    test_mb=c.verifier.test_mb, total_s=0.8 * c.verifier.timeout_s)))
  # The environment gives the reward where a prompt names no verifier.
  verifiers.require({p.verifier: f"prompt {p.id!r}" for p in prompts
                     if p.verifier or c.environment.name is None})
  verifiers.require(validation.verifiers(c))
  return verifiers


def reward_of(texts_: texts_lib.Texts, rows_of: Callable, verifiers: annotate.Verifiers,
              readers: Sequence[str]) -> Callable:
  """Returns (prompts, rollouts, texts=None, keep=False) -> reward_PG.

  The reward of an episode is the sum of what its environment gave. A completion, and an episode
  without any such reward, is checked by the prompt's verifier, of an episode the last action.
  The texts are those of the completions; None: they are decoded. The first reward outside
  [0, 1] is reported in one line on stderr.

  Args:
    verifiers: annotate.Verifiers, which explains `keep`.
    readers: config keys of what reads the verdict, which is clipped to [0, 1].
  """
  reported: list[bool] = []

  def reward(prompts, rollouts, texts=None, *, keep=False):
    texts = texts_.completions(rollouts) if texts is None else texts
    rows = rows_of(prompts, rollouts, texts)
    reward_B, is_given_B = trajectories.rewards(rollouts)
    if rollouts.turn_BT is not None: texts = texts_.last_actions(rollouts)
    asked = [b for b, p in enumerate(rows) if p.verifier and not is_given_B[b]]
    reward_B[asked] = verifiers.rewards([rows[b] for b in asked], [texts[b] for b in asked],
                                        keep=keep)
    reward_PG = reward_B.reshape(len(prompts), -1)
    outside = reward_PG[(reward_PG < 0) | (reward_PG > 1)]
    if len(outside) and not reported and hosts.is_first():
      reported.append(True)
      print(f"rlx: a reward is {outside[0]:g}; {', '.join(['held-out accuracy', *readers])} read "
            "rewards clipped to [0, 1].", file=sys.stderr)
    return reward_PG

  return reward


FROM_ROLLOUTS = ("action_BT", "sampler_logps_BT", "finish_B")  # Known before any verdict.


def rows_of_prompts(c: keys.Config, methods: methods_lib.Methods, tokenizer: tokenizer_io.Tokenizer,
                    pool_: pool.Pool, prompts: Sequence[records.Prompt]) -> Callable:
  """Returns (prompts, rollouts, texts) -> each completion's prompt.

  The meta of these prompts contains the values of the fields that verifiers read by name.

  Raises:
    ValueError: a verifier reads a field that nothing computes on the host.
  """
  paths = dict.fromkeys([*(p.verifier for p in prompts if p.verifier), *c.verifier.scores,
                         *filter(None, [c.verifier.steps]), *c.verifier.step_rewards])
  read = {path: wanted for path in paths if (wanted := pool_.fields_of(path))}
  declared = fields.table(*dict.fromkeys(inspect.getmodule(pool_.lookup(path)) for path in read))
  planned = fields.plan(
      methods.declared() | declared, [fields.Reader(*item) for item in read.items()],
      plan_lib.RESOURCES, options_lib.setting(c))
  for f in planned:
    if f.where != "host" and f.name not in FROM_ROLLOUTS:
      raise ValueError(f"a verifier reads {f.name}, which is computed after the verdicts.")
  names, options = [f.name for f in planned if f.axes], plan_lib.field_options(c)

  def rows_of(prompts, rollouts, texts):
    rows = [p for p in prompts for _ in range(len(texts) // len(prompts))] if prompts else []
    if not names: return rows
    values = fields.compute(planned, "host", dict(
        tokenizer=tokenizer, rollouts=rollouts, group_prompts=prompts, prompts=rows,
        texts=texts, **{n: np.asarray(getattr(rollouts, n)) for n in FROM_ROLLOUTS}), options)
    return [dataclasses.replace(p, meta={**p.meta, **{n: values[n][b].tolist() for n in names}})
            for b, p in enumerate(rows)]

  return rows_of


def resources_of(c: keys.Config, planned: Sequence[fields.Field],
                 tokenizer: tokenizer_io.Tokenizer, verifiers: annotate.Verifiers,
                 prompts: Sequence[records.Prompt]) -> dict[str, Any]:
  """{name: value} that the producers of host fields read, see stages/host_fields.py."""
  resources = dict(tokenizer=tokenizer, verify=verifiers.scores, verify_steps=verifiers.steps)
  if any("answer_ids" in f.reads for f in planned):
    resources["answer_ids"] = _answer_ids(c, tokenizer, prompts)
  return resources


def demonstrations(c: keys.Config, texts: texts_lib.Texts,
                   prompts: Sequence[records.Prompt]) -> Callable:
  """Returns (prompts, rollouts) -> rollouts whose groups end with the prompt's demonstration.

  Raises:
    ValueError: a demonstration is longer than rollouts.max_tokens.
  """
  if c.rollouts.demonstration.name is None: return lambda prompts, rollouts: rollouts
  written = resolve.bind("prompts.datasets", c.rollouts.demonstration,
                         "rollouts.demonstration")
  ids_of = {}
  for p in prompts:
    draw = np.random.default_rng([c.seed, rng.number(p.id)])
    _, ids = texts.example(texts.prompt(p), written(p, draw))
    ids_of[p.id] = ids
    if len(ids) > c.rollouts.max_tokens:
      raise ValueError(f"rollouts.max_tokens={c.rollouts.max_tokens}: the demonstration "
                       f"of {p.id!r} has {len(ids)} tokens.")
  eos = records.FINISH.index("eos")
  return lambda prompts, rollouts: padding.put_last(
      rollouts, [ids_of[p.id] for p in prompts], eos)


def greedy_outcome_of(seed: int, sampling: sampling_lib.Sampling, verify: Callable) -> Callable:
  """Returns (state, prompts) -> verdicts of the policy's greedy completions of the prompts."""
  def greedy_outcome(state, prompts):
    rollouts = sampling.greedy(state.full("policy"), prompts, rng.key(seed, "greedy"))
    return verify(prompts, rollouts)[:, 0]

  return greedy_outcome


def _answer_ids(c, tokenizer, prompts):
  """Returns a function from a Prompt to the token ids of its reference answer.

  Raises:
    ValueError: an answer is empty or longer than likelihood.max_tokens.
  """
  ids_of, most = {}, c.likelihood.max_tokens
  for p in prompts:
    ids_of[p.id] = ids = tokenizer.encode(c.likelihood.answer.replace("{}", p.answer),
                                          add_bos=False)
    if not p.answer or len(ids) > most:
      raise ValueError(f"likelihood.max_tokens={most}: the reference answer of "
                       f"{p.id!r} has {len(ids) if p.answer else 0} tokens; 1 to "
                       f"{most} are allowed.")
  return lambda prompt: ids_of[prompt.id]


def check_prompts(c: keys.Config, prompts: list[records.Prompt]) -> None:
  """Checks that the verifiers support the prompts, and that no constant answer passes them.

  Raises:
    ValueError: one line about the first prompt that fails.
  """
  errors = []
  for p, problem, constant in inspect_prompts(c, prompts):
    if not problem and constant and not c.verifier.allow_constant:
      problem = (f"its tests are passed by {constant}, whatever is asked: add tests, leave it "
                 "out, or take it with verifier.allow_constant=true")
    if problem: errors.append(f"prompt {p.id!r}: {problem}")
  if errors:
    more = f" ({len(errors) - 1} more such prompts)" if len(errors) > 1 else ""
    raise ValueError(f"{errors[0].rstrip('.')}.{more}")


def find_constants(c: keys.Config, prompts: list[records.Prompt]) -> dict[str, str | None]:
  """{id: the answer that passes whatever the question is, or None} of `inspected` prompts."""
  return {p.id: constant for p, _, constant in inspect_prompts(c, prompts)}


def inspect_prompts(c: keys.Config,
              prompts: list[records.Prompt]) -> list[tuple[records.Prompt, str | None, str | None]]:
  """Returns [(prompt, problem, constant)] of the prompts whose verifiers inspect prompts.

  A verifier may have `inspect(prompts, unsafe)`, which returns for each prompt why completions
  cannot be verified, and an answer that passes whatever the question is; None without one.
  """
  prompts_of: dict[Callable, dict[str, records.Prompt]] = {}
  for p in prompts:
    for path in filter(None, (p.verifier, *c.verifier.scores)):
      if inspector := getattr(_verifier(path), "inspect", None):
        prompts_of.setdefault(inspector, {})[p.id] = p
  return [(p, *result) for inspector, by_id in prompts_of.items()
          for p, result in zip(by_id.values(), inspector(list(by_id.values()), c.verifier.unsafe))]


@functools.cache  # The prompts of a run share a few verifiers.
def _verifier(path):
  return resolve.lookup("verifiers", path, "verifier")
