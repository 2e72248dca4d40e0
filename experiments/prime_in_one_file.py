"""PRIME in one file: the quickstart's task, from the functions of rlx and nothing around them.

  python -m experiments.prime_in_one_file

PRIME (Process Reinforcement through Implicit Rewards, Cui et al. 2025, arXiv:2502.01456) trains
two language models at once, both of which start as the same model:

  policy  writes completions y of a prompt x, which a checker finds right (o = 1) or wrong (o = 0)
  PRM     an implicit process reward model, trained on these verdicts alone

With a frozen copy of the initial model as the reference, the reward of token t is

  r_t = beta (log pi_prm(y_t | x, y_<t) - log pi_ref(y_t | x, y_<t))

and the PRM learns that sigmoid(sum_t r_t) is the probability of o = 1. Below, `train` is the
algorithm, one numbered line for each of its steps, and the functions before it are these steps.
The loop that `rlx train quickstart` runs computes the same: tests/experiments has a test that
compares completions, rewards, advantages and parameters. It can also do what is left out here:
checkpoints, packing, minibatches, several devices, other methods, metrics.

Names of arrays end in their axes: P prompts, G completions of each, B = P G rows in which the
completions of a prompt are consecutive, X and T columns of prompts and completions.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np

from rlx.advantages import combine, group, process
from rlx.core import masked, rng
from rlx.evals import accuracy
from rlx.io import weights
from rlx.learner import optimizer, step
from rlx.losses import aggregate, policy as policy_losses, prm as prm_losses
from rlx.models import logps
from rlx.prompts import filters, iterator
from rlx.prompts.datasets import chain
from rlx.rewards import implicit
from rlx.rollouts import filter_groups, padding, sampler
from rlx.verifiers import chain as checker

MODEL = "configs/models/chain"  # 0.22M parameters; solves some of the questions
SEED = 0
STEPS = 100
P, G, X, T = 32, 8, 18, 18      # prompts, completions of each, tokens of a prompt, of a completion
QUESTIONS, HELD_OUT = 20000, 512
OPERATIONS = dict(n_min=5, n_max=8, ops="Mm")  # of a question such as 4M7m2M5m9=
LOW, HIGH = 0.1, 0.9            # groups with an accuracy in between are trained on
DRAWS = 4                       # at most, to find P such groups
BETA = 0.5                      # of the PRM; the paper's 0.05 is for thousands of tokens
FLOOR = 0.5                     # of the process rewards' normaliser, for a PRM that knows nothing
LR = 5e-4                       # of both models


def load_questions(split, n):
  """Prompts of the chain task without duplicates; "train" and "test" have none in common."""
  rows = (dict(OPERATIONS, seed=0, index=i) for i in range(n))
  return filters.drop_duplicates(list(chain.prompts(rows, split)))


def make_sampler(config, tokenizer, completions, temperature):
  """Returns (params, prompts, key) -> Rollouts on the host, `completions` of each prompt."""
  draw = sampler.make(config, group=completions, max_tokens=T, chunk=T, temperature=temperature,
                      eos_ids=tokenizer.eos_ids, pad_id=tokenizer.pad_id)
  def sample(params, prompts, key):
    tokens_PX, len_P = padding.pad_left(
        [tokenizer.encode(p.text) for p in prompts], X, tokenizer.pad_id)
    # A completion depends on the key, on the number of its prompt and on its place in the group.
    ids_P = np.array([rng.number(p.id) for p in prompts], np.uint32)
    return jax.device_get(draw(params, tokens_PX, len_P, ids_P, key))
  return sample


def verify(tokenizer, prompts, rollouts):
  """outcome_PG: 1 where the checker finds a completion right, else 0."""
  texts = [tokenizer.decode(ids) for ids in padding.completions(rollouts)]
  asked = [p for p in prompts for _ in range(len(texts) // len(prompts))]
  return np.float32([checker.answer(*x) for x in zip(asked, texts)]).reshape(len(prompts), -1)


def collect(sample, verify_, questions, waiting, number):
  """Draws groups until P of them are neither too easy nor too hard.

  Args:
    sample: (prompts, key) -> Rollouts.
    verify_: (prompts, rollouts) -> outcome_PG.
    questions: PromptIterator.
    waiting: ids of prompts that passed in an earlier step and were not needed. They are sampled
      again, so that every completion is of the current policy.
    number: of the training step.
  Returns:
    rollouts and outcome_PG of P groups, and the ids that wait now.
  """
  drawn, keep_P = [], np.zeros(0, bool)
  while keep_P.sum() < P and len(drawn) < DRAWS:
    again, waiting = waiting[:P], waiting[P:]
    prompts = questions.by_id(again) + questions.take(P - len(again), skip=again)
    rollouts = sample(prompts, rng.key(SEED, "sample", number, len(drawn)))
    outcome_PG = verify_(prompts, rollouts)
    drawn.append((prompts, rollouts, outcome_PG))
    keep_P = np.append(keep_P, filter_groups.accuracy_band(
        outcome_PG, np.ones((P, G), bool), rollouts.finish_B.reshape(P, G), low=LOW, high=HIGH))
  prompts, rollouts, outcome_PG = zip(*drawn)
  chosen = filter_groups.fill(keep_P, P)  # Groups that failed the filter come last.
  rows_B = (chosen[:, None] * G + np.arange(G)).ravel()
  kept = [p.id for p, keep in zip(sum(prompts, []), keep_P) if keep]
  return (padding.select(rollouts, rows_B, chosen), np.concatenate(outcome_PG)[chosen],
          waiting + kept[P:])


@functools.partial(jax.jit, static_argnames="config")
def logps_of(params, config, rollouts):
  """logps_BT of the completions' tokens under a model; 0 on padding."""
  return logps.of_rollouts(params, config, rollouts, with_entropy=False)[0]


