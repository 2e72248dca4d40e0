"""Advantages that configs of papers give, worked by hand."""
import dataclasses
import importlib
import re
import types

import numpy as np
import pytest

from rlx.build import judges, load, methods as build_methods, updates, validation
from rlx.core import records
from rlx.prompts.datasets import segments
from rlx.verifiers import judge as judge_lib, labels, pool
from tests.verifiers import endpoint

# Two completions of a prompt, of two steps of two tokens each.
ENDS_BT = np.array([[False, True, False, True]] * 2)


def advantages(key, outcome_B, *, changes=(), **fields):
  """Of completions of four tokens, two of each prompt."""
  c = importlib.import_module(f"configs.papers.{key}").get_config()
  for section, values in dict(changes).items(): c.rewards[section].update(values)
  scored = records.Batch(action_BT=np.ones((len(outcome_B), 4), bool), group=2,
                         outcome_B=np.array(outcome_B), **fields)
  stage = updates.rewards_advantages_of(c, build_methods.resolve_methods(c))
  state = types.SimpleNamespace(kl_coef=c.kl.coef, step=1000)
  return stage.compute_from_batch(state, scored)[0].advantages_BT


def test_pav():
  # Values 1 to 1 to 1 and 1 to 1 to 0; leave-one-out of the verdicts is 1 and -1.
  scores_BT = np.array([[np.nan, 1., np.nan, 1.], [np.nan, 1., np.nan, 0.]])
  got_BT = advantages("pav", [1., 0.], step_scores_BT=scores_BT, step_ends_BT=ENDS_BT)
  np.testing.assert_allclose(got_BT, [[1, 1, 1, 1], [-1, -1, -6, -6]], atol=1e-6)


@pytest.mark.parametrize("outcome, steps, expected", [(3.0, 1.0, 1), (1.0, 3.0, -1)])
def test_gdpo(outcome, steps, expected):
  # The rewards rank the completions oppositely, with equal z-scores: the weights decide,
  # and not that the verdicts are further apart than the shares of right steps.
  scores_BT = np.array([[0., .5, 0., .5], [0., .5, 0., .6]])
  got_BT = advantages("gdpo", [1., 0.], step_scores_BT=scores_BT, step_ends_BT=ENDS_BT,
                      changes=dict(outcome=dict(coef=outcome), steps=dict(coef=steps)))
  np.testing.assert_allclose(got_BT, [[expected] * 4, [-expected] * 4], rtol=.1)


def test_capo():
  # Token rewards 2, 2, 1, 1 of a right answer with a wrong second step, and 0, 0, 0, 0:
  # mean 3/4 and variance (2 * 1.25^2 + 2 * .25^2 + 4 * .75^2) / 7 = 11/14.
  scores_BT = np.array([[0., 1., 0., 0.], [0., 1., 0., 1.]])
  got_BT = advantages("capo", [1., 0.], step_scores_BT=scores_BT, step_ends_BT=ENDS_BT)
  np.testing.assert_allclose(
      got_BT, np.array([[1.25, 1.25, .25, .25], [-.75] * 4]) / np.sqrt(11 / 14), rtol=1e-5)


def test_red():
  # Both end with a score of 3/4; the second loses 1/4 with its third token. Without values the
  # advantage is sum_l .95^l r_{t+l}, whitened: what a reward on the last token would not tell.
  scores_BT = np.array([[0, .25, .5, .75], [0, .75, .5, .75]])
  got_BT = advantages("red", [1., 0.], prefix_scores_BT=scores_BT, values_BT=np.zeros((2, 4)),
                      step_ends_BT=np.ones((2, 4), bool))
  rewards_BT = np.array([[0, .25, .25, .25], [0, .75, -.25, .25]])
  gae_BT = np.stack([(.95 ** np.arange(4 - t) * rewards_BT[:, t:]).sum(axis=1)
                     for t in range(4)], axis=1)
  np.testing.assert_allclose(got_BT, (gae_BT - gae_BT.mean()) / gae_BT.std(ddof=1), rtol=1e-4)


