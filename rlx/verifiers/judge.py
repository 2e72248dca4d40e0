"""Judges score texts that are rendered from the question, the answers and the reference.

  chat       one score of a completion, by a language model behind an OpenAI-compatible endpoint
  function   the same by any Python function text -> score or reply
  rubric     a score for each item of the prompt's rubric, prompt.meta["items"]
  pairs      a completion against others of its group, or against one: its share of wins
  steps      a score for each reasoning step of a completion
  spans      a score for each character of a completion, from the spans that the judge quotes

The options are `verifier.judge` of the config. judge.FORM/NAME has those of verifier.judges.NAME,
which has the keys that differ; the pool adds all of them to the `meta` of prompts. Without a url,
all forms ask the Python function `verifier.judge.function`, or without one the model
`verifier.judge.model`, which runs in this process beside the policy: stages/judging.py is its
client, and `InProcess` the verifier. If a judge returns no valid score, for whatever reason, the
verdict is unknown (NaN).

An answer is untrusted text. Every request contains a nonce, a random word that occurs neither
in the answer nor in the question or the reference. The lines around these texts contain the
nonce, so that no text can imitate its own end. Each line with a verdict contains it too, so that
an answer that the judge repeats is not read as one. This does not prevent an answer from
persuading the model, and many models accept a lone ":" (Zhao et al. 2025, arXiv:2507.08794):
measure a judge with rlx/evals/verifier.py. The requests of the forms are in _judge_forms.py.
"""
import contextlib
import dataclasses
import functools
import itertools
import math
import os
import pathlib
import re
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Mapping, TypeAlias

from rlx.core import resolve
from rlx.verifiers import _endpoint, _judge_forms as forms, _replies, errors, items as items_lib

if TYPE_CHECKING: from rlx.core import records

Request: TypeAlias = _replies.Request
Reply: TypeAlias = _replies.Reply
Send: TypeAlias = _endpoint.Send
Receive: TypeAlias = _endpoint.Receive
Options: TypeAlias = Mapping[str, Any]
write_verdict, new_nonce = _replies.write_verdict, _replies.new_nonce
ask, send = _endpoint.ask, _endpoint.send
FORMS, TASKS = tuple(forms.FORMS), forms.TASKS
find_meetings, fit_strengths = forms.find_meetings, forms.fit_strengths
OF_RUN = ("policy", "reference")  # Values of `model` that are no paths.
_CHAT = forms.FORMS["chat"]  # Which transports a judge may have is that of all forms.
VOTES = ("mean", "median", "majority", "minimum")


def chat(prompt: "records.Prompt", text: str) -> float:
  """Returns the score in a language model's reply, see `_replies.parse`.

  Of several accepted answers the best score counts.
  """
  return _judge(_CHAT, prompt, text)


def function(prompt: "records.Prompt", text: str) -> float:
  """Returns the score that `verifier.judge.function` gives the rendered text.

  The function, "package.module:name", returns a number, which is divided by `full`, or a text
  that is parsed as a reply. If it raises an exception, the verdict is unknown.
  """
  return _judge(forms.FORMS["function"], prompt, text)


def rubric(prompt: "records.Prompt", text: str) -> list[float]:
  """Returns a score for each item of the prompt's rubric, NaN where it is unknown.

  prompt.meta["items"] is a list of dicts; an item's `text`, or else its `name`, says what is
  asked. All stand in one request, as a numbered list, or each in its own (`per_item`), with the
  number that it has in the list. The reply has a line for each, with its number behind the nonce.
  An item that has none is NaN, and so is one whose lines differ: each line names its item, so the
  others are not in doubt. All are unknown if a line names an item that does not exist, or if the
  reply does not end with a verdict. A completion that is all thought scores 0 on every item.
  """
  return _judge(forms.FORMS["rubric"], prompt, text)


def pairs(prompt: "records.Prompt", text: str) -> float:
  """Returns the share of comparisons that a completion wins; a tie counts one half.

    p_ij = (s_ij + 1 - s_ji) / 2,   s_ij: what the judge says of i against j, in this order
    win_rate: mean of p_ij over the j that i meets
    bradley_terry: mean of g_i / (g_i + g_j) over all other j of the group

  The strengths g are those of the largest likelihood of the p_ij that are known, to which half a
  win and half a loss against a completion of strength 1 are added, so that the best one has a
  finite strength. They compare completions that have met different opponents.

  `against`: "group" compares all completions of the prompt, or each with `opponents` of them;
  "first" each with the first of the group, which itself gets 1/2; "answer" each with the answer of
  the row. A completion that is alone, as those of held-out prompts are, meets the answer of the
  row; without one its verdict is unknown. A pair of which one order is unknown is left out, since
  a preference for the first place would not cancel. Equal texts tie without a request, and a
  completion that is all thought loses against the others.
  """
  return _judge(forms.FORMS["pairs"], prompt, text)


