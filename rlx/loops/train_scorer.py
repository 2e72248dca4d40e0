"""Trains a scorer on stored completions: a reward model, or a process reward model.

An implicit PRM learns verdicts (train_scorer.labels=None); a model with a head, or with
train_scorer.head=yes_no the model's own head for tokens, learns labels of completions, steps or
tokens, pairs or lists.

  rlx train_scorer papers/implicit_prm workdir=/tmp/rlx/implicit
  rlx train_scorer papers/implicit_prm workdir=/tmp/rlx/hard train_scorer.labels=hard
  rlx train_scorer papers/implicit_prm workdir=/tmp/rlx/pairs train_scorer.labels=outcome \\
      train_scorer.loss.name=reward_model.bradley_terry

A model that gives scores is written to <workdir>/scorer, which `scorers.NAME.path` of a run reads.
If train_scorer.rollouts or train_scorer.held_out names no file, the policy samples these
completions into the workdir. The same command with the same workdir resumes the run.
rlx.tools.evaluate and rlx.tools.convert read the checkpoints.
"""
from collections.abc import Sequence
import dataclasses
import inspect
import math
import os
import pathlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlx import build
from rlx.build import keys, methods as build_methods, options as options_lib, validation
from rlx.core import records, resolve, rng
from rlx.core.options import key
from rlx.evals import at_k, prm_metrics
from rlx.io import curves, energy as energy_io, hf, hub, report as report_lib, weights
from rlx.loops import prm_sets, session, stored
from rlx.losses import reward_model
from rlx.models import energy, lora
from rlx.rewards import step_labels
from rlx.stages import annotate, collect, place, update_prm


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """The config values that only this loop needs."""
  labels: str | None = key("train_scorer.labels")
  tree: bool = key("train_scorer.tree")
  merge_steps: bool = key("train_scorer.merge_steps")
  add_outcome: bool = key("train_scorer.add_outcome")
  pseudo_labels: bool = key("train_scorer.pseudo_labels")
  labelled_by: str = key("train_scorer.labelled_by")
  verifier: str | None = key("verifier.steps")
  margins: bool = key("train_scorer.margins")
  model_path: str = key("model.path")
  prm_path: str | None = key("prm.path")
  param_dtype: str = key("model.param_dtype")
  rollouts: str | None = key("train_scorer.rollouts")
  held_out: str | None = key("train_scorer.held_out")
  prompts: int = key("train_scorer.prompts")
  step_rollouts: int = key("train_scorer.step_rollouts")
  max_sampled: int | None = key("train_scorer.max_sampled")
  loss: str = key("prm.loss.name")
  head_loss: str = key("train_scorer.loss.name")
  prm_sets: tuple = key("eval.prm_sets")
  eval_every: int = key("eval.every")
  scores: tuple = key("verifier.scores")
  adapt_rate: float | None = key("train_scorer.adapt_rate")
  energy_steps: int = key("train_scorer.energy.steps")
  energy_batch: int = key("train_scorer.energy.batch")
  energy_rate: float = key("train_scorer.energy.rate")
  energy_negatives: int = key("train_scorer.energy.negatives")
  energy_stds: tuple = key("train_scorer.energy.stds")
  energy_beta: float = key("train_scorer.energy.beta")
  seed: int = key("seed")
  judged_share: float = key("train_scorer.judged_share")
  scored_share: float = key("train_scorer.scored_share")
  copies: int = key("train_scorer.mutate.copies")
  mutate: resolve.UserFunction | None = None  # See train_scorer.mutate.
  curate: resolve.UserFunction | None = None  # See train_scorer.curate.
  compares: bool = False  # Whether the loss compares completions of a group.


def train(config: keys.Config, workdir: str | os.PathLike) -> dict[str, Any] | None:
  """Trains to config.steps steps of prompts.per_step groups each, from the newest checkpoint.

  Returns:
    the summary, which is also written to <workdir>/summary.json: the metrics of `measure_prm`,
    and the numbers of completions, of tokens sampled for them and of tokens trained on. None if
    a signal stopped the run before the last step.
  """
  with session.Session(session.read_session_options(config), workdir) as s:
    if (summary := s.find_summary(config)) is not None: return summary
    run = build.build(config, learns="prm")
    s.callback(run.close)
    s.record(config, run.shapes())
    s.restore(run.init, run.prompts)
    run.outcomes.hold(s.state)
    return _train(run, s, read_options(config, run))


