"""PRIME's ablations on a language model, of configs/long_chain.py or of --config=FILE.

  rlx grid experiments/prime/ablations.py:rates
  rlx grid experiments/prime/ablations.py
"""
from rlx.grids import grid as grids

STARTS = "runs/starts"  # RESULTS.md has the commands that make them.
TASK = [{"config": "configs/long_chain.py"}]
SEEDS = [{"seed": s} for s in range(5)]
VERDICT = dict(outcome=dict(name="outcome.verdict", coef=1.0))
OUTCOME = {"rewards": VERDICT,
           "advantages": dict(outcome=dict(name="group.rloo"), whiten=True)}
# These replace RLOO; that of ppo estimates advantages of the sum of both rewards.
ESTIMATORS = dict(
    reinforce=dict(outcome=dict(name="batch.reinforce"),
                   process=dict(name="process.reinforce")),
    grpo=dict(outcome=dict(name="group.grpo"), process=dict(name="process.grpo")),
    ppo=dict(total=dict(name="temporal.gae", gamma=1.0, lam=1.0)))


def rates():
  """Runs that tune the learning rates: the policy's, over the same values for dense rewards and
  for outcomes alone, and the PRM's, which only dense rewards have."""
  return grids.product(TASK, grids.chain(
      grids.product(
          [{"arm": "dense"}, {"arm": "outcome"} | OUTCOME],
          [{"arm": f"{lr:g}", "learner.optimizer.lr": lr, "prm.optimizer.lr": 5e-4}
           for lr in (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3)]),
      [{"arm": f"prm-{lr:g}", "prm.optimizer.lr": lr} for lr in (2e-5, 1e-4)]),
      SEEDS[:3])


def grid():
  """PRIME, the paper's ablations, which change one setting each, and arms that test possible
  explanations of the results."""
  wrong_steps = dict(name="steps.refine", coef=0.2, kind="clip", eta=1.0)
  arms = [
      {"arm": "dense"}, {"arm": "outcome"} | OUTCOME,
      {"arm": "prm-trained", "prm.path": f"{STARTS}/prm/hf/prm"},
      {"arm": "prm-offline", "prm.path": f"{STARTS}/prm/hf/prm", "prm.order": "none"},
      {"arm": "prm-fast", "prm.optimizer.lr": 5e-4},
      {"arm": "weak", "rewards.process.coef": 0.2},
      # Exact verdicts of steps replace the PRM.
      {"arm": "oracle", "verifier.steps": "chain.steps",
       "rewards": VERDICT | dict(process=wrong_steps)},
      {"arm": "value", "advantages.process": dict(name="process.value_baseline"),
       "rewards.process.norm": "none"},
      {"arm": "reference-policy", "prm.reference": "policy"},
      {"arm": "double", "prm.order": "double"},
      {"arm": "dpo", "prm.loss.name": "prm.dpo"},
      {"arm": "no-filter", "rollouts.filter_groups": dict(name="filter_groups.with_verdict")},
      {"arm": "strict", "advantages.process.loo": "strict"},
      {"arm": "no-floor", "rewards.process.floor": 0.0},
      {"arm": "prm-small", "prm.path": f"{STARTS}/small/model", "prm.reference": "self"},
      {"arm": "prm-large", "prm.path": f"{STARTS}/large/model", "prm.reference": "self"}]
  for name, terms in ESTIMATORS.items():
    of_verdicts = {term: e for term, e in terms.items() if term != "process"}
    arms += [{"arm": f"{name}-dense", "advantages": terms | dict(whiten=True)},
             {"arm": f"{name}-outcome", "rewards": VERDICT,
              "advantages": of_verdicts | dict(whiten=True)}]
  return grids.product(TASK, arms, SEEDS)
