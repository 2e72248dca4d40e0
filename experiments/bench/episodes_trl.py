"""TRL's multi-turn rollouts for episodes.py, in an environment of its own with trl.

  python episodes_trl.py MODEL EPISODES GROUP TURNS ACTION READ PROMPT

Each line of stdin runs GRPOTrainer's own first generation and its tool loop once, and prints the
seconds. A random model makes no tool calls, so every completion is taken to be one and every
result has READ random tokens; all else, above all generation, is TRL's.
"""
import os
import random
import sys
import tempfile
import time

os.environ.update(OMP_NUM_THREADS="2", HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1")

import datasets
import torch
import transformers
import trl
from trl.trainer import grpo_trainer


def main():
  path, (episodes, group, turns, action, read, prompt) = sys.argv[1], map(int, sys.argv[2:])
  torch.set_num_threads(2)
  tokenizer = transformers.PreTrainedTokenizerFast(
      tokenizer_file=f"{path}/tokenizer.json", pad_token="<pad>", eos_token="</s>")
  model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
  total = turns * action + (turns - 1) * read
  trainer = trl.GRPOTrainer(
      model=model, reward_funcs=lambda completions, **_: [0.0] * len(completions),
      processing_class=tokenizer,
      train_dataset=datasets.Dataset.from_dict(dict(prompt=["w4"] * 64)),
      args=trl.GRPOConfig(
          output_dir=tempfile.mkdtemp(), per_device_train_batch_size=episodes,
          num_generations=max(group, 2),  # It refuses 1; rollouts do not depend on it.
          max_completion_length=total, report_to=[], use_cpu=True, bf16=False, fp16=False,
          generation_kwargs=dict(eos_token_id=None, max_new_tokens=action)))
  draw = random.Random(0)
  ids = lambda n: [draw.randrange(4, model.config.vocab_size) for _ in range(n)]
  call = dict(type="function", function=dict(name="look", arguments={}))
  grpo_trainer.parse_response = lambda *_, **__: dict(
      role="assistant", content="", tool_calls=[call])
  trainer._get_tool_suffix_ids = lambda _: ids(read)
  trainer.tools, trainer.environment_factories = [], None
  trainer.eos_token_ids = [-1]  # No token ends an action.
  trainer._sync_tool_dicts = [dict(look=lambda: "")] * episodes
  trainer._async_tool_dicts = [{}] * episodes
  trainer.max_tool_calling_iterations = turns - 1
  prompts = [x for x in [ids(prompt) for _ in range(episodes // group)] for _ in range(group)]
  for _ in sys.stdin:
    start = time.perf_counter()
    drawn, logps = trainer._generate_single_turn(prompts, None, {}, 1)
    messages = [[grpo_trainer.parse_response()] for _ in prompts]
    asked = [[dict(role="user", content="")] for _ in prompts]
    mask, _, whole, *_ = trainer._tool_call_loop(
        asked, prompts, drawn, messages, logps, None, {})
    seconds = time.perf_counter() - start
    assert all(len(row) == total and sum(m) == turns * action for row, m in zip(whole, mask))
    print("SECONDS", seconds, flush=True)


if __name__ == "__main__":
  main()
