"""The state of a run that is kept on the host."""
import dataclasses


@dataclasses.dataclass
class HostState:
  """The state of a run that is kept on the host; saved with every checkpoint."""
  initial_eval: dict | None = None  # held-out accuracy before training
  buffer: list[str] = dataclasses.field(default_factory=list)  # ids of prompts for the next step
  stuck: int = 0                   # consecutive updates without a finite loss and gradient
  seconds: float | None = None     # run time up to the last checkpoint, restarts included
  seconds_before: float | None = None  # run time before the last restart
  rehearsed: dict[str, list[int]] | None = None  # prompt id -> token ids, see Collect.find_solved
  prompts: dict | None = None      # state of the prompt iterator
  training_tokens: int = 0         # tokens that a PRM was trained on (loops/train_scorer.py)