@pytest.mark.parametrize("kind, expected", [("phrases", [.25, .5]), ("calibrated", [1., .5])])
def test_noisy_rew(kind, expected):
  # A right completion with a quarter of the phrases, a wrong one with half of them.
  with pytest.raises(ValueError, match="it needs a chat model, which base=toy does not have"):
    load.load_config(f"papers/noisy_rew:{kind}")
  c = load.load_config(f"papers/noisy_rew:{kind}", "gsm8k")
  assert c.verifier.scores == ("phrases.reasoning",)
  _, reward = build_methods.resolve_methods(c).rewards["outcome"]
  scored = records.Batch(action_BT=np.ones((2, 1), bool), group=2, outcome_B=np.array([1., 0.]),
                         scores_BE=np.array([[.25], [.5]]))
  np.testing.assert_allclose(reward(scored), expected)


@pytest.mark.parametrize("key, outcome, scores, rewards", [
    # The calls count six times as much as the form; half of the calls with the form are 3 + 1.
    ("toolrl", [.5, 1], [[1], [0]], [4, 6]),
    # 1 + (1 - 0) + 1, and a wrong answer with a confidence of 1/2 without the structure: 3/4.
    ("refine", [1, 0], [[1, 1, 1], [.5, 1, 0]], [3, .75]),
    # No confidence: a right answer and the structure alone.
    ("refine", [1, 0], [[0, 0, 1], [0, 1, 1]], [2, 2]),
    ("sem_cos", [1, 0], [[.5, 1], [.75, 0]], [2.5, .75]),
    # A wrong verdict whose critique is that of the human against a right one without reasons.
    ("rm_nlhf", [1, 0], [[0], [1]], [1, 1]), ("rm_nlhf", [1, 0], [[.5], [.25]], [1.5, .25]),
    ("kg_path", [1, 0], [[.5], [1]], [1.25, .5]), ("rlvrr", [.5, .25], [[0], [1]], [.5, 1.25]),
    # A refusal without the form counts nothing, nor does the form without a right refusal.
    ("alpha_align", [1, 1], [[0], [1]], [0, 1]), ("alpha_align", [0, 1], [[1], [0]], [0, 0])])
def test_sums_of_verdicts_and_scores(key, outcome, scores, rewards):
  got_BT = advantages(key, [*map(float, outcome)], scores_BE=np.array(scores, float))
  sizes = np.array(rewards) - np.mean(rewards)
  size = sizes / np.std(rewards, ddof=1) if np.ptp(rewards) else sizes
  np.testing.assert_allclose(got_BT, np.repeat(size[:, None], 4, axis=1), atol=1e-3)
  # Two z-scores are equal whatever the sizes are, so that the rewards are compared, too.
  c = importlib.import_module(f"configs.papers.{key}").get_config()
  terms = build_methods.resolve_methods(c).rewards
  scored = records.Batch(action_BT=np.ones((2, 1), bool), group=2, outcome_B=np.array(outcome,
      float),
                         scores_BE=np.array(scores, float))
  total = sum(c.rewards[name].coef * reward(scored) for name, (_, reward) in terms.items())
  np.testing.assert_allclose(total, rewards, atol=1e-6)


