"""Eight methods, of which one answers every question right and the others wrong, each
question in its own way, one of 20 wrong answers: a vote on a question can go wrong, but
what is learned holds for the next one. The right method starts at about 0.27."""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import ttrl
from experiments.worlds import tabular
from rlx.evals import pass_at_k

CLAIM = 1
MEASURE = "accuracy learned from votes of 8 less that of the start's votes of 8"
REVISED = "not seen twice, while a vote was hardly better than one completion"
GROUP, ASKED = 8, 50


def effects(seeds):
  world = tabular.Tree(prompts=32, vocab=8, length=1)
  start = lambda key: world.start(key, 0.5) + 1.0 * (jnp.arange(8) == 0)

  def judge(key, logits_PNV, batch):
    del logits_PNV
    answer_PV = jax.random.randint(key, (world.prompts, world.vocab), 1, 21)
    answer_PV = answer_PV.at[:, 0].set(0)
    answer_B = answer_PV[batch.prompt_B, batch.tokens_BT[:, 0]]
    return dict(outcome_B=1.0 * (answer_B == 0), answer_B=answer_B)

  def vote(seed):
    """Accuracy of the majority answers of the start."""
    key, start_key = jax.random.key(seed), jax.random.split(jax.random.key(seed))[0]
    def ask(key):
      batch = world.sample(key, start(start_key), GROUP)
      return judge(jax.random.fold_in(key, 1), None, batch)
    found = jax.device_get(jax.jit(jax.vmap(ask))(jax.random.split(key, ASKED)))
    return np.mean([pass_at_k.majority(answer_G.tolist()) == 0
                    for answer_G in found["answer_B"].reshape(-1, GROUP)])

  c = tabular.changed(ttrl.get_config(), rollouts__per_prompt=GROUP)
  found, _ = tabular.train(
      c, world, judge, lambda x: dict(accuracy=jax.nn.softmax(x)[:, 0, 0].mean()),
      seeds=seeds, steps=200, lr=16.0, start=start)
  return found["accuracy"][:, -1] - [vote(seed) for seed in seeds]
