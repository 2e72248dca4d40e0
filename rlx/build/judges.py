"""Judges in process, from a config: their models, their samplers, and what is refused."""
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from rlx.build import keys
from rlx.core import records, rng
from rlx.io import hub, tokenizer as tokenizer_io, weights
from rlx.learner import sharding
from rlx.models import transformer
from rlx.prompts import templates
from rlx.stages import judging, sampling as sampling_lib, texts as texts_lib
from rlx.verifiers import errors, judge


JUDGES = "verifier.judges."  # What sections of verifier.judges begin with.


def list_judges(c: keys.Config) -> dict[str, Any]:
  """The options of verifier.judge, with those of verifier.judges as `named`.

  Judges in process that keep replies have `weights`, which says whose replies they are, and those
  that learn have their section as `learns`.
  """
  judges = dict(c.verifier.judge.to_dict(), key=rng.secret(c.seed, "judge"),
                step_separator=c.rollouts.step_separator,
                named={name: part.to_dict() for name, part in sorted(c.verifier.judges.items())})
  for name, options in {"": judges, **judges["named"]}.items():
    options.pop("online", None)
    section = name_section(name)
    options["learns"] = section if find_online(c, section).replies else None
    full = judges | options
    if full["cache"] and full["model"] and not full["url"] and not full["function"]:
      options["weights"] = _digest(full["model"])
  return judges


def name_section(name: str) -> str:
  """The section of a judge of verifier.judges; of verifier.judge if the name is empty."""
  return f"{JUDGES}{name}" if name else "verifier.judge"


def find_online(c: keys.Config, section: str) -> keys.Config:
  """`online` of a judge, with those keys of verifier.judge that it does not name."""
  online = c.verifier.judge.online.copy_and_resolve_references()
  if section.startswith(JUDGES):
    online.update(c.verifier.judges[section.removeprefix(JUDGES)].get("online", {}))
  return online


def list_task_paths(c: keys.Config, section: str) -> list[str]:
  """The verifiers of a config, other than those of prompts, that ask the judge of a section."""
  paths = (c.verifier.steps, c.verifier.spans, c.verifier.by_item, *c.verifier.scores,
           *c.verifier.step_rewards)
  return [path for path in dict.fromkeys(filter(None, paths)) if judge.is_form(path)
          and name_section(path.partition("/")[2]) == section]


def list_learning(c: keys.Config) -> list[str]:
  """Sections of the judges that learn beside the policy."""
  return [section for section, options in list_in_process(c).items() if options["learns"]]


def list_in_process(c: keys.Config) -> dict[str, judge.Options]:
  """{section: options} of the judges in process."""
  judges = list_judges(c)
  return {name_section(name): options
          for name in ("", *judges["named"])
          for options in judge.find_in_process(judges, name, joins=False)}


def name_models(c: keys.Config) -> dict[str, str]:
  """{section: name of its model} of the judges in process: policy, reference or a section.

  Frozen judges of the same path share the model of the first one; one that learns has its own.
  """
  names, first = {}, dict[str, str]()
  for section, options in list_in_process(c).items():
    path, learns = options["model"], options["learns"]
    names[section] = path if path in judge.OF_RUN else learns or first.setdefault(path, section)
  return names


def list_models(c: keys.Config) -> dict[str, str]:
  """{section: path} of the models that are loaded as judges."""
  local, names = list_in_process(c), name_models(c)
  return {section: local[section]["model"] for section in dict.fromkeys(names.values())
          if section in local}


def list_tokens(c: keys.Config, section: str) -> dict[str, int]:
  """{key: tokens} of a request and of its reply, of a judge in process."""
  options = list_in_process(c)[section]
  return {f"{section}.{key}": options[key] for key in ("prompt_tokens", "max_tokens")}


def needs_reference(c: keys.Config) -> bool:
  """Whether a judge is the initial policy."""
  return any(options["model"] == "reference" for options in list_in_process(c).values())


