"""Programs of a run whose completions have every length."""
import collections

import jax
import numpy as np
import pytest

from rlx.loops import rl
from rlx.stages import passes, sampling
from tests import tiny


@pytest.mark.parametrize("pack", [True, False])
def test_a_run_compiles_each_program_at_most_eight_times(tmp_path, monkeypatch, caplog,
                                                         pack):
  """In a run of 16 steps, counted from none in memory, the completions are cut to other lengths."""
  tiny.write(tmp_path)
  c = tiny.config(
      tmp_path, steps=16, learner__pack=pack, rollouts__max_tokens=64, rollouts__chunk=64,
      kl__coef=0.1,
      rollouts__filter_groups=dict(name="filter_groups.with_verdict"), checkpoint__every=100)
  jax.clear_caches()
  passes.compile_logps.cache_clear()
  run, draw, r = tiny.build_run(c), sampling.Sampler.__call__, np.random.default_rng(0)
  drawn = []

  def cut(self, *args, **named):
    rollouts = draw(self, *args, **named)
    if not self.counts: return rollouts
    # Of the columns after EOS nothing but their number matters.
    len_B = 64 * 2.0**-r.uniform(0, 5) * r.uniform(0.2, 1, len(rollouts.tokens_BS))
    rollouts = rollouts.replace(completion_len_B=np.ceil(len_B).astype(np.int32))
    drawn.append(rollouts.completion_len_B.max())
    return rollouts
  monkeypatch.setattr(sampling.Sampler, "__call__", cut)
  with tiny.building(run), jax.log_compiles(): rl.train(c, tmp_path / "run")
  compiled = collections.Counter(
      m.split()[1] for m in caplog.messages if m.startswith("Compiling jit("))
  assert len(set(drawn)) > 10
  # The updates of policy and PRM are both called "step".
  assert 3 <= compiled["jit(logps_of)"] <= 8 and 6 <= compiled["jit(step)"] <= 16, compiled