def test_alpha_align_pays_helpful_answers_to_harmless_prompts():
  # Form, whether a harmless prompt is answered, helpfulness. Of the first prompt: an answer without
  # the form, the best answer, the worst one, a refusal. The second is harmful: a refusal, an answer.
  c = load.load_config("papers/alpha_align:scorer", "domains")
  assert c.verifier.scores == ("format.tags", "labels.answered", "scorers.trained")
  scored = records.Batch(
      action_BT=np.ones((8, 1), bool), group=4, outcome_B=np.array([1., 1, 1, 0, 1, 0, 1, 0]),
      scores_BE=np.array([[0., 1, 0], [1, 1, 3], [1, 1, -1], [1, 0, 9],
                          [1, 0, 5], [1, 0, 9], [1, 0, -9], [0, 0, 0]]))
  rewards = build_methods.resolve_methods(c).rewards
  got = {term: c.rewards[term].coef * fn(scored) for term, (_, fn) in rewards.items()}
  np.testing.assert_allclose(got["outcome"], [0, 1, 1, 0, 1, 0, 1, 0])
  np.testing.assert_allclose(got["helpful"], [.25, 1, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("clip, losses", [("clipped", [-1.2, .8]), ("unclipped", [-2, .25])])
def test_explore_exploit(clip, losses):
  # Ratios 2 and 1/4 of completions with the advantages 1 and -1; a coin decides the rewards.
  c = load.load_config(f"papers/explore_exploit:{clip}")
  methods = build_methods.resolve_methods(c)
  _, reward = methods.rewards["outcome"]
  scored = records.Batch(action_BT=np.ones((2, 1), bool), group=2, outcome_B=np.array([1., 0.]),
                         noise_B=np.array([.7, .3]), logps_BT=np.log([[.5], [.25]]),
                         old_logps_BT=np.log([[.25], [1.]]), advantages_BT=np.array([[1.], [-1.]]))
  np.testing.assert_allclose(reward(scored), [0, 1])
  np.testing.assert_allclose(methods.policy(scored)[0][:, 0], losses, rtol=1e-5)


def ask_judge(key, prompt, texts, reply, over=None, form="chat", name=None,
              **options):
  """Verdicts of completions by a judge of a config; `reply` makes a reply of {block: text}."""
  def answer(request):
    nonce = re.search("two lines with ([0-9a-f]{12})", request)[1]
    blocks = re.findall(rf"\[([^]\n]+) {nonce}\]\n(.*?)\n\[end of \1 {nonce}\]", request, re.S)
    return reply(dict(blocks)).replace("NONCE", nonce)
  with endpoint.serve(answer) as server:
    c = load.load_config(key, over).copy_and_resolve_references()
    own = c.verifier.judges[name].to_dict() if name else {}
    judge = c.verifier.judge.to_dict() | own | dict(
        url=server.url, retries=0, named={}, step_separator=c.rollouts.step_separator, **options)
    given = dataclasses.replace(prompt, meta=dict(prompt.meta, judge=judge, thoughts=THOUGHTS))
    return [v for v, *_ in getattr(judge_lib, form)([given] * len(texts), texts)]


THOUGHTS = ("<think> </think>",)


def test_rlpt():
  """The judge sees the prediction without its thought, and the true text, which may be longer."""
  rows = [dict(text="Ann is old. Bo opens at nine. Yes.")]
  prompt, = segments.prompts(rows, "train", form="next")
  says = lambda x: "It is.\nVerdict NONCE: " + (
      "yes" if x["true text"].startswith(x["prediction"]) else "no")
  texts = ["<think>Yes.</think>Bo opens", "Bo opens at ten", "<think>Bo opens"]
  assert ask_judge("papers/rlpt", prompt, texts, says) == [1, 0, 0]


def test_agent_rrm():
  """The judge reads calls, observations and thoughts; its score has three tenths of the weight."""
  episode = "<think>Sum.</think>[12+85]97;#63"
  says = lambda x: f"Fine.\nScore NONCE: {.5 + .25 * (x['episode'] == episode)}"
  prompt = records.Prompt("p", "12+85-34=", "63")
  got = ask_judge("papers/agent_rrm", prompt, [episode, "#63"], says)
  assert got == [.75, .5] and ask_judge("papers/agent_rrm", prompt, ["#1"], lambda x: (
      "Score NONCE: 0")) == [0]
  assert np.isnan(ask_judge("papers/agent_rrm", prompt, ["#1"], lambda x: "Score NONCE: 1.5"))
  got_BT = rewards_of("agent_rrm", [[.75], [.5]])
  np.testing.assert_allclose(got_BT["episode"], [.225, .15], rtol=1e-6)
  np.testing.assert_allclose(got_BT["answer"], [1, 0])


def test_if_decorator_pays_what_follows_the_rules_in_earnest():
  says = lambda x: f"Verdict NONCE: {'no' if x['answer'] == '[name] [name]' else 'yes'}"
  prompt = records.Prompt("p", "Write to Ann, with two placeholders.", "")
  key, texts = "papers/if_decorator:judge", ["Dear [name], at [place]", "[name] [name]"]
  assert ask_judge(key, prompt, texts, says, "domains") == [1, 0]
  _, reward = build_methods.resolve_methods(load.load_config(key, "domains")).rewards["outcome"]
  for score, rewards in ((1., [1, 0]), (0., [0, 0])):
    scored = records.Batch(action_BT=np.ones((2, 1), bool), group=2, outcome_B=np.array([1., 0.]),
                           scores_BE=np.full((2, 1), score))
    np.testing.assert_array_equal(reward(scored), rewards)


def test_rlbff_asks_about_the_principle_alone():
  """The principle stands in the place of the reference; p(yes) is the score of an endpoint."""
  def says(x):
    text = f"Verdict NONCE: {'yes' if x['principle'] == 'It is short.' else 'no'}"
    return text if x["answer"] == "Bo." else "?"
  prompt = records.Prompt("p", "Who?", "It is short.")
  key = "papers/rlbff:policy"
  assert np.isnan(ask_judge(key, prompt, ["Bo."], says, "domains"))  # There are no log-probs.
  plain = dict(probability=False)
  assert ask_judge(key, prompt, ["Bo."], says, "domains", **plain) == [1]
  other = dataclasses.replace(prompt, answer="It is long.")
  assert ask_judge(key, other, ["Bo."], says, "domains", **plain) == [0]


def test_trm():
  """A sentence is correct here if the documents, which are the answer of the row, have it."""
  says = lambda x: "\n".join(
      f"Verdict NONCE {n}: {'yes' if x[f'step {n}'].strip('. ') in x['documents'] else 'no'}"
      for n in range(1, len(x) - 1))
  prompt = records.Prompt("p", "Who?", "Ann is old. Bo is near.")
  got, = ask_judge("papers/trm:policy", prompt, ["Bo is near. Ann is new. Ann is old"], says,
                   "domains", "steps", "sentences")
  assert got == [1, 0, 1]
  _, reward = build_methods.resolve_methods(
      load.load_config("papers/trm:policy", "domains")).rewards["correct"]
  scored = records.Batch(
      action_BT=np.ones((2, 4), bool), group=2, outcome_B=np.zeros(2), step_ends_BT=ENDS_BT,
      step_scores_BT=np.array([[0., 1., 0., 0.], [0., 1., 0., 1.]]))
  np.testing.assert_allclose(reward(scored), [.5, 1])


def test_verpo():
  # Both pass the first test, one the second: rates 1 and 1/2, not near each other, so
  # that only the second counts, with e^-1, and the verdict with 1.
  got_BT = advantages("verpo", [1., 0.], items_BI=np.array([[1., 1., 0], [1., 0., 0]]),
                      item_weight_BI=np.array([[1., 1., 0]] * 2))
  gain = (1 + np.exp(-1)) / 2
  np.testing.assert_allclose(got_BT, [[gain] * 4, [-gain] * 4], rtol=1e-4)


# (S + .1 I)^(-1/2) 1 with the axis (.8, 0, -1) / sqrt(1.64) of .92: a 1 has .2 / 1.64 of it.
WHITE = .1**-.5 + (.92**-.5 - .1**-.5) * -.2 / 1.64 * np.array([.8, 0, -1])
WHITE /= np.abs(WHITE).sum()


@pytest.mark.parametrize("key, expected", [
    # Met or not, 1 + .7 and .7 + .3 of the weights 2.
    ("rar", [.85, .5]), ("rgr", [.85, .5]),
    # S = [[.32, 0, -.4], [0, 0, 0], [-.4, 0, .5]] + .1 I, whose eigenvalues are .92, .1 and .1.
    ("rrd", [WHITE @ [.8, .5, 0], WHITE @ [0, .5, 1]]),
    # The veto's item is 0; u(.5) = .5 / .85 and u(1) = 1, of whose mean the square counts.
    ("rubric_anchors", [0, ((.7 * .5 / .85 + .3) / 2) ** 2])])
def test_rubrics(key, expected):
  c = load.load_config(f"papers/{key}", "gsm8k")
  *others, last = c.verifier.default_items
  assert [row["weight"] for row in (*others, last)] == [1.0, .7, .3]
  assert last.get("veto", False) == (key == "rubric_anchors")
  _, reward = build_methods.resolve_methods(c).rewards["outcome"]
  scored = records.Batch(
      action_BT=np.ones((2, 1), bool), group=2, outcome_B=np.zeros(2),
      items_BI=np.array([[.8, .5, 0, 0], [0, .5, 1, 0]]),
      item_weight_BI=np.array([[1., .7, .3, 0]] * 2),
      item_veto_BI=np.array([[False, False, last.get("veto", False), False]] * 2))
  np.testing.assert_allclose(reward(scored), expected, rtol=1e-5)


def test_rlvrr_adds_the_weights_of_the_programs_that_pass():
  c = load.load_config("papers/rlvrr:programs", "domains")
  scored = records.Batch(
      action_BT=np.ones((2, 1), bool), group=2, outcome_B=np.array([.75, .5]),
      items_BI=np.array([[1., 0], [1, 1]]), item_veto_BI=np.zeros((2, 2), bool),
      item_weight_BI=np.array([[row["weight"] for row in c.verifier.default_items]] * 2))
  rewards = build_methods.resolve_methods(c).rewards
  total = sum(c.rewards[term].coef * fn(scored) for term, (_, fn) in rewards.items())
  np.testing.assert_allclose(total, [.75 + .5, .5 + 1])


def test_reward_agent():
  # Scores 1/4 and 1, checks of weights 1, .7 and .3: 1/4 + 1.7 and 1 + .3.
  c = load.load_config("papers/reward_agent")
  methods = build_methods.resolve_methods(c)
  scored = records.Batch(
      action_BT=np.ones((2, 1), bool), group=2, outcome_B=np.zeros(2),
      scores_BE=np.array([[.25], [1.]]), items_BI=np.array([[1., 1, 0, 0], [0, 0, 1, 0]]),
      item_weight_BI=np.array([[1., .7, .3, 0]] * 2), item_veto_BI=np.zeros((2, 4), bool))
  total = sum(c.rewards[name].coef * reward(scored)
              for name, (_, reward) in methods.rewards.items())
  np.testing.assert_allclose(total, [1.95, 1.3], rtol=1e-6)
  assert [row["weight"] for row in c.verifier.default_items] == [1.0, .7, .3]


# The same completions as episodes of two turns.


def of_turns(turn_rewards, outcome_B=(1., 0.), **fields):
  """The columns of two episodes whose turns have these rewards."""
  turn_rewards_BT = np.full((2, 4), np.nan)
  turn_rewards_BT[:, 1::2] = turn_rewards
  return dict(outcome_B=list(outcome_B), turn_BT=np.array([[0, 0, 1, 1]] * 2),
              turn_ends_BT=ENDS_BT, turn_rewards_BT=turn_rewards_BT) | fields


def per_turn(first, second): return np.repeat([first, second], 2, axis=1)


def test_oprl():
  # Log-ratios of the turns: 3 and 1 of the right episode, 1 and -1 of the wrong one, of mean 1.
  # Leave-one-out of the verdicts is 1 and -1. A turn gets its own reward alone, not later ones.
  ratio_BT = np.array([[1., 2., 1., 0.], [0., 1., 0., -1.]])
  got_BT = advantages("oprl", **of_turns([[0, 0], [0, 0]], prm_logps_BT=ratio_BT,
                                         prm_old_logps_BT=ratio_BT, prm_ref_logps_BT=0 * ratio_BT,
                                         prm_beta_B=np.full(2, .5)))
  np.testing.assert_allclose(got_BT, per_turn([1 + .5 * 2, 1], [-1, -1 - .5 * 2]), atol=1e-6)


@pytest.mark.parametrize("turn_rewards, parsed, size", [
    # 1 + (1 + 1/2) and 1 + (1 + 0): the z-scores of two numbers.
    ([[1/2, 1], [0, 1]], [1, 1], 1 / np.sqrt(2)),
    # A call that could not be parsed hides the turns, and a wrong answer both.
    ([[1/2, 1], [0, 1]], [0, 0], 0), ([[1/2, 0], [0, 0]], [1, 0], 0),
    ([[0, 1], [1/2, 1]], [1, 0], 1 / np.sqrt(2))])
def test_gra(turn_rewards, parsed, size):
  got_BT = advantages("gra", **of_turns(turn_rewards, scores_BE=np.array(parsed, float)[:, None]))
  np.testing.assert_allclose(got_BT, per_turn([size] * 2, [-size] * 2), atol=1e-5)


def test_prs():
  # Parsed with half of the answer, 0.1 + 0.4 / 2, against a right answer after a call that was not.
  scores_BE, half = np.array([[1., .5], [0., 1.]]), 1 / np.sqrt(2)
  got_BT = advantages("prs", **of_turns([[np.nan, 0], [np.nan, 1]], scores_BE=scores_BE,
                                        outcome_B=(0., 1.)))
  np.testing.assert_allclose(got_BT, per_turn([half] * 2, [-half] * 2), rtol=1e-4)


def test_igpo():
  # p = 1/8, 3/8 and 1/8, 1/8 before and after turn 0: rewards 1/4, 1 and 0, 0 with mean 5/16 and
  # variance (1 + 121 + 25 + 25) / 256 / 3; the differences are -1, 11, -5, -5 sixteenths.
  logps_BJM = np.log(np.array([[[1/8], [3/8]], [[1/8], [1/8]]]))
  got_BT = advantages("igpo", **of_turns(
      [[0, 1], [0, 0]], step_answer_logps_BJM=logps_BJM, step_ends_BT=ENDS_BT,
      answer_mask_BM=np.ones((2, 1), bool)))
  np.testing.assert_allclose(
      got_BT, per_turn([10/16, 11/16], [-10/16, -5/16]) / np.sqrt(172/256/3), rtol=1e-5)


def test_ppr_renorm():
  # Rewards 1/2 + 1 - 1, 1 and 1/2 + 0 - 1, 0; to go 3/2, 1 and -1/2, 0 with mean 1/2. Values
  # and KL are 0; whitening divides.
  zeros_BT = np.zeros((2, 4))
  got_BT = advantages("ppr_renorm", **of_turns(
      [[1/2, 1], [1/2, 0]], values_BT=zeros_BT, old_logps_BT=zeros_BT, ref_logps_BT=zeros_BT))
  np.testing.assert_allclose(got_BT / got_BT[0, 0], per_turn([1, 1/2], [-1, -1/2]), rtol=1e-5)


def test_ftrl():
  # Turns 0 have the prompt as their history and the returns 1 + 1 and 1/2; turns 1 are alone.
  got_BT = advantages("ftrl", **of_turns(
      [[1, 1], [0, 1/2]], turn_prefix_BT=np.array([[0, 0, 1, 1], [0, 0, 2, 2]])))
  np.testing.assert_allclose(got_BT, per_turn([3/2, 0], [-3/2, 0]), atol=1e-6)


def test_gigpo():
  # Episodes 1 and 0: +-1/2. The returns of turns 0 are 19/20 and 0, +-19/40; turns 1 are alone.
  got_BT = advantages("gigpo", **of_turns(
      [[np.nan, 1], [np.nan, 0]], turn_prefix_BT=np.array([[0, 0, 1, 1], [0, 0, 2, 2]])))
  np.testing.assert_allclose(got_BT, per_turn([39/40, 1/2], [-39/40, -1/2]), rtol=1e-5)


def test_lanser():
  # Returns 1/2 + 7/5, 7/5 and 2/5 + 2/5, 2/5, against each other.
  got_BT = advantages("lanser", **of_turns([[1/2, 7/5], [2/5, 2/5]]))
  np.testing.assert_allclose(got_BT, per_turn([11/10, 1], [-11/10, -1]), rtol=1e-5)


# Judges: of a group of two, the first wins 3/4 of the comparisons, or a judge says yes to it.


def rewards_of(key, scores_BE, outcome_B=(1., 0.)):
  """{term: rewards_B} times the term's coefficient."""
  c = load.load_config(f"papers/{key}")
  scored = records.Batch(action_BT=np.ones((2, 4), bool), group=2, outcome_B=np.array(outcome_B),
                         scores_BE=np.array(scores_BE, np.float32))
  rewards = build_methods.resolve_methods(c).rewards
  return {term: c.rewards[term].coef * fn(scored) for term, (_, fn) in rewards.items()}


@pytest.mark.parametrize("key, scores_BE, expected", [
    # The first of the group is the reference and has 1/2: 0; winning and losing are 1 and -1.
    ("writing_zero", [[.5], [1.]], dict(outcome=[0, 1])),
    ("writing_zero", [[.5], [0.]], dict(outcome=[0, -1])),
    ("pairwise_rl", [[.75], [.25]], dict(outcome=[.25, -.25])),
    ("soft_verdicts", [[.9], [.2]], dict(outcome=[.9, .2])),
    # The verdict, 0 or -1 for the reasoning, and a tenth of the form.
    ("clarity", [[0., 1.], [1., 0.]], dict(outcome=[1, 0], consistent=[-1, 0], form=[.1, 0])),
    # Of 64: 3 of 4 claims and a win; 1 of 1 and a loss.
    ("factuality", [[3 / 64, 4 / 64, 1.], [1 / 64, 1 / 64, 0.]], dict(outcome=[
        3 / 5 + .01 * np.log(4) + .1, 1 / 2 + .01 * np.log(2)]))])
def test_rewards_of_judges(key, scores_BE, expected):
  got = rewards_of(key, scores_BE)
  assert set(got) == set(expected)
  for term, rewards_B in expected.items():
    np.testing.assert_allclose(got[term], rewards_B, rtol=1e-5)


# Of the question 3M5m2=, whose steps are 5 and 2, a right completion, and one with a wrong first
# step and a wrong answer. The judge of the toy reads what a language model would be sent.
@pytest.mark.parametrize("key, path, expected", [
    ("rar:judge", "judge.rubric", [[1, 1, 1], [0, 0, 1]]),
    ("rar:implicit", "judge.chat/whole", [1, .3]),
    ("search_gen_v", "judge.rubric", [[1, 1, 1], [0, 0, 1]]),
    ("rgr:judge", "judge.rubric", [[1, 1, 1], [0, 0, 1]]),
    ("orbit", "judge.rubric", [[1, 1, 1], [0, 0, 1]]), ("soft_verdicts", "judge.chat", [1, 0]),
    ("clarity", "judge.chat/consistency", [1, 0]), ("hybrid_rewards", "judge.chat", [1, 0]),
    # Both have more right steps than the answer of the row, which has none.
    ("hybrid_rewards:best", "judge.pairs", [1, 1]),
    ("factuality", "judge.chat/supported", [2 / 64, 1 / 64]),
    ("factuality", "judge.chat/claims", [2 / 64] * 2), ("factuality", "judge.pairs", [1, 1]),
    ("pairwise_rl", "judge.pairs", [1, 1]), ("pairwise_rl:group", "judge.pairs", [1, 0]),
    ("writing_zero", "judge.pairs", [.5, 0]), ("capo:judge", "judge.steps", [[1, 1], [0, 1]]),
    ("drlc", "judge.spans", [[1] * 5, [0] * 2 + [1] * 3])])
def test_what_judges_of_papers_say_on_the_toy(key, path, expected):
  c = load.load_config(f"papers/{key}")
  sources = (c.prompts, *c.prompts.mixture.values())
  named = [source.get("columns", {}).get("verifier") for source in sources]
  assert path in (*c.verifier.scores, c.verifier.by_item, c.verifier.steps, c.verifier.spans, *named)
  prompt = records.Prompt("p", "3M5m2=", "2", path, dict(
      judge=judges.list_judges(c), items=list(c.verifier.default_items)))
  results = pool.lookup(path)([prompt] * 2, ["5;2#2", "4;2#3"])
  assert [error for _, error, _ in results] == [None] * 2, results
  for (given, *_), right in zip(results, expected): np.testing.assert_allclose(given, right)


@pytest.mark.parametrize("claims", [4, 10, 40])
def test_precision_alone_pays_for_saying_little(claims):
  """One claim that is true, and a detailed answer of which nine in ten are."""
  right = .9 * claims / 64
  scores_BE = [[1 / 64, 1 / 64, 0.], [right, claims / 64, 0.]]
  brief, detailed = rewards_of("factuality", scores_BE)["outcome"]
  assert 1 / 1 > right * 64 / claims and detailed > brief


@pytest.mark.parametrize("fit", [.6, .9])
@pytest.mark.parametrize("penalty, invites", [(0, True), (.1, True), (10, False)])
def test_large_penalties_end_in_rejecting_every_application(fit, penalty, invites):
  """What a label gains on average where this share of the applications that look alike fits; the
  penalty is for inviting one that does not. Terms without penalties decide by the share."""
  options = importlib.import_module("configs.papers.job_application").get_config().prompts.options
  meta = dict(labels=["invite", "reject"], items=[dict(item) for item in options["items"]])
  def gain(label):
    right, wrong = (labels.score(records.Prompt("a", "", answer, meta=meta), label)
                    for answer in ("invite", "reject")[::1 if label == "invite" else -1])
    if label == "reject": return fit * wrong + (1 - fit) * right
    return fit * right + (1 - fit) * (wrong - penalty)
  assert (gain("invite") > gain("reject")) == invites


def test_brpo_has_no_baseline():
  got_BT = advantages("writing_zero", [1., 0.], scores_BE=np.array([[.5], [0.]]))
  np.testing.assert_allclose(got_BT, [[0] * 4, [-1] * 4], atol=1e-6)
