"""Verifiers that do what the completion says; test_pool.py gives them to workers."""
import functools
import os
import re
import signal
import subprocess
import sys
import time

from rlx.verifiers import errors


def obey(prompt, text):
  if text == "exit": os._exit(3)
  if text == "segfault": os.kill(os.getpid(), signal.SIGSEGV)
  if text == "raise": raise KeyError("no such thing")
  if text == "recurse": return obey_forever(prompt, text)
  if text == "unknown": raise errors.Unknown("no endpoint")
  if text == "nan": return float("nan")
  if text == "two": return 2.0
  if text == "none": return None
  if text == "memory": return len(bytearray(3 * 2**30)) and 1
  # Both hold the interpreter lock or the thread for ever.
  if text == "loop":
    while True: pass
  if text == "regex": return float(bool(re.match(r"(a+)+$", "a" * 64 + "b")))
  if text == "sleep": time.sleep(60)  # As late, but it costs no CPU time.
  if text == "child": return subprocess.Popen(["sleep", "60"]).wait()
  if text.startswith("say "):  # A line of bytes instead of a reply.
    os.write(_fd(), bytes.fromhex(text.removeprefix("say ")))
    time.sleep(60)
  if text.startswith("die "): return die(prompt, text)
  return float(text == prompt.answer)


def die(prompt, text):
  """Of "die FILE BYTES DELAY": dies at that byte of its reply, unless FILE exists."""
  _, file, n_bytes, delay_s = text.split()
  try:
    os.close(os.open(file, os.O_CREAT | os.O_EXCL))
  except FileExistsError:
    return 1.0
  time.sleep(float(delay_s))
  os.write(_fd(), b"[3, 1.0, null, null]"[:int(n_bytes)])
  os.kill(os.getpid(), signal.SIGKILL)


def take(prompt, text):
  """Takes that many MB of memory, and keeps those of "keep 300"."""
  taken = bytearray(int(text.removeprefix("keep ")) * 2**20)
  if text.startswith("keep "): _KEPT.append(taken)
  return float(len(taken) > 0)


_KEPT = []


take.memory_mb = 512
unlimited = functools.partial(take)  # Without the attribute.


def _obeying(**attributes):
  """`obey` as a verifier with these attributes."""
  fn = functools.partial(obey)
  vars(fn).update(attributes)
  return fn


hasty, patient = _obeying(timeout_s=1.0), _obeying(timeout_s=60.0)
calm, untried = _obeying(is_bounded=True), _obeying(is_tried=False)


def listed(prompt, text):
  """Adds the text to the file that is the answer."""
  with open(prompt.answer, "a") as f: f.write(text + "\n")
  return obey(prompt, text)


def steps(prompt, text):
  if text == "nan": return float("nan")
  return [obey(prompt, part) for part in text.split(";")]


steps.is_bounded = True


def _fd(): return int(sys.argv[1])


def obey_forever(prompt, text):
  return obey_forever(prompt, text)


def has_jax(prompt, text): return float("jax" in sys.modules)


def has_variable(prompt, text): return float(os.environ.get(text) == prompt.answer)


def elsewhere(prompt, text):
  """1.0 in another process than the one whose id is the answer."""
  obey(prompt, text)
  return float(str(os.getpid()) != prompt.answer)


def needs_package(prompt, text):
  import no_such_package
  return no_such_package


needs_package.is_bounded = True
