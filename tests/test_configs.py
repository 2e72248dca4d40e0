"""Every config loads, holds only keys that exist, and every key has a reader."""
import importlib.util
import pathlib
import re

import ml_collections
import pytest

from configs import base
from rlx import build
from rlx import config_validation
from rlx import keys
from rlx import methods
from rlx.core import resolve

ROOT = pathlib.Path(__file__).parent.parent
FILES = sorted(p for p in (ROOT / "configs").rglob("*.py")
               if p.stem not in ("__init__", "base"))
PAPERS = [p for p in FILES if p.parent.name == "papers"]
# What base.smoke makes smaller.
SIZES = re.compile(r"steps|prompts\.per_step|rollouts\.(per_prompt|max_tokens|chunk|max_draws|fill)"
                   r"|(eval|train_prm|checkpoint)\..*")
ids = lambda p: str(p.relative_to(ROOT))


def _module(path):
  spec = importlib.util.spec_from_file_location(path.stem, path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _load(path, arg=""):
  return _module(path).get_config(arg)


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_loads_and_is_accepted(path):
  """As it is and as smoke, whose methods are tried only where it changes more than sizes."""
  config, smoke = _load(path), _load(path, "smoke")
  for c in (config, smoke):
    keys.check(c)
    build.check_cuts(c, 1)
  config_validation.check(config, methods.resolved(config))
  full, small = (keys.flat(c.to_dict()) for c in (config, smoke))
  changed = {key for key in full.keys() | small.keys() if full.get(key) != small.get(key)}
  if not all(map(SIZES.fullmatch, changed)):
    config_validation.check(smoke, methods.resolved(smoke))


def test_what_is_off_by_default_can_be_set_by_a_flag():
  def unset(config):
    for key, value in config.items():
      if isinstance(value, ml_collections.ConfigDict): yield from unset(value)
      elif value is None: yield key, config.get_type(key)
  found = dict(unset(base.get_config()))
  assert found["path"] is str and found["target"] is float and len(found) > 5
  assert type(None) not in found.values(), found


def test_prime_presets():
  config = _load(ROOT / "configs/papers/prime.py", "recipe")
  config_validation.check(config, methods.resolved(config))
  build.check_cuts(config, 1)
  assert config.prm.order == "double" and not config.rewards.process.include_last
  with pytest.raises(ValueError, match="recipe"):
    _load(ROOT / "configs/papers/prime.py", "recipee")


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_docstring_has_the_command_that_runs_it(path):
  name = path.relative_to(ROOT / "configs").with_suffix("")
  short = rf"rlx (train|sft|train_prm|evaluate) {name}\b"
  doc = _module(path).__doc__
  assert f"--config={path.relative_to(ROOT)}" in doc or re.search(short, doc)


@pytest.mark.parametrize("path", PAPERS, ids=ids)
def test_a_paper_refuses_an_argument_it_does_not_know(path):
  with pytest.raises(ValueError, match="there (is|are) .*smoke") as e: _load(path, "smokee")
  assert "\n" not in str(e.value)


def _leaves(config, prefix=""):
  for key, value in config.items():
    if isinstance(value, ml_collections.ConfigDict) and "name" not in value and value:
      yield from _leaves(value, f"{prefix}{key}.")
    else:
      yield prefix + key, value


def test_every_key_is_read_by_someone():
  """A key is read as an attribute, or is an argument of what its section names."""
  source = "\n".join(p.read_text() for p in (ROOT / "rlx").rglob("*.py"))
  attributes = {name for chain in re.findall(r"\b(?:c|config|c\[name\])((?:\.\w+)+)", source)
                for name in chain.split(".")}
  arguments = set(re.findall(r"(\w+)=", source))
  of_judge = set(re.findall(r'options\["(\w+)"\]', source))
  for key, value in _leaves(base.get_config()):
    section, _, name = key.rpartition(".")
    read = name in attributes or (
        section.rpartition(".")[2] in ("optimizer", "beta_schedule", "decoding", "mesh", "rewards",
                                       "advantages") and name in arguments | {
                                           "outcome", "process"}) or (
            section == "verifier.judge" and name in of_judge) or f'"{key}"' in source
    assert read, f"{key} has no reader."


def _changed(**changes):
  config = base.get_config()
  for key, value in changes.items():
    section, _, name = key.replace("__", ".").rpartition(".")
    target = config
    for part in section.split("."):
      target = target[part] if part else target
    with target.ignore_type():
      target[name] = value
  return config


@pytest.mark.parametrize("changes, message", [
    (dict(rewards__process__name="implicit.proces"), r"rewards.process.name='implicit.proces': .* has \['process', 'value'\]"),
    (dict(rewards__outcome__name="nowhere.verdict"), "rewards.outcome.name='nowhere.verdict': there is no rlx/rewards/nowhere.py"),
    (dict(advantages__process__loos="code"), r"advantages.process.loos: process.rloo takes \["),
    (dict(learner__loss={"name": "policy.ppo_clip", "clip": 1}), "learner.loss.clip: policy.ppo_clip takes"),
    (dict(prm__order="after"), r"prm.order='after': one of \('single', 'double'"),
    (dict(rewards__process__beta=0.1), "^rewards.process.beta: implicit.process takes"),
    (dict(prm__loss={"name": "prm.ce", "beta": 0.1}), "^prm.loss.beta: prm.ce takes"),
    (dict(prm__optimizer__schedule="cosine"), "^prm.optimizer.total_steps=0: schedule='cosine' needs more than"),
    (dict(learner__optimizer__schedule="cosin"), "^learner.optimizer.schedule='cosin': constant, linear or cosine"),
    (dict(rewards__process__total_steps=5, rewards__process__schedule="linear", rewards__process__warmup_steps=5), "^rewards.process.total_steps=5: schedule='linear' needs more than"),
    (dict(prm__beta_schedule__schedule="linear"), "^prm.beta_schedule.total_steps=0: schedule='linear' needs"),
    (dict(prm__reference="sft"), "prm.reference='sft': one of"),
    (dict(learner__aggregation="mean"), "learner.aggregation='mean': one of"),
    (dict(learner__loss={"name": "sequence.gspo"}, learner__aggregation="token-mean"), "learner.aggregation='token-mean': sequence.gspo is defined for"),
    (dict(learner__rollout_correction={"name": "rollout_correction.tis", "high": 2.}), r"learner.rollout_correction.high: rollout_correction.tis takes \['cap', 'level'\]"),
    (dict(learner__token_weight={"name": "token_weight.bottom"}), "learner.token_weight.name='token_weight.bottom': .* has \\['steer', 'top'\\]"),
    (dict(kl__kind="k4"), "kl.kind='k4': one of"),
    (dict(kl__coef=.1, kl__place="reward"), "advantages has entries .* needs one for every"),
    (dict(kl__sync_every=5), "kl.sync_every=5: nothing reads the policy's reference"),
    (dict(kl__coef=.1, kl__sync_every=5, kl__sync_mix=.5, lora__rank=2), "kl.sync_mix=0.5: 1 with lora.rank"),
    (dict(kl__reset_optimizer=True), "kl.reset_optimizer=True: it happens with a sync"),
    (dict(rollouts__anneal={"name": "anneal.ead", "floor": 0.}), "^rollouts.anneal.floor=0.0: a number from 0.001 to 1000"),
    (dict(rollouts__anneal={"name": "anneal.ead", "top": 2.}), r"^rollouts.anneal.top: anneal.ead takes \["),
    (dict(learner__reward_std_filter={"name": "reward_std_filter.running_mean", "decay": 1.}), "^learner.reward_std_filter.decay=1.0: a number from 0 to 0.999999"),
    (dict(learner__reward_std_filter={"name": "group.grpo"}), r"^learner.reward_std_filter.name='group.grpo': it takes \['rewards_PG', 'learn_PG'\]; 4 arguments"),
    (dict(rollouts__demonstration={"name": "chain.split_of"}), "^rollouts.demonstration.name='chain.split_of': it takes"),
    (dict(learner__reward_std_filter={"name": "reward_std_filter.std"}), r"learner.reward_std_filter.name='reward_std_filter.std': .* has \['running_mean'\]"),
    (dict(rollouts__demonstration={"name": "chain.solution"}), "rollouts.demonstration.name='chain.solution': rlx/prompts/datasets/chain.py has"),
    (dict(rollouts__demonstration={"name": "jsonl.demonstration"}, learner__rollout_correction={"name": "rollout_correction.tis"}), "rollouts.demonstration.name='jsonl.demonstration': None with learner.rollout_correction, which reads the sampler's"),
    (dict(rollouts__demonstration={"name": "jsonl.demonstration"}, learner__loss={"name": "sequence.vespo"}), "rollouts.demonstration.name='jsonl.demonstration': None with learner.loss, which reads the sampler's"),
    (dict(rollouts__demonstration={"name": "jsonl.demonstration"}, learner__loss={"name": "policy.minirl"}), "rollouts.demonstration.name='jsonl.demonstration': None with learner.loss"),
    (dict(kl__target=.1), "^kl.coef=0.0: > 0 with kl.target=0.1"),
    (dict(kl__target=.1, kl__coef=.1, kl__horizon=25), "^kl.horizon=25: more than 25.6, a fifth"),
    (dict(learner__loss={"name": "policy.rl_plus", "focal_exponent": -1.}), "^learner.loss.focal_exponent=-1.0: a number from 0 to"),
    (dict(rollouts__per_prompt=1), "rollouts.per_prompt=1: .* use >= 2"),
    (dict(rollouts__decoding={"temperature": 0.0, "top_k": 0, "top_p": 1., "min_p": 0.}), "^rollouts.decoding.temperature=0.0: a number from 0.001 to 1000"),
    (dict(rewards__process__granularity="step"), "rollouts.step_separator=None: rewards.process.granularity='step' needs it"),
    (dict(rewards__process={"name": "steps.refine", "coef": 1.}), "verifier.steps=None: rewards.process reads the scores of steps; name a verifier of steps"),
    (dict(verifier__steps="chain.steps"), "rollouts.step_separator=None: verifier.steps='chain.steps' needs it"),
    (dict(advantages__process={"name": "process.rloo_steps"}), "rollouts.step_separator=None: advantages.process needs it"),
    (dict(verifier__steps="chain.step"), r"verifier.steps.name='chain.step': rlx/verifiers/chain.py has \["),
    (dict(rollouts__filter_groups={"name": "filter_groups.accuracy_band", "lo": .2}), "rollouts.filter_groups.lo: filter_groups.accuracy_band takes"),
    (dict(prompts__template={"name": "few_shot"}), "prompts.template.examples: few_shot needs it"),
    (dict(model__attention="flash"), "model.attention='flash': one of"),
    (dict(model__attention="cudnn"), "model.attention='cudnn': blocks; cudnn needs a GPU"),
    (dict(model__attention="splash", mesh__data=2), "model.attention='splash': blocks"),
    (dict(model__remat="all"), "model.remat='all': one of"),
    (dict(model__param_update="nearest"), r"model.param_update='nearest': one of \('master', 'stochastic'\)"),
    (dict(model__param_dtype="bfloat16", kl__coef=.1, kl__sync_every=1, kl__reset_optimizer=True), "^kl.reset_optimizer=True: False with model.param_dtype=bfloat16"),
    (dict(model__param_dtype="bfloat16", kl__coef=.1, kl__sync_every=1, kl__sync_mix=.5), "^kl.sync_mix=0.5: 1 with model.param_dtype=bfloat16"),
    (dict(model__frozen_dtype="bfloat16"), "model.frozen_dtype='bfloat16': None or model.dtype=float32; in another"),
    (dict(likelihood__model="prm"), "likelihood.model='prm': one of"),
    (dict(likelihood__answer="#"), "likelihood.answer='#': a text with {} where"),
    (dict(likelihood__separator=""), "likelihood.separator='': None or a text"),
    (dict(rewards__outcome__name="likelihood.reference"), "likelihood.max_tokens=0: .* reads answer_"),
    (dict(rewards__outcome={"name": "likelihood.turn_gain", "coef": 1.0}, likelihood__max_tokens=4, rollouts__step_separator=";"), "likelihood.steps=0: .* reads step_answer"),
    (dict(rewards__outcome={"name": "likelihood.turn_gain", "coef": 1.0}, likelihood__max_tokens=4, likelihood__steps=2), "rollouts.step_separator=None: rewards.outcome needs it"),
    (dict(rewards__outcome__name="likelihood.answer_confidence"), "likelihood.separator=None: .* reads answer_span_BT"),
    (dict(rewards__outcome={"name": "likelihood.last_token", "coef": 1.0}), "rewards.outcome.c_ref: likelihood.last_token needs it"),
    (dict(rewards__outcome={"name": "likelihood.last_token", "coef": 1.0, "c_ref": -23.0}), "likelihood.token=None: .* reads self_logps_B"),
    (dict(learner__loss={"name": "distribution.simko"}), "distribution.top=0: .* reads top_logps_BTK"),
    (dict(learner__loss={"name": "distribution.lp_reg"}), "distribution.min_p=0.0: .* reads old_min_p_logps_BT"),
    (dict(rollouts__slots=6), "rollouts.slots=6: None, from the device's memory, or a multiple of rollouts.per_prompt=4"),
    (dict(rollouts__slots=0), "rollouts.slots=0: a whole number from 1 to 1048576, or None"),
    (dict(rollouts__stops=(5,)), "^rollouts.stops=.5,.: a list of texts"),
    (dict(rollouts__stops=("",)), "^rollouts.stops=.'',.: texts that are not empty"),
    (dict(rollouts__step_separator="", train_prm__labels="soft"),
     "^rollouts.step_separator='': a text with train_prm.labels='soft'"),
    (dict(eval__answer="("), "^eval.answer='[(]': a regular expression"),
    (dict(eval__answer="(a)(b)"), "^eval.answer=.*at most one group"),
    (dict(prompts__per_step=2**16, rollouts__per_prompt=32), "^prompts.per_step=65536: at most 1048576 completions a step"),
    (dict(rewards__outcome=3), "^rewards.outcome=3: a section with the name of a method"),
    (dict(rewards__process__include_last="no"), "^rewards.process.include_last='no': True or False"),
    (dict(prm=dict()), "^prm.beta is missing"),
    (dict(memory_check="no"), "memory_check='no': one of"),
    (dict(lora__targets=("q", "w")), "lora.targets=.*some of \\('q', 'k'"),
    (dict(lora__rank=2, prm__path="x"), "prm.path='x': None with lora.rank"),
    (dict(rewards__process__norm="max"), "^rewards.process.norm='max': one of"),
    (dict(advantages__process__loo="all"), "^advantages.process.loo='all': one of"),
    (dict(learner__loss__clip_low=-1.), "^learner.loss.clip_low=-1.0: a number from 0"),
    (dict(prm__loss={"name": "prm.detached_dpo", "weighting": "n"}), "^prm.loss.weighting='n': one of"),
    (dict(rollouts__select_completions={"name": "select_completions.prof", "count": 9}, verifier__scores=("format.boxed",)), "^rollouts.select_completions.count=9: at most rollouts.per_prompt=4"),
    (dict(learner__token_weight={"name": "token_weight.top", "fraction": 2.}), "^learner.token_weight.fraction=2.0: a number from 1e-06 to 1"),
    (dict(rewards__outcome__name="pseudo.paired"), "^prompts.paired=False: a reward compares two wordings"),
    (dict(prompts__paired=True), "^rollouts.filter_groups.name='filter_groups.accuracy_band': filter_groups.with_verdict with"),
    (dict(prompts__paired=True, prompts__per_step=3), "^prompts.per_step=3: must be even"),
    (dict(prompts__paired=True, rollouts__filter_groups={"name": "filter_groups.with_verdict"}, rollouts__oversample=2.), "^rollouts.oversample=2.0: 1.0 with"),
    (dict(learner__auxiliary={"name": "auxiliary.last_token", "coef": .1}), "^learner.auxiliary.c_ref: auxiliary.last_token needs it"),
    (dict(learner__auxiliary={"name": "auxiliary.last_token", "coef": .1, "c_ref": -9.}), "^likelihood.token=None: .* reads self_logps_B"),
    (dict(learner__auxiliary={"name": "auxiliary.last_token", "c_ref": -9.}, likelihood__token="*"), "^learner.auxiliary.coef is missing"),
    (dict(learner__auxiliary={"name": "auxiliary.last_token", "coef": .1, "c_ref": -9., "beta_v": 0.}, likelihood__token="*"), "^learner.auxiliary.beta_v=0.0: a number from 1e-12"),
    (dict(advantages__outcome={"name": "group.self_rewarded", "c_ref": -9., "tau": 2.}, likelihood__token="*"), "^advantages.outcome.tau=2.0: a number from 0 to 1"),
    (dict(rollouts__budget={"name": "budget.dars", "first": 4}), "^rollouts.budget.first=4: below rollouts.per_prompt=4"),
    (dict(rollouts__budget={"name": "budget.dars", "first": 2, "schedule": "x"}), "^rollouts.budget.schedule='x': one of"),
    (dict(rollouts__budget={"name": "budget.dars", "first": 2}, rollouts__demonstration={"name": "chain.trace", "wrong_rate": 0.}), "^rollouts.demonstration.name=.chain.trace.: None with rollouts.budget"),
    (dict(rollouts__rehearsal=32), "^rollouts.rehearsal=32: below prompts.per_step=32"),
    (dict(rollouts__rehearsal=2), "^rollouts.rehearsal=2: 0 without learner.auxiliary"),
    (dict(learner__auxiliary={"name": "auxiliary.rehearsal", "coef": .1}), "^rollouts.rehearsal=0: learner.auxiliary learns from them"),
    (dict(learner__auxiliary={"name": "auxiliary.rehearsal", "coef": .1, "kind": "k"}, rollouts__rehearsal=1), "^learner.auxiliary.kind='k': one of"),
    (dict(learner__auxiliary={"name": "auxiliary.rehearsal", "coef": .1}, rollouts__rehearsal=1, kl__sync_every=1), "^kl.sync_every=1: 0 with rollouts.rehearsal"),
    (dict(advantages__outcome={"name": "batch.remax"}, rewards__outcome={"name": "outcome.verdict", "coef": 2.}), "^advantages.outcome.name='batch.remax': compares with the verdict of a greedy"),
    (dict(log__writers=("tensorboard",)), r"^log.writers=.*: 'tensorboard' is none of \('wandb', 'mlflow'\)"),
    (dict(steps=-1), "^steps=-1: a whole number from 0 to 2147483647"),
], ids=lambda x: str(x)[:40])
def test_refuses_with_one_line_that_names_the_key(changes, message):
  config = _changed(**changes)
  with pytest.raises(ValueError, match=message) as e:
    keys.check(config)
    config_validation.check(config, methods.resolved(config))
  assert "\n" not in str(e.value)


@pytest.mark.parametrize("changes, warned", [
    (dict(), True), (dict(learner__rollout_correction={"name": "rollout_correction.tis"}), False),
    (dict(learner__loss={"name": "sequence.vespo"}), False),
    (dict(learner__loss={"name": "sequence.dpo"}), False),
    (dict(rollouts__sync_every=1), False)], ids=str)
def test_an_older_sampler_that_nothing_corrects_for_is_a_warning(caplog, changes, warned):
  config = _changed(**{"rollouts__sync_every": 4} | changes)
  config_validation.check(config, methods.resolved(config))
  lines = [r.getMessage() for r in caplog.records if "sync_every" in r.getMessage()]
  assert len(lines) == warned
  if warned:
    assert lines[0].startswith("rollouts.sync_every=4: ") and "\n" not in lines[0]
    assert "learner.loss.name='policy.ppo_clip'" in lines[0]


def test_refuses_keys_that_nobody_reads():
  config = base.get_config()
  config.prm.bta = 1.0
  with pytest.raises(ValueError, match=r"prm.bta: no such key; there are \['beta', 'beta_schedule', 'loss', "):
    keys.check(config)


def test_every_method_named_in_the_configs_exists():
  for path in FILES:
    config = _load(path)
    resolve.lookup("rollouts", config.rollouts.filter_groups.name)
    resolve.lookup("prompts", f"templates.{config.prompts.template.name}")
