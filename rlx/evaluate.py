"""Held-out evaluation of a checkpoint: pass@k, majority, best-of-N by the PRM.

  python -m rlx.evaluate --config=configs/quickstart.py --workdir=/tmp/rlx/quickstart --config.eval.samples=8

Reads the workdir's newest checkpoint; without one, the models the config names.
"""
import json
import pathlib

import jax
import numpy as np

from rlx import build
from rlx import cli
from rlx import train
from rlx.core import rng
from rlx.evals import accuracy
from rlx.evals import best_of_n
from rlx.evals import pass_at_k
from rlx.io import checkpoint
from rlx.rollouts import padding
from rlx.verifiers import answers as answers_lib


def evaluate(config, workdir):
  """Samples eval.samples completions per held-out prompt and judges them.

  Returns:
    {metric: number}, which is also in <workdir>/evaluate.json: accuracy with
    its interval, greedy accuracy, and for k = 1, 2, 4 ... samples pass@k,
    maj@k, and best@k under the PRM by min, sum and last of its step rewards.
  """
  run = build.build(config)
  checkpoints = checkpoint.Checkpoints(workdir)
  state, _ = train.restore(run, checkpoints)
  checkpoints.close()
  outcomes, answers, scores = [], [], []
  for prompts in padding.batches(run.eval_prompts, config.eval.batch):
    key = rng.key(config.seed, "evaluate")
    rollouts = run.eval_sample["sampled"](state.full("policy"), *run.encode(prompts), key)
    outcomes.append(run.verify(prompts, jax.device_get(rollouts)))
    answers += answers_lib.stated(
        [run.tokenizer.decode(ids) for ids in padding.completions(rollouts)],
        config.eval.answer)
    scores.append(_scores(run, state, rollouts))
  outcome_PG = np.concatenate(outcomes)[:len(run.eval_prompts)]
  found = {"sampled": accuracy.interval(outcome_PG),
           "greedy": train.evaluate(run, state, "evaluate", 1, ("greedy",))["greedy"]}
  found |= at_k(outcome_PG, answers, {k: np.concatenate([s[k] for s in scores])
                                      for k in scores[0]})
  run.pool.close()
  _report(found, pathlib.Path(workdir))
  return found


def at_k(outcome_PG, answers, scores):
  """pass@k, maj@k and best@k for k = 1, 2, 4, ... completions.

  Args:
    outcome_PG: verdicts.
    answers: [B] extracted answers, None where there is none.
    scores: {aggregate: score_B} of the PRM; empty without one.
  """
  p, g = outcome_PG.shape
  by_prompt = [answers[i * g:(i + 1) * g] for i in range(p)]
  found = {}
  for k in [2**i for i in range(g.bit_length()) if 2**i <= g]:
    found[f"pass@{k}"] = pass_at_k.pass_at_k(outcome_PG, k)
    found[f"maj@{k}"] = float(np.mean([
        pass_at_k.maj_at_k(a, o, k) for a, o in zip(by_prompt, outcome_PG)]))
    for name, score_B in scores.items():
      score_PG = score_B.reshape(-1, g)[:p, :k]
      found[f"best@{k}/{name}"] = best_of_n.best_of_n(score_PG, outcome_PG[:, :k])
  return found


def _scores(run, state, rollouts):
  """{aggregate: score_B} from the PRM's step rewards; {} without a PRM."""
  if state.prm is None: return {}
  log_ratio_BT, ends_BT = map(np.asarray, run.log_ratio(state, rollouts))
  steps = max(int(ends_BT.sum(axis=1).max()), 1)
  ends_BJ = np.full((len(ends_BT), steps), -1)
  for row, ends_T in zip(ends_BJ, ends_BT):
    columns = np.flatnonzero(ends_T)
    row[:len(columns)] = columns
  values_BJ = best_of_n.step_values(log_ratio_BT, np.asarray(rollouts.mask_BT), ends_BJ)
  rewards_BJ = best_of_n.step_rewards(values_BJ)
  return {a: best_of_n.score(rewards_BJ, a) for a in ("min", "sum", "last")}


def _report(found, workdir):
  workdir.mkdir(parents=True, exist_ok=True)
  (workdir / "evaluate.json").write_text(json.dumps(found, indent=2))
  for name, value in found.items():
    print(f"  {name:12} " + (
        "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**value)
        if isinstance(value, dict) else f"{value:.3f}"))
  print(f"  {workdir / 'evaluate.json'}")


if __name__ == "__main__":
  cli.main(evaluate)
