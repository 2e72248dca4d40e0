"""Prompts and completions as texts and as token ids."""
import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from rlx.core import records, resolve
from rlx.core.options import key
from rlx.io import tokenizer
from rlx.rollouts import padding, trajectories
from rlx.stages import host_fields
from rlx.verifiers import answers as answers_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Texts:
  """The tokenizer and the prompt template of a run, with the longest texts it allows."""
  tokenizer: tokenizer.Tokenizer
  template: resolve.UserFunction  # Prompt -> a text or chat messages
  stops: tuple[str, ...]       # texts that end a completion
  step_separator: str | None = key("rollouts.step_separator")
  answer: str = key("eval.answer")  # regular expression whose last match is the answer
  prompt_tokens: int = key("prompts.max_tokens")
  completion_tokens: int = key("rollouts.max_tokens")

  def prompt(self, prompt: records.Prompt) -> str:
    """The text that the model reads for a Prompt."""
    return self.tokenizer.render(self.template(prompt))

  def prompt_ids(self, prompt: records.Prompt) -> list[int]:
    """The token ids of a Prompt's text."""
    return self.tokenizer.encode(self.prompt(prompt))

  def completions(self, rollouts: records.Rollouts) -> list[str]:
    """The text of each completion."""
    return [self.tokenizer.decode(ids) for ids in padding.completions(rollouts)]

  def step_columns(self, completions: list[list[int]]) -> list[list[int]]:
    """For each completion, a list of token ids, the columns in which its steps end."""
    return host_fields.columns_of_steps(completions, self.tokenizer, self.step_separator)

  def answers(self, texts: list[str]) -> list[str | None]:
    """The answer that each text states, None where there is none."""
    return answers_lib.find_stated_answers(texts, self.answer)

  def example(self, prompt: str, completion: str) -> tuple[list[int], list[int]]:
    """Token ids of a prompt's text and of a completion's, with EOS."""
    prompt_ids, ids = self.tokenizer.pair(prompt, completion)
    return prompt_ids, [*ids, self.tokenizer.end_id]

  def examples(self, pairs: Iterable[tuple[str, str]]) -> records.Rollouts:
    """Rollouts, padded to the longest allowed, of pairs (prompt, completion) of texts."""
    return self.rollouts(*zip(*(self.example(*pair) for pair in pairs)))

  def last_actions(self, rollouts: records.Rollouts) -> list[str]:
    """The text of the last action of each episode."""
    return [self.tokenizer.decode(ids[(turn_T == turn_T.max()) & (turn_T >= 0)].tolist())
            for ids, turn_T in zip(rollouts.completions_BT, np.asarray(rollouts.turn_BT))]

  def episodes(self, episodes: Iterable[tuple[list[int], list[tuple[str, list[int]]]]]
               ) -> records.Rollouts:
    """Rollouts, padded to the longest allowed, of (ids of the prompt, segments)."""
    prompts, segments = zip(*episodes)
    return trajectories.rows(
        prompts, segments, width=self.completion_tokens, pad_id=self.tokenizer.pad_id,
        prompt_width=padding.bucket(max(map(len, prompts)), self.prompt_tokens))

  def rollouts(self, prompts: Sequence[list[int]],
               completions: Sequence[list[int]]) -> records.Rollouts:
    """Rollouts, padded to the longest allowed, of one completion after each prompt."""
    return trajectories.pairs(prompts, completions, self.tokenizer, self.completion_tokens,
                              self.prompt_tokens)
