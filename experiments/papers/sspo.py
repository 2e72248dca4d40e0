"""Completions of three sentences of three tokens: how many tokens of the next batch are
clipped after one update, when ratios are of sentences or of completions, in the same
range: between ranges as far apart as 0.02 and GSPO's 3e-4 the range would decide. What
training makes of it, "as stable", and a range that widens with entropy are left out."""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import sspo
from experiments.worlds import tabular
from experiments.worlds import verdicts
from rlx import methods
from rlx.advantages import combine
from rlx.advantages import group
from rlx.core import records

CLAIM = 0
MEASURE = "share of tokens without a gradient under GSPO less that under SSPO"
GROUP = 8


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=2, length=9)
  judge = verdicts.judge(world, verdicts.drawn(world, 0.3))
  start = lambda key: world.start(key, 1.0)
  c = tabular.changed(sspo.get_config(), rollouts__per_prompt=GROUP)
  of_sentences = methods.of(c).policy
  of_completions = methods.of(
      tabular.changed(c, learner__loss__name="sequence.gspo")).policy

  def judged(key, logits_PNV, batch):
    ends_T = jnp.arange(world.length) % 3 == 2
    return dict(judge(key, logits_PNV, batch),
                step_ends_BT=jnp.broadcast_to(ends_T, batch.mask_BT.shape))

  def clipped(loss_of, seed, new_PNV):
    old_PNV = start(jax.random.split(jax.random.key(seed))[0])  # As tabular.train does.
    batch = world.sample(jax.random.key(seed), old_PNV, GROUP)
    scored = records.Scored(mask_BT=batch.mask_BT, group=GROUP,
                            old_logps_BT=tabular.logps(old_PNV, batch)[0],
                            **judged(jax.random.key(0), None, batch))
    scored = scored.replace(advantages_BT=combine.spread(
        group.grpo(scored.outcome_PG, scored.valid_PG), scored.mask_BT))
    slope_BT = jax.grad(lambda x: loss_of(scored.replace(logps_BT=x)).sum())(
        tabular.logps(new_PNV, batch)[0])
    counts_BT = scored.advantages_BT != 0
    return jnp.sum((slope_BT == 0) & counts_BT) / jnp.sum(counts_BT)

  _, new_IPNV = tabular.train(c, world, judged, lambda x: dict(zero=0 * x.sum()),
                              seeds=seeds, steps=1, lr=50.0, start=start)
  share = lambda loss_of: jax.jit(jax.vmap(lambda i, x: clipped(loss_of, i, x)))(
      jnp.asarray(seeds), new_IPNV)
  return np.asarray(share(of_completions) - share(of_sentences))
