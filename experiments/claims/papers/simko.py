"""One completion in 20 of 512 is right, and the policies start with uneven probabilities. GRPO
is compared with SimKO, which adds the shared gradients and the larger penalty on the most likely
token, by pass@8 after equally many steps.
"""
import jax

from configs.papers import simko
from experiments.claims.environments import tabular, verdicts

MEASURE = "pass@8 after 200 steps with SimKO minus that with alpha = 0 and penalty = 1"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=8, vocab=8, length=3)


def environment(key):
  keys = jax.random.split(key)
  right_PL = verdicts.drawn(keys[0], TREE, 0.05)
  def measure(logits_PNV):
    pass_P = TREE.expected_P(logits_PNV, right_PL)
    return dict(pass_at_8=(1 - (1 - pass_P) ** 8).mean())
  return tabular.Environment(verdicts.verifier(TREE, right_PL), measure,
                             start=TREE.start(keys[1], 2.0))


def arms():
  c = simko.get_config()
  grpo = tabular.changed(c, learner__loss__alpha=0.0, learner__loss__penalty=1.0)
  return tabular.arms({"SimKO": c, "GRPO": grpo}, TREE, environment, "pass_at_8", steps=200)
