"""Judges in process: their replies, their determinism, runs with them, and what is refused."""
import dataclasses
import string

import jax
import numpy as np
import pytest

from rlx import build
from rlx.build import measuring, memory
from rlx.io import hf, tokenizer
from rlx.loops import rl
from rlx.models import logps, transformer
from rlx.rollouts import trajectories
from rlx.stages import judging
from rlx.verifiers import _judge_forms, usage
from tests import tiny
from tests.verifiers import endpoint

ASCII = string.digits + string.ascii_lowercase + "V[];:. \n"
RUBRIC = (dict(name="short"), dict(name="has letters", weight=2))
SHORT = dict(template="{question}\n[{nonce}]\n{answer}\n[end {nonce}]", prompt_tokens=96,
             max_tokens=4)
ITEMS = SHORT | dict(template=SHORT["template"] + "{items}", probability=True, max_tokens=5)
STEPS = SHORT | dict(template="{nonce}\n{steps}", probability=True, prompt_tokens=256)
# A line of random characters is a score, or none.
DIGITS = SHORT | dict(reads=r"[^0-9]*([0-9]).*(?:{nonce})?", full=9.0, temperature=20.0,
                      max_tokens=8)
TEXTS = ["a1b", "b", "", "c;cc;1"]


@pytest.fixture(scope="module", name="folder")
def written(tmp_path_factory):
  """A policy, and a model "judge" of another size and tokenizer, of which many tokens are ends."""
  folder = tmp_path_factory.mktemp("judging")
  tiny.write(folder, alphabet=ASCII)
  tokens = tokenizer.characters(ASCII[::-1])
  config = transformer.DecoderConfig(vocab_size=len(tokens.vocabulary), d_model=24, n_layers=2,
                                     n_heads=4, n_kv_heads=2, head_dim=6, d_ff=16)
  hf.save(folder / "judge", config, tiny.draw_decoder(config), dataclasses.replace(
      tokens, eos_ids=(1, *tokens.encode(string.ascii_lowercase[12:]))))
  return folder


JUDGES = dict(policy=ITEMS | dict(model="policy"), reference=ITEMS | dict(model="reference"),
              judge=ITEMS | dict(model="judge"), sampled=DIGITS | dict(model="judge"),
              fn=dict(function="tests.test_judges_in_process:likes_letters", template="{answer}"),
              here=dict(SHORT, model="policy", probability=True),
              both=dict(of=("here", "fn"), vote="minimum"))


def config_of(folder, judges=JUDGES, verifier="judge.chat/sampled", **changes):
  judges = {name: {k: str(folder / x) if x == "judge" else x for k, x in own.items()}
            for name, own in judges.items()}
  changes = dict(
      verifier__judges=judges, verifier__judge__concurrent=8, verifier__workers=1,
      verifier__max_error_rate=1.0, prompts__columns=dict(verifier=verifier),
      rollouts__filter_groups=dict(name="filter_groups.with_verdict"), rollouts__fill="failed",
      rollouts__max_draws=1, rollouts__oversample=1.0,
      rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)),
      advantages=dict(outcome=dict(name="group.rloo"), whiten=False)) | changes
  return tiny.config(folder, **changes)


@pytest.fixture(scope="module", name="run")
def built(folder): return build.build(config_of(folder, verifier__default_items=RUBRIC))


def ask(run, path, texts=TEXTS, state=None):
  """What judges say of completions of the first prompt."""
  run.outcomes.hold(state or run.init())
  prompt = dataclasses.replace(run.prompts.first(1)[0], verifier=path)
  return run.pool._run([prompt] * len(texts), texts, object)


