"""Which prompts are not worth asking. Applied once, before any is sampled."""
from absl import logging


def by_length(prompts, length, max_tokens):
  """Drops prompts that are longer than `max_tokens`; says how many.

  Args:
    length: prompt -> tokens, template included.
  Raises:
    ValueError: every prompt is too long.
  """
  lengths = [length(p) for p in prompts]
  kept = [p for p, n in zip(prompts, lengths) if n <= max_tokens]
  if lengths and not kept:
    raise ValueError(f"prompts.max_tokens={max_tokens}: all {len(lengths)} prompts "
                     f"are longer; the shortest has {min(lengths)} tokens.")
  _tell(len(prompts) - len(kept), len(prompts),
        f"longer than prompts.max_tokens={max_tokens}")
  return kept


def unique(prompts):
  """The first prompt of each text."""
  first = {}
  for p in prompts: first.setdefault(_same(p), p)
  _tell(len(prompts) - len(first), len(prompts), "duplicates")
  return list(first.values())


def not_in(prompts, held_out):
  """Drops prompts whose text is also asked in evaluation.

  Raises:
    ValueError: every prompt is.
  """
  texts = {_same(p) for p in held_out}
  kept = [p for p in prompts if _same(p) not in texts]
  if prompts and not kept:
    raise ValueError(f"prompts.split: all {len(prompts)} training prompts are also "
                     "in eval.split; name different splits.")
  _tell(len(prompts) - len(kept), len(prompts), "also in the evaluation split")
  return kept


def _same(prompt):
  """Texts that differ in spaces only are the same question."""
  return " ".join(prompt.text.split())


def _tell(dropped, total, reason):
  if dropped:
    logging.warning("%d of %d prompts dropped: %s.", dropped, total, reason)
