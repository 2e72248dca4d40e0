"""MBPP, short Python functions with tests, with a chat model.

  rlx train papers/grpo base=code model.path=hf:Qwen/Qwen2.5-Coder-1.5B-Instruct
  rlx train papers/verpo base=code:lora model.path=hf:Qwen/Qwen2.5-Coder-1.5B-Instruct

Solutions run in the sandbox (bubblewrap, docs/data.md). Meant for one GPU with 80 GB and models up
to about 1.5B parameters. It has not been run at that size, so there is neither a time nor a figure
to expect. The data come from the Hugging Face hub (package `datasets`).
"""
from rlx.configs import base, bases

PARTS = {
    "strict and a lenient verifier": "code_tests.fraction",
    "verifier of answers": "code_tests.passed",
    "graded verifier": "code_tests.fraction",
    "unit tests": "code_tests.tests",
    "rubric": (dict(name="all tests", weight=1.0, verifier="code_tests.passed"),
               dict(name="most tests", weight=0.7, verifier="code_tests.fraction"),
               dict(name="English", weight=0.3, verifier="format.ascii_share")),
    "mark of the answer": ("```python\n", 512),
    "mark of the last step": ("```python\n", "{}", 512),
    "demonstration": dict(name="jsonl.demonstration"),
    "chat model": True}


def get_config(arg=""):
  c, _, size = bases.language_model(arg)
  c.steps = 500                                      # R
  c.prompts.source = "mbpp"
  c.prompts.template = dict(name="boxed", instruction=(   # O
      "Reply with one block of Python:\n\n```python\n...\n```"))
  c.prompts.max_tokens, c.rollouts.max_tokens = 1024, 2048   # R
  # R; T has 1e-6, and ten times as much for LoRA.
  c.learner.optimizer.lr /= 2
  c.learner.optimizer.update(dict(
      schedule="cosine", total_steps=500, final_fraction=0.1, warmup_steps=15))   # R
  # O: a few of the published problems have tests that a constant passes.
  c.verifier.allow_constant, c.verifier.timeout_s = True, 30.0
  c.eval.answer = r"(?s)```python\n(.*?)```"
  return base.sized(c, size)
