import numpy as np

from rlx.core import prefixes
from tests import whole

prefixes = whole.compile_module(prefixes)

nan = np.nan


def test_values_by_counting():
  rng = np.random.default_rng(0)
  prompts, group, width = 3, 5, 4
  tokens = rng.integers(0, 2, (prompts * group, width))
  lengths = rng.integers(0, width + 1, prompts * group)
  mask = np.arange(width) < lengths[:, None]
  outcome = rng.uniform(size=(prompts, group))
  valid = rng.uniform(size=(prompts, group)) < .8
  want = np.zeros(mask.shape)
  for i, t in zip(*np.nonzero(mask)):
    p = i // group
    if not valid.reshape(-1)[i]: continue
    shared = [outcome.reshape(-1)[j] for j in range(p * group, (p + 1) * group)
              if valid.reshape(-1)[j] and lengths[j] > t
              and (tokens[j, :t + 1] == tokens[i, :t + 1]).all()]
    want[i, t] = np.mean(shared)
  poisoned = np.float32(np.where(valid, outcome, nan))
  got = prefixes.values(tokens, mask, poisoned, valid)
  np.testing.assert_allclose(got, want, rtol=1e-6)
