"""Advantages from the G completions of a prompt.

A completion that is not valid (unknown verdict, empty) is nobody's rival and
gets 0. A prompt with fewer than two valid completions gets 0, and so does,
exactly, one whose completions tie.
"""
import jax.numpy as jnp

from rlx.core import axes
from rlx.core import masked


def rloo(rewards_PG, valid_PG):
  """REINFORCE leave-one-out: each completion against the mean of the others.

    A_i = r_i - 1/(n-1) sum_{j != i} r_j     n = valid completions of a prompt

  Source: Ahmadian et al. 2024, arXiv:2402.14740. Differs from the
  paper: completions with valid=False (verifier failed, dropped as truncated)
  are nobody's baseline and get advantage 0, as do groups with n < 2.

  Args:
    rewards_PG: outcome rewards; anything, NaN too, where valid_PG is False.
    valid_PG: bool.
  Returns:
    advantages_PG in reward units; sum to 0 over a prompt's valid completions.
  """
  axes.dims(rewards_PG=rewards_PG, valid_PG=valid_PG)
  n_P1 = jnp.sum(valid_PG, axis=1, keepdims=True)
  return _against(rewards_PG, valid_PG) / jnp.maximum(n_P1 - 1, 1)


def mean_baseline(rewards_PG, valid_PG):
  """Dr. GRPO: each completion against the mean of its group, itself included.

    A_i = r_i - 1/n sum_j r_j

  Source: Liu et al. 2025, arXiv:2503.20783. Differs from the paper: n
  counts valid completions only.

  Args, Returns: as `rloo`.
  """
  axes.dims(rewards_PG=rewards_PG, valid_PG=valid_PG)
  n_P1 = jnp.sum(valid_PG, axis=1, keepdims=True)
  return _against(rewards_PG, valid_PG) / jnp.maximum(n_P1, 1)


def grpo(rewards_PG, valid_PG, *, eps=1e-6):
  """GRPO: the group's z-scores.

    A_i = (r_i - mean_j r_j) / (std_j r_j + eps)

  Source: Shao et al. 2024, arXiv:2402.03300, section 4.1.2. Differs from the
  paper: it gives neither the convention of std nor eps; std is unbiased and eps
  1e-6 as in verl (TRL has 1e-4). Statistics over valid completions only.

  Args, Returns: as `rloo`; eps in reward units.
  """
  axes.dims(rewards_PG=rewards_PG, valid_PG=valid_PG)
  return mean_baseline(rewards_PG, valid_PG) / (_std(rewards_PG, valid_PG) + eps)


def opo(rewards_PG, valid_PG, lengths_PG):
  """OPO: the baseline of least variance, a length-weighted mean.

    A_i = r_i - sum_j L_j r_j / sum_j L_j

  Source: Hao et al. 2025, arXiv:2505.23585. Differs from the paper:
  the sums are over valid completions only.

  Args:
    lengths_PG: tokens of each completion; the rest as `rloo`.
  """
  axes.dims(rewards_PG=rewards_PG, valid_PG=valid_PG, lengths_PG=lengths_PG)
  weight_PG = masked.keep(lengths_PG, valid_PG)
  total_P1 = jnp.sum(weight_PG, axis=1, keepdims=True)
  return (_against(rewards_PG, valid_PG, weight_PG)
          / jnp.maximum(total_P1, 1).astype(rewards_PG.dtype))


def gpg(rewards_PG, valid_PG):
  """GPG: centred rewards, scaled up by the share of the batch that carries them.

    A_i = N / |{j : r_j != 0}| * (r_i - mean of its group)

  Source: Chu et al. 2025, arXiv:2504.02546, in the form of verl: the
  count is of non-zero rewards of the batch, the paper's of groups with
  signal. Differs from the paper in that, and in counting valid ones only.

  Args, Returns: as `rloo`.
  """
  axes.dims(rewards_PG=rewards_PG, valid_PG=valid_PG)
  count = jnp.sum(masked.keep(rewards_PG, valid_PG) != 0)
  scale = jnp.sum(valid_PG) / jnp.maximum(count, 1).astype(rewards_PG.dtype)
  return scale * mean_baseline(rewards_PG, valid_PG)


def pass_at_k(rewards_PG, valid_PG, *, eps=1e-6, use_std=True):
  """The gradient of the group's best reward: only the best completion learns.

    A_best = (r_best - r_second) / (std_j r_j + eps), 0 for the others

  Not the advantage of Pass@k Training, which is `passk`.

  Source: Tang et al. 2025, arXiv:2503.19595, in the form of verl's grpo_passk.
  Differs from the paper: the division by std. A tie for the best gives 0.

  Args:
    eps: as `grpo`.
    use_std: False leaves the gap in reward units.
    Otherwise, and Returns: as `grpo`.
  """
  axes.dims(rewards_PG=rewards_PG, valid_PG=valid_PG)
  low_PG = jnp.where(valid_PG, rewards_PG, -jnp.inf)
  best_P1 = jnp.max(low_PG, axis=1, keepdims=True)
  is_best_PG = valid_PG & (low_PG == best_P1)
  others_PG = jnp.where(is_best_PG, -jnp.inf, low_PG)
  second_P1 = jnp.max(others_PG, axis=1, keepdims=True)
  # One best and one rival, or no signal. Guarded: inf - inf has a NaN gradient.
  has_P1 = (jnp.sum(is_best_PG, axis=1, keepdims=True) == 1) & (second_P1 > -jnp.inf)
  gap_P1 = jnp.where(has_P1, best_P1, 0) - jnp.where(has_P1, second_P1, 0)
  if use_std: gap_P1 = gap_P1 / (_std(rewards_PG, valid_PG) + eps)
  return masked.keep(gap_P1, is_best_PG & has_P1)


