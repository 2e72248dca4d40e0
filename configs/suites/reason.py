"""Reasoning: tasks of reasoning-gym (install `.[gym]`), one set for each of its categories.

  rlx evaluate suites/reason model.path=hf:Qwen/Qwen2.5-1.5B-Instruct workdir=runs/qwen_reason

Each set has 50 questions of two tasks with their default options, which take turns. A task's own
scorer gives a share of the reward to some answers, so that a mean is no share of right answers.
"""
from rlx.configs import suites

# Tasks of a category as reasoning_gym/ of open-thought/reasoning-gym has them; the choice is ours.
TASKS = dict(
    algebra="simple_equations,complex_arithmetic", algorithmic="word_sorting,base_conversion",
    arithmetic="chain_sum,gsm_symbolic", cognition="number_sequence,figlet_font",
    games="countdown,mini_sudoku", geometry="simple_geometry,advanced_geometry",
    graphs="family_relationships,shortest_path", logic="knights_knaves,syllogism")
# open-thought/reasoning-gym eval/README.md: temperature, top-p, 50 questions, tokens (32,768 with
# the prompt), seed. The answer is asked for as <answer>...</answer>, as its default system prompt
# does.
SETS = {name: dict(
    source=f"gym:{tasks}", dataset="reasoning_gym", split="test", prompts=50, samples=1,
    options=dict(size=100, seed=42), decoding=dict(temperature=0.6, top_p=0.95),
    max_tokens=32768 - 2048, template=dict(name="chat", wording=(
        "{question}\n\nThink step by step, and give the final answer between <answer> and "
        "</answer>.")))
        for name, tasks in TASKS.items()}
KEYS = {"prompts.max_tokens": 2048}


def get_config(arg=""):
  return suites.make(SETS, KEYS, arg)
