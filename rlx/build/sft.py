"""The built config of supervised fine-tuning."""
import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from rlx.build import (
    keys, models as build_models, options as options_lib, prompts as build_prompts, sets, updates)
from rlx.core import records, resolve, rng
from rlx.core.options import key
from rlx.io import tokenizer as tokenizer_io, weights
from rlx.learner import optimizer, sharding, step as learner_step
from rlx.losses import aggregate, sft as sft_loss
from rlx.models import logps, transformer
from rlx.stages import dialogue, texts as texts_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sft:
  """The built config of supervised fine-tuning.

  Attributes:
    demonstrate: (Prompt, random generator) -> the text to learn, or the replies of an episode.
    dialogues: of the run's environment; None: prompts have one completion each.
    hf: config.json of the model it starts from; None: it starts from none.
  """
  model: transformer.DecoderConfig
  params: records.Params
  tokenizer: tokenizer_io.Tokenizer
  texts: texts_lib.Texts
  prompts: list[records.Prompt]
  demonstrate: resolve.UserFunction
  dialogues: dialogue.Dialogues | None
  optimizer: optimizer.Optimizer
  mesh: jax.sharding.Mesh
  hf: dict[str, Any] | None
  seed: int = key("seed")
  size: int = key("sft.batch")
  microbatches: int = key("sft.microbatches")
  _episodes: dict[int, Any] = dataclasses.field(default_factory=dict, repr=False)

  def init(self) -> records.TrainState:
    """The TrainState of the policy before the first step."""
    policy = sharding.place(self.params, self.mesh)
    return records.TrainState(step=0, policy=policy, policy_opt=sharding.compute_sharded(
        self.optimizer.init, policy, self.mesh))

  def batch(self, step: int) -> records.Rollouts:
    """Rollouts of worked examples, on the mesh."""
    draw = np.random.default_rng([self.seed, rng.number("sft"), step])
    chosen = draw.choice(len(self.prompts), self.size, replace=False).tolist()
    if self.dialogues or self._episodes:
      rollouts = self.texts.episodes(map(self._play, chosen))
    else:
      rollouts = self.texts.examples([
          (self.texts.prompt(p), self.demonstrate(p, draw))
          for p in (self.prompts[i] for i in chosen)])
    return sharding.place_rows(rollouts, self.mesh)

  def _play(self, i: int) -> tuple[list, list]:
    """The episode of a prompt; it is kept, because an environment takes longer than a text."""
    if i not in self._episodes:
      self._episodes[i] = play(self.prompts[i], self.texts, self.dialogues, self.demonstrate,
                               self.seed)
    return self._episodes[i]

  @functools.cached_property
  def update(self) -> jax.stages.Wrapped:
    """The jitted step: (params, opt_state, Rollouts) -> params, opt_state, metrics, None."""
    return learner_step.make(self._loss, self.optimizer, microbatches=self.microbatches,
                             shards=sharding.row_shards(self.mesh),
                             pinned=functools.partial(sharding.pin, mesh=self.mesh))

  def _loss(self, params: records.Params,
            rollouts: records.Rollouts) -> tuple[records.Weighted, dict, None]:
    logps_BT, _ = logps.of_rollouts(params, self.model, rollouts, with_entropy=False)
    mask_BT = rollouts.action_BT
    return aggregate.aggregate(sft_loss.nll(logps_BT, mask_BT), mask_BT,
                               mode="token-mean"), {}, None

  def close(self) -> None:
    """Stops the environment's processes."""
    if self.dialogues: self.dialogues.close()


def build_sft(config: keys.Config) -> Sft:
  """Checks `config` and binds what supervised fine-tuning needs of it.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  c = config
  sets.fill(c)
  if c.lora.rank: raise ValueError(f"lora.rank={c.lora.rank}: 0; sft trains all parameters.")
  for name, weight in (build_prompts.read_weights(c) or {}).items():
    raise ValueError(f"prompts.mixture.{name}.weight={weight:g}: None; sft draws all examples "
                     "equally often.")
  demonstrate = resolve.bind("prompts.datasets", c.sft.target, "sft.target", n_given=2)
  mesh = sharding.make_mesh(**c.mesh)
  shards = sharding.row_shards(mesh)
  if c.sft.batch % (c.sft.microbatches * shards):
    raise ValueError(f"sft.batch={c.sft.batch}: must be a multiple of sft.microbatches="
                     f"{c.sft.microbatches} x mesh.data x mesh.fsdp = {shards}.")
  model_config, params, tokenizer = build_models.load_sft_model(c)
  model_config = build_models.choose_attention(c, model_config, mesh, c.model.path, group=1)
  texts, dialogues = build_prompts.texts_and_dialogues(c, tokenizer)
  tokenizer = texts.tokenizer  # With the variables of its chat template.
  asked = leave_out_replies(texts)
  prompts, _ = build_prompts.load_prompts(c, asked, has_target=True)
  if c.sft.batch > len(prompts):
    raise ValueError(f"sft.batch={c.sft.batch}: at most {len(prompts)}, the number of examples of "
                     f"prompts.source={c.prompts.source!r}.")
  if dialogues: dialogues.start(tokenizer, prompts[0])
  build_prompts.note_template(asked, prompts)
  written = {i: play(p, texts, dialogues, demonstrate, c.seed)
             for i, p in enumerate(prompts) if is_dialogue(p)}
  return options_lib.read_options(
      Sft, c, model=build_models.adapt_to_mesh(model_config, mesh), params=params,
      tokenizer=tokenizer, texts=texts, prompts=prompts, demonstrate=demonstrate,
      dialogues=dialogues, _episodes=written, optimizer=updates.optimizer_of(c, "sft"), mesh=mesh,
      hf=None if c.model.path is None else weights.open_model(c.model.path)[1])


def play(prompt: records.Prompt, texts: texts_lib.Texts, dialogues: dialogue.Dialogues | None,
         demonstrate: resolve.UserFunction, seed: int) -> tuple[list, list]:
  """(token ids of a prompt, segments) of what is learned of it: `demonstrate` as in `Sft`.

  Raises:
    ValueError: the chat template does not keep the replies of a dialogue, or they are too long.
  """
  if is_dialogue(prompt):
    try:
      return texts.dialogue(prompt)
    except ValueError as e:
      raise ValueError(f"prompt {prompt.id!r}: {e}") from None
  target = demonstrate(prompt, np.random.default_rng(
      [seed, rng.number("sft"), rng.number(prompt.id)]))
  if dialogues: return dialogues.play(prompt, target)
  ids, target_ids = texts.example(texts.prompt(prompt), target)
  return ids, [("action", target_ids)]


def leave_out_replies(texts: texts_lib.Texts) -> texts_lib.Texts:
  """Texts whose prompt of a dialogue is what stands before its first reply."""
  return dataclasses.replace(
      texts, template=lambda p: texts.template(_strip_replies(p)),
      sources={name: leave_out_replies(own) for name, own in texts.sources.items()})


def is_dialogue(prompt: records.Prompt) -> bool:
  """Whether the messages have the replies to learn, and no column has another one."""
  return bool(prompt.messages) and prompt.messages[-1]["role"] == "assistant" and not prompt.answer


def _strip_replies(prompt: records.Prompt) -> records.Prompt:
  """The prompt of a dialogue: what stands before the first reply."""
  if not is_dialogue(prompt): return prompt
  roles = [m["role"] for m in prompt.messages]
  return dataclasses.replace(prompt, messages=prompt.messages[:roles.index("assistant")])
