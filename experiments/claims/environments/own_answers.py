"""A policy that answers questions and is asked about its own answers, through one hidden layer.

A question has eight answers with eight features each. A hidden network tells which ones are right,
a fourth of all, so that whether an answer is right does not depend on the others. The policy is a
network of the same shape with weights of its own, drawn at random: one head on its hidden layer
chooses an answer, two others say whether an answer is right and which of two is better. A question
that is asked again behind a wrong answer is answered by the first head, and the logit of the shown
answer has a weight of its own. The prompts of a step are those of a config; of what is asked about
answers the right reply follows from their verdicts, without other labels. The trunk may help or
hurt: every reply changes it.

  Q questions   P prompts of a step   G completions of each
  K answers     D features            H hidden units          M kinds of prompts
"""
import functools
import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.claims.environments import learn, tabular
from rlx.build import methods as build_methods, updates
from rlx.core import records
from rlx.losses import value as value_loss

STEPS, QUESTIONS, NEW, ANSWERS, FEATURES, HIDDEN = 200, 128, 256, 8, 8, 16
SHARPNESS = 3.0
ANSWER, AGAIN, VERDICT, PAIR = range(4)
JUDGED = dict(verdict=VERDICT, pair=PAIR)


class Asked(NamedTuple):
  """Prompts of a step: what is asked, of which question, and the answers that are shown."""
  kind_P: jax.Array
  question_P: jax.Array
  shown_P: jax.Array
  other_P: jax.Array

  def join(self, other): return Asked(*map(jnp.append, self, other))


def start(key):
  """Returns random weights."""
  shapes = dict(hidden=(FEATURES, HIDDEN), bias=(HIDDEN,), answer=(HIDDEN,), verdict=(HIDDEN,),
                pair=(HIDDEN,), always=(), again=())
  return {name: jax.random.normal(k, shape) / np.sqrt(shape[0] if shape else 1)
          for k, (name, shape) in zip(jax.random.split(key, len(shapes)), shapes.items())}


def encode(params, x_XD):
  """Returns the hidden layer of answers with these features."""
  hidden_XH = x_XD @ params["hidden"]
  return jnp.tanh(hidden_XH + jnp.broadcast_to(params["bias"], hidden_XH.shape))


def logits(params, x_QKD, asked):
  """Returns logits_PK of replies; those of a judgement are the first two, of which 1 is yes."""
  hidden_PKH = encode(params, x_QKD[asked.question_P])
  row_P = jnp.arange(len(asked.kind_P))
  shown_PH, other_PH = hidden_PKH[row_P, asked.shown_P], hidden_PKH[row_P, asked.other_P]
  answer_PK = hidden_PKH @ params["answer"]
  again_PK = answer_PK + params["again"] * jax.nn.one_hot(asked.shown_P, ANSWERS)
  of_judge = lambda yes_P: jnp.full(answer_PK.shape, -1e9).at[:, 0].set(0.0).at[:, 1].set(yes_P)
  return jax.lax.select_n(
      jnp.broadcast_to(asked.kind_P[:, None], answer_PK.shape), answer_PK, again_PK,
      of_judge(shown_PH @ params["verdict"] + params["always"]),
      of_judge((shown_PH - other_PH) @ params["pair"]))


def verdicts(right_QK, asked, reply_PG):
  """Returns verdict_PG, bool."""
  is_yes_P = right_QK[asked.question_P, asked.shown_P]  # One answer of a pair is right.
  return jnp.where((asked.kind_P >= VERDICT)[:, None], reply_PG == is_yes_P[:, None],
                   right_QK[asked.question_P[:, None], reply_PG])


