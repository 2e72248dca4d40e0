"""Questions about own answers, as rlx/prompts/derived.py makes them."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.claims.environments import own_answers

# Answers 0 to 2 are right. Of four questions: some right, all right, all wrong, some right.
RIGHT_QK = jnp.broadcast_to(jnp.arange(8) < 3, (9, 8))
REPLY_PG = jnp.array([[0, 5, 5], [1, 1, 2], [7, 7, 7], [6, 2, 6]])
ASKED = own_answers.Asked(*jnp.array([[own_answers.ANSWER] * 4, [8, 3, 0, 5], [0] * 4, [0] * 4]))
RIGHT_PG = own_answers.verdicts(RIGHT_QK, ASKED, REPLY_PG)
REPLIES = {q: set(x) for q, x in zip((8, 3, 0, 5), REPLY_PG.tolist())}


@pytest.mark.parametrize("kind, per_question, possible", [
    (own_answers.VERDICT, 1, {8, 3, 0, 5}), (own_answers.PAIR, 1, {8, 5}),
    (own_answers.AGAIN, 1, {8, 0, 5}), (own_answers.VERDICT, 0, {8, 3, 0, 5})])
def test_requests(kind, per_question, possible):
  """Over many draws: which questions, which answers are shown, and the replies that are right."""
  asks, make = set(), jax.jit(jax.vmap(lambda key: own_answers.derive(
      key, ASKED, REPLY_PG, RIGHT_PG, kind, 4, per_question)))
  made = make(jax.random.split(jax.random.key(0), 50))
  for prompts in zip(*map(np.asarray, made)):
    ask = list(zip(*(x.tolist() for x in prompts)))
    asks |= {x for x in ask if x[0] == kind}
    of = [q for k, q, *_ in ask if k == kind]
    if per_question: assert set(of) == possible and len(of) == len(possible)
    else: assert len(set(ask)) == len(of) == 4
    assert {k for k, *_ in ask} <= {kind, own_answers.ANSWER}
  shown = {(q, *x[:1 + (kind == own_answers.PAIR)]) for _, q, *x in asks}
  assert shown == {
      own_answers.VERDICT: {(q, a) for q in REPLIES for a in REPLIES[q]},
      own_answers.PAIR: {(8, 0, 5), (8, 5, 0), (5, 2, 6), (5, 6, 2)},
      own_answers.AGAIN: {(8, 5), (0, 7), (5, 6)}}[kind]
  rows = own_answers.Asked(*jnp.array(sorted(asks)).T)
  right_PK = own_answers.verdicts(RIGHT_QK, rows, jnp.tile(jnp.arange(8), (len(asks), 1)))
  for (_, _, a, _), is_right_K in zip(sorted(asks), right_PK.tolist()):
    replies = {k for k in range(8) if is_right_K[k]}
    assert replies == ({0, 1, 2} if kind == own_answers.AGAIN else {int(a < 3)})


def test_the_chances_of_right_answers_and_of_right_verdicts_on_them():
  """Hidden units tanh(0) = 0 but one, which tells right answers; the heads read it."""
  params = {name: jnp.zeros_like(x) for name, x in own_answers.start(jax.random.key(0)).items()}
  params["hidden"] = params["hidden"].at[0, 0].set(100.0)
  x_QKD = jnp.zeros((2, 8, 8)).at[0, :2, 0].set(1.0)
  right_QK = x_QKD[..., 0] > 0
  read = lambda **heads: own_answers.measure(params | {
      name: params[name].at[0].set(x) for name, x in heads.items()}, x_QKD, right_QK)
  np.testing.assert_allclose(read(), [1 / 8, 1 / 2], atol=1e-6)
  # exp(log 3) = 3 for two of eight: 6 / 12 of the first question, 0 of the second.
  np.testing.assert_allclose(read(answer=np.log(3)), [1 / 4, 1 / 2], atol=1e-5)
  # Right answers of the first question have a right verdict with 3/4, all others with 1/2.
  np.testing.assert_allclose(
      read(answer=np.log(3), verdict=np.log(3)), [1 / 4, (0.5 * 0.75 + 0.5 * 0.5 + 0.5) / 2],
      atol=1e-5)
