"""Environments that tests run: one that counts, and what a reply can do to it."""
import dataclasses
import os
import pathlib
import random
import time

from rlx.environments import interface


class Counting:
  """Says how many replies it had; a reply is a command."""
  role = "user"

  def __init__(self, *, end=3, slow_s=0.0):
    self.end, self.slow_s, self.count = end, slow_s, 0

  def reset(self, prompt):
    if prompt.text == "broken": raise KeyError("no such thing")
    self.text = prompt.text
    return f"{prompt.text}?"

  def step(self, reply):
    if self.text == "dead": raise RuntimeError("always")
    if self.text in ("once", "twice"):  # So often its process is lost.
      with open(os.environ["RLX_LOSSES"], "a+") as f:
        f.write("x")
        if f.tell() <= ("once", "twice").index(self.text) + 1: f.flush(); os._exit(3)
    time.sleep(self.slow_s)
    if reply.startswith("meet "):  # Waits until two processes are here.
      folder = pathlib.Path(reply.removeprefix("meet "))
      (folder / str(os.getpid())).touch()
      while len(list(folder.iterdir())) < 2: time.sleep(0.01)
    self.count += 1
    if reply == "sleeper": self.slow_s = 100  # What makes all later steps fail.
    if reply == "sleeper killer": self.text = "killed"
    elif self.text == "killed": os._exit(1)
    if reply == "fat": self.fat = bytes(2**21 - 600)
    if hasattr(self, "fat"): self.text += "x" * 300
    if reply == "unreadable": self.bomb = Unreadable()
    if reply == "wordy": self.text = "wordy"
    elif reply == "words" or self.text == "wordy":
      return interface.Step("x" * 2**23)  # More than a message may have.
    if self.text == "worn" and self.count == 2: raise RuntimeError("whatever the replies")
    if reply == "raise": raise ValueError("asked to")
    if reply == "exit": os._exit(1)
    if reply == "hang": time.sleep(100)
    if reply == "memory": bytearray(2**36)
    if reply == "big": self.big = bytes(3 * 2**20)
    if reply == "print": print("[1, 2, 3]")
    if reply == "nan": return interface.Step("", reward=float("nan"))
    if reply == "tuple": return "observation", 1.0, False, {}
    done = self.count == self.end
    return interface.Step(f"{self.count};", reward=float(reply == "right") if done else None,
                          done=done, info=dict(count=self.count))


class Unreadable:
  """Can be pickled, and not read."""

  def __reduce__(self): return int, ("no number",)


class Bounded(Counting):
  """The same for a runner without processes."""
  is_bounded = True


class Spy(Counting):
  """Says what its process finds in environment variables."""

  def step(self, reply): return interface.Step(os.environ.get(reply, "nothing"))


class Earning(Bounded):
  """Every turn earns a reward; the verdict is that of the last reply: "right" or not."""

  def reset(self, prompt): return super().reset(prompt)[:-1]

  def step(self, reply):
    step = super().step(reply)
    return dataclasses.replace(step, reward=1.0, verdict=float(reply == "right"))


class Letters(Bounded):
  """Rewards the share of letters of each reply; ends after some turns, by the prompt."""

  def reset(self, prompt):
    self.end = 2 + len(prompt.text) % 2 + ord(prompt.text[-1]) % 2
    return super().reset(prompt)[:-1]

  def step(self, reply):
    time.sleep(self.slow_s * (0.5 + random.random()))  # Not seeded: they come in any order.
    self.count += 1
    share = sum(c.isalpha() for c in reply) / max(len(reply), 1)
    done = self.count == self.end
    return interface.Step("01"[self.count % 2] * (self.count % 3), share / self.end, done,
                          dict(count=self.count))