def derive(key, asked, reply_PG, right_PG, kind, count, per_question):
  """Returns `count` prompts of a kind about replies, as rlx/prompts/derived.py makes them.

  Where the replies give fewer, questions of the step are asked once more.
  """
  keys = jax.random.split(key, 4)
  def draw(key, from_PG):  # One of each row, the first one if there is none.
    return jnp.argmax(jnp.where(from_PG, jax.random.uniform(key, from_PG.shape), -1), axis=1)
  if not per_question:  # Any different answers, whatever their question.
    order_PG = jax.random.uniform(keys[0], reply_PG.shape)
    is_same_PGG = reply_PG[:, :, None] == reply_PG[:, None]
    first_PG = jnp.min(jnp.where(is_same_PGG, order_PG[:, None], 1), axis=2)
    row_N, of_N = jnp.unravel_index(
        jnp.argsort((order_PG + (order_PG > first_PG)).ravel())[:count], reply_PG.shape)
    shown_N = reply_PG[row_N, of_N]
    return Asked(jnp.full(count, kind), asked.question_P[row_N], shown_N, shown_N)
  of = lambda at_P: jnp.take_along_axis(reply_PG, at_P[:, None], axis=1)[:, 0]
  wrong_P = of(draw(keys[1], ~right_PG))
  fits_P, shown_P, other_P = jnp.any(~right_PG, axis=1), wrong_P, wrong_P
  if kind == VERDICT:
    fits_P, shown_P = jnp.ones_like(fits_P), of(draw(keys[2], jnp.ones_like(right_PG)))
  if kind == PAIR:
    good_P, swap_P = of(draw(keys[2], right_PG)), jax.random.bernoulli(keys[3], 0.5, fits_P.shape)
    fits_P &= jnp.any(right_PG, axis=1)
    shown_P, other_P = jnp.where(swap_P, wrong_P, good_P), jnp.where(swap_P, good_P, wrong_P)
  row_N = jnp.argsort(jax.random.uniform(keys[0], fits_P.shape) - fits_P)[:count]
  return Asked(jnp.where(fits_P[row_N], kind, ANSWER), asked.question_P[row_N], shown_P[row_N],
               other_P[row_N])


def questions(key, teacher, count):
  """Returns (features_QKD, right_QK)."""
  keys = jax.random.split(key)
  sharp = teacher | dict(hidden=SHARPNESS * teacher["hidden"])  # Far from a linear function.
  score = lambda x_XD: encode(sharp, x_XD) @ teacher["answer"]
  least = jnp.quantile(score(jax.random.normal(keys[0], (4096, FEATURES))), 0.75)
  x_QKD = jax.random.normal(keys[1], (count, ANSWERS, FEATURES))
  return x_QKD, score(x_QKD) > least


def measure(params, x_QKD, right_QK):
  """Returns the chance of right answers and, over answers as they are drawn, right verdicts."""
  every = lambda kind: Asked(*(jnp.ravel(x) for x in jnp.broadcast_arrays(
      kind, jnp.arange(len(x_QKD))[:, None], jnp.arange(ANSWERS), 0)))
  answer_QK = jax.nn.softmax(logits(params, x_QKD, every(ANSWER))[::ANSWERS])
  verdict_QK = jax.nn.softmax(logits(params, x_QKD, every(VERDICT)))[
      jnp.arange(right_QK.size), right_QK.ravel().astype(int)].reshape(right_QK.shape)
  return jnp.array([jnp.sum(answer_QK * x, axis=1).mean() for x in (right_QK, verdict_QK)])


def logps(params, x_QKD, asked, reply_PG):
  """Returns (logps_BT, entropy_BT) of replies, of one token each."""
  all_PK = jax.nn.log_softmax(logits(params, x_QKD, asked))
  entropy_P1 = -jnp.sum(jnp.exp(all_PK) * all_PK, axis=1, keepdims=True)
  logps_PG = jnp.take_along_axis(all_PK, reply_PG, axis=1)
  return logps_PG.reshape(-1, 1), jnp.broadcast_to(entropy_P1, reply_PG.shape).reshape(-1, 1)


def values(value_QM, asked, reply_PG):
  """Returns values_BT of replies under a table of questions and kinds of prompts."""
  return jnp.repeat(value_QM[asked.question_P, asked.kind_P], reply_PG.shape[1])[:, None]


