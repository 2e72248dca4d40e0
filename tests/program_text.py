"""What tests read from the text of compiled programs besides `learner.programs.work`."""
from rlx.learner import programs


def collectives(text: str, mesh: dict[str, int]) -> list[tuple[str, str, tuple]]:
  """(kind, mesh axes, shape) of each array that a compiled program sends to other devices.

  Args as `work`; axes are "" if no group has two devices.
  """
  computations, _ = programs._parse(text)
  sent = []
  for op in (op for ops in computations.values() for op in ops):
    kind = op.kind.removesuffix("-start")
    if kind in programs._RECEIVED:
      sent += [(kind, programs._axes(op, mesh), x.shape) for x in op.results]
  return sent


def host_operations(text: str) -> list[str]:
  """The operations of a compiled program that exchange data with the host."""
  computations, _ = programs._parse(text)
  return [op.name for ops in computations.values() for op in ops
          if op.kind.partition("-")[0] in ("infeed", "outfeed", "send", "recv")
          or "MoveToHost" in op.text or "callback" in op.text.partition("metadata=")[0]]