def steps(prompt: "records.Prompt", text: str) -> list[float]:
  """Returns a score for each reasoning step, as rollouts.step_separator cuts them.

  All steps stand in one request, each between lines of its own, and the reply has a line for each,
  with its number behind the nonce; or the steps up to each one in its own request (`per_item`), of
  whose reply the line of the last step counts. A step without a line, or with lines that differ, is
  NaN. So are the steps behind the one with which the judge stops. Thoughts are steps, too.

  With `whole` the reply ends with a verdict on the whole answer, which is none of the scores: what
  a judge that learns is trained on, see verifier.judge.online.
  """
  return _judge(forms.FORMS["steps"], prompt, text)


def spans(prompt: "records.Prompt", text: str) -> list[float]:
  """Returns a score for each character, from the spans that the judge quotes: 1/2 outside of them.

  See `_replies.parse_spans`. Thoughts, unless the judge reads them, have 1/2.
  """
  return _judge(forms.FORMS["spans"], prompt, text)


@dataclasses.dataclass(frozen=True)
class InProcess:
  """The verifier of a judge one of whose members runs in this process, for the pool.

  It is called with lists (prompts, texts). All hosts have to call it with the same ones.

  Attributes:
    name: of the form, such as "rubric".
    send: sends the requests of members in process, see `_endpoint.score_all`; None: there is no
      model, and their verdicts are unknown.
  """
  name: str
  send: Send | None
  is_batch, is_tried, is_shared, has_names = True, False, True, True

  def __call__(self, prompts: list["records.Prompt"], texts: list[str]) -> list[list]:
    return _judge_all(forms.FORMS[self.name], prompts, texts, self.send)

  def __getattr__(self, name: str) -> Any:
    if name not in ("is_group", "inspect", "item_keys"): raise AttributeError(name)
    return getattr(globals()[self.name], name)

  def __reduce__(self) -> Any:
    raise TypeError("a judge in process cannot be sent to another one")


def join_votes(verdicts: Sequence[float], vote: str) -> float:
  """The verdict of several judges; NaN if that of one is.

    mean, median, minimum    of the scores
    majority                 1 if more scores are above 1/2 than below it, 0 if fewer, else 1/2

  Example:
    >>> tuple(judge.join_votes([1., .6, .2], vote) for vote in judge.VOTES)
    (0.6, 0.6, 1.0, 0.2)
  """
  if any(map(math.isnan, verdicts)): return math.nan
  if vote == "majority":
    more = sum((v > 0.5) - (v < 0.5) for v in verdicts)
    return 0.5 + ((more > 0) - (more < 0)) / 2
  if vote == "minimum": return min(verdicts)
  return statistics.fmean(verdicts) if vote == "mean" else statistics.median(verdicts)


def find_problem(judges: Options, path: str) -> tuple[str, Any, str] | None:
  """Returns (key, value, allowed values) of the first invalid option of the judge at a path.

  Args:
    judges: verifier.judge, with verifier.judges as its `named`.
    path: judge.FORM or judge.FORM/NAME.
  """
  form, _, name = path.removeprefix("judge.").partition("/")
  named = judges["named"]
  if form not in forms.FORMS: return None
  for name_ in (name, *_own(judges, name)["of"]):
    if name_ and name_ not in named:
      return (path, name_, f"the name of a judge; verifier.judges has {sorted(named)}")
  for name_ in _own(judges, name)["of"] or (name,):
    if (problem := _problem(_own(judges, name_), form)):
      key, value, allowed = problem
      section = f"verifier.judges.{name_}" if key in named.get(name_, ()) else "verifier.judge"
      return f"{section}.{key}", value, allowed
  return None


def find_in_process(judges: Options, name: str, *, joins: bool = True) -> list[Options]:
  """The options of the judges of a name that run in this process.

  Args:
    judges: as of `find_problem`.
    name: of verifier.judges, "" for verifier.judge.
    joins: whether a panel has the judges that it joins; False: it has none.
  """
  return [own for own in _list_members(judges, name, joins) if _transport(_CHAT, own) == "model"]