def trainer(c):
  """Returns a function (seed, rate) -> [accuracy of answers, of verdicts on them] on new questions.

  Args:
    c: config, of which the methods, the prompts of a step, rollouts.per_prompt, kl and
      learner.epochs are read.
  """
  methods, group = build_methods.resolve_methods(c), c.rollouts.per_prompt
  advantage = updates.rewards_advantages_of(c, methods).compute
  policy_loss, kl_coef = updates.policy_loss_of(c, methods), jnp.float32(c.kl.coef)
  sets = [(AGAIN if x.name == "derived.reflection" else JUDGED[x.get("form", "verdict")],
           x.per_step, x.get("per_question", 1))
          for x in (c.prompts.get("derived") or {}).values()]
  count = c.prompts.per_step - sum(n for _, n, _ in sets)

  def loss(params, data):
    scored, *asked = data
    logps_BT, entropy_BT = logps(params, *asked)
    return policy_loss(scored.replace(logps_BT=logps_BT, entropy_BT=entropy_BT),
                       jnp.full(len(logps_BT), kl_coef))[0]

  def loss_of_values(value_QM, data):
    scored, *asked = data
    loss_BT = value_loss.clipped(values(value_QM, *asked[1:]), scored.values_BT,
                                 scored.returns_BT, scored.learn_BT)
    return records.Weighted(jnp.sum(loss_BT), jnp.float32(group))

  def sample(key, params, x_QKD, right_QK):
    """(prompts of a step, reply_PG, right_PG)."""
    keys = jax.random.split(key, 3 + len(sets))
    def reply(key, asked):
      reply_PG = jax.random.categorical(
          key, logits(params, x_QKD, asked), shape=(group, len(asked.kind_P))).T
      return reply_PG, verdicts(right_QK, asked, reply_PG)
    question_P = jax.random.permutation(keys[0], QUESTIONS)[:count]
    asked = Asked(jnp.full(count, ANSWER), question_P, *(jnp.zeros_like(question_P),) * 2)
    replies = reply(keys[1], asked)
    if not sets: return asked, *replies
    about = [derive(k, asked, *replies, *x) for k, x in zip(keys[3:], sets)]
    more = Asked(*map(jnp.concatenate, zip(*about)))
    return asked.join(more), *map(jnp.concatenate, zip(replies, reply(keys[2], more)))

  def step(env, first, learn_policy, learn_values, state, x):
    (policy, value), (i, key) = state, x
    asked, reply_PG, right_PG = sample(key, policy[0], *env)
    old_BT, ref_BT = (logps(p, env[0], asked, reply_PG)[0] for p in (policy[0], first))
    scored = tabular.record(
        jnp.ones(old_BT.shape, bool), 1.0 * right_PG.ravel(), tokens_BT=reply_PG.reshape(-1, 1),
        group=group, answer_B=reply_PG.ravel(), old_logps_BT=old_BT, sampler_logps_BT=old_BT,
        ref_logps_BT=ref_BT, values_BT=values(value[0], asked, reply_PG))
    scored = advantage(types.SimpleNamespace(kl_coef=kl_coef, method_state=None, step=i), scored)[0]
    data = (scored, env[0], asked, reply_PG)
    if methods.value_terms: value = learn_values(*value, data)
    for _ in range(c.learner.epochs): policy = learn_policy(*policy, data)
    return (policy, value), None

  def run(seed, rate):
    keys = jax.random.split(jax.random.key(seed), 5)
    teacher, first = start(keys[0]), start(keys[1])
    transforms = optax.sgd(rate), optax.sgd(0.5)
    learn_by = map(learn.step, (loss, loss_of_values), transforms)
    tables = first, jnp.zeros((QUESTIONS, 1 + PAIR))
    (policy, _), _ = jax.lax.scan(
        functools.partial(step, questions(keys[2], teacher, QUESTIONS), first, *learn_by),
        tuple((x, t.init(x)) for x, t in zip(tables, transforms)),
        (jnp.arange(STEPS), jax.random.split(keys[3], STEPS)))
    return measure(policy[0], *questions(keys[4], teacher, NEW))

  return run


def arms(configs):
  """Returns {name: arm} for {name: config}: values [I, answers and verdicts], scores of answers."""
  def arm(c):
    train = learn.arm(trainer(c))
    def measured(seeds, rates):
      values_I2 = np.asarray(train(seeds, rates))
      return values_I2, values_I2[:, 0]
    return measured
  return {name: arm(c) for name, c in configs.items()}
