"""A verifier that solves chains of operations itself and says whether a completion is right.

  rlx sft judge_chain:solver workdir=runs/judging/solver
  rlx sft judge_chain:start workdir=runs/judging/start
  rlx train judge_chain workdir=runs/judging/rl
  rlx evaluate runs/judging/rl eval.samples=8

The judge reads a question and a stored completion, such as 4M7m2M5=7;2;5#5?, and replies with its
own steps and a verdict, 7;2;5#y. The first command trains a decoder on noisy solutions, the second
fine-tunes it on the judgements of a few completions, and the third trains it by RL on verdicts
alone (papers/grpo). experiments/judging/verdicts.py makes runs/judging/completions.jsonl, which
these commands read, and compares verifiers before and after RL. All values are ours.
"""
from rlx.configs import base, quickstart

FILE = "runs/judging/completions.jsonl"
FEW = 1024  # Judgements of the start.


def get_config(arg=""):
  name, size = base.variant(arg, ("rl", "start", "solver"))
  c = quickstart.grpo()
  c.steps = 100
  c.prompts.source, c.prompts.dataset = f"judging:{FILE}", "judging"
  c.prompts.options = {}
  c.prompts.columns = dict(template="{question}{answer}?", reads="y=1 n=0", balanced=True)
  c.prompts.max_tokens, c.rollouts.max_tokens = 24, 12
  c.rollouts.chunk = c.rollouts.bucket = 12
  c.verifier.thoughts = ("? #",)  # The judge's own steps; the verdict stands behind them.
  c.rollouts.step_separator = None
  c.eval.answer, c.eval.every = "#([yn])", 0
  c.eval.prompts, c.eval.batch, c.eval.final_samples = 512, 512, 1
  c.checkpoint.every = 100
  c.model.path = "runs/judging/start/model"
  c.sft.fresh = dict(alphabet="0123456789Mm+-*=;#?yn", d_model=64, n_layers=2, n_heads=4,
                     n_kv_heads=2, head_dim=16, d_ff=192)
  c.sft.target = dict(name="experiments.judging.verdicts:judge", wrong_rate=0.35)
  if name == "start":
    c.model.path, c.prompts.limit = "runs/judging/solver/model", FEW
    c.sft.steps, c.sft.batch = 400, 64
    c.sft.optimizer = base.optimizer(2e-3)
  if name == "solver":
    c.model.path = None
    c.prompts.source = c.prompts.dataset = "chain"
    c.prompts.options, c.prompts.columns = dict(size=20000, n_min=4, n_max=5, ops="Mm"), {}
    c.sft.target = dict(name="chain.trace", wrong_rate=0.35)
    c.sft.steps, c.sft.batch = 800, 128
    c.sft.optimizer = base.optimizer(2e-3, warmup_steps=50, schedule="cosine", total_steps=800)
  if size: c.sft.steps, c.sft.batch = 2, 8
  return base.sized(c, size)