def is_remote(judges: Options, name: str) -> bool:
  """Whether a judge of a name is asked at an endpoint."""
  return any(_transport(_CHAT, own) == "url" for own in _list_members(judges, name))


def is_form(path: str) -> bool:
  """Whether a path is that of a judge here, judge.FORM or judge.FORM/NAME."""
  return path.startswith("judge.") and path.removeprefix("judge.").partition("/")[0] in FORMS


def _form_of(path): return forms.FORMS[path.removeprefix("judge.").partition("/")[0]]


def _list_members(judges, name, joins=True):
  """The options of the judges that a name stands for."""
  own = _own(judges, name)
  if not own.get("of"): return [own]
  return [_own(judges, member) for member in own["of"]] if joins else []


def spell_words(options: Options) -> tuple[str, ...]:
  """The words that state a verdict, of complete options."""
  return _replies.spell_words(options["reads"])


def request_of_longest(path: str, prompts: Sequence["records.Prompt"],
                       options: Options) -> tuple[Request, Options] | None:
  """(request, complete options) about a completion of one character.

  Of the prompt that has most characters, about which the judge with these options makes no shorter
  request. None: it makes none.
  """
  form = _form_of(path)
  prompt = max(prompts, key=lambda p: len(p.text) + len(p.answer) + len(str(p.meta.get("items"))))
  one = prompt.text[:1] or "1"  # A character that its tokenizer knows.
  with contextlib.suppress(errors.Unknown):
    options = forms.complete(form, options)
    for request in form.plan(prompt, [one, 2 * one][:1 + form.is_group], options):
      return request, options
  return None


def plan_request(path: str, prompt: "records.Prompt", text: str,
                 options: Options) -> tuple[Request, Options] | None:
  """(request, complete options) about a completion; None if there is none or more than one."""
  form = _form_of(path)
  options = forms.complete(form, options)
  with contextlib.suppress(errors.Unknown):
    if len(requests := form.plan(prompt, [text], options)) == 1: return requests[0], options
  return None


def read_whole(reply: Reply | Exception, request: Request, options: Options) -> float:
  """The score of the whole answer in a reply to a request of `plan_request`; NaN: it has none."""
  if isinstance(reply, Exception): return math.nan
  with contextlib.suppress(errors.Unknown):
    return _replies.read(dataclasses.replace(reply, nonce=request.nonce), request, options)[-1]
  return math.nan


def find_inspected(prompts: Sequence["records.Prompt"], unsafe: bool = False) -> list[tuple]:
  """(why completions cannot be judged by a rubric or None, None) of each prompt."""
  del unsafe
  def why(prompt):
    try:
      return forms.list_item_texts(prompt) and None
    except errors.Unknown as e:
      return str(e)
  return [(why(prompt), None) for prompt in prompts]


def limit_s(form: forms.Form, prompts: Sequence["records.Prompt"], texts: Sequence[str],
            timeout_s: float) -> float:
  """Seconds after which a form of judging has surely ended: all its requests may time out.

  Args:
    timeout_s: limit of a completion, for what is no request.
  """
  requests, width, longest = 0, math.inf, 0.0
  for prompt, part in _units(form, prompts, texts):
    with contextlib.suppress(errors.Unknown):
      for options in map(functools.partial(forms.complete, form), _members(prompt)):
        requests += len(form.plan(prompt, part, options))
        width = min(width, options["concurrent"])
        longest = max(longest, _endpoint.longest_s(options))
  return timeout_s * len(texts) + longest * math.ceil(requests / width)


def _own(judges, name):
  """The options of a judge by its name, "" for verifier.judge; {"of": ()} of an unknown one."""
  if not name: return judges
  return {**judges, "of": (), **judges["named"][name]} if name in judges["named"] else (
      dict(of=()))


