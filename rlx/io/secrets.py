"""Credentials that must not be stored: what looks like one in a config, a command or its values.

A text is hidden if its key says that it is a credential ("api_key", "password"), and parts of
texts that have the form of one ("sk-...", "https://user:password@host") or are the value of an
environment variable whose name says so (OPENAI_API_KEY).
"""
from collections.abc import Mapping, Sequence
import os
import re
from typing import Any

HIDDEN = "(not stored)"  # What stands in place of a credential.

_LEAST = 6  # Characters of a variable's value: shorter ones are parts of other texts.
_WORDS = "passw(or)?d|passwd|passphrase|pwd|secrets?|credentials?|authorization|bearer|api_?keys?"
_KEYS = re.compile(
    rf"(?i)(^|[._-])({_WORDS}|(access|secret|private|auth|client|session|bearer|hf|hub|openai|"
    r"wandb|github|service|account|refresh|id)[_-]?(key|token)s?)$|^environment\.(.*[._-])?"
    r"(key|token|auth)s?$")
_VARIABLES = re.compile(r"(?i)(^|_)(key|token|secret|pass|passw(or)?d|passwd|pwd|pat|apikey|"
                        r"credentials?|auth|bearer|dsn)(_|\d|$)")
_FORMS = re.compile(
    r"(?<![A-Za-z0-9])sk-[\w-]{4,}|\b[sr]k_(?:live|test)_\w{4,}|\bhf_\w{8,}|\bgh[opusr]_\w{8,}"
    r"|\bgithub_pat_\w{8,}|\bglpat-[\w-]{8,}|\bxox[a-z]-[\w-]{8,}|\bA[KS]IA[0-9A-Z]{12,}"
    r"|\bAIza[\w-]{20,}|\beyJ[\w-]{8,}\.[\w.-]{8,}|(?<=Bearer )\S+|(?<=://)[^/\s@]+(?=@)"
    r"|(?i:(?<=[?&]key=)|(?<=token=)|(?<=[_-]key=)|(?<=apikey=)|(?<=secret=)|(?<=password=))"
    r"[^&\s'\"]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?")


def is_named(name: str) -> bool:
  """Whether the name of a key or of a flag says that its value is a credential.

  Example:
    >>> secrets.is_named("environment.api_key"), secrets.is_named("verifier.judge.api_key_env")
    (True, False)
  """
  return _KEYS.search(name) is not None


def hide(value: Any, name: str = "") -> Any:
  """A value of the key `name` (nested dicts and lists, too) without credentials.

  Example:
    >>> secrets.hide(dict(url="https://me:word@host/", environment=dict(token="abc")))
    {'url': 'https://(not stored)@host/', 'environment': {'token': '(not stored)'}}
  """
  if isinstance(value, Mapping):
    return {hide(k): hide(v, f"{name}.{k}" if name else str(k)) for k, v in value.items()}
  if isinstance(value, list | tuple): return type(value)(hide(x, name) for x in value)
  if not isinstance(value, str) or not value: return value
  if is_named(name): return HIDDEN
  for text in _values_of_variables(): value = value.replace(text, HIDDEN)
  return _FORMS.sub(HIDDEN, value)


def hide_words(words: Sequence[str]) -> list[str]:
  """The words of a command without credentials: KEY=VALUE, --KEY=VALUE, --KEY VALUE."""
  out: list[str] = []
  for word in words:
    key, is_set, value = word.partition("=")
    flag = out[-1].lstrip("-") if out and out[-1].startswith("--") and "=" not in out[-1] else ""
    name = key.removeprefix("--").removeprefix("config.")
    out.append(f"{hide(key)}={hide(value, name)}" if is_set and not flag else
               hide(word, flag.removeprefix("config.")))
  return out


def _values_of_variables():
  """Values of environment variables whose names say that they are credentials, longest first."""
  values = {x for name, x in os.environ.items() if _VARIABLES.search(name) and len(x) >= _LEAST
            and not os.path.exists(x)}  # Such as the folders PWD and OLDPWD.
  return sorted(values - {"default", "disabled", "enabled", "false", "true"}, key=len, reverse=True)
