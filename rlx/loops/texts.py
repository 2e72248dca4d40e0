"""Prompts and completions as texts and as token ids."""
import dataclasses
from typing import Any, Callable

from rlx.core.options import key
from rlx.loops import annotations
from rlx.rollouts import padding
from rlx.rollouts import trajectories
from rlx.verifiers import answers as answers_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Texts:
  """The tokenizer and the prompt template of a run, with the longest texts it allows."""
  tokenizer: Any
  template: Callable           # Prompt -> a text or chat messages
  stops: tuple                 # texts that end a completion
  step_separator: str | None = key("rollouts.step_separator")
  answer: str = key("eval.answer")  # regular expression whose last match is the answer
  prompt_tokens: int = key("prompts.max_tokens")
  completion_tokens: int = key("rollouts.max_tokens")

  def prompt(self, prompt):
    """The text that the model reads for a Prompt."""
    return self.tokenizer.render(self.template(prompt))

  def prompt_ids(self, prompt):
    """The token ids of a Prompt's text."""
    return self.tokenizer.encode(self.prompt(prompt))

  def completions(self, rollouts):
    """The text of each completion."""
    return [self.tokenizer.decode(ids) for ids in padding.completions(rollouts)]

  def step_columns(self, completions):
    """For each completion, a list of token ids, the columns in which its steps end."""
    return annotations.columns_of_steps(completions, self.tokenizer, self.step_separator)

  def answers(self, texts):
    """The answer that each text states, None where there is none."""
    return answers_lib.stated(texts, self.answer)

  def example(self, prompt, completion):
    """Token ids of a prompt's text and of a completion's, with EOS."""
    prompt_ids, ids = self.tokenizer.pair(prompt, completion)
    return prompt_ids, [*ids, self.tokenizer.end_id]

  def examples(self, pairs):
    """Rollouts, padded to the longest allowed, of pairs (prompt, completion) of texts."""
    return self.rollouts(*zip(*(self.example(*pair) for pair in pairs)))

  def rollouts(self, prompts, completions):
    """Rollouts, padded to the longest allowed, of one completion after each prompt."""
    return trajectories.pairs(prompts, completions, self.tokenizer, self.completion_tokens,
                              self.prompt_tokens)