def _problem(options, name):
  form, has_own = forms.FORMS[name], bool(options.get("template"))
  options = forms.complete(form, options)
  fn, env, template, reads = (options[k] for k in ("function", "api_key_env", "template", "reads"))
  transport, words = _transport(form, options), _replies.words_of(options["reads"])
  has_url, is_here = transport == "url", transport == "model"
  is_spans = isinstance(form, forms.Spans)
  has_items = not {"items", "steps"}.isdisjoint(form.slots)
  is_fenced = len(_find_fenced(template)) == sum(
      template.count(slot) for slot in ("{answer}", "{other}"))
  try:
    groups = re.compile(reads).groups
  except re.error:
    groups = 0
  url = options["url"]
  checks = (
      (form.needs[0], transport, f"judge.{name} needs it"
       + "".join(f", or {k}" for k in form.needs[1:])),
      ("url", not is_here or options["model"] in OF_RUN or _is_path(options["model"]),
       f"judge.{name} needs it for model={options['model']!r}; a judge in process is policy, "
       "reference or the path of a model"),
      ("url", not has_url or re.fullmatch(r"https?://[!-.0-?A-~]+/[!-~]*", url),
       "such as http://localhost:8000/v1/chat/completions; keys belong into api_key_env"),
      ("function", fn is None or re.fullmatch(r"[\w.]+:\w+", fn),
       "package.module:name of a function text -> score"),
      ("model", not has_url or options["model"], "the endpoint's name of a model"),
      ("function", transport != "function" or not options["model"] or "model" not in form.needs,
       f"None with model={options['model']!r}, which runs in this process; or model=''"),
      ("cache", not is_here or options["cache"] is None or options["model"] not in OF_RUN,
       f"None with model={options['model']!r}, whose weights are those of the run"),
      ("template", all(f"{{{slot}}}" in template for slot in form.slots),
       f"a text with {' and '.join(f'{{{slot}}}' for slot in form.slots)}, and optionally "
       "{question}, {reference} and {items}"),
      ("template", transport == "function" or is_fenced,
       "{answer} has a line of its own, after and before a line with {nonce}"
       + ", and so has {other}" * form.is_group),
      ("template", not (has_items or is_spans) or "{nonce}" in template,
       f"a text with {{nonce}} for judge.{name}"),
      ("reads", words or groups == 1, "yes_no, words with scores such as 'good=1 fair=0.5 bad=0', "
       "or a regular expression with one group, a number"),
      ("reads", not words or all(0 <= x <= 1 for x in words.values()), "scores from 0 to 1"),
      ("reads", words or ("{nonce}" in reads) == ("{nonce}" in template),
       "{nonce} is both in it and in the template, or in neither"),
      ("reads", words or not is_spans, "words with scores, such as 'good=1 bad=0'"),
      ("reads", words or has_items == ("{item}" in reads),
       "{item} stands for the number of an item, with judge.rubric and judge.steps and only there"),
      ("probability", not options["probability"] or words and not is_spans
       and transport != "function", "True with words in `reads`, and with a url, which gives "
       "logprobs, or a model of this process; not with judge.spans"),
      ("whole", not options["whole"] or not isinstance(form, forms.Steps) or words and not
       options["per_item"], "False with per_item=True, or with numbers in `reads`"),
      ("strength", options["strength"] == "win_rate" or options["against"] == "group",
       "win_rate, unless against='group'"),
      ("api_key_env", not has_url or env is None
       or re.fullmatch("[!-~]+", os.environ.get(env, "")),
       "the name of an environment variable that is set, to ASCII without spaces, or None"),
      ("reads", has_own or transport == "function"
       or (words or {"": 0}).keys() <= _replies.words_of(form.reads).keys(),
       f"words of its template, such as {form.reads!r}, or a `template` that asks for others"))
  return next(((key, options[key], allowed) for key, ok, allowed in checks if not ok), None)


def _find_fenced(template):
  """The answers that stand on lines of their own, between two lines that contain the nonce."""
  return re.findall(r"^.*{nonce}.*\n{(?:answer|other)}\n(?=.*{nonce})", template, re.MULTILINE)


def _transport(form, options):
  """How a judge is asked: the first of url, function and model that is set; None: in no way."""
  return next((k for k in form.needs if options.get(k)), None)


def _is_path(model): return "/" in model or pathlib.Path(model).exists()


def _members(prompt):
  """The options of the judges that the prompt's verifier names."""
  judges, name = prompt.meta.get("judge", {}), prompt.verifier.partition("/")[2]
  if name and name not in judges.get("named", ()):
    raise errors.Unknown(f"verifier.judges has no {name!r}")
  return _list_members(judges, name)


def _judge(form, prompt, text):
  """The verdict of a completion; of lists [[verdict, error, message]], see pool.py.

  Raises:
    errors.Unknown: it is unknown, of one completion.
  """
  if isinstance(prompt, list): return _judge_all(form, prompt, text)
  (verdict, error, message), = _judge_all(form, [prompt], [text])
  if error: raise errors.Unknown(message)
  return verdict


