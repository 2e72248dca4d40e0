"""Further passes over texts of the batch, for rewards that are likelihoods."""
import jax.numpy as jnp
import numpy as np

from rlx.learner import hosts
from rlx.rollouts import answers as answers_lib
from rlx.rollouts import padding


def make(c, methods, tokenizer, answer_of, logps_of, step_ends):
  """(state, rollouts) -> the fields of Scored that likelihood rewards read, if asked for.

  Rows are put together on the host, one model runs over them. A base is run
  once per prompt.

  Args:
    answer_of: (number of a prompt, its ids) -> ids of its reference answer.
    logps_of: (params, rollouts, temperature) -> logps_BT.
    step_ends: rollouts -> bool [B, T].
  """
  needs = methods.needs
  token, separator = token_id(c, tokenizer), c.likelihood.separator
  most, group = c.likelihood.max_tokens, c.rollouts.per_prompt
  announced = [] if separator is None else tokenizer.encode(separator, add_bos=False)
  start = tokenizer.eos_ids[0] if tokenizer.bos_id is None else tokenizer.bos_id
  wanted = [f for f in shapes(c, 0, 0) if needs(f)]

  def asks(params, prompts, answers, width, temperature=1.0):
    rollouts = answers_lib.rows(prompts, answers, bucket=c.rollouts.bucket, width=width,
                                pad_id=tokenizer.pad_id)
    return logps_of(params, rollouts, temperature), rollouts.mask_BT

  def of(state, rollouts):
    if not wanted: return {}
    found, rollouts = {}, hosts.fetch(rollouts)
    x, completions = rollouts.prompt_width, padding.completions(rollouts)
    width = rollouts.sampler_logps_BT.shape[1]
    prompts = [ids[x - n:x].tolist() for ids, n in zip(
        rollouts.tokens_BS, rollouts.prompt_len_B)]
    after = lambda reasoned: [a + b for a, b in zip(prompts, reasoned)]
    reasoned, starts, ends = zip(*(answers_lib.split(ids, tokenizer, separator)
                                   for ids in completions))
    policy, asked = state.full("policy"), state.full(c.likelihood.model)
    if needs("answer_mask_BM"):
      answers = [answer_of(number, ids) for number, ids in zip(
          rollouts.prompt_P, prompts[::group]) for _ in range(group)]
      logps_BM, mask_BM = asks(asked, after(reasoned), answers, most)
      found |= dict(answer_logps_BM=logps_BM, answer_mask_BM=mask_BM)
    if needs("base_answer_logps_BM") or needs("step_answer_logps_BJM"):
      base_PM, _ = asks(asked, after([announced] * len(prompts))[::group],
                        answers[::group], most)
      found["base_answer_logps_BM"] = base_BM = jnp.repeat(base_PM, group, axis=0)
    if needs("step_answer_logps_BJM"):
      stops = [np.flatnonzero(row) + 1 for row in step_ends(rollouts)]
      steps = [asks(asked, after([
          ids[:stop[j]] + announced if j < len(stop) else announced
          for ids, stop in zip(completions, stops)]), answers, most)[0]
               for j in range(c.likelihood.steps)]
      found["step_answer_logps_BJM"] = jnp.stack([base_BM, *steps], axis=1)
    if needs("answer_span_BT"):
      columns_1T = np.arange(width)[None, :]
      found["answer_span_BT"] = ((columns_1T >= np.array(starts)[:, None])
                                 & (columns_1T < np.array(ends)[:, None]))
    if needs("noprompt_logps_BT"):
      found["noprompt_logps_BT"], _ = asks(
          policy, [[start]] * len(prompts), completions, width,
          c.rollouts.decoding.temperature)
    if needs("self_logps_B"):
      logps_B1, _ = asks(policy, after(completions), [[token]] * len(prompts), 1)
      found["self_logps_B"] = logps_B1[:, 0]
    return {f: found[f] for f in wanted}

  return of


def token_id(c, tokenizer):
  """Of likelihood.token; None without one.

  Raises:
    ValueError: it is no token of the vocabulary.
  """
  token = c.likelihood.token
  if token is not None and token not in tokenizer.vocabulary:
    raise ValueError(f"likelihood.token={token!r}: a token of the vocabulary.")
  return tokenizer.vocabulary.get(token)


def shapes(c, b, t):
  """{field: (shape, dtype)} of what `make` may compute."""
  m, j = c.likelihood.max_tokens, c.likelihood.steps + 1
  floats = dict(answer_logps_BM=(b, m), base_answer_logps_BM=(b, m),
                step_answer_logps_BJM=(b, j, m), noprompt_logps_BT=(b, t),
                self_logps_B=(b,))
  bools = dict(answer_mask_BM=(b, m), answer_span_BT=(b, t))
  return {**{f: (shape, jnp.float32) for f, shape in floats.items()},
          **{f: (shape, bool) for f, shape in bools.items()}}
