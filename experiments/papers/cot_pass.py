"""Two steps of reasoning of 5 choices each, then one of 5 answers: after the right
steps the policy knows it, after others it guesses, and one guess of five is right.
GRPO from verdicts on the answer alone; exact pass@k of it and of its start."""
import jax
import jax.numpy as jnp

from configs.papers import grpo
from experiments.worlds import tabular
from experiments.worlds import verdicts

PAPER = dict(
    title="Reinforcement Learning with Verifiable Rewards Implicitly Incentivizes "
          "Correct Reasoning in Base LLMs",
    arxiv="2506.14245",
    claims=("what RLVR gains over the base at large k is hidden in pass@k and shows in "
            "CoT-pass@k",),
    confidence="medium")
CLAIM = 0
MEASURE = "gain over the start at k = 16: in CoT-pass@k less in pass@k"
MARGIN, RATE = 0.05, 40.0
FIRST = ("confirmed", None)
ILLUSTRATION = ("One guess of five is right, so that pass@16 is near 1 at the start and has no "
                "room for a gain.")
WORLD = tabular.Tree(prompts=16, vocab=5, length=3)


def environment(key):
  keys = jax.random.split(key)
  right_PT = jax.random.randint(keys[0], (16, 3), 0, 5)
  # The node after the right steps: 1 + 5 nodes are above.
  knows_P = 6 + right_PT[:, 0] * 5 + right_PT[:, 1]
  start_PNV = WORLD.start().at[jnp.arange(16), knows_P, right_PT[:, 2]].set(
      tabular.around(keys[1], jnp.full(16, 4.0)))
  found_PLT = jnp.asarray(WORLD.leaves[0])[None] == right_PT[:, None]
  right_PL, sound_PL = found_PLT[..., 2], jnp.all(found_PLT, axis=2)

  def measure(logits_PNV):
    pass_at_16 = lambda x_PL: (1 - (1 - WORLD.expected_P(logits_PNV, x_PL)) ** 16).mean()
    return dict(verdicts.accuracy(WORLD, right_PL)(logits_PNV),
                hidden=pass_at_16(sound_PL) - pass_at_16(right_PL))

  return tabular.Environment(verdicts.judge(WORLD, right_PL), measure, start=start_PNV)


def arms():
  def gain(seeds, rates):
    found, _ = tabular.train(grpo.get_config(), WORLD, environment, seeds=seeds, lr=rates,
                             steps=100)
    return found["hidden"][:, -1] - found["hidden"][:, 0], found["accuracy"][:, -1]
  return {"GRPO": gain}
