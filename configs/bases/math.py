r"""Mathematics with answers in \boxed{}: DAPO-17k, or MATH (math:hendrycks), with a chat model.

  rlx train papers/dapo base=math model.path=hf:Qwen/Qwen2.5-1.5B-Instruct
  rlx train papers/prime base=math:hendrycks-lora model.path=hf:Qwen/Qwen2.5-1.5B-Instruct

Meant for one GPU with 80 GB and models up to about 1.5B parameters (with lora: 4B). It has not been
run at that size, so there is neither a time nor a figure to expect. DAPO trained a model of 32B on
128 GPUs with 20,480 tokens per completion, 512 prompts and 16 completions each. The data come from
the Hugging Face hub (package `datasets`); 512 rows of DAPO-17k are held out: it has no test split.
"""
from rlx.configs import base, bases

PARTS = {
    "checker of the form": "format.boxed",
    "strict and a lenient verifier": "math_answer.final",   # An answer without a box, too.
    # They stand in for reward models; verifier.scores takes your own.
    "verifier of answers": "math_answer.final",
    "graded verifier": "format.boxed",
    "score of a completion": bases.SCORE,
    "mark of the answer": (r"\boxed{", 32),
    "mark of the last step": (r"\boxed{", "{}", 32),
    "judge": bases.JUDGE,
    "prompts for a verifier and for a judge": (dict(source="dapo_17k"), dict(source="gsm8k")),
    "rubric": bases.RUBRIC,
    "chat model": True}


def get_config(arg=""):
  c, name, size = bases.language_model(arg, "dapo", "hendrycks")
  if name == "hendrycks":
    c.steps = 234                                    # O: two epochs of 7,500 problems
    c.prompts.source = "math"                        # V
    c.prompts.max_tokens, c.rollouts.max_tokens = 1024, 1024   # V
    c.eval.difficulty = "level"
  else:
    c.steps = 500                                    # O: about two epochs
    c.prompts.source = "dapo_17k"
    c.prompts.max_tokens = 2048                      # D
    c.rollouts.max_tokens = 4096                     # T, for Qwen3-0.6B and SmolLM3-3B
    c.learner.optimizer.warmup_steps = 10            # D
    c.learner.optimizer.weight_decay = 0.1           # D
  return base.sized(c, size)
