"""Checks whether a run can learn, from its first batch and without training.

  rlx doctor quickstart
  rlx doctor quickstart workdir=runs/quickstart

Samples the first batch of the run, without filtering groups, and prints one line per check:
ok, warning or error, what was measured, and what to change. The exit code is 1 if a check
ends in an error. With the folder of a run, the policy of its newest checkpoint draws the batch, and
its metrics are searched for signs of a collapse.
"""
import contextlib
import dataclasses
import functools
import os
import sys
from typing import Any
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rlx import build
from rlx.build import (
    keys, memory as run_memory, options as options_lib, prompts as build_prompts, validation)
from rlx.core import records, rng
from rlx.evals import accuracy, best_of_n, pass_at_k, reward_model
from rlx.io import (
    chat, checkpoint, metrics as io_metrics, run_folder, terminal, tokenizer as tokenizer_io)
from rlx.learner import hosts, memory
from rlx.loops import session
from rlx.rollouts import padding
from rlx.stages import outcomes, passes as passes_lib, sampling

# Mean difference between the log-probs of sampler and trainer above which it is an error, in nats.
WRONG = 0.1
EXAMPLES = 256  # Completions whose texts are checked.
# Pairs that a PRM ranks right (docs/prime.md): PRMs that helped had 0.71 and more; one of permuted
# verdicts had 0.46 and did harm.
RANKED = 0.6
FEW = 20        # Fewer pairs say nothing.
FALLEN = 0.55   # Accuracy of a PRM on new pairs below which it says little; a rule of thumb.
RECENT, MEAN = 20, 10  # Last steps of a run that are judged; steps of a running mean.
# How to fix the faults that io/chat.py reports.
ADVICE = dict(
    turns="write the examples of prompts.template as the model reads them, with few_shot",
    date="write a fixed date into the template, so that prompts do not change every day",
    prompt="fix the chat template: the rendered prompt is not a prefix of the dialogue",
    before="a model that thinks may write it itself; if not, fix the chat template",
    reply="single-turn training is not affected; later turns see a changed reply",
    tokens="end the prompt without a space or half a word (prompts.template)",
    history="single-turn training is not affected; later turns see a changed history")


@dataclasses.dataclass(frozen=True)
class Finding:
  """The result of one check."""
  question: str
  level: str        # ok | warning | error
  text: str         # what was measured
  advice: str = ""  # what to change, with its key

  def __str__(self):
    return f"{self.level:8} {self.question:26} {self.text}" + (
        f"; {self.advice}" if self.level != "ok" and self.advice else "")


def check(question: str) -> Callable:
  """Decorates a function that returns (level, text[, advice]): it then returns a Finding."""
  def decorate(fn):
    return functools.wraps(fn)(lambda *args, **options: Finding(question, *fn(*args, **options)))
  return decorate


@dataclasses.dataclass(frozen=True)
class Example:
  """A prompt and its completion before and after the tokenizer."""
  text: str          # the prompt as the model reads it
  back: str          # the prompt encoded and decoded again
  prompt_ids: list
  whole_ids: list    # prompt and completion encoded as one text
  # Chat templates only: the text that follows the assistant's message, whether that text ends
  # a completion, and the faults listed in io/chat.py.
  closing: str = ""
  closes: bool = True
  faults: dict = dataclasses.field(default_factory=dict)


def doctor(config: keys.Config, workdir: str | os.PathLike | None = None) -> list[Finding]:
  """Runs all checks on a config and on the run in a workdir, if one is given.

  Prints the findings and returns them.
  """
  run, findings = build.build(config), []
  def report(finding):
    findings.append(finding)
    print(terminal.line(str(finding)), flush=True)
  try:
    if workdir is not None:
      lines = io_metrics.read(os.fspath(workdir))
      for finding in check_metrics(lines, process_terms(run)): report(finding)
    for term, faults in validation.find_summed_steps(config, run.methods).items():
      report(steps_are_own(term, faults))
    limit = memory.device_bytes(run.passes.mesh)
    *_, (held, stages, _) = run_memory.memory_terms(run, limit)
    report(memory_fits(memory.need(held, stages), limit,
                       run_memory.refusal(run, held, stages, limit)))
    if findings[-1].level == "error": return findings  # Sampling would run out of memory.
    lengths = build_prompts.prompt_lengths(config, run.texts)
    assert run.prompts is not None
    constants = {p.id: constant for p, _, constant in build_prompts.inspect_prompts(
        config, run.prompts.all())}
    state = None
    if workdir is not None and run_folder.has_checkpoint(workdir):
      with contextlib.closing(checkpoint.Checkpoints(os.fspath(workdir))) as checkpoints:
        state, _ = session.restore(checkpoints, run.init)
      print(f"rlx: the batch is drawn by the policy of step {state.step}.", flush=True)
    # A PRM that is its own reference starts with rewards of 0, whatever was loaded.
    is_loaded = state is not None or options_lib.setting(config)("prm.path") is not None
    has_prm = (is_loaded
               and run.passes.prm_reference != "self")
    for finding in check_batch(run, lengths, constants, *first_batch(run, has_prm, state)):
      report(finding)
  finally:
    run.close()
  return findings


