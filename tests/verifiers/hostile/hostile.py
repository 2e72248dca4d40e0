"""A verifier that does what the completion says; test_pool.py gives it to workers."""
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
  if text.startswith("child "):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with open(text.removeprefix("child "), "w") as f: f.write(str(child.pid))
    time.sleep(60)
  return float(text == prompt.answer)


def obey_forever(prompt, text):
  return obey_forever(prompt, text)


def has_jax(prompt, text):
  return float("jax" in sys.modules)


def needs_package(prompt, text):
  import no_such_package
  return no_such_package
