"""Made tasks of a domain that a rule checks, such as instructions or SQL, with a chat model.

  rlx train papers/grpo base=domains model.path=hf:Qwen/Qwen2.5-0.5B-Instruct
  rlx train papers/toolrl base=domains:lora model.path=hf:Qwen/Qwen2.5-1.5B-Instruct

The base itself has writing tasks with instructions (rlx/prompts/datasets/instructions.py). Papers
on a domain use `grpo` of this module, which puts their data set in its place. Meant for one GPU
with 80 GB and models up to about 1.5B parameters. It has not been run at that size, so there is
neither a time nor a figure to expect. Rows are made from a seed and need no download; docs/data.md
has the columns for rows of your own.
"""
from rlx.configs import base, bases, quickstart

PARTS = {
    "strict and a lenient verifier": "instructions.followed_loose",
    "verifier of answers": "instructions.followed",
    "graded verifier": "instructions.share",
    "checker of the form": "format.length",
    "demonstration": dict(name="jsonl.demonstration"),
    "chat model": True}


def get_config(arg=""):
  c, _, size = bases.language_model(arg)
  c.steps = 100                                      # O
  _place(c, "instructions", "Follow all instructions exactly. Reply with the text alone.", {})
  return base.sized(c, size)


def grpo(arg, dataset, system, **options):
  """GRPO on a made data set, over the chosen language model or this base.

  Args:
    arg: "" or "smoke".
    dataset: of prompts.dataset; options: of its `generate`.
    system: the system turn, which says what the reply has to look like.
  """
  with base.over(base.chosen() or "domains"):
    base.part("chat model")
    c = quickstart.grpo(arg)
  _place(c, dataset, system, options)
  return c


def _place(c, dataset, system, options):
  c.prompts.source, c.prompts.dataset, c.prompts.columns = "generated", dataset, {}
  c.prompts.split, c.eval.split = "train", "test"
  c.prompts.options = dict(size=8192, **options)     # O
  c.prompts.template = dict(name="chat", system=system)
  c.prompts.max_tokens = 512                         # O
  c.eval.answer = r"(?s)\s*(.*\S)"                   # The whole answer.