def read_options(config: keys.Config, run: build.Run) -> Options:
  """The Options of a config and its Run."""
  options = options_lib.read_options(
      Options, config, curate=build_methods.bind_curation(config),
      mutate=build_methods.bind_mutation(config))
  if options.labels is None:
    compares = bool(options.rollouts) and validation.does_prm_compare(config, run.methods)
  else:
    loss = resolve.lookup("losses", options.head_loss, "train_scorer.loss.name")
    compares = not update_prm.COMPARED.isdisjoint(inspect.signature(loss).parameters)
  return dataclasses.replace(options, compares=compares)


def _train(run: build.Run, s: session.Session, options: Options) -> dict[str, Any] | None:
  """The loop of a run, from the state of the session."""
  s.announce([*["sampler"] * (None in (options.rollouts, options.held_out)),
              *["scoring"] * (options.labels is None), "PRM update"])
  completions, held_out = data(run, s.state, s.workdir, options)
  s.clock.lap("sample")
  # A head is trained on single steps; other losses may compare the completions of a group.
  groups = ([completions] if options.labels in step_labels.OF_STEPS else
            stored.group_completions(completions))
  groups = stored.split_groups(groups, run.sizes.group)
  for step in s.steps():
    rollouts, outcome_B, columns = stored.batch(groups, step, run, add_outcome=options.add_outcome)
    s.host.training_tokens += int(rollouts.completion_len_B.sum())
    annotated = run.annotate(s.state, collect.Collected([], rollouts, outcome_B, None))
    placed = _place(run, s.state, annotated, columns)
    state, placed, metrics = run.update_prm(s.state, placed)
    if options.labels is None: metrics |= _measure(placed.batch)
    s.state = state.replace(step=step + 1)
    s.clock.lap("prm", s.state.prm)
    if session.is_due(step + 1, options.eval_every) and step + 1 < s.options.steps:
      metrics |= curve_metrics(measure_prm(run, s.state, held_out))
      s.clock.lap("eval")
    s.write(metrics)
  if not s.is_done: return None
  if options.adapt_rate is not None:
    s.state = adapt(run, s.state, completions, options.adapt_rate)
  evaluation = measure_prm(run, s.state, held_out)
  s.clock.lap("eval")
  if options.labels is not None: save_scorer(run, s, options)
  if options.energy_steps:
    energy_io.save(s.workdir / "scorer", train_energy(run, s.state, completions, options))
  summary = s.finish(
      **evaluation, labels=options.labels,
      loss=options.loss if options.labels is None else options.head_loss,
      completions=len(completions),
      sampled_tokens=stored.count_sampled_tokens(completions),
      training_tokens=s.host.training_tokens,
      # A mean over steps, as in the RL loop; None for a PRM with a head.
      prm_accuracy=s.recent_mean("prm/accuracy"))
  curves.draw_at_k(s.workdir / "at_k.png", evaluation)
  report_lib.print_metrics(evaluation)
  print(describe(completions, s.host.training_tokens))
  return summary


def describe(completions: Sequence[stored.Completion], trained: int) -> str:
  """A line on how much data a scorer has learned from, `trained` tokens in all steps."""
  sampled = stored.count_sampled_tokens(completions)
  return (f"{len(completions)} completions"
          + (f", {sampled} tokens sampled for them" if sampled is not None else "")
          + f", {trained} tokens trained on")


def adapt(run: build.Run, state: records.TrainState, completions: list[stored.Completion],
          rate: float) -> records.TrainState:
  """The state whose mixture of heads has the weights of a user, from their pairs.

    o_{K+k} <- o_{K+k} - rate sum_n softplus(-D_nk),  by the bias of the router's output for head k

  so that the weights of each prompt change as by `reward_model.adapt_routing`.

  Raises:
    ValueError: as `stored.find_pairs`.
  """
  pairs = stored.find_pairs(completions, "train_scorer.adapt_rate")
  heads_NK = stored.score_heads(run, state, [x for pair in pairs for x in pair])
  k = heads_NK.shape[1]
  weight_K = reward_model.adapt_routing(
      jnp.full(k, 1 / k), jnp.asarray(heads_NK[::2]), jnp.asarray(heads_NK[1::2]),
      jnp.ones(len(pairs), bool), rate=rate)
  print("rlx: train_scorer.adapt_rate: the weights of the heads are multiplied by "
        + ", ".join(f"{k * x:.2g}" for x in weight_K.tolist()) + " and normalised.",
        file=sys.stderr)
  head = state.prm["value"]
  more_C = jnp.pad(jnp.log(jnp.maximum(weight_K, jnp.finfo(jnp.float32).tiny)), (k, 0))
  b_1 = jax.device_put(head["b_1"] + more_C.astype(head["b_1"].dtype), head["b_1"].sharding)
  return state.replace(prm={**state.prm, "value": {**head, "b_1": b_1}})


