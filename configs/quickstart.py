"""PRIME on chains of digit operations: six CPU minutes from start to curves.

  python -m rlx.train --config=configs/quickstart.py --workdir=/tmp/rlx/quickstart
  python -m rlx.train --config=configs/quickstart.py:smoke --workdir=/tmp/rlx/smoke

The start is configs/models/chain, made by configs/sft_chain.py.
"""
from configs import base


def get_config(arg=""):
  c = base.get_config()
  c.steps = 100
  c.prompts.options = dict(size=20000, n_min=4, n_max=7, ops="Mm")
  c.prompts.per_step, c.prompts.max_tokens = 32, 16
  c.rollouts.per_prompt, c.rollouts.max_tokens = 8, 16
  c.rollouts.chunk = c.rollouts.bucket = 16
  c.rollouts.step_separator = ";"
  c.rollouts.keep.low, c.rollouts.keep.high = 0.1, 0.9
  c.rollouts.max_draws = 4
  c.learner.optimizer.lr = 1e-3
  c.prm.optimizer.lr = 1e-3
  c.eval.prompts, c.eval.batch = 512, 512
  return base.smoke(c) if arg == "smoke" else c
