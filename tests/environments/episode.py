"""An episode of a test: an environment, and the replies that it gets."""
import pickle


def play(environment, prompt, replies, copies=False):
  """The steps of an episode, up to its end.

  Args:
    copies: whether each step is taken by the pickle of the environment before it.
  """
  steps = []
  assert environment.reset(prompt) == prompt.text
  for reply in replies:
    if copies: environment = pickle.loads(pickle.dumps(environment))
    steps.append(environment.step(reply))
    if steps[-1].done: break
  return steps