def process_terms(run: build.Run) -> list[str]:
  """The reward terms that read the PRM."""
  return [term for term, (_, fn) in run.methods.rewards.items() if "prm_logps_BT" in fn.fields]


def first_batch(run: build.Run, has_prm: bool = False,
                state: records.TrainState | None = None) -> tuple[
    list[records.Prompt], records.Rollouts, np.ndarray, np.ndarray, np.ndarray | None]:
  """Samples the first batch of the run, verifies it and computes the trainer's log-probs.

  Args:
    has_prm: whether the PRM differs from its reference and scores the completions.
    state: of a checkpoint; None: the initial one.
  Returns:
    (prompts, rollouts, outcome_PG, logps_BT, score_PG), all on the host. score_PG are sums of
    the PRM's log-ratios, or None.
  """
  assert run.prompts is not None
  sizes, state = run.sizes, state or run.init()
  run.outcomes.hold(state)
  prompts = run.prompts.take(sizes.draw)
  rollouts = run.sampling.train(state.join_params(state.sampled_from), prompts,
                                rng.key(run.passes.seed, "sample", 0, 0), run.methods.anneal(0))
  rollouts = padding.trim(rollouts, sizes.multiple)
  # The trainer computes log-probs for exactly the rows of an update. Of a larger batch the
  # first rows are used; the rows of a smaller one are repeated.
  prompts = prompts[:sizes.rows // sizes.first_pass]
  rows = np.arange(len(prompts) * sizes.first_pass)
  rollouts, placed = (padding.select([rollouts], r, np.arange(len(prompts)))
                      for r in (rows, np.arange(sizes.rows) % len(rows)))
  outcome_PG = run.outcomes(prompts, rollouts)
  passes = passes_lib.make_passes(run.passes, state, placed.rows())
  logps_BT = hosts.fetch(passes.logps("policy", is_drawn=True))[rows]
  if not (has_prm and process_terms(run)): return prompts, rollouts, outcome_PG, logps_BT, None
  prm_BT, ref_BT = hosts.fetch((passes.logps("prm", "prm"), passes.prm_reference()))
  ratio_BT = np.where(rollouts.action_BT, (prm_BT - ref_BT)[rows], 0.0)
  return prompts, rollouts, outcome_PG, logps_BT, ratio_BT.sum(axis=1).reshape(outcome_PG.shape)


def check_batch(run: build.Run, lengths: list[int], constants: dict[str, str | None],
                prompts: list[records.Prompt], rollouts: records.Rollouts, outcome_PG: np.ndarray,
                logps_BT: np.ndarray, score_PG: np.ndarray | None) -> Iterator[Finding]:
  """Yields the findings on what `first_batch` returns.

  Args:
    lengths: tokens of each prompt before those that are too long are dropped.
    constants: see `no_constant_passes`.
  """
  assert run.collect is not None
  collect, t = run.collect, run.texts
  ids, texts = padding.completions(rollouts), t.completions(rollouts)
  mask_BT = np.asarray(rollouts.action_BT)
  is_cut_B = rollouts.finish_B == records.FINISH.index("length")
  reads = any(field.startswith("outcome") for _, fn in run.methods.rewards.values()
              for field in fn.fields)
  yield rewards_vary(outcome_PG, collect.max_error_rate, run.pool.last_error, reads,
                     run.pool.take_failed_share())
  if collect.columns is None:  # Otherwise the filter reads more than verdicts.
    keep_P = run.methods.filter_groups(records.Batch(
        outcome_PG.shape[1], **outcomes.make_columns(rollouts, outcome_PG.ravel())))
    yield draws_suffice(keep_P, run.sizes.draw, run.sizes.trained, collect.max_draws, collect.fill)
  yield answers_fit(rollouts.completion_len_B, is_cut_B, t.completion_tokens)
  asked = [p for p in prompts for _ in range(outcome_PG.shape[1])]
  yield template_closes([example(own.tokenizer, own.template(p), text, t.stops)
                         for p, text in list(zip(asked, texts))[:EXAMPLES]
                         for own in [t.select_source(p)]])
  yield prompts_fit(lengths, t.prompt_tokens)
  if constants: yield no_constant_passes(constants)
  yield base_answers(t.answers(texts, asked), outcome_PG, t.answer)
  if rollouts.turn_BT is None:
    yield masks_cover_eos(ids, mask_BT, rollouts.finish_B, logps_BT, t.tokenizer.eos_ids)
  yield sampler_agrees(rollouts.sampler_logps_BT, logps_BT, mask_BT,
                       run.passes.models["policy"].dtype, run.methods.anneal(0) is not None)
  if outcome_PG.shape[1] > 1:
    yield verdicts_leave_room(outcome_PG, t.answers(texts, asked), run.sizes.rows, score_PG)
    if process_terms(run): yield prm_ranks(score_PG, outcome_PG)


@check("rewards vary")
def rewards_vary(outcome_PG, max_error_rate, last_error="", reads_verdicts=True, failed=0.0):
  """Checks that verdicts within a group differ; nothing is learned from a group of equal ones.

  Without groups (G = 1) the whole batch counts as one group.

  Args:
    reads_verdicts: whether a reward reads verdicts; if not, errors become warnings.
    failed: share of completions on which the verifier failed.
  """
  unknown = np.isnan(outcome_PG).mean()
  if unknown > max_error_rate:
    level, text, advice = ("error", f"{unknown:.0%} of verdicts are unknown"
                           + (f", last {last_error}" if last_error else ""),
                           "fix the verifier (prompts.columns, verifier.timeout_s)")
  else:
    level, text, advice = _verdicts_vary(outcome_PG if outcome_PG.shape[1] > 1 else outcome_PG.T)
    if failed: text += (f"; the verifier failed on {failed:.0%} of completions, "
                        f"last {last_error or 'without a message'}")
  if reads_verdicts or level == "ok": return level, text, advice
  return "warning", text + "; no reward reads verdicts", advice


def _verdicts_vary(outcome_PG):
  """(level, text, advice) for verdicts of which enough are known."""
  known_PG = ~np.isnan(outcome_PG)
  mean = float(outcome_PG[known_PG].mean())
  low_P, high_P = (f(np.where(known_PG, outcome_PG, o), axis=1)
                   for f, o in ((np.min, np.inf), (np.max, -np.inf)))
  spread = float(np.mean(high_P > low_P))
  if mean == 0:
    return ("error", "every verdict is 0", "easier prompts (prompts.options), a better start "
            "(model.path), or a format that the verifier reads (prompts.template)")
  if mean == 1: return "error", "every verdict is 1", "harder prompts (prompts.options)"
  return ("ok" if spread >= 0.2 else "warning" if spread else "error",
          f"verdicts differ in {spread:.0%} of {len(outcome_PG)} groups, their mean is {mean:.3f}",
          "more completions (rollouts.per_prompt), or prompts that the model "
          "solves some of the time (prompts.options)")


@check("draws suffice")
def draws_suffice(keep_P, draw, want, max_draws, fill):
  """Checks that enough groups pass the filter to fill a batch within rollouts.max_draws."""
  rate = float(np.mean(keep_P))
  draws = f"{-(-want // (rate * draw)):.0f}" if rate else "infinitely many"
  is_enough = rate * draw * max_draws >= want
  return ("ok" if is_enough else "error" if fill == "error" else "warning",
          f"{rate:.0%} of groups pass rollouts.filter_groups; {want} of them take {draws} draws "
          f"of {draw}",
          f"after rollouts.max_draws={max_draws} draws rollouts.fill={fill} applies; widen "
          "rollouts.filter_groups or raise rollouts.max_draws")


@check("answers fit the length")
def answers_fit(lengths_B, is_cut_B, max_tokens):
  """Checks that completions end before rollouts.max_tokens cuts them."""
  cut, (half, most) = float(np.mean(is_cut_B)), np.quantile(lengths_B, (0.5, 0.95))
  return ("ok" if cut <= 0.05 else "warning" if cut <= 0.5 else "error",
          f"{cut:.0%} are cut at rollouts.max_tokens={max_tokens}; lengths: half of them "
          f"<= {half:.0f}, 95% <= {most:.0f}, longest {np.max(lengths_B)}",
          "raise rollouts.max_tokens" + (
              ", or tell the model to end (rollouts.stops, prompts.template)" if cut > 0.5 else ""))


def example(tokenizer: tokenizer_io.Tokenizer, prompt: str | list[dict], completion: str,
            stops: Sequence[str] = ()) -> Example:
  """Builds the `Example` of a prompt, as its template returned it, and a completion's text."""
  text = tokenizer.render(prompt)
  chat_: dict[str, Any] = {}
  ids = tokenizer.encode(text)
  has_bos = tokenizer.bos_id is not None and not text.startswith(tokenizer.hf.bos_token)
  back = tokenizer.hf.decode(ids[has_bos:], skip_special_tokens=False,
                             clean_up_tokenization_spaces=False)
  if not isinstance(prompt, str):
    closing = tokenizer.closing
    first = tokenizer.encode(closing.lstrip(), add_bos=False)[:1]
    chat_ = dict(closing=closing, faults=chat.faults(tokenizer, prompt, completion),
                 closes=bool(set(first) & set(tokenizer.eos_ids))
                 or any(stop in closing for stop in stops))
  return Example(text, back, ids, tokenizer.encode(text + completion), **chat_)


@check("the template closes")
def template_closes(examples):
  """Checks that the prompt ends where the completion begins, in text and in tokens."""
  n, first = len(examples), examples[0]
  lost = [e for e in examples if e.back != e.text]
  merged = [e for e in examples if e.whole_ids[:len(e.prompt_ids)] != e.prompt_ids]
  faulty = [e for e in examples if e.faults]
  ends = f"prompts end with {first.text[-20:]!r}"
  if still_open := [e for e in examples if not e.closes]:
    return ("error", f"{ends}; the chat template ends a turn with {still_open[0].closing!r}, which "
            "does not end a completion",
            "add it to eos_token_id in generation_config.json, or to rollouts.stops")
  if lost:
    return ("warning", f"{len(lost)} of {n} prompts change when encoded and decoded: "
            f"{lost[0].text[-40:]!r} becomes {lost[0].back[-40:]!r}",
            "check prompts.template and the tokenizer's normaliser")
  if merged:
    return ("warning", f"in {len(merged)} of {n} the prompt's last tokens change when the "
            f"completion follows; {ends}",
            "end the template without a space or half a word (prompts.template)")
  if faulty:
    faults = {kind: text for e in reversed(faulty) for kind, text in e.faults.items()}
    return ("warning", f"{ends}; in {len(faulty)} of {n} dialogues the chat template is not "
            "prefix-stable: " + "; ".join(faults.values()),
            "; ".join(ADVICE[kind] for kind in faults))
  return "ok", ends + ", the same in text and in tokens" + (
      f"; turns end with {first.closing!r}" if first.closing else "")


@check("prompts fit")
def prompts_fit(lengths, max_tokens):
  """Checks that few prompts are dropped because they are too long."""
  dropped = float(np.mean(np.array(lengths) > max_tokens))
  return ("ok" if dropped <= 0.01 else "warning",
          f"{dropped:.1%} of {len(lengths)} prompts are longer than "
          f"prompts.max_tokens={max_tokens} and dropped; longest {max(lengths)}",
          "raise prompts.max_tokens; dropping long prompts biases the data")


@check("no constant passes")
def no_constant_passes(constants):
  """Checks that no program that ignores its input passes a prompt's tests.

  See verifiers/code_tests.py.

  Args:
    constants: {id of a prompt: description of the constant that passes, or None}.
  """
  passed = [f"{i!r} by {words}" for i, words in constants.items() if words]
  return ("warning" if passed else "ok",
          f"constants pass the tests of {len(passed)} of {len(constants)} prompts"
          + (f", such as {passed[0]}" if passed else ""),
          "add tests to these prompts, or exclude them (verifier.allow_constant=false)")


@check("the base ever answers")
def base_answers(answers, outcome_PG, pattern):
  """Checks that the initial model states answers that eval.answer can extract."""
  share = float(np.mean([a is not None for a in answers]))
  known = outcome_PG[~np.isnan(outcome_PG)]
  right = float(known.mean()) if known.size else float("nan")
  text = (f"{share:.0%} of {len(answers)} completions state an answer "
          f"(eval.answer={pattern!r}), accuracy {right:.3f}")
  if share == 0 and right > 0:
    return ("warning", text, "verdicts find answers where eval.answer does not; fix it: majority "
            "voting and pseudo labels read it")
  if not right > 0:  # Includes NaN.
    return ("warning" if share else "error", text, "use another model (model.path), worked "
            "examples (prompts.template), or sft first")
  return ("ok" if share >= 0.5 else "warning", text,
          "show the format (prompts.template), or fix eval.answer")


@check("masks cover EOS")
def masks_cover_eos(completions, mask_BT, finish_B, logps_BT, eos_ids):
  """Checks that the mask includes the EOS that ends a completion and nothing after it.

  Args:
    completions: lists of token ids, without padding.
  """
  is_eos_B, n, wrong = finish_B == records.FINISH.index("eos"), len(completions), {}
  for b, ids in enumerate(completions):
    if is_eos_B[b] and (not ids or ids[-1] not in eos_ids):
      wrong.setdefault("count as ended by EOS but end with another token", []).append(b)
    if any(i in eos_ids for i in ids[:-1]):
      wrong.setdefault("have tokens after an EOS", []).append(b)
    if mask_BT[b].sum() != len(ids) or not mask_BT[b][:len(ids)].all():
      wrong.setdefault("have a mask that does not cover exactly their tokens", []).append(b)
    elif not np.isfinite(logps_BT[b][mask_BT[b]]).all():
      wrong.setdefault("have a token without a log-prob", []).append(b)
  if wrong:
    return ("error", ", ".join(f"{len(rows)} of {n} completions {what}"
                               for what, rows in wrong.items()),
            "compare the tokenizer's EOS with eos_token_id in generation_config.json")
  text = f"{is_eos_B.sum()} of {n} completions end by EOS"
  if is_eos_B.any(): return "ok", text + ", which the mask and the log-probs cover"
  return ("warning", text, f"the EOS ids are {list(eos_ids)}; is one of them what the model ends "
          "with (generation_config.json)? If so, rollouts.max_tokens may be too short")


@check("sampler and trainer agree")
def sampler_agrees(sampler_logps_BT, logps_BT, mask_BT, dtype, is_annealed=False):
  """Checks that sampler and trainer compute the same log-probs for the sampled tokens."""
  gap_N = np.abs(np.asarray(sampler_logps_BT, float) - logps_BT)[np.asarray(mask_BT)]
  (mean, largest), bounds = (float(f(gap_N)) for f in (np.mean, np.max)), sampling.GAPS[dtype]
  is_small = mean <= bounds[0] and largest <= bounds[1]
  is_explained = mean <= WRONG or (is_annealed and np.isfinite(mean))
  return ("ok" if is_small else "warning" if is_explained else "error",
          f"log-probs of {len(gap_N)} tokens differ by {mean:.1e} on average, "
          f"{largest:.1e} at most; rounding in {dtype} explains up to {bounds[0]:.0e} and "
          f"{bounds[1]:.0e}"
          + ("; rollouts.anneal draws at other temperatures" if is_annealed else ""),
          "correct for it (learner.rollout_correction.name=rollout_correction.tis), or compute in "
          "higher precision (model.dtype=float32, model.matmul_precision=exact)")


@check("memory fits")
def memory_fits(need, limit, refusal):
  """Checks that the run fits into the memory of a device."""
  if limit is None:
    return ("warning", f"at most {memory.show(need)} per device, which "
            "does not report its memory", "watch the memory of the first step")
  if refusal: return "error", refusal
  return ("ok" if need <= 0.9 * limit else "warning",
          f"at most {memory.show(need)} of {memory.show(limit)} per device",
          "little is left for allocations that are not estimated; more learner.microbatches and "
          "prm.microbatches need less memory")


@check("verdicts leave room")
def verdicts_leave_room(outcome_PG, answers, rows, score_PG=None):
  """Measures what a better choice among completions could gain: the room for a PRM.

  Args:
    answers: [B] extracted answers, None where there is none.
    rows: completions that a step trains on.
    score_PG: scores of a PRM that was trained before; None without one.
  """
  g, known_P = outcome_PG.shape[1], ~np.isnan(outcome_PG).any(axis=1)
  if not known_P.any(): return "ok", "unknown, every group has an unknown verdict"
  right_PG, answers_PG = outcome_PG[known_P], np.array(answers, object).reshape(-1, g)[known_P]
  one, best = (pass_at_k.pass_at_k(right_PG, k) for k in (1, g))
  voted = accuracy.mean([pass_at_k.maj_at_k(list(a_G), o_G, g)
                         for a_G, o_G in zip(answers_PG, right_PG)])
  spread = float(np.mean(right_PG.max(axis=1) > right_PG.min(axis=1)))
  chosen = "" if score_PG is None else (
      f", the PRM's best@{g} {best_of_n.best_of_n(score_PG[known_P], right_PG):.3f}")
  return ("ok", f"pass@1 {one:.3f}, maj@{g} {voted:.3f}{chosen}, pass@{g} {best:.3f}: a perfect "
          f"choice among {g} gains {best - one:.3f}; verdicts differ in {spread:.0%} of groups, "
          f"{rows} completions a step")


@check("the PRM ranks verdicts")
def prm_ranks(score_PG, outcome_PG):
  """Checks that the PRM scores right completions above wrong ones of the same prompt.

  Args:
    score_PG: None if the PRM starts as its reference.
  """
  if score_PG is None:
    return ("ok", "the PRM starts as its reference and ranks nothing yet; train it first with rlx "
            "train_scorer, see docs/prime.md")
  if not np.any(score_PG):
    return ("warning", "the PRM of prm.path equals its reference", "train it (rlx train_scorer)")
  # Completions without a verdict are on neither side.
  sides_P = [(s_G[o_G > 0.5], s_G[o_G <= 0.5]) for s_G, o_G in zip(score_PG, outcome_PG)]
  pairs = sum(len(right) * len(wrong) for right, wrong in sides_P)
  if pairs < FEW:
    return ("warning", f"unknown, {pairs} pairs of a right and a wrong completion are too few",
            "raise prompts.per_step for this check only")
  share = accuracy.interval(np.array([reward_model.pair_accuracy(*np.broadcast_arrays(
      right[:, None], wrong)) for right, wrong in sides_P])[:, None])
  level = ("ok" if share["mean"] >= RANKED else
           "error" if share["mean"] <= 0.5 and share["high"] < RANKED else "warning")
  return (level, "it ranks {mean:.3f} [{low:.3f}, {high:.3f}] of ".format(**share)
          + f"{pairs} pairs right; the PRMs that helped had 0.71 and more, one that did harm 0.46",
          "train the PRM on more completions of this policy (rlx train_scorer), see docs/prime.md")


@check("steps have own rewards")
def steps_are_own(term, faults):
  """Reports the result of `validation.find_summed_steps` for a term."""
  return ("warning" if faults else "ok",
          "; ".join(faults) or f"advantages.{term} does not add rewards of later steps",
          f"advantages.{term}.name=process.bounded_steps with its defaults, see docs/prime.md")


def check_metrics(lines: list[dict], terms: Sequence[str]) -> Iterator[Finding]:
  """Yields the findings on the metrics of an RL run, one dict per step.

  Args:
    terms: the reward terms that read the PRM.
  """
  column = lambda name: np.array([line.get(name, np.nan) for line in lines], float)
  accuracy_S = column("rollouts/accuracy")
  known = int((~np.isnan(accuracy_S)).sum())
  if known < 2 * RECENT:
    yield Finding("the run so far", "ok" if known else "warning", f"metrics.jsonl has {known} "
                  f"steps of RL, {2 * RECENT} are needed to see a collapse",
                  "name the folder of an RL run (workdir)")
    return
  yield accuracy_lasts(accuracy_S)
  yield lengths_last(column("rollouts/length"), column("rollouts/truncated"))
  if not np.isnan(column("prm/varied")).all():
    yield prm_lasts(column("prm/accuracy"), column("prm/varied"))
  for term in terms: yield rewards_agree(column(f"rewards/{term}"), accuracy_S, term)


def _means(x_S, steps=MEAN):
  """The running mean over this many steps, of those in which x is known."""
  known_S = ~np.isnan(x_S)
  total, count = (np.convolve(y_S, np.ones(steps), "valid")
                  for y_S in (np.where(known_S, x_S, 0.0), known_S))
  return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@check("accuracy lasts")
def accuracy_lasts(accuracy_S):
  """Checks that the accuracy of drawn completions is not below half of its best."""
  means = _means(accuracy_S)
  best, last = float(np.nanmax(means)), float(means[-1])
  return ("warning" if last < best / 2 else "ok",
          f"{last:.3f} in the last {MEAN} steps, {best:.3f} in the best {MEAN}",
          "the policy collapses; go back to a checkpoint and lower learner.optimizer.lr or "
          "rewards.<term>.coef")


@check("lengths last")
def lengths_last(length_S, truncated_S):
  """Checks that completions do not become much longer or shorter, or are cut more often."""
  (first, last), (cut_before, cut) = ((float(x[0]), float(x[-1]))
                                      for x in map(_means, (length_S, truncated_S)))
  is_stable = 1 / 1.5 <= last / max(first, 1e-9) <= 1.5 and not (cut > 0.3 and cut > cut_before)
  return ("ok" if is_stable else "warning",
          f"mean length {first:.1f} in the first {MEAN} steps, {last:.1f} in the last; "
          f"{cut_before:.0%} and {cut:.0%} are cut",
          "read completions.jsonl: a reward may be paying for length")


@check("the PRM keeps up")
def prm_lasts(accuracy_S, varied_S):
  """Checks the PRM's accuracy on completions that it has not seen, in the last steps.

  Prompts whose verdicts are equal are taken out (`accuracy.take_out_ties`).

  Args:
    varied_S: share of prompts whose verdicts differ.
  """
  def measure_ranking(steps):
    """(accuracy on prompts whose verdicts differ, half of a 95% interval over steps)"""
    share, x_S = np.nanmean(varied_S[steps]), accuracy_S[steps][~np.isnan(accuracy_S[steps])]
    if not share or len(x_S) < 2: return np.nan, np.nan
    return (accuracy.take_out_ties(x_S.mean(), share),
            1.96 * x_S.std(ddof=1) / np.sqrt(len(x_S)) / share)
  (first, _), (last, error) = measure_ranking(slice(RECENT)), measure_ranking(slice(-RECENT, None))
  if np.isnan(last): return "ok", f"unknown, no prompt of the last {RECENT} steps had both verdicts"
  return ("warning" if last < FALLEN else "ok",
          f"it ranks {last:.3f} +- {error:.3f} of new pairs right in the last {RECENT} steps, "
          f"{first:.3f} in the first {RECENT}",
          f"below {FALLEN} it says little: train the PRM on completions of this "
          "policy, let it learn (prm.order), or filter groups (rollouts.filter_groups)")


@check("rewards follow verdicts")
def rewards_agree(process_S, accuracy_S, term="process"):
  """Checks that a process reward does not rise while the accuracy falls.

  The last steps are compared with those of the best accuracy before. A change counts from three
  standard errors on, because the best of many means is high by chance.
  """
  start = int(np.nanargmax(_means(accuracy_S[:-RECENT], RECENT)))
  parts = slice(start, start + RECENT), slice(-RECENT, None)
  def change(x_S):
    before, after = (x_S[p][~np.isnan(x_S[p])] for p in parts)
    if min(len(before), len(after)) < 2: return np.nan, np.nan, np.nan
    error = np.sqrt(before.var(ddof=1) / len(before) + after.var(ddof=1) / len(after))
    return before.mean(), after.mean(), 3 * error
  (low, high, noise), (good, bad, spread) = change(process_S), change(accuracy_S)
  return ("warning" if high - low > noise and good - bad > spread else "ok",
          f"rewards/{term} {low:.3f} and accuracy {good:.3f} in steps {start} to "
          f"{start + RECENT - 1}, {high:.3f} and {bad:.3f} in the last {RECENT}",
          "the policy exploits the PRM: lower its weight "
          f"(rewards.{term}.coef) or train the PRM on these completions")


def main(config: keys.Config, workdir: str | os.PathLike | None = None) -> None:
  if any(f.level == "error" for f in doctor(config, workdir)): sys.exit(1)
