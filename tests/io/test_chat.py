"""What published chat templates make of finished dialogues, and what rlx trains on."""
import json
import pathlib
import re
import shutil

import pytest

from configs import quickstart, sft_chain
from configs.papers import implicit_prm
from rlx import build
from rlx.build import prompts as build_prompts, run as run_lib, verifiers as build_verifiers
from rlx.core import records
from rlx.io import chat, tokenizer
from rlx.loops import sft, stored
from tests.io import gguf_files, strings

CHAIN = pathlib.Path(run_lib.__file__).parent.parent.parent / "configs" / "models" / "chain"

# What published templates do with text, calls of tools left out, in fewer words; SmolLM2's is as
# published.
# Qwen 3 adds empty thoughts to the last turn and drops thoughts of earlier turns; Mistral v0.3 puts
# the system's text only before a question that ends the dialogue.
FIXTURE = strings.fixture("chat_templates")
# {template: {dialogue: faults}}; there are none in the other dialogues.
TEMPLATES, VERDICTS = FIXTURE["templates"], FIXTURE["faults"]

USER, MORE = (dict(role="user", content=c) for c in ("What is 2+2?", "And 3+3?"))
THOUGHT = "<think>\n2 and 2\n</think>\n\n4"
DIALOGUES = dict(
    plain=([USER], "4"),
    padded=([USER], " 4 "),
    newline=([USER], "\n4"),  # The tokenizer has one token for two newlines.
    thought=([USER], THOUGHT),
    system=([dict(role="system", content="Be brief."), USER], "4"),
    example=([USER, dict(role="assistant", content=THOUGHT), MORE], "6"))

@pytest.fixture(scope="module")
def bare():
  """A Tokenizer of bytes, two newlines and the special tokens of the templates."""
  import tokenizers
  import transformers
  special = sorted(set(re.findall(r"<[|/]?[a-z_]+\|?>", "".join(TEMPLATES.values())))
                   - {"<think>", "</think>", "<tool_response>", "</tool_response>"}
                   | {"<s>", "</s>", "<|system|>", "<|user|>"})
  letters = gguf_files.letters() + ["ĊĊ"]
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
  template = TEMPLATES[name]
  assert {d: v for d in DIALOGUES if (v := verdict(bare, template, d))} == VERDICTS[name]


# What ends a turn, of the EOS ids there are.
@pytest.mark.parametrize("name, end", [
    ("qwen2_5", "<|im_end|>"), ("llama3", "<|eot_id|>"), ("gemma", "<end_of_turn>"),
    ("olmo2", "</s>"), ("mistral_v0_3", "</s>"), (None, "</s>"),
    ("phi3", "<|end|>")])
def test_a_written_completion_ends_as_a_turn_does(bare, name, end):
  assert bare.hf.convert_ids_to_tokens(list(bare.eos_ids)) == [
      "</s>", "<end_of_turn>", "<|end|>", "<|eot_id|>", "<|im_end|>"]
  bare.hf.chat_template = TEMPLATES.get(name)
  fresh = tokenizer.wrap(bare.hf)
  assert bare.hf.convert_ids_to_tokens(fresh.end_id) == end


@pytest.fixture
def chatml(bare):
  bare.hf.chat_template = TEMPLATES["qwen2_5"]
  return tokenizer.wrap(bare.hf)


def test_stored_completions_are_the_prompts_ids_then_their_own(chatml, tmp_path):
  """Of sft, of stored completions and of demonstrations alike: also where the tokenizer
  would join the prompt's last newline with the completion's first."""
  asked = chatml.chat([USER])
  assert asked.endswith("\n")
  prompt, completion = chatml.encode(asked), chatml.encode("\n4", add_bos=False)
  assert chatml.encode(asked + "\n4") != prompt + completion
  end = chatml.vocabulary["<|im_end|>"]

  c = sft_chain.get_config()
  c.prompts.max_tokens, c.rollouts.max_tokens = 256, 8
  batch = build_prompts.texts_of(c, chatml).examples([(asked, "\n4")])
  ids = batch.tokens_BS[0, 256 - len(prompt):][:len(prompt) + 3].tolist()
  assert ids == prompt + completion + [end] and batch.completion_len_B == [3]

  c = implicit_prm.get_config("smoke")
  c.prompts.max_tokens, c.prompts.template = 256, dict(name="chat")
  path = tmp_path / "rows.jsonl"
  path.write_text(json.dumps(dict(question=USER["content"], completion="\n4", verdict=1)) + "\n")
  row, = stored.read(path, build_prompts.texts_of(c, chatml))
  assert (row.prompt, row.ids) == (prompt, completion + [end])

  c = quickstart.get_config("smoke")
  c.rollouts.demonstration = dict(name="jsonl.demonstration")
  p = records.Prompt(id="a", text=USER["content"], answer="\n4")
  c.prompts.template = dict(name="chat")
  assert build_verifiers.demonstrations_of(c, build_prompts.texts_of(c, chatml), [p]) == dict(
      a=completion + [end])


