"""Prompts about the completions of a step, for the same batch (prompts.derived)."""
from collections.abc import Sequence
import dataclasses

import numpy as np

from rlx.core import records, resolve, rng
from rlx.core.options import key
from rlx.prompts import derived
from rlx.stages import outcomes, texts as texts_lib
from rlx.verifiers import judging


@dataclasses.dataclass(frozen=True, kw_only=True)
class Derive:
  """Makes the prompts of prompts.derived from completions; see rlx/prompts/derived.py.

  Nothing is kept between steps, and everything random is drawn from the seed, the step and the
  name, so that a resumed run makes the same prompts.

  Attributes:
    sets: {name: (function of completions, the most prompts of a step)}.
  """
  sets: dict[str, tuple[resolve.UserFunction, int]]
  texts: texts_lib.Texts
  seed: int = key("seed")

  def __call__(self, prompts: Sequence[records.Prompt], texts: Sequence[str], reward_B: np.ndarray,
               step: int) -> dict[str, list[records.Prompt]]:
    """{name: prompts}, fewer than wanted where the completions do not give more.

    Args:
      prompts: of the step, each with len(texts) / len(prompts) completions.
      reward_B: what the verifiers returned.
    """
    rows = [p for p in prompts for _ in range(len(texts) // len(prompts))]
    completions = [derived.Completion(*row) for row in zip(
        rows, texts, self.texts.answers(list(texts), rows),
        outcomes.clip_rewards(reward_B).astype(float).tolist())]
    made = {}
    for name, (_, most) in self.sets.items():
      order = np.random.default_rng([self.seed, rng.number(f"derived/{name}"), step]).permutation(
          len(completions))
      by_id: dict[str, records.Prompt] = {}  # The same id twice would be sampled twice alike.
      for p in self.make(name, [completions[i] for i in order]):
        if len(self.texts.prompt_ids(p)) <= self.texts.prompt_tokens: by_id.setdefault(p.id, p)
      made[name] = [*by_id.values()][:most]
    return made

  def make(self, name: str, completions: Sequence[derived.Completion]) -> list[records.Prompt]:
    """What a function makes of completions, whatever its length; what it drops is left out.

    Raises:
      ValueError: it yields something else than prompts.
    """
    (fn, _), has_own = self.sets[name], name in self.texts.sources
    made = [p for p in judging.ask(fn(completions)) if not isinstance(p, records.Dropped)]
    if other := [p for p in made if not isinstance(p, records.Prompt)]:
      raise ValueError(f"prompts.derived.{name}.name: it yields a {type(other[0]).__name__}; "
                       "records.Prompt is needed.")
    named = [dataclasses.replace(p, id=f"{derived.OWN}{name}/{p.id}", source=name if has_own else
                                 p.source) for p in made]
    return [dataclasses.replace(p, meta={**p.meta, "begun": self.texts.start_of_reply(p)})
            for p in named]
