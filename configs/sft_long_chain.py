"""Initial models for configs/long_chain.py: decoders that get half of the steps right.

  rlx sft sft_long_chain workdir=runs/starts/same

The arguments :small and :large select other sizes, for PRMs that differ from the policy. Each
can be followed by -smoke.
"""
from rlx.configs import base, long_chain, sft_chain

SIZES = dict(same={}, small=dict(d_model=48, n_layers=1, n_heads=2, n_kv_heads=1, d_ff=144),
             large=dict(n_layers=4))


def get_config(arg=""):
  name, size = base.variant(arg, tuple(SIZES))
  c = sft_chain.get_config(size)
  task = long_chain.get_config()
  c.prompts.options, c.prompts.max_tokens = task.prompts.options, task.prompts.max_tokens
  c.rollouts = task.rollouts
  c.sft.fresh.update(SIZES[name])
  c.sft.target.wrong_rate = 0.5
  return c
