r"""Mathematics: GSM8K, MATH-500, the AIME of 2024 and 2025, the AMC 12 of 2022 and 2023.

  rlx evaluate suites/math model.path=hf:Qwen/Qwen2.5-1.5B-Instruct workdir=runs/qwen_math

All answers are graded by math_answer.final; docs/verifiers.md compares it with the graders of
lm-evaluation-harness and PRIME.
"""
from rlx.configs import suites

# huggingface/lighteval src/lighteval/tasks/default_prompts.py (MATH_QUERY_TEMPLATE).
_LIGHTEVAL = dict(name="chat", wording=(
    "Solve the following math problem efficiently and clearly.  The last line of your response "
    "should be of the following format: 'Therefore, the final answer is: $\\boxed{ANSWER}$. I hope "
    "it is correct' (without quotes) where ANSWER is just the final number or expression that "
    "solves the problem. Think step by step before answering.\n\n{question}"))
# DeepSeek-R1, arXiv:2501.12948, section 3: temperature 0.6, top-p 0.95, pass@1 as the mean over
# samples; the 32,768 tokens are here of prompt and completion, as max_model_length of
# huggingface/open-r1 README.md.
_R1 = dict(decoding=dict(temperature=0.6, top_p=0.95), max_tokens=32768 - 2048)
SETS = dict(
    # EleutherAI/lm-evaluation-harness lm_eval/tasks/gsm8k/gsm8k-cot-zeroshot.yaml: wording, greedy
    # decoding. Its default of 256 tokens cuts off chat models; 1,024 are those of volcengine/verl
    # examples/grpo_trainer.
    gsm8k=dict(source="gsm8k", prompts=1319, max_tokens=1024, template=dict(
        name="chat", wording="Q: {question}\nA: Let's think step by step.")),
    # huggingface/lighteval src/lighteval/tasks/tasks/math_500.py: wording, tokens, n=1.
    math_500=dict(source="math_500", prompts=500, template=_LIGHTEVAL, samples=1, **_R1),
    # huggingface/lighteval src/lighteval/tasks/tasks/aime.py: wording; 32 samples:
    # EleutherAI/lm-evaluation-harness lm_eval/tasks/aime/aime24_pass_avg_32.yaml.
    aime24=dict(source="aime24", prompts=30, template=_LIGHTEVAL, samples=32, **_R1),
    aime25=dict(source="aime25", prompts=30, template=_LIGHTEVAL, samples=32, **_R1),
    # As the AIME; the problems are those of PRIME's evaluation, PRIME-RL/PRIME eval.
    amc=dict(source="amc", prompts=83, template=_LIGHTEVAL, samples=32, **_R1))
KEYS = {"prompts.max_tokens": 2048}


def get_config(arg=""):
  return suites.make(SETS, KEYS, arg)
