"""Judges that learn beside the policy: their rewards and updates, and resuming."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rlx import build
from rlx.build import measuring, memory
from rlx.io import weights
from rlx.loops import rl
from rlx.models import logps
from rlx.stages import host_state, judge_replies, judging
from rlx.tools import convert
from rlx.verifiers import _replies, errors, judge, usage
from tests import test_judges_in_process as in_process, tiny

SECTION = "verifier.judges.own"
DIGITS = in_process.DIGITS | dict(model="judge", temperature=1.5)
STEPS = in_process.STEPS | dict(probability=False, temperature=1.0, whole=True,
                                max_tokens=128)
ONLINE = dict(replies=4, optimizer=dict(lr=1e-2, max_grad_norm=1e9))
written = in_process.written  # The fixture `folder`.


def config_of(folder, own=DIGITS, online=ONLINE, **changes):
  """A run whose completions a verifier checks, and a judge that learns to score them."""
  judges = {"own": own | dict(online=online)}
  return in_process.config_of(folder, judges, "format.ascii_share", **dict(
      verifier__scores=("judge.chat/own",), learner__minibatches=1,
      rewards=dict(outcome=dict(name="outcome.score", coef=1.0))) | changes)


def config_of_steps(folder, own=STEPS, **changes):
  """The same, and a judge of steps."""
  # A model that can write the lines.
  return config_of(folder, own | dict(model=str(folder / "model")), **dict(
      verifier__scores=(), verifier__steps="judge.steps/own", rollouts__step_separator="1",
      rewards=dict(steps=dict(name="steps.refine", coef=1.0)),
      advantages=dict(total=dict(name="process.reinforce"), whiten=False)) | changes)


@pytest.fixture(scope="module", name="run")
def built(folder): return build.build(config_of(folder))


def step_of(run, state):
  """(next state, replies of the step, metrics)."""
  kept, collect = [], judge_replies.JudgeReplies.__call__
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(judge_replies.JudgeReplies, "__call__",
                  lambda *args: kept.append(collect(*args)) or kept[-1])
    state, _, _, metrics = rl.iteration(run, state, host_state.HostState(rehearsed={}), 0,
                                        tiny.CLOCK)
  return state, kept[0][SECTION], metrics


def test_an_update_is_the_policy_gradient_of_right_verdicts(run):
  """The gradient of the step against one that is written down here; nothing else moves."""
  state = run.init()
  before = jax.device_get(state.scorers[SECTION])
  after, (rollouts, batch), metrics = step_of(run, state)
  config = run.updates[SECTION].learner.config
  reward_PG = batch.reward_B.reshape(-1, 4)
  asked_P = ~np.isnan(reward_PG).any(1)
  assert asked_P.sum() > 16 and 0.1 < reward_PG[asked_P].mean() < 0.9
  advantage_PG = np.nan_to_num((reward_PG - reward_PG.mean(1, keepdims=True))
                               / (reward_PG.std(1, ddof=1, keepdims=True) + 1e-6))
  mask_BT = rollouts.mask_BT

  def objective(params):  # The mean over replies of the mean over their tokens.
    logps_BT, *_ = logps.of_rollouts(params, config, rollouts.rows(), None, temperature=1.5,
                                     with_entropy=False)
    mean_B = jnp.sum(jnp.where(mask_BT, logps_BT, 0), 1) / np.maximum(mask_BT.sum(1), 1)
    return -jnp.sum(jnp.ravel(advantage_PG) * mean_B) / (4 * asked_P.sum())

  moments = optax.tree.get(after.scorers_opt[SECTION], "mu")
  jax.tree.map(lambda got, want: np.testing.assert_allclose(got, 0.1 * want, atol=2e-7),
               moments, jax.grad(objective)(before))
  assert max(float(jnp.max(jnp.abs(x))) for x in jax.tree.leaves(moments)) > 1e-4
  assert metrics[f"{SECTION}/accuracy"] == pytest.approx(reward_PG[asked_P].mean())
  assert metrics[f"{SECTION}/replies"] == 4 * asked_P.sum()
  assert metrics[f"{SECTION}/sampler_gap_max"] < 1e-4


def test_it_becomes_better_and_a_frozen_one_of_its_path_stays(folder):
  c = config_of(folder, verifier__scores=("judge.chat/own", "judge.chat/frozen"),
                learner__optimizer__lr=0.0)
  with c.unlocked(): c.verifier.judges.frozen = DIGITS | dict(model=str(folder / "judge"))
  run = build.build(c)
  state = run.init()
  assert {*state.scorers} == {SECTION} and {*state.frozen_models} == {"verifier.judges.frozen"}
  frozen, accuracies = jax.device_get(state.frozen_models), []
  for step in range(12):
    state, _, _, metrics = rl.iteration(run, state, host_state.HostState(rehearsed={}), step,
                                        tiny.CLOCK)
    accuracies.append(float(metrics[f"{SECTION}/accuracy"]))
  assert np.mean(accuracies[-3:]) > np.mean(accuracies[:3]) + 0.1, accuracies
  tiny.assert_equal_trees(state.frozen_models, frozen)


def test_a_run_resumes_bit_for_bit(folder, tmp_path, run):
  """Killed after a step; several updates a step, replies weighted by the class of their label."""
  c = config_of(folder, online=ONLINE | dict(epochs=2, minibatches=2, balanced=True),
                checkpoint__every=1, steps=3)
  run = tiny.build_run(c)
  with tiny.building(run): rl.train(c, tmp_path / "whole")
  lines = tiny.lines(tmp_path / "whole")
  assert all(0 < line[f"{SECTION}/accuracy"] < 1 for line in lines)
  workdir = tiny.killed_after(tmp_path / "whole", 2, tmp_path / "killed")
  with tiny.building(run): rl.train(c, workdir)
  np.testing.assert_equal(tiny.lines(workdir), lines)
  states = [tiny.restored(run, x)[0] for x in (workdir, tmp_path / "whole")]
  tiny.assert_equal_trees(*states)
  convert.convert(workdir, tmp_path / "judge", model="own")
  config, params, _ = weights.load(tmp_path / "judge")
  assert not config.has_head
  tiny.assert_equal_trees(params, states[0].scorers[SECTION])
  with pytest.raises(ValueError, match="model='other': the run has no such model; .* policy, own"):
    convert.convert(workdir, tmp_path / "other", model="other")


def test_replies_are_rewarded_for_the_verdict_on_the_whole(folder):
  """Written replies in place of drawn ones; steps are scored by the first reply to a request."""
  run = build.build(config_of_steps(folder))
  (local,), task = run.judges.local.values(), run.judges.tasks[SECTION]
  state, tokenizer = run.init(), local.sampler.texts.tokenizer
  prompts = [run.prompts.first(2)[i] for i in (0, 0, 0, 1, 1)]
  texts = ["a1b", "a1b", "c", "a1b1", "d"]
  outcome_B = np.array([1, 1, 0, 0.2, np.nan])
  words = {"a1b": ["yn:y", "nn:n", "yy:", "y"], "c": ["y:n", "y:y", "n:n", "cut"],
           "a1b1": ["nn:n"] * 4, "d": ["y:y"] * 4}

  def draw(self, params, requests, width, key):
    drawn = []
    for request in requests:
      text = "".join(x for name, x in request.slots.items() if name.startswith("step"))
      rows = []
      for form in words[text]:
        steps, _, whole = form.partition(":")
        lines = [f"Verdict {request.nonce} {n}: {'yes' if x == 'y' else 'no'}"
                 for n, x in enumerate(steps, 1)] * (form != "cut")
        lines += [f"Verdict {request.nonce}: {'yes' if whole == 'y' else 'no'}"] * bool(whole)
        ids = tokenizer.encode("\n".join(lines) or "a", add_bos=False)
        rows.append((ids, np.full(len(ids) + 3, -1, np.float32), int(form != "cut")))
      drawn.append(rows)
    return drawn

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(judging.LocalJudge, "draw", draw)
    run.outcomes.hold(state)
    steps = run.outcomes.verifiers.lists("judge.steps/own", prompts, texts)
    assert steps == [[1, 0], [1, 0], [1], [0, 0], [1]]
    collected = judge_replies.JudgeReplies(run.judges)(prompts, texts, outcome_B)
  rollouts, batch = collected[SECTION]
  nan = np.nan
  np.testing.assert_array_equal(batch.reward_B.reshape(5, 4), [
      [1, 0, 0, 0],    # yes, no, no verdict on the whole, no verdicts on all steps but a last line
      [nan] * 4,       # an equal request
      [1, 0, 1, 0],    # the last is cut
      [1] * 4, [nan] * 4])
  np.testing.assert_array_equal(rollouts.completion_len_B.reshape(5, 4) > 0, ~np.isnan(
      batch.reward_B.reshape(5, 4)))
  assert batch.label_B.reshape(5, 4)[:, 0].tolist() == [True, False, False, False, False]
  assert (rollouts.sampler_logps_BT[rollouts.mask_BT] == -1).all()
  asked, _ = judge.plan_request(task.path, prompts[2], "c", task.options)
  x, n = rollouts.prompt_width, rollouts.prompt_len_B[8]
  assert tokenizer.decode(rollouts.tokens_BS[8, x - n:x].tolist()) == asked.text


def test_devices_share_the_replies(folder):
  """Four devices, packed rows and microbatches: the same replies and the same update."""
  spread = build.build(config_of(folder, mesh=dict(data=2, fsdp=2, tensor=1), learner__pack=True,
                                 online=ONLINE | dict(microbatches=2)))
  (state, (_, batch), _), (want, (_, alone), _) = (
      step_of(x, x.init()) for x in (spread, tiny.build_run(config_of(folder))))
  np.testing.assert_array_equal(batch.reward_B, alone.reward_B)
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-7), *(
      jax.device_get(optax.tree.get(x.scorers_opt[SECTION], "mu")) for x in (state, want)))


def test_rlx_evaluate_asks_a_judge_that_learns_as_a_frozen_one(folder):
  prompts = build.build(config_of(folder)).prompts.first(1)
  usage.take()
  measured = [measuring.build_judge(config_of(folder, online=online, verifier__scores=()), prompts,
                                    judge="judge.chat/own") for online in (ONLINE, {})]
  scores = [x.score(prompts * 4, in_process.TEXTS) for x in measured]
  np.testing.assert_array_equal(*scores)
  assert measured[0].close()["judge/requests"] == 2 * len(in_process.TEXTS)
  measured[1].close()


def test_memory_counts_it(run):
  names = [p.name for p in memory.trace_programs(run, run.shapes())]
  assert f"{SECTION} update" in names and f"prefill, judge {SECTION}" in names
  state = run.shapes()
  assert f"{SECTION} + optimizer" in memory.count_state_bytes(state)
  assert memory.estimate_bytes(run, state)[f"activations of the update of {SECTION}"] > 0


def test_a_line_without_a_number_is_the_verdict_on_the_whole():
  parse = lambda text, numbers=(1, 2, None): _replies.parse(
      judge.Reply(text, "N0"), "yes_no", numbers=numbers)
  assert parse("Verdict N0 1: yes\nVerdict N0 2: no\nVerdict N0: no") == [1, 0, 0]
  assert parse("Verdict N0: yes\nVerdict N0 2: no")[1:] == [0, 1]
  first, _, whole = parse("Verdict N0 1: yes\nVerdict N0: no\nVerdict N0: yes")
  assert first == 1 and np.isnan(whole)  # They differ.
  with pytest.raises(errors.Unknown, match="a verdict on item 3"):
    parse("Verdict N0 3: yes\nVerdict N0: no")
  with pytest.raises(errors.Unknown, match="has to match"): parse("Verdict N0: no", (1, 2))
