"""What published chat templates make of finished dialogues, and what rlx trains on."""
import dataclasses
import importlib.util
import json
import pathlib
import re

import pytest

from rlx.io import chat
from rlx.io import tokenizer
from tests.io.test_tokenizer import byte_letters

# As published, of HuggingFaceTB/SmolLM2-135M-Instruct.
SMOLLM2 = """\
{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""


def each(turn, before="", opens="", after=""):
  """A template: `turn` for each message m, between what comes before, opens and after."""
  return (before + "{% for m in messages %}" + turn + "{% endfor %}{% if add_generation_prompt %}"
          + opens + "{% else %}" + after + "{% endif %}")


CHATML = "<|im_start|>{{ m.role }}\n{{ %s }}<|im_end|>\n"
LLAMA = "<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>"
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('No system') }}{% endif %}"
# What the published ones do with text, tools left out, in fewer words.
SHORT = {
    "qwen2_5": each(CHATML % "m.content", opens="<|im_start|>assistant\n", before=(
        "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are Qwen, created by "
        "Alibaba Cloud. You are a helpful assistant.<|im_end|>\n{% endif %}")),
    "qwen3": each(  # Thoughts: made up, if need be, in the last turn; left out of earlier ones.
        CHATML % ("m.content if m.role != 'assistant' else '<think>\n\n</think>\n\n' + "
                  "m.content.lstrip('\n') if loop.last and '</think>' not in m.content else "
                  "m.content if loop.last or '</think>' not in m.content else "
                  "m.content.split('</think>')[-1].lstrip('\n')"),
        opens="<|im_start|>assistant\n"),
    "llama3": each(LLAMA, "{{ bos_token }}", "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    "llama3_2": each(LLAMA, "{{ bos_token }}<|start_header_id|>system<|end_header_id|>\n\n"
                     "Cutting Knowledge Date: December 2023\nToday Date: {{ strftime_now('%d %b "
                     "%Y') }}\n\n{% if messages[0].role == 'system' %}{{ messages[0].content | trim }}"
                     "{% set messages = messages[1:] %}{% endif %}<|eot_id|>",
                     "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    "gemma": each("<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
                  "{{ m.content | trim }}<end_of_turn>\n",
                  "{{ bos_token }}" + NO_SYSTEM, "<start_of_turn>model\n"),
    "phi3": each("<|{{ m.role }}|>\n{{ m.content }}<|end|>\n", opens="<|assistant|>\n",
                 after="{{ eos_token }}"),
    "phi4": each("<|im_start|>{{ m.role }}<|im_sep|>{{ m.content }}<|im_end|>",
                 opens="<|im_start|>assistant<|im_sep|>"),
    "olmo2": each("<|{{ m.role }}|>\n{{ m.content }}{{ (eos_token if m.role == 'assistant' else '') + "
                  "('' if m.role == 'assistant' and loop.last else '\n') }}",
                  "{{ bos_token }}", "<|assistant|>\n"),
    "mistral_v0_2": each("{{ '[INST] ' + m.content + ' [/INST]' if m.role == 'user' else "
                         "m.content + eos_token }}", "{{ bos_token }}" + NO_SYSTEM),
    # The system's words stand where a question ends the dialogue, and nowhere else.
    "mistral_v0_3": each(
        "{% if m.role == 'user' %}[INST] {{ messages[0].content + '\n\n' if loop.last and "
        "messages[0].role == 'system' }}{{ m.content }}[/INST]{% elif m.role == 'assistant' %} "
        "{{ m.content | trim }}{{ eos_token }}{% endif %}", "{{ bos_token }}"),
}

USER, MORE = (dict(role="user", content=c) for c in ("What is 2+2?", "And 3+3?"))
THOUGHT = "<think>\n2 and 2\n</think>\n\n4"
DIALOGUES = dict(
    plain=([USER], "4"),
    padded=([USER], " 4 "),
    newline=([USER], "\n4"),  # The tokenizer has one token for two newlines.
    thought=([USER], THOUGHT),
    system=([dict(role="system", content="Be brief."), USER], "4"),
    example=([USER, dict(role="assistant", content=THOUGHT), MORE], "6"))
TRIMS = dict(padded="history reply", newline="history reply")
NEWLINE = dict(newline="tokens")  # The prompt ends with one.
# What faults there are in which dialogue; in the others none.
VERDICTS = {
    "smollm2": NEWLINE,
    "qwen2_5": NEWLINE,
    "qwen3": dict(plain="before", padded="before", newline="before tokens", system="before",
                  thought="history", example="before turns"),
    "llama3": TRIMS,
    "llama3_2": {k: " ".join(sorted(["date", *TRIMS.get(k, "").split()])) for k in DIALOGUES},
    "gemma": dict(TRIMS, newline="history reply tokens", system="refused"),
    "phi3": NEWLINE,
    "phi4": {},
    "olmo2": NEWLINE,
    "mistral_v0_2": dict(system="refused"),
    "mistral_v0_3": dict(plain="before history", padded="before history reply",
                         newline="before history reply", thought="before history",
                         system="history prompt", example="before history"),
}


@pytest.fixture(scope="module")
def bare():
  """A Tokenizer of bytes, two newlines and the special tokens of the templates."""
  import tokenizers
  import transformers
  special = sorted(set(re.findall(r"<[|/]?[a-z_]+\|?>", SMOLLM2 + "".join(SHORT.values())))
                   - {"<think>", "</think>"} | {"<s>", "</s>", "<|system|>", "<|user|>"})
  letters = byte_letters() + ["ĊĊ"]
  core = tokenizers.Tokenizer(tokenizers.models.BPE(
      vocab={t: i for i, t in enumerate(special + letters)}, merges=[("Ċ", "Ċ")]))
  core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
  core.decoder = tokenizers.decoders.ByteLevel()
  core.add_special_tokens(special)
  hf = transformers.PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>",
                                            eos_token="</s>")
  return tokenizer.wrap(hf)


def verdict(tokens, template, dialogue):
  tokens.hf.chat_template = template
  try:
    return " ".join(sorted(chat.faults(tokens, *DIALOGUES[dialogue])))
  except ValueError as e:
    assert "The chat template refuses turns of ['system', 'user']" in str(e)
    return "refused"


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(bare, name):
  template = dict(SHORT, smollm2=SMOLLM2)[name]
  assert {d: v for d in DIALOGUES if (v := verdict(bare, template, d))} == VERDICTS[name]


PUBLISHED = importlib.util.find_spec("trl")


@pytest.mark.skipif(PUBLISHED is None, reason="trl has copies of published templates")
@pytest.mark.parametrize("name", ["qwen2_5", "qwen3", "llama3", "llama3_2", "gemma", "phi3"])
def test_published_ones_do_the_same(bare, name):
  """Word for word: the same prompts as the short forms here, and the same verdicts."""
  folder = pathlib.Path(PUBLISHED.submodule_search_locations[0], "chat_templates")
  published = (folder / f"{name}.jinja").read_text()
  assert {d: v for d in DIALOGUES if (v := verdict(bare, published, d))} == VERDICTS[name]
  prompts = []
  for template in (published, SHORT[name]):
    bare.hf.chat_template = template
    prompts.append([bare.chat(DIALOGUES[d][0]) for d in DIALOGUES
                    if VERDICTS[name].get(d) != "refused"])
  assert prompts[0] == prompts[1]
