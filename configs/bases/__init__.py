"""Bases: what belongs to a model and its data. A method is applied to one with base=NAME.

  rlx train papers/grpo base=gsm8k model.path=hf:Qwen/Qwen2.5-0.5B-Instruct

A base is a file whose get_config(argument) returns a config with PRIME as its method, which the
method's config changes. PARTS has what some methods need from a task ({part: value}): base.part
reads it, and refuses a base that does not have it.

The argument of a language model's base has words joined by "-": lora, for LoRA adapters instead of
full training, and smoke. Letters beside the values:

  T  TRL, its documentation and defaults of GRPOConfig; "LoRA Without Regret" in it for LoRA
  V  verl, examples/grpo_trainer and examples/data_preprocess
  D  verl, recipe/dapo/run_dapo_qwen2.5_32b.sh
  R  open-r1, recipes/Qwen2.5-1.5B-Instruct/grpo/config_demo_code.yaml
  P  PRIME's released configuration, see papers/prime.py
  O  our choice, for one GPU with 80 GB
"""
from rlx.configs import base

BOXED = r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}"  # What the template `boxed` asks for.
# What asks a policy for its score of a completion, with the template `boxed`.
SCORE = dict(
    request=("This is a question.\n\n{question}\n\nThis is an answer to it.\n\n{answer}\n\n"
             "Check it step by step. The final answer of your reply is 1 if its final answer is "
             "right, else 0."),
    reads=r"(?s).*\\boxed\{([01])\}.{0,32}")
# A server on this machine; verifier.judge.url and .model name another one.
JUDGE = dict(url="http://localhost:8000/v1/chat/completions", model="judge")
# Of mathematics with the template `boxed`: by verifiers, or with `text` for a judge.
RUBRIC = (
    dict(name="right answer", weight=1.0, verifier="math_answer.final",
         text="The final answer agrees with the reference."),
    dict(name="boxed", weight=0.7, verifier="format.boxed",
         text="The final answer stands in a box: \\boxed{}."),
    dict(name="English", weight=0.3, verifier="format.ascii_share",
         text="It is written in English."))


def language_model(arg, *names):
  """(config that all language models share, one of names or "", "" or "smoke") of an argument."""
  words = set(arg.split("-")) - {""}
  name, is_lora = words & set(names), "lora" in words
  if words - {*names, "lora", "smoke"} or len(name) > 1:
    raise ValueError(f"argument {arg!r} of the base: there are {', '.join([*names, 'lora'])} and "
                     "smoke, joined by -.")
  c = base.get_config()
  c.model.path = "hf:Qwen/Qwen2.5-0.5B-Instruct"     # O
  c.model.dtype, c.model.remat = "bfloat16", "full"  # T, V
  if is_lora: c.lora.rank, c.lora.alpha = 32, 32.0   # T: rank 1 to 32, alpha 32, all matrices
  rate = 1e-5 if is_lora else 1e-6                   # T, and V and D for full training
  c.learner.optimizer.lr = rate
  c.prm.optimizer.lr = rate                          # P for full training, O for LoRA
  c.value.optimizer.lr = 10 * rate                   # V (critic.optim.lr=1e-5) for full, O for LoRA
  c.prm.beta = 0.05                                  # P
  c.rollouts.decoding.temperature = 1.0              # T, V, D, P
  c.prompts.template = dict(name="boxed")            # V, which says it in other words
  c.prompts.per_step, c.rollouts.per_prompt = 64, 8  # O; T: 8 completions
  c.rollouts.chunk, c.rollouts.bucket = 64, 128      # O
  c.rollouts.step_separator = "\n"                   # O: a line is a step
  for name_ in ("learner", "prm", "value"): c[name_].microbatches = 8   # O: 64 rows
  c.verifier.workers = 8                             # O
  c.eval.every = c.checkpoint.every = 20             # V: save_freq
  c.eval.prompts, c.eval.final_samples = 512, 1      # O
  c.eval.answer = BOXED
  return c, next(iter(name), ""), "smoke" * ("smoke" in words)
