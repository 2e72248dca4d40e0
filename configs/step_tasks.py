"""Outcome-only RLOO on tasks whose steps have an exact chance of success.

  rlx sft sft_step_tasks:lookup workdir=runs/clean/lookup
  rlx sft sft_step_tasks:lookup-noisy workdir=runs/starts/lookup
  rlx train step_tasks:lookup workdir=DIR

The argument is a name of TASKS, also with -smoke. Commands run in the root of the repository. Few
completions of the initial models are right, and every step can be checked, so that dense rewards
have room to help. The grids of experiments/prime/prime_room.py and prime_gain.py compare
rewards on these tasks.

The initial models of the first three tasks make random mistakes, which greedy decoding avoids.
Those of the confused tasks make systematic ones: in 40% of the cases the same wrong value in 75% of
the steps, so that greedy decoding is wrong there too. Their completions are right if all steps are.
"""
from rlx.configs import base, quickstart

_LOOKUP = dict(options=dict(n_min=6, n_max=8), prompt=31, completion=18)
_CONFUSED = dict(columns=dict(strict=True), wrong=0.75, confused=0.4)
# Data set of experiments/prime/step_tasks.py, its options and columns, tokens of a prompt and of a
# completion; of the initial model: share of wrong steps, share of cases with systematic mistakes.
TASKS = dict(
    chain=dict(options=dict(n_min=11, n_max=13, ops="Mm"), prompt=28, completion=28, wrong=0.6),
    lookup=_LOOKUP | dict(wrong=0.5),
    sums=dict(source="gym:chain_sum", options=dict(config=dict(chain_sum=dict(
        min_terms=5, max_terms=6, min_digits=1, max_digits=1))), prompt=14, completion=26,
        wrong=0.5),
    confused_chain=_CONFUSED | dict(
        dataset="chain", options=dict(n_min=8, n_max=10, ops="Mm"), prompt=22, completion=22),
    confused_lookup=_CONFUSED | _LOOKUP | dict(dataset="lookup"),
    confused_carry=_CONFUSED | dict(
        dataset="carry", options=dict(n_min=5, n_max=7), prompt=15, completion=25),
    confused_reverse=_CONFUSED | dict(
        dataset="reverse", source="gym:spell_backward", options=dict(config=dict(
            spell_backward=dict(min_word_len=6, max_word_len=8))), prompt=9, completion=18))


def get_config(arg=""):
  name, size = base.variant(arg, tuple(TASKS))
  task = TASKS[name]
  c = quickstart.grpo()
  c.steps = 60
  c.model.path = f"runs/starts/{name}/model"
  c.prompts.source = task.get("source", "chain")
  c.prompts.dataset = f"experiments.prime.step_tasks:{task.get('dataset', name)}"
  c.prompts.columns = dict(task.get("columns", {}))
  c.prompts.options = dict(task["options"], size=20000)
  c.prompts.max_tokens = task["prompt"]
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = task["completion"]
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=True)
  c.prm.optimizer.lr = 2e-5
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.final_samples = 0, 256, 256, 2
  c.eval.answer = "#(.*)"
  c.checkpoint.every = 60
  return base.sized(c, size)
