"""The logits of the sampler are the policy's plus noise with standard deviation 1, drawn anew at
every step. A tenth of the completions of every length is right, and each batch is used for four
passes. Masked weights of whole completions are compared with truncated weights of tokens, by the
mean accuracy in the second half of training.
"""
from configs.papers import seq_mis
from experiments.claims.environments import sparse, tabular

MEASURE = ("accuracy in the second half of training with weights of completions minus that with "
           "weights of tokens")
MARGIN, RATE = 0.05, 30.0
FIRST = ("not seen", None)
TIS = dict(name="rollout_correction.tis", cap=2.0, level="token")


def arms():
  problem, c = sparse.endings(), tabular.changed(seq_mis.get_config(), learner__epochs=4)
  by_token = tabular.changed(c, learner__rollout_correction=TIS)
  return problem.arms({"completions": c, "tokens": by_token},
                      sparse.late, steps=60, sampler=sparse.noisy)
