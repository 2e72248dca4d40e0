"""Process Reinforcement through Implicit Rewards (arXiv:2502.01456). PRIME trains an implicit
PRM online on verdicts alone. The log-ratio of the PRM to a reference model is the reward of
each token, and is added to the outcome reward.

  rlx train papers/prime workdir=DIR model.path=MODEL prompts.source=jsonl:FILE
  rlx train papers/prime:smoke workdir=DIR   # CPU seconds, on the quickstart's task
  :recipe is the other published preset, the PRIME recipe of verl.
  base=NAME applies the method to another model and task, with the base's sizes and rates.

Letters beside the values: S run_prime_main.sh, Y ppo_trainer.yaml and C the code of
PRIME-RL/PRIME at 18ad596f; P stated in the paper; R prime_trainer.yaml and
run_prime_qwen.sh of verl-project/verl-recipe at 48ea0a79. "ours" is our choice.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    # Section 4.3 and table 1; Eurus-2-7B-SFT, 8 A800.
    "dense rewards reach the outcome-only training reward of 240 steps in 40% of them",
    "average of seven benchmarks 28.8 -> 43.9 in 592 steps",
)


def get_config(arg=""):
  name, size = base.variant(arg, ("paper", "recipe"))
  is_published = base.chosen() is None
  c = published() if is_published else base.start()
  c.rollouts.filter_groups = dict(
      name="filter_groups.accuracy_band", low=0.2, high=0.8,   # S
      drop_truncated=False)                    # Y
  c.rollouts.oversample = 1.0                  # Y
  c.rewards.outcome.coef = c.rewards.process.coef = 1.0
  # S has rm_coef=5 and verifier.reward_coef=5; C compute_rloo_returns ignores both.
  c.rewards.process.granularity = "token"      # S
  c.rewards.process.include_last = True        # C compute_implicit_reward
  c.rewards.process.norm = "max_return"        # Y prime_norm: batch_norm
  c.advantages.outcome = dict(name="group.rloo", gamma=1.0)                 # S
  c.advantages.process = dict(name="process.rloo", gamma=1.0, loo="code")   # S, C
  c.advantages.whiten = True                   # C
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2,
                        dual_clip=None)        # Y; C has no dual clip
  # C update_policy has one row per micro-batch and GPU, so its loss is the mean of row means.
  c.learner.aggregation = "seq-mean-token-mean"
  c.learner.entropy_coef = 0.0                 # S
  c.learner.epochs = 1                         # Y
  c.learner.minibatches = 4                    # S: 1024 rows in mini-batches of 256
  c.kl.coef = 0.0                              # S
  c.prm.reference = "frozen"                   # Y ref_type: freeze
  c.prm.order = "single"                       # S update: after
  c.prm.loss = dict(name="prm.ce")             # Y
  c.prm.minibatches = 4                        # Y: 256 rows
  if name == "recipe": recipe(c)
  if is_published: return _smoke(c) if size == "smoke" else c
  c = base.sized(c, size)
  if size: c.learner.minibatches = c.prm.minibatches = 2
  return c


def published():
  """Model, data, sizes and rates of the published run."""
  c = base.get_config()
  c.steps = 592                                # P 4.1: one epoch of 151.5K kept prompts
  c.model.path = "hf:PRIME-RL/Eurus-2-7B-SFT"  # S: policy, PRM and reference
  c.model.dtype = "bfloat16"                   # C fsdp_workers: bf16 compute, fp32 master
  c.model.remat = "full"
  c.prompts.source, c.prompts.dataset = "jsonl:eurus-2-rl-{split}.jsonl", "jsonl"
  c.prompts.template = dict(name="boxed")
  c.prompts.per_step = 256                     # S data.train_batch_size
  c.prompts.max_tokens = 1024                  # S
  c.rollouts.per_prompt = 4                    # S
  c.rollouts.max_tokens = 3072                 # S
  c.rollouts.chunk = c.rollouts.bucket = 256   # ours
  c.rollouts.decoding = base.decoding(1.0)     # Y
  c.rollouts.max_draws = 64                    # ours: the code has no cap
  c.rollouts.fill = "error"                    # C: never trains on groups that failed
  c.verifier.workers = 16                      # ours
  c.learner.microbatches = 32                  # S: 8 rows
  c.learner.optimizer = base.optimizer(
      5e-7,                                    # S, constant without warm-up (Y)
      weight_decay=0.01, decay="all",          # C: the code's default, which no key sets
      max_grad_norm=1.0)                       # Y
  c.prm.beta = 0.05                            # Y, S: of the loss and of the rewards
  c.prm.microbatches = 32                      # S: 8 rows
  c.prm.optimizer = base.optimizer(1e-6, weight_decay=0.0,   # S, Y
                                   max_grad_norm=10.0)       # S
  c.eval.every = c.checkpoint.every = 16       # S
  return c


def recipe(c):
  """Sets the values in which verl's recipe (R) differs from the paper's preset."""
  c.prompts.per_step = 64
  c.rollouts.oversample = 4.0                  # 256 prompts sampled, 64 kept
  c.rollouts.max_draws, c.rollouts.fill = 1, "failed"
  c.rollouts.filter_groups.drop_truncated = True
  c.rewards.outcome.coef = c.rewards.process.coef = 5.0      # Whitening cancels it.
  c.rewards.process.include_last = False       # A slice in R drops the last token.
  c.prm.order = "double"                       # update: before
  c.learner.loss.dual_clip = 3.0
  c.learner.entropy_coef = 0.001
  c.learner.minibatches, c.learner.microbatches = 1, 32
  c.prm.microbatches = 16                      # ours: one group per micro-batch
  # R sets kl_coef=0.001 with use_kl_in_reward, which never reaches its advantages, so the KL
  # coefficient stays 0.


def _smoke(c):
  """The same settings on the quickstart's model and task, in seconds."""
  small = quickstart.get_config("smoke")
  c.model, c.prompts = small.model, small.prompts
  c = base.smoke(c)
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = 18
  c.rollouts.oversample = min(c.rollouts.oversample, 2.0)
  c.verifier.workers = 0
  c.learner.minibatches, c.learner.microbatches = 2, 2
  c.prm.minibatches, c.prm.microbatches = 2, 2
  return c