def train_energy(run: build.Run, state: records.TrainState,
                 completions: list[stored.Completion], options: Options) -> dict:
  """The energy that corrects the scores of the trained head, see models/energy.py.

  It learns from both completions of each pair that the head ranks right.

  Raises:
    ValueError: as `stored.find_pairs`, or no pair is ranked right.
  """
  pairs = stored.find_pairs(completions, "train_scorer.energy.steps")
  score_N, features_ND = stored.score_ends(run, state, [x for pair in pairs for x in pair])
  is_right_N = np.repeat(score_N[::2] > score_N[1::2], 2)
  if not is_right_N.any():
    raise ValueError(f"train_scorer.energy.steps={options.energy_steps}: of the {len(pairs)} pairs "
                     "the head ranks none right, and the energy learns from these; train it with "
                     "more steps, or start from prm.path.")
  params = energy.init(rng.key(options.seed, "energy"), features_ND.shape[1])
  params, losses_S = energy.fit(
      params, rng.key(options.seed, "energy noise"), jnp.asarray(features_ND[is_right_N]),
      jnp.asarray(score_N[is_right_N]), batch=options.energy_batch, steps=options.energy_steps,
      rate=options.energy_rate, negatives=options.energy_negatives, beta=options.energy_beta,
      stds=tuple(options.energy_stds))
  last = np.asarray(losses_S[-max(1, len(losses_S) // 10):]).mean()
  print(f"rlx: train_scorer.energy: {int(is_right_N.sum()) // 2} of {len(pairs)} pairs are ranked "
        f"right; the energy's loss on them fell from {losses_S[0]:.3g} to {last:.3g}.",
        file=sys.stderr)
  return params


def save_scorer(run: build.Run, s: session.Session, options: Options) -> None:
  """Writes the model with its head, adapters merged, in the format of Hugging Face."""
  path = options.prm_path or options.model_path
  config, hf_config, _ = weights.open_model(path)
  own, params = run.passes.models["prm"], s.state.join_params("prm")
  if s.state.frozen is not None: params = lora.merge(params, own.lora_scale)
  config = dataclasses.replace(config, param_dtype=options.param_dtype)
  more = " and .kind=yes_no, with its question and answers"
  if run.passes.asked_scorer is None:
    params = {name: x for name, x in params.items() if name != "head"}
    config = dataclasses.replace(config, has_head=True, tied_head=True, score_head=own.score_head,
                                 outputs=own.outputs)
    more = ""
  # The model's own: its chat template and generation_config.json may differ from the policy's.
  tokens = weights.load_tokenizer(hub.folder(path))
  hf.save(s.workdir / "scorer", config, params, tokens, hf=hf_config)
  print(f"{s.workdir / 'scorer'}  the model that gives scores; set scorers.NAME.path to it{more}")


def _place(run: build.Run, state: records.TrainState, annotated: annotate.Annotated,
           columns: dict[str, np.ndarray]) -> place.Placed:
  """The batch on the mesh: with log-probs, or with labels for a head."""
  if run.passes.labels is None: return run.score(state, run.place(annotated))
  batch = annotated.batch.replace(**columns)
  placed = run.place(dataclasses.replace(annotated, batch=batch))
  return placed.append(0) if run.passes.asked_scorer is None else placed


def _measure(batch: records.Batch) -> dict[str, jax.Array]:
  """Metrics of an implicit PRM before its update."""
  return {"prm/beta": batch.prm_beta_B[0], "prm/accuracy": _accuracy(
      batch.prm_old_logps_BT, batch.prm_ref_logps_BT, batch.action_BT,
      batch.outcome_PG, batch.learn_PG)}


_accuracy = jax.jit(prm_metrics.accuracy)


def data(run: build.Run, state: records.TrainState, workdir: pathlib.Path,
         options: Options) -> tuple[list[stored.Completion], list[stored.Completion]]:
  """Reads (training completions, held-out ones); samples and labels those not yet stored."""
  # What is wrong with a given file is said before anything is sampled.
  given = None if options.held_out is None else stored.read(options.held_out, run.texts)
  completions = _read_training(run, state, workdir, options)
  if given is not None: return completions, given
  held_out = workdir / "held_out.jsonl"
  stored.sample(held_out, run, state, run.eval_prompts, run.sampling.sampled,
                batch=run.sizes.eval_batch, group=run.sizes.eval_samples, stream="held_out",
                verifier=next((p for p in options.prm_sets if not p.endswith(".jsonl")), None))
  return completions, stored.read(held_out, run.texts)


def _read_training(run: build.Run, state: records.TrainState, workdir: pathlib.Path,
                   options: Options) -> list[stored.Completion]:
  """The training completions of `data`."""
  rollouts: str | pathlib.Path | None = options.rollouts
  if rollouts is None:
    assert run.prompts is not None
    rollouts = workdir / "rollouts.jsonl"
    stored.sample(rollouts, run, state, run.prompts.first(options.prompts), run.sampling.train,
                  batch=run.sizes.prompts, group=run.sizes.group, stream="rollouts")
  completions = stored.read(rollouts, run.texts)
  _check_rows(completions, rollouts, options)
  if options.tree:
    if run.prompts is None:
      raise ValueError("train_scorer.tree=True: training prompts, whose verifiers judge the "
                       "leaves.")
    stored.branch(workdir / "tree.jsonl", run, state, completions, options.step_rollouts)
    completions = stored.read(workdir / "tree.jsonl", run.texts)
  if options.pseudo_labels:
    completions = stored.fill_labels(run, state, completions, options.scores)
  if options.curate is not None:
    completions = stored.curate(workdir / "curated.jsonl", run, state, completions, options.scores,
                                options.curate)
  if options.labels in step_labels.KINDS:
    needed: tuple[str, ...] = ("values", *["start"] * (options.labels == "relative"))
    if options.labelled_by == "mutations" and any("values" not in x.row for x in completions):
      completions = _mutate(completions, run, workdir, options)
    if options.labelled_by == "verifier" and any("values" not in x.row for x in completions):
      completions = _judge(completions, run, workdir, options)
      needed = needed[1:]
    if any(name not in x.row for x in completions for name in needed):
      if run.prompts is None:
        raise ValueError(f"train_scorer.labels={options.labels!r}: rows with {' and '.join(needed)}"
                         f"; some of {rollouts} have none.")
      path = workdir / "labelled.jsonl"
      stored.label(path, run, state, completions, options.step_rollouts,
                   with_start="start" in needed)
      completions = stored.read(path, run.texts)
    if options.labelled_by == "mean":
      completions = stored.mix_judged(_judge(completions, run, workdir, options),
                                      options.judged_share)
    if options.labelled_by == "consensus":
      completions = stored.keep_agreed(_judge(completions, run, workdir, options))
      if not completions:
        raise ValueError("train_scorer.labelled_by='consensus': of no completion of "
                         f"{rollouts} the first wrong step is the same by {options.verifier}.")
  if options.scored_share:
    stored.score(workdir / "scored.jsonl", run, state, completions, options.scores)
    completions = stored.mix_scores(
        stored.read(workdir / "scored.jsonl", run.texts), options.scored_share)
  if options.labels is not None:
    completions = stored.label_all(completions, run, options.merge_steps)
    if not completions:
      raise ValueError(f"train_scorer.labels={options.labels!r}: no row of {rollouts} has such a "
                       "label.")
  completions = stored.limit_tokens(completions, options.max_sampled,
                                    spread=options.labels is not None)
  if options.labels in (None, "outcome") and options.rollouts:
    _check_pairs(stored.split_groups(stored.group_completions(completions), run.sizes.group),
                 options)
  return completions


def _judge(completions: list[stored.Completion], run: build.Run, workdir: pathlib.Path,
           options: Options) -> list[stored.Completion]:
  """The completions with what verifier.steps says of their steps, kept in the workdir."""
  if run.prompts is None or options.verifier is None:
    raise ValueError(f"train_scorer.labelled_by={options.labelled_by!r}: rows of training prompts, "
                     "whose steps verifier.steps judges.")
  path = workdir / "judged.jsonl"
  stored.judge(path, run, completions, options.verifier)
  return stored.read(path, run.texts)


def _mutate(completions: list[stored.Completion], run: build.Run, workdir: pathlib.Path,
            options: Options) -> list[stored.Completion]:
  """The right completions and their copies with a line changed, kept in the workdir."""
  right = [x for x in completions if x.verdict >= 1]
  if run.prompts is None or not right:
    raise ValueError(f"train_scorer.labelled_by='mutations': rows of training prompts with the "
                     f"verdict 1, whose lines are changed; there are {len(right)} such rows.")
  path, verifier = workdir / "mutated.jsonl", (*options.scores, None)[0]
  assert options.mutate is not None
  stored.mutate(path, run, right, options.mutate, options.copies, verifier)
  return stored.read(path, run.texts)


def _check_rows(completions: list[stored.Completion], path: str | os.PathLike,
                options: Options) -> None:
  """Refuses rows without the columns that the options need."""
  wanted = dict(spans=("spans",), both=("label", "values")).get(options.labels or "", ())
  for name in wanted:
    if all(x.row.get(name) is None for x in completions):
      raise ValueError(f"train_scorer.labels={options.labels!r}: no row of {path} has `{name}`.")
  if options.margins and "margin" not in completions[0].row:
    raise ValueError(f"train_scorer.margins=True: the rows of {path} have no `margin`.")


def _check_pairs(groups: list[list[stored.Completion]], options: Options) -> None:
  """Refuses rows of which the loss learns nothing, such as one that compares completions."""
  key, path, single = (
      ("prm.loss.name", options.loss, "prm.ce") if options.labels is None else
      ("train_scorer.loss.name", options.head_loss, "reward_model.bce"))
  said = f"{key}={path!r}"
  if all(math.isnan(x.verdict) for group in groups for x in group):
    raise ValueError(f"{said}: no row of {options.rollouts} has a known verdict.")
  if not options.compares: return
  pairs = [(a.row, b.row) for group in groups for a in group for b in group
           if a.verdict > b.verdict]
  if not pairs:
    raise ValueError(f"{said}: it compares completions of a group, of which none of "
                     f"{options.rollouts} has two with different verdicts; a loss of single ones "
                     f"is {single}.")
  if path != "reward_model.scaled_bradley_terry" or "margin" not in pairs[0][0]: return
  weights_N = [a["margin"] - b["margin"] for a, b in pairs]
  if min(weights_N) < 0 or not any(weights_N):
    raise ValueError(f"{said}: the margins of {options.rollouts} weigh its pairs, "
                     f"{min(weights_N):g} to {max(weights_N):g}; needed are numbers from 0 that "
                     "are not all 0. With reward_model.soft_bradley_terry a margin below 0 is a "
                     "pair the other way.")


def measure_prm(run: build.Run, state: records.TrainState,
                completions: list[stored.Completion]) -> dict[str, Any]:
  """Evaluates the PRM on held-out completions.

  Returns:
    the metrics of tools/evaluate.py's `at_k`, and under "prm" those of prm_sets.py:
    preferences, and the F1 of first errors if rows have a `label`.
  """
  groups = stored.group_completions(completions)
  size = max(map(len, groups))
  rows = [x for group in groups for x in stored.fill_group(group, size)]
  steps = prm_sets.score(run, state, [x.prompt for x in rows], [x.ids for x in rows],
                         segments=[x.segments for x in rows])
  scores = prm_sets.scores(steps)
  outcome_PG = np.reshape([x.verdict for x in rows], (-1, size))
  # What the texts of the prompts have of the replies, as `Texts.start_of_reply`.
  words = [run.texts.tokenizer.decode(x.prompt).split() for x in rows]
  prompts = [records.Prompt("", "", meta=dict(begun="".join(w[-1:]))) for w in words]
  answers = run.texts.answers([x.row["completion"] for x in rows], prompts)
  metrics = at_k.at_k(outcome_PG, answers, scores)
  label_B = np.array([x.row.get("label") for x in rows], float)  # None is NaN.
  metrics["prm"] = {"held out": prm_sets.compare_sampled(scores, outcome_PG)}
  if not np.isnan(label_B).all():
    metrics["prm"]["held out"] |= prm_sets.first_error_f1(
        steps, label_B, np.arange(len(rows)) // size)
  return metrics


def curve_metrics(evaluation: dict) -> dict[str, float]:
  """{metric: number}: the metrics of `measure_prm` that are logged during training."""
  k = max(int(name[5:]) for name in evaluation if name.startswith("pass@"))
  f1 = evaluation["prm"]["held out"].get("f1/step", dict(mean=float("nan")))
  return {f"eval/best/{a}": evaluation[f"best@{k}/{a}"]["mean"] for a in ("min", "sum")} | {
      "eval/f1/step": f1["mean"]}