@pytest.mark.parametrize("name", [n for n, text in TEMPLATES.items() if "bos_token" in text])
def test_a_bos_that_the_template_writes_is_there_once(bare, name):
  """Of a tokenizer that adds one to a text too; the ids are those of transformers."""
  import tokenizers
  import transformers
  core = tokenizers.Tokenizer.from_str(bare.hf.backend_tokenizer.to_str())
  bos = core.token_to_id("<s>")
  core.post_processor = tokenizers.processors.TemplateProcessing(
      single="<s> $A", special_tokens=[("<s>", bos)])
  tokens = tokenizer.wrap(transformers.PreTrainedTokenizerFast(
      tokenizer_object=core, bos_token="<s>", eos_token="</s>", chat_template=TEMPLATES[name]))
  assert tokens.encode("a")[0] == bos == tokens.bos_id
  ids = tokens.encode(tokens.chat([USER]))
  assert ids.count(bos) == 1 and ids == tokens.hf.apply_chat_template(
      [USER], add_generation_prompt=True, return_dict=False)
  c = sft_chain.get_config()
  c.prompts.max_tokens, c.rollouts.max_tokens, c.prompts.template = 256, 8, dict(name="chat")
  texts = build_prompts.texts_of(c, tokens)
  assert texts.prompt_ids(records.Prompt(id="a", text=USER["content"])) == ids
  assert tokens.pair(tokens.chat([USER]), "4")[0] == ids


def test_sentencepiece_puts_no_space_before_a_completion():
  import tokenizers
  import transformers
  letters = {t: i for i, t in enumerate(["</s>", "\u2581", "a", "b"])}
  core = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=letters, merges=[]))
  core.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
  core.decoder = tokenizers.decoders.Metaspace(prepend_scheme="first")
  tokens = tokenizer.wrap(transformers.PreTrainedTokenizerFast(
      tokenizer_object=core, eos_token="</s>"))
  assert tokens.encode("b", add_bos=False) == [1, 3]  # By itself it has one.
  assert tokens.pair("a", "b") == ([1, 2], [3])
  assert tokens.decode(sum(tokens.pair("a", "b"), [])) == "ab"


@pytest.mark.parametrize("name, said", [
    ("smollm2", None), ("llama3", None),
    ("qwen3", "has '<think>\\n\\n</think>\\n\\n' in addition before the reply; when another turn"),
    ("llama3_2", "the prompt contains the date")])
def test_the_start_of_training_says_it_in_one_line(bare, capsys, name, said):
  bare.hf.chat_template = TEMPLATES[name]
  c = quickstart.get_config("smoke")
  p = records.Prompt(id="a", text=USER["content"])
  build_prompts.note_template(build_prompts.texts_of(c, bare), [p])
  assert capsys.readouterr().err == ""  # A plain prompt.
  c.prompts.template = dict(name="chat")
  build_prompts.note_template(build_prompts.texts_of(c, bare), [p])
  lines = capsys.readouterr().err.splitlines()
  assert lines == [] if said is None else len(lines) == 1 and said in lines[0], lines


def test_a_template_without_finished_dialogues_is_no_obstacle(bare):
  bare.hf.chat_template = TEMPLATES["phi4"].replace(
      "{{ m.content }}", "{{ m.content if m.role == 'user' else raise_exception('Only users') }}")
  tokens = tokenizer.wrap(bare.hf)
  faults = chat.faults(tokens, [USER], "4")
  assert list(faults) == ["prompt"] and faults["prompt"].endswith("(prompts.template): Only users")
  assert (tokens.closing, tokens.hf.convert_ids_to_tokens(tokens.end_id)) == ("", "</s>")


@pytest.mark.parametrize("start", [
    lambda c, path: build.build(c).close(), sft.train], ids=["train", "sft"])
def test_training_and_sft_say_it(start, tmp_path, capsys):
  shutil.copytree(CHAIN, tmp_path / "model")
  path = tmp_path / "model" / "tokenizer_config.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | dict(
      chat_template="{% for m in messages %}{{ ';' if m.role == 'assistant' }}{{ m.content }}"
      "{% endfor %}")))
  c = sft_chain.get_config("smoke") if start is sft.train else quickstart.get_config("smoke")
  c.model.path, c.prompts.template = str(tmp_path / "model"), dict(name="chat")
  c.prompts.options.size, c.sft.steps, c.sft.batch = 256, 1, 8
  start(c, tmp_path / "run")
  lines = [l for l in capsys.readouterr().err.splitlines() if l.startswith("rlx: the chat")]
  assert len(lines) == 1 and "not prefix-stable" in lines[0]


