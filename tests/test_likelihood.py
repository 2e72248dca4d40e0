"""The extra pass over reference answers, against forward passes of one text each."""
import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import base
from rlx import build
from rlx.build import memory as run_memory
from rlx.io import hf, tokenizer as io_tokenizer
from rlx.models import transformer
from tests import stages

TOKENS = io_tokenizer.characters("0123456789ab;#")
CONFIG = transformer.DecoderConfig(
    vocab_size=len(TOKENS.vocabulary), d_model=16, n_layers=1, n_heads=4,
    n_kv_heads=2, head_dim=4, d_ff=32)
EOS = TOKENS.eos_ids[0]
# Two completions of each of two prompts: with an answer, cut, two separators, empty.
COMPLETIONS = [TOKENS.encode("1;22;3#4") + [EOS], TOKENS.encode("5;6"),
               TOKENS.encode("a#b#77") + [EOS], [EOS]]
REASONED = ["1;22;3#", "5;6", "a#b#", ""]
OPTIONS = {"reference": dict(baseline="diff"), "last_token": dict(c_ref=-3.0)}
NAMES = ("reference", "turn_gain", "answer_confidence", "self_aligned", "last_token")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  """A random model whose log-probs differ, and answers of one to three tokens."""
  folder = tmp_path_factory.mktemp("files")
  params = transformer.init(CONFIG, jax.random.key(0))
  params["embed"]["w_VD"] *= 15
  hf.save(folder / "model", CONFIG, params, TOKENS)
  for split, first in (("train", "a"), ("test", "b")):
    rows = [dict(question=first + "1" * i, answer=str(10 ** (i % 3))) for i in range(1, 5)]
    (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
  return folder


def config_of(files, **likelihood):
  c = base.get_config()
  c.model.path = str(files / "model")
  c.prompts.source, c.prompts.dataset = f"jsonl:{files}/{{split}}.jsonl", "jsonl"
  c.prompts.columns = dict(verifier="format.ascii_share")
  c.prompts.per_step, c.prompts.max_tokens = 2, 8
  c.rollouts.per_prompt, c.rollouts.max_tokens, c.rollouts.bucket = 2, 12, 8
  c.rollouts.step_separator = ";"
  c.rollouts.decoding.temperature = 0.7
  c.eval.prompts = c.eval.batch = 2
  c.rewards = {n: dict(name=f"likelihood.{n}", coef=1.0, **OPTIONS.get(n, {})) for n in NAMES}
  c.advantages = dict(total=dict(name="temporal.return_to_go"), whiten=False)
  c.likelihood.update(dict(separator="#", max_tokens=4, steps=2, token="9"), **likelihood)
  return c


@jax.jit
def logits_of(params, row):
  hidden = transformer.hidden(params, CONFIG, row, jnp.arange(row.shape[1])[None],
                              jnp.ones(row.shape, bool))
  return transformer.logits(params, CONFIG, hidden)[0]


def plain(params, before, ids, temperature=1.0):
  """log p(ids | before) of one row that starts in column 0, by the logits themselves."""
  row = before + ids
  tail = [2] * (32 - len(row))  # One shape to compile: nothing sees what comes after it.
  logps = jax.nn.log_softmax(logits_of(params, jnp.array([row + tail])) / temperature)
  return np.asarray(logps)[np.arange(len(before), len(row)) - 1, ids]


@pytest.fixture(scope="module", params=["policy on devices", "reference"])
def scored(request, files):
  """(run, its prompts, parameters of policy and of who is asked, Batch)."""
  c = config_of(files)
  if request.param == "reference": c.likelihood.model, c.learner.microbatches = "reference", 2
  else: c.mesh.data = 2
  run = build.build(c)
  prompts = run.prompts.take(2)
  state = run.init()
  assert (state.reference is None) == (request.param != "reference")
  # The policy has moved on: it is no more its own start.
  state = state.replace(policy=jax.tree.map(lambda x: 1.5 * x, state.policy))
  rollouts = stages.rollouts(run, prompts, COMPLETIONS, 12)
  batch = stages.score(run, state, rollouts, [1., 0., 1., 0.], prompts).batch
  return run, prompts, state.policy, state.join_params(run.passes.asked), state, batch


def test_answers_are_scored_after_the_reasoning_and_without(scored):
  run, prompts, _, asked, _, batch = scored
  m = run.sizes.axes["M"]
  for b, reasoned in enumerate(REASONED):
    prompt = prompts[b // 2]
    before, answer = TOKENS.encode(prompt.text), TOKENS.encode(prompt.answer)
    np.testing.assert_array_equal(batch.answer_mask_BM[b], np.arange(m) < len(answer))
    for got, reasoning in ((batch.answer_logps_BM, reasoned), (batch.base_answer_logps_BM, "#")):
      want = plain(asked, before + TOKENS.encode(reasoning), answer)
      np.testing.assert_allclose(got[b, :len(answer)], want, atol=2e-5)
      np.testing.assert_array_equal(got[b, len(answer):], 0)
  assert np.ptp(batch.answer_logps_BM[:, 0]) > 0.1


def test_answers_are_scored_after_each_step(scored):
  _, prompts, _, asked, _, batch = scored
  # The first two steps of every completion; one that has ended is at its base again.
  steps = [["1;", "1;22;"], ["5;", "5;6"], ["a#b#77", ""], ["", ""]]
  for b, texts in enumerate(steps):
    prompt = prompts[b // 2]
    before, answer = TOKENS.encode(prompt.text), TOKENS.encode(prompt.answer)
    np.testing.assert_array_equal(batch.step_answer_logps_BJM[b, 0], batch.base_answer_logps_BM[b])
    for j, text in enumerate(texts):
      want = plain(asked, before + TOKENS.encode(text + "#"), answer)
      got = batch.step_answer_logps_BJM[b, j + 1, :len(answer)]
      np.testing.assert_allclose(got, want, atol=2e-5)


def test_fields_of_the_completion_itself(scored):
  _, prompts, policy, asked, _, batch = scored
  spans = [[7], [], [4, 5], []]
  for b, ids in enumerate(COMPLETIONS):
    np.testing.assert_array_equal(np.flatnonzero(batch.answer_span_BT[b]), spans[b])
    before = TOKENS.encode(prompts[b // 2].text)
    np.testing.assert_allclose(batch.noprompt_logps_BT[b, :len(ids)],
                               plain(policy, [EOS], ids, 0.7), atol=2e-5)
    want = plain(policy, before + ids, TOKENS.encode("9"))[0]
    np.testing.assert_allclose(batch.self_logps_B[b], want, atol=2e-5)


def test_rewards_read_them_and_preflight_knows_their_shapes(scored):
  run, _, _, _, state, batch = scored
  out, metrics = run.rewards_advantages.compute_from_batch(state, batch)
  assert np.isfinite(out.advantages_BT).all() and np.ptp(out.advantages_BT) > 0
  assert all(f"rewards/{name}" in metrics for name in NAMES)
  # What is traced before the run has the fields and types of the batch.
  planned = {f.name: f.dtype for f in run.planned if f.axes and f.where in ("host", "model")}
  assert planned.keys() >= {
      "answer_logps_BM", "answer_mask_BM", "base_answer_logps_BM", "step_answer_logps_BJM",
      "answer_span_BT", "noprompt_logps_BT", "self_logps_B"}
  for name, dtype in planned.items(): assert batch.columns[name].dtype == dtype, name
  stages = run_memory.estimate_bytes(run, run.shapes())
  longer = dataclasses.replace(run.sizes, axes=run.sizes.axes | dict(M=run.sizes.axes["M"] + 100))
  more = run_memory.estimate_bytes(dataclasses.replace(run, sizes=longer), run.shapes())
  assert [k for k in stages if more[k] > stages[k]] == ["activations of scoring"]


@pytest.mark.parametrize("changes, message", [
    (dict(max_tokens=2), "likelihood.max_tokens=2: the reference answer of .* has 3 tok"),
    (dict(answer="<{}>"), "cannot encode '<"),
    (dict(token="<none>"), "likelihood.token='<none>': a token of the vocabulary"),
])
def test_refusals(files, changes, message):
  with pytest.raises(ValueError, match=message) as e:
    build.build(config_of(files, **changes))
  assert "\n" not in str(e.value)