@jax.jit
def rewards_and_advantages(prm_logps_BT, ref_logps_BT, outcome_PG, learn_BT):
  """The process rewards, and the advantage of every token.

  Verdicts and process rewards are each compared with the other completions of the prompt
  (leave-one-out), and added. A verdict counts for every token of its completion, a process reward
  for the tokens up to its own. Whitening gives all tokens of the batch mean 0 and variance 1.
  """
  learn_PG = jnp.any(learn_BT, axis=1).reshape(-1, G)
  rewards_BT, _ = implicit.process(
      prm_logps_BT, ref_logps_BT, learn_BT, learn_PG.ravel(), BETA, floor=FLOOR)
  outcome_BT = combine.spread(group.rloo(outcome_PG, learn_PG), learn_BT)
  process_BT = process.rloo(rewards_BT, learn_BT, learn_PG)
  return rewards_BT, masked.whiten(outcome_BT + process_BT, learn_BT)


def prm_loss(config, params, batch):
  """Cross-entropy of the verdict; the logit is beta times the sum of the log-ratios."""
  rollouts, ref_logps_BT, outcome_B, learn_BT = batch
  logps_BT = logps_of(params, config, rollouts)
  loss = prm_losses.ce(
      logps_BT, ref_logps_BT, learn_BT, outcome_B, jnp.any(learn_BT, axis=1), BETA)
  return loss, {}, None


def policy_loss(config, params, batch):
  """PPO's clipped loss, averaged over the tokens of each completion, then over completions."""
  rollouts, advantages_BT, learn_BT = batch
  logps_BT = logps_of(params, config, rollouts)
  # There is one optimizer step per batch: the policy before the update is the policy itself.
  old_logps_BT = jax.lax.stop_gradient(logps_BT)
  loss_BT, _ = policy_losses.ppo_clip(logps_BT, old_logps_BT, advantages_BT, learn_BT)
  return aggregate.aggregate(loss_BT, learn_BT, mode="seq-mean-token-mean"), {}, None


def train(config, params, tokenizer, questions):
  """PRIME. Yields (policy, prm, what the step computed) after each step."""
  policy, prm, reference = (jax.tree.map(jnp.array, params) for _ in range(3))
  # Both gradients are clipped by their global norm.
  policy_adamw = optimizer.adamw(lr=LR, max_grad_norm=1.0)
  prm_adamw = optimizer.adamw(lr=LR, max_grad_norm=10.0)
  policy_state, prm_state = policy_adamw.init(policy), prm_adamw.init(prm)
  # (params, state, batch) -> params, state, metrics, None; compiled, and reuses the memory.
  update_policy = step.make(functools.partial(policy_loss, config), policy_adamw)
  update_prm = step.make(functools.partial(prm_loss, config), prm_adamw)
  sample = make_sampler(config, tokenizer, G, temperature=1.0)
  verify_ = functools.partial(verify, tokenizer)
  questions, waiting = iterator.PromptIterator(questions, seed=SEED), []

  for number in range(STEPS):
    # 1. Sample completions and verify them.
    rollouts, outcome_PG, waiting = collect(
        functools.partial(sample, policy), verify_, questions, waiting, number)
    learn_BT, rows = rollouts.action_BT, rollouts.rows()
    # 2. Score their tokens by the PRM, before it has seen these verdicts.
    ref_logps_BT = logps_of(reference, config, rows)
    prm_logps_BT = logps_of(prm, config, rows)
    # 3. Rewards and advantages.
    rewards_BT, advantages_BT = rewards_and_advantages(
        prm_logps_BT, ref_logps_BT, outcome_PG, learn_BT)
    # 4. The PRM learns from the verdicts.
    prm, prm_state, prm_metrics, _ = update_prm(
        prm, prm_state, (rows, ref_logps_BT, outcome_PG.ravel(), learn_BT))
    # 5. The policy learns from the advantages.
    policy, policy_state, policy_metrics, _ = update_policy(
        policy, policy_state, (rows, advantages_BT, learn_BT))
    yield policy, prm, dict(
        rollouts=rollouts, outcome_PG=outcome_PG, rewards_BT=rewards_BT,
        advantages_BT=advantages_BT, prm=prm_metrics, policy=policy_metrics)


def main():
  """Trains, and prints held-out accuracy before and after."""
  config, params, tokenizer = weights.load(MODEL)
  held_out = load_questions("test", 2 * HELD_OUT)[:HELD_OUT]
  samplers = {name: make_sampler(config, tokenizer, 1, temperature)
              for name, temperature in (("greedy", 0.0), ("sampled", 1.0))}

  def report(when, params):
    for name, sample in samplers.items():
      x = accuracy.interval(accuracy.outcomes(
          functools.partial(sample, params), functools.partial(verify, tokenizer), held_out,
          batch=HELD_OUT, repeats=4 if name == "sampled" else 1,
          key=rng.key(SEED, "eval-final")))
      print(f"{when} {name:8} {x['mean']:.3f} [{x['low']:.3f}, {x['high']:.3f}]")

  report("before", params)
  questions = load_questions("train", QUESTIONS)
  for number, (policy, _, done) in enumerate(train(config, params, tokenizer, questions)):
    if number % 10 == 0:
      print(f"step {number:3d}  accuracy of the batch {done['outcome_PG'].mean():.3f}  "
            f"PRM's loss {done['prm']['loss']:.3f}")
  report("after ", policy)


if __name__ == "__main__":
  main()