@pytest.mark.parametrize("model", ["policy", "reference", "judge"])
def test_a_verdict_is_the_probability_of_its_word(run, model):
  """P(yes) / (P(yes) + P(no)) after the request and the beginning of the line, by one pass each."""
  usage.take()
  given, state = ask(run, f"judge.rubric/{model}"), run.init()
  assert usage.take()["judge/requests"] == len(TEXTS)
  assert "verifier.judges.judge" in memory.count_state_bytes(run.shapes())
  (own,) = [x for k, x in run.judges.local.items() if k[0].endswith(model) and k[2] == 5]
  params = state.join_params(own.params)
  tokens = own.sampler.texts.tokenizer
  config = dataclasses.replace(own.sampler.config, remat="none")
  prompt = dataclasses.replace(run.prompts.first(1)[0], verifier="judge.rubric")
  options = _judge_forms.complete(_judge_forms.FORMS["rubric"], run.pool._options["judge"] | ITEMS)
  requests = [_judge_forms.FORMS["rubric"].plan(prompt, [text], options)[0] for text in TEXTS]
  rows = trajectories.pairs(
      [tokens.encode(f"{x.text}Verdict {x.nonce} {n}: ") for x in requests for n in (1, 2)],
      [[0]] * 8, tokens, 1, 256)
  logits_NV = np.asarray(jax.jit(logps.logits, static_argnums=1)(params, config, rows))[:, 0]
  yes_no_N2 = np.exp(logits_NV[:, [tokens.vocabulary[x] for x in "yn"]])
  np.testing.assert_allclose(np.ravel(given), yes_no_N2[:, 0] / yes_no_N2.sum(1), atol=1e-5)
  assert np.std(given) > 1e-4
  moved = state.replace(policy=jax.tree.map(lambda x: 1.5 * x, state.policy))
  assert (ask(run, f"judge.rubric/{model}", state=moved) == given) == (model != "policy")


@pytest.mark.parametrize("model", ["policy", "reference", "judge"])
def test_rlx_evaluate_asks_it_as_a_run_does(run, folder, model):
  prompt = run.prompts.first(1)[0]
  c = config_of(folder, verifier__default_items=RUBRIC)
  if model == "judge":
    with c.unlocked(): c.verifier.judges = {model: c.verifier.judges[model]}
    c.model.path = None  # It has a model of its own.
  measured = measuring.build_judge(c, [prompt], judge=f"judge.rubric/{model}")
  usage.take()
  scores = measured.score([prompt] * len(TEXTS), TEXTS)
  assert measured.close()["judge/requests"] == len(TEXTS)
  items = np.array(ask(run, f"judge.rubric/{model}"))
  np.testing.assert_allclose(scores, (items[:, 0] + 2 * items[:, 1]) / 3, atol=1e-6)
  assert np.std(scores) > 1e-4


def test_a_model_here_is_asked_as_one_at_an_endpoint(run, folder):
  """The requests, and what becomes of the replies, whoever replies."""
  state, sent = run.init(), {}
  own = judging.LocalJudge
  write = own.write
  with pytest.MonkeyPatch.context() as patch:
    def watched(self, params, requests, *more):
      replies = write(self, params, requests, *more)
      sent.update({request.text: reply for request, reply in zip(requests, replies)})
      return replies
    patch.setattr(own, "write", watched)
    usage.take()
    given = ask(run, "judge.chat/sampled", TEXTS * 8, state)
  assert len(sent) == len(TEXTS)  # Equal requests are sent once.
  counts = usage.take()
  assert counts["judge/requests"] == 4 and 4 <= counts["judge/completion_tokens"] <= 32
  assert counts["judge/prompt_tokens"] == sum(map(len, sent))  # A token is a character.
  reply = lambda text: None if isinstance(sent[text], Exception) else sent[text].content
  with endpoint.serve(reply) as server:
    there = build.build(config_of(folder, {"sampled": dict(DIGITS, model="m", url=server.url,
                                                           retries=0)}))
    np.testing.assert_array_equal(ask(there, "judge.chat/sampled", TEXTS * 8), given)
    there.close()
    assert {x["messages"][0]["content"] for x in server.bodies} == {*sent}
  assert np.isfinite(given).any()


def test_a_reply_depends_on_seed_step_and_request_alone(run, folder):
  """Not on the other requests, the devices, the slots or the call."""
  texts = [f"{i}a" for i in range(12)]
  given = ask(run, "judge.chat/sampled", texts)
  assert np.isfinite(given).sum() > 2
  np.testing.assert_array_equal(ask(run, "judge.chat/sampled", texts[::-1])[::-1], given)
  np.testing.assert_array_equal(ask(run, "judge.chat/sampled", texts[:3]), given[:3])
  spread = build.build(config_of(folder, mesh=dict(data=2, fsdp=2, tensor=1), rollouts__slots=16,
                                 verifier__judge__concurrent=32))
  assert {x.sampler.slots for x in spread.judges.local.values()} == {16}
  np.testing.assert_array_equal(ask(spread, "judge.chat/sampled", texts), given)
  np.testing.assert_allclose(*(ask(x, "judge.chat/here", texts) for x in (spread, run)), atol=1e-5)
  later = ask(run, "judge.chat/sampled", texts, run.init().replace(step=1))
  assert not np.array_equal(later, given, equal_nan=True)


