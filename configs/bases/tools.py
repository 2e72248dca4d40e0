"""Arithmetic with a calculator tool in a dialogue, with a chat model.

  rlx train papers/gigpo base=tools model.path=hf:Qwen/Qwen2.5-1.5B-Instruct
  rlx train papers/grpo base=tools:lora model.path=hf:Qwen/Qwen2.5-1.5B-Instruct

The questions and the tool are those of configs/environments/calculator.py. The model's chat
template has to take messages of the role `tool`. Meant for one GPU with 80 GB. It has not been run
at that size, so there is neither a time nor a figure to expect.
"""
from rlx.configs import base, bases

PARTS = {
    "dialogue with the environment calculator": "calculator",
    # They stand in for reward models.
    "verifier of answers": "rlx.environments.zoo.calculator:overlap",
    "graded verifier": "rlx.environments.zoo.calculator:overlap",
    "rubric": (dict(name="answer", weight=1.0, verifier="rlx.environments.zoo.calculator:overlap"),
               dict(name="parsed", weight=0.3, verifier="rlx.environments.zoo.calculator:parsed")),
    "checker of the form": "rlx.environments.zoo.calculator:parsed"}
SYSTEM = (
    "You have a calculator for two integers. Reply with one operation in square brackets and "
    "nothing else, such as [37*4]: the tool replies with its result. When you know the answer to "
    "the question, reply with # and the answer and nothing else, such as #221.")


def get_config(arg=""):
  c, _, size = bases.language_model(arg)
  c.steps = 100                                      # O
  c.prompts.source = "generated"
  c.prompts.dataset = "rlx.environments.zoo.calculator:prompts"
  c.prompts.options = dict(size=8192, n_min=2, n_max=3, ops="+-*")   # O
  c.prompts.template = dict(name="chat", system=SYSTEM)
  c.prompts.max_tokens, c.rollouts.max_tokens = 256, 512   # O
  c.environment = dict(name="zoo.calculator.Calculator", calls=4)
  c.episodes.turns, c.episodes.turn_tokens, c.episodes.observation_tokens = 5, 64, 32   # O
  c.rollouts.step_separator = "<turn>"
  # Trajectories of one width are one program, packed ones many.
  c.learner.pack = False
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  c.rewards.process.granularity = "step"             # O, as in configs/environments
  c.advantages.process = dict(name="process.steps_loo", clip=1.0)
  c.rewards.process.norm = "none"
  c.eval.answer = r"#(.*)"
  return base.sized(c, size)