def judges_of(c: keys.Config, models: Mapping[str, tuple[transformer.DecoderConfig, Any]],
              tokenizer: tokenizer_io.Tokenizer | None, options: sampling_lib.Options,
              mesh: jax.sharding.Mesh, bytes_free: int | None) -> judging.Judges | None:
  """The judges in process of a run; None: there are none.

  Args:
    models: of `models.load_models`.
    tokenizer: of the policy; None: no judge is the policy or its reference.
    options, mesh, bytes_free: as of `sampling.make_sampling`.
  Raises:
    ValueError: a model reads fewer tokens.
  """
  local, tasks, names = {}, {}, name_models(c)
  for section, part in list_in_process(c).items():
    name, group = names[section], 1
    if part["learns"]:
      group = find_online(c, section).replies
      tasks[section] = judging.Task(list_task_paths(c, section)[0], part,
                                    dict(thoughts=tuple(c.verifier.thoughts)))
    config, _ = models[name if name in models else "policy"]
    tokens = list_tokens(c, section)
    if config.max_positions is not None and sum(tokens.values()) > config.max_positions:
      raise ValueError(f"{' + '.join(f'{key}={n}' for key, n in tokens.items())}: "
                       f"{part['model']!r} supports at most {config.max_positions} positions "
                       "(max_position_embeddings).")
    shards = sharding.row_shards(mesh)
    rows = -(-part["concurrent"] // shards) * shards
    own_tokenizer = (tokenizer if name in judge.OF_RUN else
                     weights.load_tokenizer(hub.folder(part["model"])))
    assert own_tokenizer is not None
    own_texts = texts_lib.Texts(
        tokenizer=own_tokenizer, stops=(), step_separator=None, answer="", thoughts=(),
        reference=None,
        template=templates.chat if own_tokenizer.hf.chat_template else templates.plain,
        prompt_tokens=part["prompt_tokens"], completion_tokens=part["max_tokens"])
    local[judging.key_of(part)] = judging.LocalJudge(name, sampling_lib.Sampler(
        config=config, texts=own_texts, mesh=mesh, chunk=options.sizes.chunk, prompts=rows,
        group=group, rule=dict(temperature=part["temperature"]), max_tokens=part["max_tokens"],
        slots=sampling_lib.most_rows(options, own_texts, config, mesh, bytes_free, rows, group,
                                     part["max_tokens"])))
  return judging.Judges(local, c.seed, tasks) if local else None


def verifiers_of(c: keys.Config, judges: judging.Judges | None) -> dict[str, judge.InProcess]:
  """{path: verifier} of all judges of which a member is in process.

  Args:
    judges: those of a run; None: there is none, and their verdicts are unknown.
  Raises:
    ValueError: several processes would not ask the models the same.
  """
  verifiers, given = {}, list_judges(c)
  for name in ("", *given["named"]):
    if not (members := judge.find_in_process(given, name)): continue
    section = name_section(name)
    if jax.process_count() > 1 and judge.is_remote(given, name):
      raise ValueError(f"{section}.of={given['named'][name]['of']!r}: all of its judges are in "
                       "process or none is, in a run of several processes.")
    if jax.process_count() > 1 and any(x["cache"] for x in members):
      raise ValueError(f"{section}.cache: None for a judge in process, in a run of several "
                       "processes.")
    for form in judge.FORMS:
      verifiers[f"judge.{form}/{name}" if name else f"judge.{form}"] = judge.InProcess(
          form, None if judges is None else judges.send)
  return verifiers


def check_labels(c: keys.Config, paths: Mapping[str, str]) -> None:
  """Refuses a judge that learns as the verifier of prompts, whose verdicts it learns.

  Args:
    paths: {path of a verifier: which prompt names it}.
  """
  learning = list_learning(c)
  for path, of in paths.items():
    if judge.is_form(path) and (own := name_section(path.partition("/")[2])) in learning:
      raise ValueError(f"{of}: verifier={path!r}: another one, as {own}.online.replies learns its "
                       "verdicts.")


def check_requests(judges: judging.Judges | None, given: Mapping[str, Any],
                   prompts: Mapping[str, Sequence[records.Prompt]]) -> None:
  """Refuses judges in process that cannot be asked about any completion of a prompt.

  Args:
    given: of `list_judges`.
    prompts: {path of a verifier: what it is asked about}.
  Raises:
    ValueError: one line with the first problem.
  """
  for path, asked in prompts.items():
    if judges is None or not asked or not judge.is_form(path): continue
    for options in judge.find_in_process(given, path.partition("/")[2]):
      if (shortest := judge.request_of_longest(path, asked, options)) is None: continue
      request, options = shortest
      try:
        judges.encode(request, options)
      except errors.Unknown as e:
        raise ValueError(f"{path}: {e}, of the longest question with a completion of one "
                         "character.") from None


def _digest(path: str) -> str:
  """Of the files of a model, by their names, sizes and times: kept replies are those of these."""
  folder = hub.folder(path)
  files = sorted(folder.iterdir()) if folder.is_dir() else [folder]
  facts = [(x.name, x.stat().st_size, x.stat().st_mtime_ns) for x in files if x.is_file()]
  return hashlib.blake2b(repr(facts).encode(), digest_size=8).hexdigest()
