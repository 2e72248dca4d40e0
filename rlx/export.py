"""Models of a run as Hugging Face directories.

  python -m rlx.export --config=configs/quickstart.py --workdir=/tmp/rlx/quickstart

Reads the workdir's newest checkpoint and writes <workdir>/hf/policy and, if there
is one, <workdir>/hf/prm. Adapters are merged into the matrices.
"""
import pathlib

import jax

from rlx import build
from rlx import cli
from rlx import train
from rlx.io import checkpoint
from rlx.io import hf
from rlx.models import lora


def export(config, workdir):
  """Returns {name: directory} of what was written.

  Raises:
    ValueError: there is no checkpoint.
  """
  workdir = pathlib.Path(workdir)
  run = build.build(config, splits=())
  run.pool.close()
  checkpoints = checkpoint.Checkpoints(workdir)
  if checkpoints.latest is None:
    raise ValueError(f"workdir={workdir}: no checkpoint to export.")
  state, _ = train.restore(run, checkpoints)
  checkpoints.close()
  written = {}
  for name, model_config in (("policy", run.model_config), ("prm", run.prm_config)):
    if getattr(state, name) is None: continue
    params = jax.device_get(lora.merge(state.full(name), model_config.lora_scale))
    written[name] = workdir / "hf" / name
    hf.save(written[name], model_config, params, run.tokenizer)
    print(f"{written[name]}  the {name} after {state.step} steps")
  return written


if __name__ == "__main__":
  cli.main(export)
