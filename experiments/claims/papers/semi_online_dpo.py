"""A tenth of 512 completions is right, and the policies start with uneven probabilities. DPO is
trained on pairs from a sampler that is synced every 10 of 200 steps, or never (offline). Every
pair is freshly sampled, so that offline means the distribution of the initial policy and not a
small data set. The claim is that s = 10 learns far more than offline DPO, by the accuracy at the
end.
"""
from configs.papers import semi_online_dpo
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy after 200 steps of DPO with s = 10 minus that of offline DPO"
MARGIN, RATE, STEPS = 0.05, 50.0, 200
FIRST = ("confirmed", None)


def arms():
  tree, c = tabular.Tree(prompts=8, vocab=8, length=3), semi_online_dpo.get_config()
  return tabular.arms({"s = 10": c, "offline": tabular.changed(c, rollouts__sync_every=STEPS)},
                      tree, verdicts.environment(tree, 0.1, spread=1.0), "accuracy", steps=STEPS)
