"""The sizes of batches, of texts and of what is computed for them."""
import dataclasses

from rlx.core.options import key


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes:
  """The sizes of batches, of texts and of what is computed for them."""
  prompts: int = key("prompts.per_step")            # P
  group: int = key("rollouts.per_prompt")           # G
  rehearsal: int = key("rollouts.rehearsal")        # prompts whose completions are stored
  derived: int                                 # prompts about the completions of the others
  draw: int                                         # prompts sampled per draw
  first_pass: int              # completions of a prompt before rollouts.budget adds others
  eval_batch: int = key("eval.batch")
  eval_samples: int = key("eval.samples")
  prompt_tokens: int = key("prompts.max_tokens")
  completion_tokens: int = key("rollouts.max_tokens")
  chunk: int = key("rollouts.chunk")
  bucket: int = key("rollouts.bucket")
  pack: bool = key("learner.pack")
  axes: dict[str, int]                         # {"M", "J", "K", "E", "Z", "I"}: see core/axes.py

  @property
  def rows(self) -> int:
    """B, completions of a batch."""
    return self.prompts * self.group

  @property
  def multiple(self) -> int:
    """Of which widths of completions are multiples. Packing skips padding: there is one width."""
    return self.completion_tokens if self.pack else self.bucket

  @property
  def trained(self) -> int:
    """Prompts of a batch from the data: all but the rehearsed and the derived ones."""
    return self.prompts - self.rehearsal - self.derived
