"""Rare right completions of 512, policies that start unevenly: GRPO, and the same with
shared gradients and the penalty of the most likely token, after equal steps."""
from configs.papers import simko
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "pass@8 after 200 steps with SimKO less that with alpha = 0 and penalty = 1"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=3)
  right_PL = verdicts.drawn(world, 0.05)

  def measure(logits_PNV):
    pass_P = world.expected_P(logits_PNV, right_PL)
    return dict(pass_at_8=(1 - (1 - pass_P) ** 8).mean())

  def pass_at_8(**changes):
    c = tabular.changed(simko.get_config(), rollouts__per_prompt=8, **changes)
    found, _ = tabular.train(c, world, verdicts.judge(world, right_PL), measure, seeds=seeds, steps=200, lr=10.0,
                             start=lambda key: world.start(key, 2.0))
    return found["pass_at_8"][:, -1]

  return pass_at_8() - pass_at_8(learner__loss__alpha=0.0, learner__loss__penalty=1.0)
