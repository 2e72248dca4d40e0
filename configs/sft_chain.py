"""The initial model of the quickstart: a decoder that solves some chains of operations.

  rlx sft sft_chain workdir=/tmp/rlx/sft_chain

  rlx sft sft_chain:teacher workdir=/tmp/rlx/sft_teacher

The output of the first command is configs/models/chain. The model learns from traces that have 4 to
7 operations, one fewer than the problems of the quickstart, and in which 35% of the steps are
wrong. It therefore solves some but not most problems.

That of the second is configs/models/chain_teacher: a narrower, deeper decoder that learned from
right traces of the problems of the quickstart (teacher.path).
"""
from rlx.configs import base, quickstart


def get_config(arg=""):
  c = quickstart.get_config()
  c.model.path = None
  c.prompts.options.update(n_min=4, n_max=7)
  c.sft.fresh = dict(alphabet="0123456789Mm+-*=;#", d_model=96, n_layers=2,
                     n_heads=4, n_kv_heads=2, head_dim=24, d_ff=288)
  c.sft.target = dict(name="chain.trace", wrong_rate=0.35)
  c.sft.steps, c.sft.batch = 1000, 128
  c.sft.optimizer = base.optimizer(2e-3, warmup_steps=50, schedule="cosine", total_steps=1000)
  if arg == "teacher":
    c.prompts.options.update(n_min=4, n_max=8)
    c.sft.fresh.update(d_model=64, n_layers=3, d_ff=192, head_dim=16)
    c.sft.target.wrong_rate = 0.0
  if arg == "smoke": c.sft.steps, c.sft.batch = 2, 8
  return c