def _judge_all(form, prompts, texts, send=None):
  # One list of the requests of all completions: the client sends many of them at once.
  asked, planned = [], []
  for prompt, part in _units(form, prompts, texts):
    try:
      plans = []
      for options in map(functools.partial(forms.complete, form), _members(prompt)):
        if _transport(form, options) is None:
          raise errors.Unknown(f"verifier.judge.{form.needs[0]}=None: a prompt's verifier needs it")
        plans.append((options, form.plan(prompt, part, options)))
      planned.append((prompt, part, plans))
      asked += [(request, options) for options, requests in plans for request in requests]
    except errors.Unknown as e:
      planned.append((prompt, part, e))
  scores = iter(_score_all(form, asked, send or _refuse))
  return [result for prompt, part, plans in planned
          for result in _read(form, prompt, part, plans, scores)]


def _read(form, prompt, texts, plans, scores):
  """[[verdict, error, message]] of the completions of a unit; takes the scores of its requests."""
  try:
    if isinstance(plans, Exception): raise plans
    given = [list(itertools.islice(scores, len(requests))) for _, requests in plans]
    verdicts = [form.read(prompt, texts, options, of_judge)
                for (options, _), of_judge in zip(plans, given)]
    joined = [_join(of_text, _vote(prompt)) for of_text in zip(*verdicts)]
    return [[v, "unknown" if v != v else None, None] for v in joined]
  except Exception as e:  # pylint: disable=broad-exception-caught
    kind = "unknown" if isinstance(e, errors.Unknown) else "exception"
    message = str(e) if kind == "unknown" else f"{type(e).__name__}: {e}"
    return [[math.nan, kind, message[:200]]] * len(texts)


def _join(verdicts, vote):
  if isinstance(verdicts[0], list): return [join_votes(of_item, vote) for of_item in zip(*verdicts)]
  return verdicts[0] if len(verdicts) == 1 else join_votes(verdicts, vote)


def _vote(prompt): return _own(prompt.meta["judge"], prompt.verifier.partition("/")[2])["vote"]


def _score_all(form, asked, send):
  """The scores of requests, or why they are unknown; `send` sends those to models in process."""
  scores = {}
  for transport, score in (("url", functools.partial(_endpoint.score_all, send=_endpoint.send)),
                           ("model", functools.partial(_endpoint.score_all, send=send)),
                           ("function", lambda part: [_call(*one) for one in part])):
    places = [i for i, (_, options) in enumerate(asked) if _transport(form, options) == transport]
    scores |= zip(places, score([asked[i] for i in places]))
  return [scores[i] for i in range(len(asked))]


def _refuse(asked, receive):
  for i, (_, options) in enumerate(asked):
    receive(i, errors.Unknown(f"verifier.judge.model={options['model']!r}: it is a judge beside "
                              "the models of a run, and here is no run"))


def _call(request, options):
  """The scores that the function of a judge gives a request, or why they are unknown."""
  try:
    try:
      fn = resolve.lookup("verifiers", options["function"], "verifier.judge.function")
    except ValueError as e:
      raise errors.Unknown(str(e)) from None
    reply = fn(request.text)
    if isinstance(reply, str):
      return _replies.read(_replies.Reply(reply, request.nonce), request, options)
    parts = request.numbers if request.marks is None else request.marks
    given = list(reply) if parts and isinstance(reply, Sequence) else [reply]
    if len(given) != len(parts or (0,)):
      raise errors.Unknown(f"{len(given)} scores for {len(parts or (0,))} items or characters")
    return [_replies.score_of(x, options["full"]) for x in given]
  except Exception as e:  # pylint: disable=broad-exception-caught
    return e  # Whatever the function raises.


def _units(form, prompts, texts):
  """(prompt, its completions that are judged together), in order."""
  if not form.is_group: return [(prompt, [text]) for prompt, text in zip(prompts, texts)]
  groups = itertools.groupby(zip(prompts, texts), lambda x: x[0].id)
  return [(part[0][0], [text for _, text in part]) for part in (list(g) for _, g in groups)]


# What the pool does with them: calls with the reference answer would cost requests.
for _name, _form in forms.FORMS.items():
  vars(globals()[_name]).update(is_batch=True, is_tried=False, has_names=True,
                                is_group=_form.is_group,
                                limit_s=functools.partial(limit_s, _form))
vars(rubric).update(inspect=find_inspected, item_keys=items_lib.OF_RUBRICS)
