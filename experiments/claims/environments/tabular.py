"""Toy environments that run in seconds: they are small and have exact expectations.

A prompt is a tree of tokens and the policy is a table of logits with a row for every
node. The methods are those of a config and are called as the training loop calls them.
Accuracy, pass@k and entropy, which a real run can only estimate, are sums over the leaves.

  P prompts   V vocabulary   T most tokens   N inner nodes   L leaves: completions

Nodes are numbered from the root, 0: token v leads from node n to n V + v + 1.
"""
import dataclasses
import functools
import itertools
import types
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.claims.environments import learn
from rlx.build import (
    keys, methods as build_methods, plan as plan_lib, run as build_run, updates)
from rlx.core import masked, records, resolve
from rlx.learner import reference as reference_lib
from rlx.losses import value as value_loss
from rlx.models import logps as logps_lib


class Batch(NamedTuple):
  """Sampled completions; row p G + g belongs to prompt p."""
  prompt_B: jax.Array
  tokens_BT: jax.Array
  mask_BT: jax.Array
  nodes_BT: jax.Array   # The node before each token.


@dataclasses.dataclass(frozen=True)
class Tree:
  """All completions of at most `length` tokens from `vocab`, for each of `prompts`."""
  prompts: int = 4
  vocab: int = 4
  length: int = 3
  eos: bool = False     # Token 0 ends a completion.

  @property
  def nodes(self):
    return sum(self.vocab**t for t in range(self.length))

  @functools.cached_property
  def leaves(self):
    """Returns (tokens_LT, mask_LT) of every completion as Numpy arrays; 0 after the end."""
    tokens_LT = np.array(list(itertools.product(range(self.vocab), repeat=self.length)))
    mask_LT = np.ones_like(tokens_LT, bool)
    if self.eos:
      ended_LT = np.cumsum(tokens_LT == 0, axis=1)
      mask_LT = (ended_LT == 0) | ((ended_LT == 1) & (tokens_LT == 0))
      first = ~np.any(~mask_LT & (tokens_LT != 0), axis=1)
      tokens_LT, mask_LT = tokens_LT[first], mask_LT[first]
    return tokens_LT, mask_LT

  def batch(self, prompt_B, tokens_BT, mask_BT):
    node_B, nodes = jnp.zeros(len(tokens_BT), int), []
    for t in range(self.length):
      nodes.append(node_B)
      node_B = node_B * self.vocab + tokens_BT[:, t] + 1
    return Batch(prompt_B, tokens_BT, mask_BT, jnp.stack(nodes, axis=1))

  def start(self, key=None, spread=0.0):
    """Returns logits_PNV, uniform or with noise of this standard deviation."""
    shape = self.prompts, self.nodes, self.vocab
    return jnp.zeros(shape) if key is None else spread * jax.random.normal(key, shape)

  def sample(self, key, logits_PNV, group):
    """Samples a Batch with `group` completions of every prompt."""
    prompt_B = jnp.repeat(jnp.arange(self.prompts), group)
    node_B, going_B = jnp.zeros_like(prompt_B), jnp.ones_like(prompt_B, bool)
    tokens, mask = [], []
    for key_t in jax.random.split(key, self.length):
      token_B = jnp.where(going_B, jax.random.categorical(key_t, logits_PNV[prompt_B, node_B]), 0)
      tokens.append(token_B)
      mask.append(going_B)
      if self.eos: going_B = going_B & (token_B != 0)
      node_B = node_B * self.vocab + token_B + 1
    return self.batch(prompt_B, jnp.stack(tokens, axis=1), jnp.stack(mask, axis=1))

  def leaf_B(self, batch):
    """Returns the row of `leaves` of each completion, for trees without an end token."""
    if self.eos: raise ValueError("Completions that end early are not numbered by their tokens.")
    return batch.tokens_BT @ self.vocab ** jnp.arange(self.length)[::-1]

  def leaf_logps(self, logits_PNV):
    """Returns logps_PL of all complete completions."""
    tokens_LT, mask_LT = map(jnp.asarray, self.leaves)
    def logps_of_prompt(prompt):
      batch = self.batch(jnp.full(len(tokens_LT), prompt), tokens_LT, mask_LT)
      return logps(logits_PNV, batch)[0].sum(axis=1)
    return jax.vmap(logps_of_prompt)(jnp.arange(self.prompts))

  def expected_P(self, logits_PNV, values_PL):
    """Returns the expected value of completions under the policy, for every prompt."""
    return jnp.sum(jnp.exp(self.leaf_logps(logits_PNV)) * values_PL, axis=1)

  def values(self, logits_PNV, values_PL):
    """Returns values_PM: the expected value after every node and, after all tokens, every leaf."""
    by_depth, nodes = [values_PL], self.nodes
    while nodes:
      count = by_depth[0].shape[1] // self.vocab
      chance_PNV = jax.nn.softmax(logits_PNV[:, nodes - count:nodes])
      by_depth.insert(0, jnp.sum(chance_PNV * by_depth[0].reshape(chance_PNV.shape), axis=2))
      nodes -= count
    return jnp.concatenate(by_depth, axis=1)

  def verifier(self, **tables):
    """Returns a verifier of an Environment that looks completions up in {field: [P, L, ...]}."""
    return lambda batch, **_: {field: 1.0 * table[batch.prompt_B, self.leaf_B(batch)]
                               for field, table in tables.items()}

  def means(self, **values):
    """Returns a measure: logits_PNV -> {name: mean over prompts of the expected values_PL}."""
    return lambda logits_PNV: {name: self.expected_P(logits_PNV, values_PL).mean()
                               for name, values_PL in values.items()}


