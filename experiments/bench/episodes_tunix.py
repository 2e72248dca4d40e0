"""Tunix's multi-turn rollouts for episodes.py, in an environment with google-tunix.

  python episodes_tunix.py MODEL EPISODES GROUP TURNS ACTION READ PROMPT

The model is a Qwen2 of an HF directory. Each line of stdin runs what produces the trajectories in
the agentic GRPOLearner (its orchestrator, engine, ModelAgent and vanilla sampler) on all episodes
once, and prints the seconds. The environment answers READ random tokens at once, the chat template
adds no tokens, and no token ends an action. Tunix bounds an action only by what is left of the
episode's tokens, so `_model_call` is given ACTION instead; all else is Tunix's.
"""
import asyncio
import json
import os
import pathlib
import random
import sys
import time

os.environ.update(JAX_PLATFORMS="cpu", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # XLA's and other threads: on 2 cores.

import jax
import jax.numpy as jnp
import numpy as np
import optax
import transformers
from tunix.models.qwen2 import model as qwen2, params
from tunix.rl import rl_cluster
from tunix.rl.agentic import agentic_grpo_learner as grpo
from tunix.rl.agentic.environments import base_environment
from tunix.rl.agentic.parser.chat_template_parser import parser
from tunix.rl.rollout import base_rollout


class Environment(base_environment.BaseTaskEnv):
  """Answers each action at once with what `answer` draws; ends after `max_steps` of them."""

  def _initial_observation(self):
    return self.task["prompts"].item()

  def _step_impl(self, action):
    return base_environment.EnvStepResult(self.extra_kwargs["answer"](), 0.0, False, {})


class Template(parser.BaseChatTemplateParser):
  """Messages with spaces between them, and nothing else."""

  def _init_tokens(self):
    return parser.TokenConfig(message_separator=" ")

  def _init_generation_prompt(self):
    return ""


class Learner(grpo.GRPOLearner):
  """Each call of the model draws `action` tokens."""
  action: int

  def _model_call(self, chat_lists, env=None, max_generation_steps=None):
    return super()._model_call(chat_lists, env, self.action)


def load(path, mesh):
  c = json.loads((pathlib.Path(path) / "config.json").read_text())
  heads = c["num_attention_heads"]
  config = qwen2.ModelConfig(
      num_layers=c["num_hidden_layers"], vocab_size=c["vocab_size"], embed_dim=c["hidden_size"],
      hidden_dim=c["intermediate_size"], num_heads=heads, head_dim=c["hidden_size"] // heads,
      num_kv_heads=c["num_key_value_heads"], rope_theta=int(c["rope_parameters"]["rope_theta"]),
      norm_eps=c["rms_norm_eps"], use_tied_embedding=c["tie_word_embeddings"])
  with mesh: return params.create_model_from_safe_tensors(path, config, mesh, dtype=jnp.float32)


def main():
  path, (episodes, group, turns, action, read, prompt) = sys.argv[1], map(int, sys.argv[2:])
  mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(1, 1), ("fsdp", "tp"))
  model = load(path, mesh)
  tokenizer = transformers.PreTrainedTokenizerFast(
      tokenizer_file=f"{path}/tokenizer.json", pad_token="<pad>", eos_token="</s>")
  total = turns * action + (turns - 1) * read
  bound = total + 1  # An action that reaches the bound is dropped.
  context = prompt + total - action  # Of the last action. The sampler pads it to a power of 2.
  cluster = rl_cluster.RLCluster(
      actor=model, tokenizer=tokenizer, cluster_config=rl_cluster.ClusterConfig(
          role_to_mesh={role: mesh for role in (
              rl_cluster.Role.ACTOR, rl_cluster.Role.REFERENCE, rl_cluster.Role.ROLLOUT)},
          rollout_engine="vanilla", offload_to_cpu=False,
          training_config=rl_cluster.RLTrainingConfig(
              actor_optimizer=optax.sgd(0.0), eval_every_n_steps=10**9),
          rollout_config=base_rollout.RolloutConfig(
              max_tokens_to_generate=bound, max_prompt_length=prompt,
              kv_cache_size=max(prompt, 1 << (context - 1).bit_length()) + action,
              temperature=1.0, eos_tokens=[-1], return_logprobs=True)))
  draw = random.Random(0)
  text = lambda n: " ".join(f"w{draw.randrange(4, model.config.vocab_size)}" for _ in range(n))
  learner = Learner(
      cluster, grpo.GRPOConfig(num_generations=group, max_response_length=bound, beta=0.0),
      chat_parser=Template(tokenizer), env_class=Environment,
      env_kwargs=dict(max_steps=turns, answer=lambda: text(read)))
  learner.action = action
  prompts = [dict(prompts=np.array([text(prompt)])) for _ in range(episodes // group)]

  async def roll_out():
    produced = learner._orchestrator_producer(learner._build_orchestrator(), prompts, group)
    return [item.traj async for items in produced for item in items]

  for _ in sys.stdin:
    start = time.perf_counter()
    rows = asyncio.run_coroutine_threadsafe(roll_out(), learner.loop).result()
    seconds = time.perf_counter() - start
    assert len(rows) == episodes and all(
        len(row["conversation_tokens"]) == total and len(row["prompt_tokens"]) == prompt
        and sum(row["conversation_masks"]) == turns * action for row in rows)
    print("SECONDS", seconds, flush=True)


if __name__ == "__main__":
  main()