def passk(rewards_PG, valid_PG, *, k=4):
  """Pass@k Training: GRPO on the best of k, averaged over all k of the n completions.

    A = (1 - rho) / sigma                                   reward > 0
    A = (1 - rho - C(n-c-1, k-1) / C(n-1, k-1)) / sigma     otherwise
    rho = 1 - C(n-c, k) / C(n, k)    sigma = sqrt(rho (1 - rho))

  with c completions of reward > 0 among the n valid ones of a prompt. A prompt with
  c > n - k, which solves any k draws, gives 0; k = 1 is GRPO with the biased std.
  Not the rule for the best completion alone, which is `pass_at_k`.

  Source: Chen et al. 2025, arXiv:2508.10751, analytical derivation. Differs from
  the paper: n counts valid completions only.

  Args:
    k: draws of which one has to succeed, less than G.
    Otherwise, and Returns: as `rloo`; without unit.
  Raises:
    ValueError: no k in [1, G).
  """
  group = axes.dims(rewards_PG=rewards_PG, valid_PG=valid_PG)["G"]
  if not 1 <= k < group:
    raise ValueError(f"k={k!r}: at least 1 and less than the group's {group}.")
  good_PG = valid_PG & (rewards_PG > 0)
  n_P1 = jnp.sum(valid_PG, axis=1, keepdims=True)
  c_P1 = jnp.sum(good_PG, axis=1, keepdims=True)
  def misses(n_P1, k):
    """C(n-c, k) / C(n, k): the share of k draws without a success."""
    left_Pk = n_P1 - jnp.arange(k)[None, :]
    share_Pk = jnp.maximum(left_Pk - c_P1, 0) / jnp.maximum(left_Pk, 1)
    return jnp.prod(share_Pk, axis=1, keepdims=True).astype(rewards_PG.dtype)
  miss_P1 = misses(n_P1, k)
  sigma_P1 = masked.root(miss_P1 * (1 - miss_P1))
  bad_P1 = miss_P1 - misses(n_P1 - 1, k - 1)
  return masked.keep(jnp.where(good_PG, miss_P1, bad_P1)
                     / jnp.where(sigma_P1 > 0, sigma_P1, 1), valid_PG & (sigma_P1 > 0))


def variance_weighted(rewards_PG, scores_PG, valid_PG, *, low=0.4, high=3.0, k=6.0,
                      eps=1e-6):
  """HERO: GRPO, with more weight on prompts whose completions score differently.

    A_i = w (r_i - mean_j r_j) / (std_j r_j + eps)
    w = low + (high - low) sigmoid(k (s - mean of s over the batch)),  s = std_j score_j

  The weight is put on the advantage: on the reward, the division by std would
  take it out again.

  Source: Tao et al. 2025, arXiv:2510.07242, with rewards.shaping.stratified.
  Differs from the paper: it compares s with a running mean. The defaults are not
  checked against it: re-implementations have these or 0.5, 2 and 5.

  Args:
    scores_PG: of a second verifier; anything where valid_PG is False.
    low, high: least and largest weight.
    k: steepness, per unit of the scores.
    Otherwise, and Returns: as `grpo`.
  """
  axes.dims(rewards_PG=rewards_PG, scores_PG=scores_PG, valid_PG=valid_PG)
  spread_P1 = _std(scores_PG, valid_PG)
  has_P1 = jnp.sum(valid_PG, axis=1, keepdims=True) > 1
  above_P1 = spread_P1 - masked.mean(spread_P1, has_P1)
  weight_P1 = low + (high - low) / (1 + jnp.exp(-k * above_P1))
  return weight_P1 * grpo(rewards_PG, valid_PG, eps=eps)


def _against(rewards_PG, valid_PG, weight_PG=None):
  """sum_j w_j (r_i - r_j) over valid j: exactly 0 for ties, also under jit."""
  rewards_PG = masked.keep(rewards_PG, valid_PG)
  diff_PGG = rewards_PG[:, :, None] - rewards_PG[:, None, :]
  if weight_PG is not None:
    diff_PGG = diff_PGG * weight_PG[:, None, :].astype(diff_PGG.dtype)
  return masked.keep(jnp.sum(diff_PGG, axis=2, where=valid_PG[:, None, :]),
                     valid_PG)


def _std(rewards_PG, valid_PG):
  """Unbiased std of each group, [P, 1]; exactly 0 where it ties."""
  n_P1 = jnp.sum(valid_PG, axis=1, keepdims=True)
  centred_PG = mean_baseline(rewards_PG, valid_PG)
  var_P1 = (jnp.sum(centred_PG**2, axis=1, keepdims=True)
            / jnp.maximum(n_P1 - 1, 1))
  return masked.root(var_P1)