def logps(logits_PNV, batch):
  """Returns (logps_BT, entropy_BT) of a batch under a table; 0 on padding."""
  all_BTV = jax.nn.log_softmax(logits_PNV[batch.prompt_B[:, None], batch.nodes_BT])
  chosen_BT = jnp.take_along_axis(all_BTV, batch.tokens_BT[..., None], axis=-1)[..., 0]
  entropy_BT = -jnp.sum(jnp.exp(all_BTV) * all_BTV, axis=-1)
  return masked.where_valid(chosen_BT, batch.mask_BT), masked.where_valid(entropy_BT, batch.mask_BT)


def beyond(more, logits_PNV, batch):
  """Returns {field: array} of the statistics of whole distributions that methods read.

  Args:
    more: {field: spec}.
  """
  statistics = logps_lib.distribution_statistics(
      logits_PNV[batch.prompt_B[:, None], batch.nodes_BT], batch.tokens_BT, tuple(more.values()))
  mask_BT = batch.mask_BT
  return {field: masked.where_valid(x, mask_BT if x.ndim == 2 else mask_BT[..., None])
          for field, x in zip(more, statistics)}


def record(mask_BT, outcome_B, **columns):
  """Returns a records.Batch of completions and verdicts, as the training loop passes it to methods.

  Every toy environment and every check builds its records with this function.
  """
  return records.Batch(action_BT=mask_BT, outcome_B=outcome_B, **columns)


class _State(NamedTuple):
  """The state that a step changes."""
  policy: tuple           # (logits_PNV, optimizer state)
  prm: tuple              # (logits_PNV, optimizer state)
  value: tuple            # (value_PN, optimizer state)
  kl_reference_PNV: jax.Array
  stale_PNV: jax.Array    # The logits of the sampler.
  method_state: Any       # What methods keep between steps.


class Environment(NamedTuple):
  """The environment of a run, drawn from its seed.

  verify   function (Batch, key=, logits_PNV=) -> {field of records.Batch: array}; outcome_B is
           required
  measure  function logits_PNV -> {name: scalar}
  start    initial logits_PNV of policy, reference and PRM; None: uniform
  sampler  function (key, logits_PNV) -> logits that are sampled from, for samplers that differ
           from the trainer; None: the same logits
  """
  verify: Callable
  measure: Callable
  start: Any = None
  sampler: Callable | None = None


EOS = records.FINISH.index("eos")
FILTERED = records.EXCLUDED.index("filtered")


def environment_key(seed):
  """Returns the key that `train` passes to `environment` for this seed."""
  return jax.random.split(jax.random.key(seed))[0]


def around(key, x, spread=0.2):
  """Multiplies each number of x by its own random factor, uniform in 1 +- spread."""
  x = jnp.asarray(x, jnp.float32)
  return x * jax.random.uniform(key, x.shape, minval=1 - spread, maxval=1 + spread)


def values(value_PN, batch):
  """Returns values_BT of a batch under a table of values."""
  return value_PN[batch.prompt_B[:, None], batch.nodes_BT]


