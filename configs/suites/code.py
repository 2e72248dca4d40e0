"""Code: HumanEval, MBPP, and LiveCodeBench from August 2024 on.

  rlx evaluate suites/code model.path=hf:Qwen/Qwen2.5-Coder-1.5B-Instruct workdir=runs/qwen_code

eval.sets.livecodebench.columns.start and .end are the first and last day of its contests. Solutions
run in the sandbox (bubblewrap). Prompts whose tests cannot be run there are dropped and counted, of
HumanEval three of 164 (32, 38 and 50, which pass what one call returns to another).
"""
from rlx.configs import suites

SETS = dict(
    # evalplus/evalplus evalplus/provider/utility.py and codegen.py: wording without the beginning
    # of the reply, greedy; evalplus/provider/base.py: 768 tokens. Tests: openai/human-eval.
    humaneval=dict(source="humaneval", prompts=164, max_tokens=768, template=dict(
        name="chat", wording=(
            "Please provide a self-contained Python script that solves the following problem in a "
            "markdown code block:\n```\n{question}\n```\n"))),
    # EleutherAI/lm-evaluation-harness lm_eval/tasks/mbpp/mbpp_instruct.yaml: wording and tests of
    # the 500 test problems, greedy; without its three worked examples and its 256 tokens, but those
    # of EvalPlus.
    mbpp=dict(source="mbpp", prompts=500, max_tokens=768, template=dict(
        name="chat", wording=(
            "You are an expert Python programmer, and here is your task:\n{question}"))),
    # LiveCodeBench/LiveCodeBench lcb_runner/prompts/code_generation.py: system turn (the user's is
    # made by the data set); lcb_runner/runner/parser.py: 10 samples at temperature 0.2, top-p 0.95,
    # 2,000 tokens; without its stop string "###". The day is that of DeepSeek-R1, arXiv:2501.12948.
    livecodebench=dict(
        source="livecodebench", prompts=1055, columns=dict(start="2024-08-01"), samples=10,
        decoding=dict(temperature=0.2, top_p=0.95), max_tokens=2000, template=dict(
            name="chat", system=(
                "You are an expert Python programmer. You will be given a question (problem "
                "specification) and will generate a correct Python program that matches the "
                "specification and passes all tests. You will NOT return anything except for the "
                "program."))))
KEYS = {
    "prompts.max_tokens": 4096,
    # LiveCodeBench/LiveCodeBench lcb_runner/runner/parser.py: 6 s a test; all tests of a problem
    # have to pass, of which there may be more than a hundred.
    "verifier.test_s": 6, "verifier.timeout_s": 300.0,
    # The published tests count, also where a constant passes them.
    "verifier.allow_constant": True}


def get_config(arg=""):
  return suites.make(SETS, KEYS, arg)