@pytest.mark.parametrize("start", ["<think>\nLet me", "So ", "4\n"])
@pytest.mark.parametrize("name", TEMPLATES)
def test_the_start_of_a_reply_is_continued_as_transformers_does(bare, name, start):
  bare.hf.chat_template = TEMPLATES[name]
  tokens = tokenizer.wrap(bare.hf)
  messages = [USER, dict(role="assistant", content=start)]
  text = tokens.render(messages)
  assert text == bare.hf.apply_chat_template(messages, tokenize=False, continue_final_message=True)
  if name == "smollm2": assert chat.faults(tokens, messages, "4") == {}
  messages[1]["content"] = " "  # Nothing has been said yet.
  assert tokens.render(messages) == tokens.chat([USER])


def test_a_reply_that_the_template_alters_is_not_continued(bare):
  bare.hf.chat_template = "{% for m in messages %}{{ m.content | upper }}{% endfor %}"
  with pytest.raises(ValueError, match="alters the start of a reply with which the messages end"):
    tokenizer.wrap(bare.hf).render([USER, dict(role="assistant", content="So")])


VARIABLES = ("{% for t in tools or [] %}[{{ t.name }}]{% endfor %}{% for m in messages %}"
             "{{ m.role }}: {{ m.content }}\n{% endfor %}{% set mark = 'x' %}{% if "
             "add_generation_prompt %}assistant: {% if enable_thinking is defined and not "
             "enable_thinking %}<think></think>{% endif %}{% endif %}")


def test_variables_and_tools_of_the_chat_template(bare):
  """Keys of prompts.template that are no options of its function are variables, which the template
  has to read; a chat of a row is rendered under every template, or refused without one."""
  bare.hf.chat_template = VARIABLES
  c = quickstart.get_config("smoke")
  p = records.Prompt(id="a", text="2+2?", messages=(dict(role="system", content="s"), USER),
                     tools=(dict(name="add"),))
  def read(**template):
    c.prompts.template = template
    return build_prompts.texts_of(c, bare).prompt(p)
  rendered = "[add]system: s\nuser: What is 2+2?\nassistant: "
  assert read(name="plain") == rendered
  assert read(name="plain", enable_thinking=False) == f"{rendered}<think></think>"
  plain = records.Prompt(id="b", text="2+2?")
  with pytest.raises(ValueError, match="enable_thinking is for a chat template, and this prompt"):
    build_prompts.texts_of(c, bare).prompt(plain)
  for name in ("system", "mark", "messages"):  # A role, a variable of its own, and rlx's.
    c.prompts.template = {"name": "plain", name: "x"}
    with pytest.raises(ValueError, match=rf"template.{name}: no option of plain, and the model's "
                       r"chat template never reads it; its variables are \['enable_thinking'\]"):
      build_prompts.texts_of(c, bare)
  c.prompts.template, bare.hf.chat_template = dict(name="plain"), None
  with pytest.raises(ValueError, match="has no chat template, which a list of messages needs;"):
    build_prompts.texts_of(c, bare).prompt(p)


def test_every_reply_of_a_dialogue_is_learned_and_nothing_else(chatml, tmp_path):
  """The ids are those of the whole dialogue as the template renders it."""
  c = sft_chain.get_config()
  c.prompts.max_tokens = c.rollouts.max_tokens = 256
  c.prompts.template = dict(name="plain")
  messages = (USER, dict(role="assistant", content="4"), MORE, dict(role="assistant", content="6"))
  texts = build_prompts.texts_of(c, chatml)
  p = records.Prompt(id="a", text=MORE["content"], messages=messages)
  batch = texts.episodes([texts.dialogue(p)])
  whole = chatml.encode(chatml.chat(messages, opens=False).removesuffix("\n"))
  n = len(chatml.encode(chatml.chat([USER])))
  assert batch.completions_BT[0, :batch.completion_len_B[0]].tolist() == whole[n:]
  learned = batch.completions_BT[0][batch.action_BT[0]].tolist()
  assert chatml.hf.decode(learned) == "4<|im_end|>6<|im_end|>"
  path = tmp_path / "dialogues.jsonl"  # As a row that a scorer learns from.
  path.write_text(json.dumps(dict(messages=messages, verdict=1)) + "\n")
  x, = stored.read(path, texts)
  assert (x.prompt, [*x.segments]) == texts.dialogue(p) and x.ids == whole[n:]
  c.rollouts.max_tokens = 8
  with pytest.raises(ValueError, match="rollouts.max_tokens=8: the dialogue has .. tokens after"):
    build_prompts.texts_of(c, chatml).dialogue(p)
  chatml.hf.chat_template = TEMPLATES["qwen3"]
  with pytest.raises(ValueError, match="renders message 3, a reply, in another way than after its"):
    texts.dialogue(p)
