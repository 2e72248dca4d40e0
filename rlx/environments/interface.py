"""The interface of an environment, which answers the turns of a policy.

  class Countdown:
    role = "user"                           # or "tool": of the observations' messages in a chat

    def __init__(self, *, limit=3): ...     # options: the other keys of the config's section

    def reset(self, prompt):                # the text or the chat messages of an episode's start
      self.left = self.limit
      return prompt.text

    def step(self, reply):                  # what the policy wrote in its turn, without its EOS
      return Step("wrong, again\n", reward=None, done=False)

A config names it below this folder (`environment.name="zoo.calculator.Calculator"`) or as
"package.module:Class". An environment runs in worker processes (runner.py). Between two steps it
is a pickle and the next step can run in another process, so everything that a step changes must
be an attribute that can be pickled, and small; what can be made again (a corpus, a database) is
cached by its module or left out by __getstate__. Steps are deterministic: an episode depends on
its prompt and its replies alone, so random draws come from a generator that `reset` seeds
by the prompt's id. All episodes of a prompt start with the same text.

A step that raises an exception, exceeds its deadline or kills its process is answered with an
observation that says so, and the environment continues from its state before the step.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Step:
  """What an action causes.

  Attributes:
    observation: what the policy reads next; "" is allowed.
    reward: of this action, on any scale; None: there is none. The sum over an episode is its
      outcome, which verdicts clip to [0, 1], unless a step has a verdict.
    verdict: the outcome of the episode if it ended here, whatever its actions earned; None: that of
      the step before, if any. An environment that rewards the way to the answer gives 0 until
      there is one: an episode can end after any step, because its tokens are used up.
    done: whether the episode ends. The policy does not read the observation of a last step.
    info: numbers for the metrics `environment/NAME`, which are means over episodes of the last
      value of each.
  """
  observation: str = ""
  reward: float | None = None
  done: bool = False
  info: dict[str, float] = dataclasses.field(default_factory=dict)
  verdict: float | None = None
