"""PPO's clip of 0.2 against clips of 0.1 and 0.3 and against no clip, with rare right completions.

Every batch is trained on for ten epochs. It has four completions for each prompt, so that one
batch gives little information. The accuracy is measured. The paper's penalties on the KL are
left out.
"""
from configs.papers import ppo
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy after 30 steps with a clip of 0.2 minus that of the rival"
MARGIN, RATE = 0.05, 100.0
FIRST = ("opposite",
         "both arms ended with an accuracy near 1; the measure of a second version took the best "
         "of the rivals")
RIVALS = {"0.1": (0.1, 0.1), "0.3": (0.3, 0.3), "no clip": (1.0, 1e6)}  # Ratios are above 0.


def arms():
  problem = sparse.rare()
  c = tabular.changed(ppo.get_config(), learner__epochs=10, rollouts__per_prompt=4)
  rivals = {name: tabular.changed(c, learner__loss__clip_low=low, learner__loss__clip_high=high)
            for name, (low, high) in RIVALS.items()}
  return problem.arms({"0.2": c} | rivals, "accuracy", steps=30)