def train(c, tree, environment, *, seeds, lr, steps, prm_lr=1.0, optimizer=optax.sgd):
  """Learns tables with the methods of a config and the trainer's optimizer step.

  All seeds run at once. The config determines the methods, rollouts.per_prompt and
  rollouts.sync_every, kl, learner.epochs (passes over a batch, each one optimizer step)
  and prm.order. Its other keys, such as sizes and learning rates of language models, are not
  used, because they do not fit tables.

  Args:
    c: config; its filters act as in the training loop, and a group that is filtered out
      has no verdict.
    tree: Tree.
    environment: function from a key to an Environment, called once for each seed.
    seeds: ints [I].
    lr, prm_lr: learning rates of `optimizer` for the policy and the PRM; numbers, or one for each
      seed, [I]. Values are learned by SGD at a rate of 1/2.
    optimizer: function from a learning rate to an optax transform.
  Returns:
    ({name: [I, steps + 1]} of measures before every step and at the end, logits_IPNV at the
    end), as Numpy arrays.
  """
  methods = build_methods.resolve_methods(c)
  step, losses = _step(c, methods, tree), _losses(c, methods, tree)
  method_state = methods.make_state(build_run.sizes_of(c).axes | dict(
      P=tree.prompts, G=c.rollouts.per_prompt, B=tree.prompts * c.rollouts.per_prompt,
      T=tree.length))

  @jax.jit
  @jax.vmap
  def run(seed, lr, prm_lr):
    env, (_, key) = environment(environment_key(seed)), jax.random.split(jax.random.key(seed))
    if env.start is None: env = env._replace(start=tree.start())
    transforms = dict(policy=optimizer(lr), prm=optimizer(prm_lr), value=optax.sgd(0.5))
    tables = dict(policy=env.start, prm=env.start, value=jnp.zeros((tree.prompts, tree.nodes)))
    learn_by = {name: learn.step(losses[name], transforms[name]) for name in losses}
    state = _State(**{name: (table, transforms[name].init(table))
                      for name, table in tables.items()},
                   kl_reference_PNV=env.start, stale_PNV=env.start,
                   method_state=method_state)
    state, history = jax.lax.scan(
        lambda state, x: (step(env, learn_by, state, *x), env.measure(state.policy[0])),
        state, (jnp.arange(steps), jax.random.split(key, steps)))
    last_PNV = state.policy[0]
    return jax.tree.map(jnp.append, history, env.measure(last_PNV)), last_PNV

  by_seed = lambda x: jnp.broadcast_to(jnp.asarray(x, jnp.float32), (len(seeds),))
  return jax.device_get(run(jnp.asarray(seeds), *map(by_seed, (lr, prm_lr))))


def _losses(c, methods, tree):
  """Returns {table: function from (table, (record, Batch)) to a Weighted loss}."""
  policy_loss = updates.policy_loss_of(c, methods)
  now, _ = map(dict, plan_lib.find_statistics(c, methods))
  group = c.rollouts.per_prompt
  kl_coef_B = jnp.full(tree.prompts * group, jnp.float32(c.kl.coef))

  def of_policy(logits_PNV, data):
    scored, batch = data
    logps_BT, entropy_BT = logps(logits_PNV, batch)
    return policy_loss(scored.replace(
        logps_BT=logps_BT, entropy_BT=entropy_BT, **beyond(now, logits_PNV, batch)),
                       kl_coef_B)[0]

  def of_prm(logits_PNV, data):
    scored, batch = data
    return resolve.split_metrics(methods.prm(scored.replace(
        prm_logps_BT=logps(logits_PNV, batch)[0])))[0]

  def of_values(value_PN, data):
    scored, batch = data
    loss_BT = value_loss.clipped(values(value_PN, batch), scored.values_BT, scored.returns_BT,
                                 scored.learn_BT)
    return records.Weighted(jnp.sum(loss_BT), jnp.float32(group))

  return dict(policy=of_policy, prm=of_prm, value=of_values)


def _step(c, methods, tree):
  """Returns one step of training, (Environment, {table: update}, _State, i, key) -> _State."""
  advantage = updates.rewards_advantages_of(c, methods).compute
  excluded_of = _excluded(c, methods)
  _, before = map(dict, plan_lib.find_statistics(c, methods))
  group = c.rollouts.per_prompt

  def sampled(env, state, i, keys):
    """Returns (logits of the sampler before its noise, Batch, record of the completions)."""
    policy_PNV = state.policy[0]
    stale_PNV = jnp.where(i % c.rollouts.sync_every == 0, policy_PNV, state.stale_PNV)
    sampler_PNV = env.sampler(keys[2], stale_PNV) if env.sampler else stale_PNV
    batch = tree.sample(keys[0], sampler_PNV, group)
    scored = record(
        batch.mask_BT, tokens_BT=batch.tokens_BT, group=group,
        old_logps_BT=logps(policy_PNV, batch)[0],
        sampler_logps_BT=logps(sampler_PNV, batch)[0],
        ref_logps_BT=logps(state.kl_reference_PNV, batch)[0],
        values_BT=values(state.value[0], batch),
        **beyond(before, policy_PNV, batch),
        **env.verify(batch, key=keys[1], logits_PNV=policy_PNV))
    return stale_PNV, batch, scored.replace(excluded_B=excluded_of(scored))

  def step(env, learn, state, i, key):
    stale_PNV, batch, scored = sampled(env, state, i, jax.random.split(key, 3))
    prm, value = state.prm, state.value
    if methods.needs("prm_logps_BT"):
      prm, scored = _scored_by_prm(c, methods.prm_beta(i), env.start, state.policy[0],
                                   learn["prm"], prm, scored, batch)
    scored, _, method_state = advantage(types.SimpleNamespace(
        kl_coef=jnp.float32(c.kl.coef), method_state=state.method_state, step=i), scored)
    if methods.value_terms: value = learn["value"](*value, (scored, batch))
    policy, _ = jax.lax.scan(lambda policy, _: (learn["policy"](*policy, (scored, batch)), None),
                             state.policy, length=c.learner.epochs)
    state = _State(policy, prm, value, state.kl_reference_PNV, stale_PNV, method_state)
    if not c.kl.sync_every: return state
    return jax.lax.cond((i + 1) % c.kl.sync_every == 0, functools.partial(_synced, c),
                        lambda same: same, state)

  return step


