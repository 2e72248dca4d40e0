"""Supervised fine-tuning on worked examples, which gives a policy to start RL from.

  rlx sft sft_chain workdir=/tmp/rlx/sft_chain

The result is an HF directory, <workdir>/model, which `model.path` reads. The same command with the
same workdir resumes the run.
"""
import dataclasses
import os
from typing import Any

from rlx.build import keys, sft as build_sft
from rlx.core.options import key
from rlx.io import hf
from rlx.loops import session


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(session.Options):
  """The config values of this loop."""
  steps: int = key("sft.steps")


def train(config: keys.Config, workdir: str | os.PathLike) -> dict[str, Any] | None:
  """Trains to config.sft.steps steps on (prompt, target) pairs and exports the model to HF.

  Returns:
    the summary, which is also written to <workdir>/summary.json; None if a signal stopped the
    run before the last step. The same call then resumes it.
  """
  with session.Session(session.read_session_options(config, Options), workdir) as s:
    if (summary := s.find_summary(config)) is not None: return summary
    run = build_sft.build_sft(config)
    s.callback(run.close)
    initial = run.init()
    s.record(config, initial)
    s.restore(lambda: initial)
    for step in s.steps():
      policy, policy_opt, metrics, _ = run.update(
          s.state.policy, s.state.policy_opt, run.batch(step))
      s.state = dataclasses.replace(s.state, step=step + 1, policy=policy, policy_opt=policy_opt)
      s.clock.lap("policy", policy)
      s.write({f"sft/{name}": value for name, value in metrics.items()})
    if not s.is_done: return None
    hf.save(s.workdir / "model", run.model, s.state.policy, run.tokenizer, hf=run.hf)
    print(f"{s.workdir / 'model'}  the model; set model.path to it")
    return s.finish()
