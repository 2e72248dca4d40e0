"""Runs chat templates and tokenizers of untrusted files in processes with limits.

A template is a program in Jinja's language, whose sandbox limits neither time nor memory. A
tokenizer runs native code, which cannot be interrupted. So templates are rendered in a process of
their own, and a tokenizer is tested in one before it is used. The process imports little, so that
it starts in a tenth of a second. A message is a line of JSON: an untrusted file can influence no
more than the reply.
"""
import contextlib
import functools
import json
import math
import os
import signal
import subprocess
import sys
from typing import Any
import weakref

_COMMAND = (sys.executable, "-c", "from rlx.io import bounded; bounded.main()")
SECONDS = 5  # For a request; a usual template takes a thousandth of that.
LONGEST = 2**20  # Characters of a rendered or encoded text; a token takes 400 bytes.
_GROWTH = 64     # Largest number of characters or tokens for a character of the text.
_TEXTS = ("a", " ", "0", "\n", "é", "Ab 1", "x.y\n", "0a ", "日本")  # Repeated.
_LINE = 16 * LONGEST  # Bytes of a reply: each character may be escaped.


def _end(process):
  process.kill()
  for pipe in (process.stdin, process.stdout): pipe.close()
  process.wait()


def main() -> None:
  """The process: answers requests from stdin. Arguments: render or probe, megabytes, seconds."""
  kind, megabytes, seconds = sys.argv[1:]
  if sys.platform == "linux":
    import resource  # pylint: disable=g-import-not-at-top
    resource.setrlimit(resource.RLIMIT_AS, (int(megabytes) * 2**20,) * 2)
  answer = dict(render=_renderer, probe=lambda: probe)[kind]()
  for line in sys.stdin.buffer:
    signal.setitimer(signal.ITIMER_REAL, float(seconds))  # Kills this process, also in native code.
    try:
      reply = dict(value=answer(**json.loads(line)))
    except MemoryError:
      reply = dict(error=f"it takes more than {megabytes} MB")
    except BaseException as e:  # pylint: disable=broad-exception-caught
      reply = dict(error=" ".join((str(e)[:2000] or type(e).__name__).split())[:300])
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def _renderer():
  """(template, values) -> text, as `transformers` renders a chat template; with None for values the
  names of the template's variables.

  Source: utils/chat_template_utils.py of transformers 5.
  """
  import datetime  # pylint: disable=g-import-not-at-top
  import jinja2  # pylint: disable=g-import-not-at-top
  import jinja2.ext  # pylint: disable=g-import-not-at-top
  import jinja2.meta  # pylint: disable=g-import-not-at-top
  import jinja2.sandbox  # pylint: disable=g-import-not-at-top

  class Generation(jinja2.ext.Extension):
    """{% generation %} marks the assistant's text and does not change it."""
    tags = {"generation"}

    def parse(self, parser):
      line = next(parser.stream).lineno
      body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
      return jinja2.nodes.Scope(body).set_lineno(line)

  def refuse(message):
    raise jinja2.TemplateError(str(message))

  def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)

  env = jinja2.sandbox.ImmutableSandboxedEnvironment(
      trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
  env.filters["tojson"] = tojson
  env.globals |= dict(raise_exception=refuse,
                      strftime_now=lambda form: datetime.datetime.now().strftime(form))

  compiled = functools.lru_cache(maxsize=1)(env.from_string)

  def render(template, values):
    if values is None:
      return sorted(jinja2.meta.find_undeclared_variables(env.parse(template)) - {*env.globals})
    text = compiled(template).render(**values)
    if len(text) > LONGEST: raise ValueError(f"{len(text)} characters; at most {LONGEST} are read")
    return text

  return render


def probe(path: str) -> None:
  """Reads a tokenizer.json and applies it to texts; raises if it fails or grows them."""
  import tokenizers  # pylint: disable=g-import-not-at-top
  core = tokenizers.Tokenizer.from_file(path)
  for part in (core.normalizer, core.decoder):
    if (growth := _growth(json.loads(part.__getstate__()) if part else {})) > _GROWTH:
      raise ValueError(f"its {type(part).__name__} makes {growth:.0f} characters of one; at "
                       f"most {_GROWTH} are allowed")
  for text in _TEXTS:
    for times in (1, 30, 3000 // len(text)):
      for end in ("", "!"): _try(core, text * times + end)  # "!": patterns fail at the end.


def _growth(part):
  """By which factor successive replacements can lengthen a text."""
  if isinstance(part, list): return math.prod(map(_growth, part))
  if not isinstance(part, dict): return 1.0
  if part.get("type") == "Replace":
    # A regular expression may match one character.
    old = part["pattern"].get("String", "x")
    return max(1.0, len(part["content"]) / max(len(old), 1))
  return _growth([x for x in part.values() if isinstance(x, list)])


def _try(core, text):
  try:
    ids = core.encode(text).ids
  except Exception:  # pylint: disable=broad-exception-caught
    return  # A character has no token.
  if len(ids) > _GROWTH * (len(text.encode()) + 16):
    raise ValueError(f"{len(ids)} tokens for {text[:20]!r}... of {len(text)} characters")
  made, longest = core.decode(ids, skip_special_tokens=False), max(
      (len(core.id_to_token(i) or "") for i in set(ids)), default=0)
  if len(made) > _GROWTH * (len(ids) + 1) * (longest + 1):
    raise ValueError(f"{len(made)} characters for {len(ids)} tokens of {text[:20]!r}...")


class Process:
  """A process that answers requests of one kind until one of them exceeds the limits."""

  def __init__(self, kind: str, megabytes: int):
    """`kind`: render or probe, the functions above."""
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    # A session of its own, which Ctrl-C does not reach: the run ends this process.
    self._process = subprocess.Popen(
        [*_COMMAND, kind, str(megabytes), str(SECONDS)],
        env=dict(os.environ, PYTHONPATH=paths, TOKENIZERS_PARALLELISM="false"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True)
    self.close = weakref.finalize(self, _end, self._process)  # Ends the process, at most once.
    self._limits = f"{SECONDS} s or {megabytes} MB"
    self._fault: str | None = None

  def ask(self, **request: Any) -> Any:
    """Sends a request and returns the reply.

    Raises:
      ValueError: with the reason why there is none.
    """
    if self._fault is not None: raise ValueError(self._fault)
    assert self._process.stdin is not None and self._process.stdout is not None  # They are pipes.
    with contextlib.suppress(BrokenPipeError):  # Then there is no reply.
      self._process.stdin.write(json.dumps(request, default=str).encode() + b"\n")
      self._process.stdin.flush()
    line = self._process.stdout.readline(_LINE)
    if not line.endswith(b"\n"):
      self.close()
      self._fault = f"it takes more than {self._limits}"
      raise ValueError(self._fault)
    reply = json.loads(line)
    if "error" in reply: raise ValueError(reply["error"])
    return reply["value"]
