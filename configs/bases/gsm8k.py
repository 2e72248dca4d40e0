"""GSM8K, grade-school word problems, with a chat model.

  rlx train papers/grpo base=gsm8k model.path=hf:Qwen/Qwen2.5-0.5B-Instruct
  rlx train papers/prime base=gsm8k:lora model.path=hf:Qwen/Qwen2.5-1.5B-Instruct

Meant for one GPU with 80 GB and models up to about 1.5B parameters (with lora: 4B). It has not been
run at that size, so there is neither a time nor a figure to expect. The data come from the Hugging
Face hub (package `datasets`); prompts.source=PATH reads a file with the same columns.

A model that thinks before it answers, such as Qwen3, needs longer completions: TRL gives
Qwen3-0.6B 4096 tokens (rollouts.max_tokens=4096).
"""
from rlx.configs import base, bases

PARTS = {
    "checker of the form": "format.boxed",
    # They stand in for reward models; verifier.scores takes your own.
    "verifier of answers": "math_answer.final",
    "graded verifier": "format.boxed",
    "mark of the answer": (r"\boxed{", 16),
    "mark of the last step": (r"\boxed{", "{}", 16),
    "demonstration": dict(name="gsm8k.demonstration"),
    "chat model": True}


def get_config(arg=""):
  c, _, size = bases.language_model(arg)
  c.steps = 234                                      # O: two epochs of 7,473 questions
  c.prompts.source, c.prompts.dataset = "hf:openai/gsm8k:main", "gsm8k"
  c.prompts.max_tokens, c.rollouts.max_tokens = 512, 1024   # V
  return base.sized(c, size)