def test_a_run_with_a_judge_is_evaluated_by_it_and_resumes_bit_for_bit(folder, tmp_path):
  """A frozen model judges the answers, the policy as it is now the steps; killed after a step."""
  judges = dict(sampled=JUDGES["sampled"], steps=STEPS | dict(model="policy", per_item=True))
  c = config_of(folder, judges, verifier__steps="judge.steps/steps", rollouts__step_separator="1",
                rewards=dict(process=dict(name="steps.refine", coef=1.0),
                             outcome=dict(name="outcome.verdict", coef=1.0)),
                advantages=dict(total=dict(name="process.reinforce"), whiten=False),
                checkpoint__every=1, steps=3, eval__every=1)
  run = tiny.build_run(c)
  with tiny.building(run): whole = rl.train(c, tmp_path / "whole")
  lines = tiny.lines(tmp_path / "whole")
  assert all(line["judge/requests"] > 32 and line["judge/completion_tokens"] > 0 for line in lines)
  assert 0 < whole["before"]["greedy"]["mean"] < 1 and whole["before"]["greedy"]["unknown"] < 1
  assert {"verifier.judges.sampled"} == {*run.init().frozen_models}
  traced = [p.name for p in memory.trace_programs(run, run.shapes())]
  assert {"prefill, judge policy", "prefill, judge verifier.judges.sampled"} <= {*traced}
  assert memory.cache_bytes(run)["KV cache of judges"] > 0
  workdir = tiny.killed_after(tmp_path / "whole", 2, tmp_path / "killed")
  usage.take()  # Of the last evaluation.
  with tiny.building(run): rl.train(c, workdir)
  np.testing.assert_equal(tiny.lines(workdir), lines)  # NaN is NaN.
  tiny.assert_equal_trees(*(tiny.restored(run, x)[0] for x in (workdir, tmp_path / "whole")))


def test_replies_of_a_frozen_judge_are_kept_until_its_files_change(folder, tmp_path):
  c = config_of(folder, {"sampled": JUDGES["sampled"] | dict(cache=str(tmp_path))})
  def counts():
    usage.take()
    ask(build.build(c), "judge.chat/sampled", list("abcdefgh"))
    return usage.take()
  assert counts()["judge/requests"] == 8
  again = counts()  # What could not be read is asked again.
  assert 0 < again["judge/cached"] == 8 - again["judge/requests"] < 8
  (folder / "judge/config.json").touch()
  assert "judge/cached" not in counts()


def test_a_panel_joins_judges_here_and_functions(run):
  here, fn, both = (ask(run, f"judge.chat/{x}", ["a1", "bb"]) for x in ("here", "fn", "both"))
  np.testing.assert_allclose(both, np.minimum(here, fn))
  assert fn == [0.5, 1.0] and len({*here}) == 2


def likes_letters(text): return sum(map(str.isalpha, text)) / 2


@pytest.mark.parametrize("text, message", [
    ("1" * 80, "verifier.judge.prompt_tokens=96: a request has 118 tokens"),
    ("é", "cannot encode")])
def test_requests_that_do_not_fit_are_unknown(run, text, message):
  usage.take()
  before = run.pool.errors["unknown"]
  assert np.isnan(ask(run, "judge.chat/sampled", [text])).all()
  assert run.pool.errors["unknown"] == before + 1 and usage.take()["judge/failed"] == 1
  assert message in run.pool.last_error


@pytest.mark.parametrize("own, message", [
    (dict(model="judge", prompt_tokens=38),
     "^judge.chat/mine: verifier.judge.prompt_tokens=38: a request has 39 tokens, of the longest"),
    (dict(model="gpt"), r"^verifier.judge.url=None: judge.chat needs it for model='gpt'"),
    (dict(model="policy", function="a:b"), "function='a:b': None with model='policy', which runs"),
    (dict(model="reference", cache="x"), "cache='x': None with model='reference', whose weights"),
    (dict(model="policy", probability=True, reads="good=1 great=0.5 bad=0"),
     "of the words good, great, bad two begin with the same token"),
    (dict(model="./nowhere"), r"^verifier.judges.mine.model='nowhere' is missing")], ids=str)
def test_what_is_refused(folder, own, message):
  with pytest.raises(ValueError, match=message) as e:
    build.build(config_of(folder, {"mine": SHORT | own}, "judge.chat/mine"))
  assert "\n" not in str(e.value)
