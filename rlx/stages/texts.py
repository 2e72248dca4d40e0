"""Prompts and completions as texts and as token ids."""
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rlx.core import records, resolve
from rlx.core.options import key
from rlx.io import chat, tokenizer
from rlx.rollouts import padding, trajectories
from rlx.stages import host_fields
from rlx.verifiers import answers as answers_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Texts:
  """The tokenizer and the prompt template of a run, with the longest texts it allows."""
  tokenizer: tokenizer.Tokenizer
  template: resolve.UserFunction  # Prompt -> a text or chat messages
  stops: tuple[str, ...]       # texts that end a completion
  stop_ids: tuple[int, ...] = ()  # tokens that do
  step_separator: str | None = key("rollouts.step_separator")
  answer: str = key("eval.answer")  # regular expression whose last match is the answer
  thoughts: Sequence[str] = key("verifier.thoughts")  # in which no answer is stated
  prompt_tokens: int = key("prompts.max_tokens")
  completion_tokens: int = key("rollouts.max_tokens")
  reference: str | None = key("train_scorer.reference")  # of stored completions
  # Of the sources of a mixture that have another template or other variables of it.
  sources: Mapping[str, "Texts"] = dataclasses.field(default_factory=dict)

  def select_source(self, prompt: records.Prompt) -> "Texts":
    """The Texts of the prompt's source."""
    return self.sources.get(prompt.source, self)

  def prompt(self, prompt: records.Prompt) -> str:
    """The text that the model reads for a Prompt."""
    own, tools = self.select_source(prompt), list(prompt.tools)
    asked, tokens = own.template(prompt), own.tokenizer
    if not isinstance(asked, str): return tokens.render(asked, tools=tools or None)
    for name in [*tokens.variables, *["tools"] * bool(tools)]:
      raise ValueError(f"prompts.template: {name} is for a chat template, and this prompt is a "
                       "plain text; prompts.template.name='chat' makes it a chat.")
    return asked

  def prompt_ids(self, prompt: records.Prompt) -> list[int]:
    """The token ids of a Prompt's text."""
    return self.tokenizer.encode(self.prompt(prompt))

  def start_of_reply(self, prompt: records.Prompt) -> str:
    """What the text of a Prompt has of the reply, such as a thought that the template opens.

    That is a last turn of the assistant, which the policy continues, else the text's last word.
    """
    asked = self.select_source(prompt).template(prompt)
    if not isinstance(asked, str) and asked[-1]["role"] == "assistant": return asked[-1]["content"]
    return "".join(self.prompt(prompt).split()[-1:])

  def completions(self, rollouts: records.Rollouts) -> list[str]:
    """The text of each completion."""
    return [self.tokenizer.decode(ids) for ids in padding.completions(rollouts)]

  def step_columns(self, completions: list[list[int]]) -> list[list[int]]:
    """For each completion, a list of token ids, the columns in which its steps end."""
    return host_fields.columns_of_steps(completions, self.tokenizer, self.step_separator)

  def answers(self, texts: list[str], prompts: Sequence[records.Prompt]) -> list[str | None]:
    """The answer that each text states to its prompt, None where there is none."""
    return answers_lib.find_stated_answers(texts, prompts, self.answer, self.thoughts)

  def example(self, prompt: str, completion: str) -> tuple[list[int], list[int]]:
    """Token ids of a prompt's text and of a completion's, with EOS."""
    prompt_ids, ids = self.tokenizer.pair(prompt, completion)
    return prompt_ids, [*ids, self.tokenizer.end_id]

  def examples(self, pairs: Iterable[tuple[str, str]]) -> records.Rollouts:
    """Rollouts, padded to the longest allowed, of pairs (prompt, completion) of texts."""
    return self.rollouts(*zip(*(self.example(*pair) for pair in pairs)))

  def dialogue(self, prompt: records.Prompt) -> tuple[list[int], list[tuple[str, list[int]]]]:
    """(ids of the prompt, segments) of a prompt whose messages end with a reply; its replies are
    actions. Raises as `chat.split_dialogue`."""
    own = self.select_source(prompt)
    first, *texts = chat.split_dialogue(
        own.tokenizer, own.template(prompt), tools=list(prompt.tools) or None)
    opening, segments, context = self.tokenizer.encode(first), [], first
    for i, text in enumerate(texts):
      ids = self.tokenizer.pair(context, text)[1]
      if i % 2:  # The end of a turn is the end of the reply before it.
        ids = ids[1:] if ids[:1] == [self.tokenizer.end_id] else ids
      segments.append(("observation", ids) if i % 2 else ("action", [*ids, self.tokenizer.end_id]))
      context += text
    if (n := sum(len(ids) for _, ids in segments)) > self.completion_tokens:
      raise ValueError(f"rollouts.max_tokens={self.completion_tokens}: the dialogue has {n} tokens "
                       "after its prompt.")
    return opening, segments

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