def _scored_by_prm(c, beta, start_PNV, policy_PNV, learn_prm, prm, scored, batch):
  """Scores with the PRM and updates it, in the order of the config; returns (PRM, record)."""
  def scores(prm_PNV):
    return dict(prm_logps_BT=logps(prm_PNV, batch)[0],
                **beyond(dict(prm_all_logps_BTV=("all",)), prm_PNV, batch))
  ref_PNV = policy_PNV if c.prm.reference == "policy" else start_PNV
  before = scores(prm[0])
  scored = scored.replace(
      **before, prm_old_logps_BT=before["prm_logps_BT"], prm_ref_logps_BT=logps(ref_PNV, batch)[0],
      **beyond(dict(prm_ref_all_logps_BTV=("all",)), ref_PNV, batch),
      prm_beta_B=jnp.full(len(batch.mask_BT), beta))
  if c.prm.order == "none": return prm, scored
  prm = learn_prm(*prm, (scored, batch))
  if c.prm.order == "double": scored = scored.replace(**scores(prm[0]))
  return prm, scored


def _synced(c, state):
  """Returns the state with the reference moved, as after kl.sync_every steps."""
  logits_PNV, opt_state = state.policy
  if c.kl.reset_optimizer: opt_state = jax.tree.map(jnp.zeros_like, opt_state)
  return state._replace(policy=(logits_PNV, opt_state), kl_reference_PNV=reference_lib.move(
      state.kl_reference_PNV, logits_PNV, mix=c.kl.sync_mix))


def arm(c, tree, environment, measure, **options):
  """Returns an arm of a check, a function from (seeds, rates) to values.

  Args:
    c, tree, environment, options: as in `train`.
    measure: a name, for the value at the end of training; two names, for the value and the
      score, by which the learning rate is tuned; or a function from the curves
      {name: [I, steps + 1]} to values_I or (values_I, scores_I).
  """
  names = measure
  if isinstance(names, str): measure = lambda curves: curves[names][:, -1]
  if isinstance(names, tuple): measure = lambda curves: tuple(curves[n][:, -1] for n in names)
  return lambda seeds, rates: measure(
      train(c, tree, environment, seeds=seeds, lr=rates, **options)[0])


def arms(configs, *args, **options):
  """Returns {name: arm} for {name: config}; the arguments are those of `arm`."""
  return {name: arm(c, *args, **options) for name, c in configs.items()}


def mean(name):
  """Returns the measure for `arm` that is the mean over training."""
  return lambda curves: curves[name].mean(axis=1)


def _excluded(c, methods):
  """Returns a function from a Batch to excluded_B by the config's filters, None without any."""
  if (c.rollouts.filter_groups.name, c.rollouts.select_completions.name) == (
      "filter_groups.with_verdict", "select_completions.everything"):
    return lambda scored: None

  def on_host(scored):
    """Returns excluded_B of all runs at once, with the groups of all of them as one batch."""
    shape = scored.outcome_B.shape
    scored = jax.tree.map(lambda x: np.reshape(x, (-1, *x.shape[len(shape):])), scored)
    scored = scored.replace(finish_B=np.full(scored.outcome_B.shape, EOS))
    stays_PG = methods.filter_groups(scored)[:, None] & methods.select_completions(scored)
    return np.where(stays_PG, 0, FILTERED).astype(np.int8).reshape(shape)

  return lambda scored: jax.pure_callback(
      on_host, jax.ShapeDtypeStruct(scored.outcome_B.shape, jnp.int8), scored,
      vmap_method="broadcast_all")


def changed(c, **changes):
  """Returns a copy of a config with keys set; __ is a dot, and a dict replaces a section."""
  c = c.copy_and_resolve_references()
  for path, value in changes.items():
    *sections, key = path.split("__")
    with (at := functools.reduce(getattr, sections, c)).unlocked():
      at[key] = value
  keys.check(c)
  return c


def grpo(c, reward="outcome.verdict"):
  """Returns a copy of a config with a single reward, as z-scores of the group."""
  return changed(c, rewards=dict(outcome=dict(name=reward, coef=1.0)),
                 advantages=dict(outcome=dict(name="group.grpo"), whiten=False))
