"""config.json -> DecoderConfig: published files, and what is refused."""
import copy
import dataclasses
import functools
import json
import pathlib

import pytest

from rlx.io import tables
from rlx.models import families

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
# name: {"config": config.json as published, without what says where the file is from,
#        "decoder": the fields of DecoderConfig that it means}.
PUBLISHED = json.loads((FIXTURES / "published.json").read_text())
ABSENT = object()  # A key that `changed` removes.
_ONE = dict(original_max_position_embeddings=1)


def decoder_config(file):
  return families.named(file["model_type"]).decoder_config(file)


def changed(name, change):
  """A published file with other values."""
  file = {**PUBLISHED[name]["config"], **change}
  return {key: value for key, value in file.items() if value is not ABSENT}


@pytest.mark.parametrize("name", PUBLISHED)
def test_config(name):
  published, expected = PUBLISHED[name]["config"], PUBLISHED[name]["decoder"]
  config = decoder_config(published)
  fields = {f.name: f.default for f in dataclasses.fields(config)} | expected
  rounded = lambda x: json.loads(json.dumps(x), parse_float=lambda text: round(float(text), 12))
  assert rounded(dataclasses.asdict(config)) == rounded(fields)
  written = families.named(published["model_type"]).hf_config(config)
  assert decoder_config(written) == config


@pytest.mark.parametrize("name, change, message", [
    ("Qwen2.5-0.5B", dict(layer_types=["full_attention", "sliding_attention"]),
     "sliding_attention.*24 of full_attention"),
    ("Qwen3-0.6B", dict(attention_bias=1), "attention_bias=1"),
    ("Qwen3-0.6B", dict(layer_types="full_attention"), "layer_types='full_attention'"),
    ("Llama-3.2-1B", dict(sliding_window=4096), "sliding_window=4096"),
    ("Llama-3.2-1B", dict(use_sliding_window=True), "use_sliding_window=True.*only False"),
    ("Llama-3.2-1B", dict(partial_rotary_factor=0), "partial_rotary_factor=0.*only 1.0"),
    ("Llama-3.2-1B", dict(hidden_act=None), "hidden_act=None"),
    ("Mistral-7B-Instruct-v0.3", dict(attention_bias=True), "attention_bias=True"),
    # False, but it is not known what true would mean.
    ("Llama-3.2-1B", dict(is_causal=False), "is_causal=False"),
    ("Mistral-7B-Instruct-v0.3", dict(sliding_window="all"), "sliding_window='all'"),
    ("Phi-4", dict(sliding_window=-1), "sliding_window=-1"),
    ("Phi-4", dict(partial_rotary_factor=1.5), "partial_rotary_factor=1.5"),
    ("Phi-4", dict(rope_scaling=dict(type="longrope", short_factor=[1.0])),
     r"short_factor=\[1.0\]; 64 numbers"),
    ("Phi-4", dict(rope_scaling=dict(type="linear", factor=2.0)),
     "'linear' is not supported for phi3"),
    ("Llama-3.2-1B", dict(resid_pdrop=0.1), "resid_pdrop=0.1"),  # Phi's, not Llama's.
    ("Llama-3.2-1B", dict(hidden_act="gelu"), "hidden_act='gelu'.*only 'silu'"),
    ("Llama-3.2-1B", dict(rope_scaling=dict(rope_type="ntk", factor=4.0)), "'ntk'"),
    ("Llama-3.2-1B", dict(max_position_embeddings=None, rope_scaling=dict(rope_type="yarn")),
     "original_max_position_embeddings"),
    ("Llama-3.2-1B", dict(rope_scaling=None, rope_parameters=dict(
        rope_type="default", partial_rotary_factor=0.5)), "partial_rotary_factor=0.5"),
    ("Llama-3.2-1B", dict(rope_scaling=_ONE | dict(rope_type="yarn", factor=4.0)),
     "original_max_position_embeddings=1; at least 2"),
    ("Phi-4", _ONE | dict(rope_scaling=dict(type="longrope", short_factor=[1], long_factor=[1])),
     "original_max_position_embeddings=1; at least 2"),
    ("Llama-3.2-1B", dict(head_dim=2, rope_scaling=dict(type="dynamic", factor=2.0)), "head_dim=2"),
    ("Llama-3.2-1B", dict(rope_theta=1), "rope_theta=1.0; a number above 1"),
    ("Llama-3.2-1B", dict(rope_parameters=[]), r"rope_parameters=\[\]; null or an object"),
    ("Llama-3.2-1B", dict(is_encoder_decoder=True), "is_encoder_decoder=True.*only False"),
    # transformers 5 reads neither of these three.
    ("gemma-3-1b-it", dict(rope_scaling=dict(type="linear", factor=8.0)), "type='linear'"),
    ("gemma-3-1b-it", dict(rope_parameters=dict(rope_type="default", rope_theta=1e5)),
     "rope_parameters.rope_theta=100000.0.*only full_attention"),
    ("gemma-3-1b-it", dict(rope_scaling=dict(
        rope_type="yarn", factor=4.0, truncate=False)), "truncate=False"),
    ("gemma-3-1b-it", dict(rope_parameters=dict(sliding_attention=dict(type="linear", factor=8.0))),
     "sliding_attention={'type': 'linear'.*only rope_type 'default'"),
    ("gemma-3-1b-it", dict(rope_parameters=dict(sliding_attention=dict(new=1))), "rope new=1"),
    ("gemma-3-1b-it", dict(rope_parameters=dict(sliding_attention=[1])),
     r"sliding_attention=\[1\]; null or an object"),
    ("Phi-3-mini-4k-instruct", dict(layer_types=["full_attention", "sliding_attention"] * 16),
     "layer_types=.*sliding_window says sliding_attention for all"),
    ("SmolLM3-3B", dict(no_rope_layers=[1, 1, 1, 0] * 8), "no_rope_layers=.*36 times 0 or 1"),
    ("Mixtral-8x7B-v0.1", dict(layer_types=["sliding_attention"] * 32),
     "layer_types=.*sliding_window says full_attention for all"),
    ("Llama-3.2-1B", dict(num_attention_heads=33), "num_key_value_heads=8 must divide"),
    ("Llama-3.2-1B", dict(rms_norm_eps=ABSENT), r"\['rms_norm_eps'\] missing"),
    ("Qwen3-30B-A3B", dict(num_local_experts=64), "num_experts=128 and num_local_experts=64"),
])
def test_refusals(name, change, message):
  with pytest.raises(ValueError, match=message):
    decoder_config(changed(name, change))


def test_a_file_is_read_and_not_changed():
  """Nested objects, too: `hf.save` writes config.json as it was."""
  for file in [*(x["config"] for x in PUBLISHED.values()), *sum(cases().values(), [])]:
    before = copy.deepcopy(file)
    decoder_config(file)
    assert file == before


_YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=1024)


@pytest.mark.parametrize("name, change, expected", [
    # rope_scaling takes the place of all of rope_parameters.
    ("Qwen3-0.6B", dict(rope_scaling=dict(type="linear", factor=4.0), rope_parameters=dict(
        rope_type="linear", factor=2.0, rope_theta=5e5)),
     dict(rope_scaling=("linear", 4.0), rope_theta=1e6)),
    ("Qwen3-0.6B", dict(rope_scaling={}, rope_parameters=dict(
        rope_type="linear", factor=2.0, rope_theta=5e5)),
     dict(rope_scaling=("linear", 2.0), rope_theta=5e5)),
    # In Gemma 3 it updates the parameters of layers without a window.
    ("gemma-3-1b-it", dict(rope_scaling=dict(rope_type="linear", factor=8.0), rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=2.0, rope_theta=5e5),
        sliding_attention=dict(rope_theta=2e4))),
     dict(rope_scaling=("linear", 8.0), rope_theta=5e5, local_theta=2e4)),
    ("gemma-3-1b-it", dict(rope_parameters=dict(sliding_attention=None, full_attention=dict(
        type="linear", factor=8.0)), rope_local_base_freq=2e4),
     dict(rope_scaling=("linear", 8.0), rope_theta=1e6, local_theta=2e4)),
    ("gemma-3-1b-it", dict(sliding_window=32768),
     dict(windows=((32768,) * 5 + (0,)) * 4 + (32768,) * 2)),
    # io/gguf.py gives the original length with the scaling alone.
    ("Phi-4", dict(original_max_position_embeddings=None, rope_scaling=dict(
        type="su", original_max_position_embeddings=64, attention_factor=1.0,
        short_factor=[1.0] * 64, long_factor=[2.0] * 64)),
     dict(rope_scaling=("longrope", 64, 1.0, (1.0,) * 64, (2.0,) * 64))),
    ("Llama-3.2-1B", dict(rope_scaling=dict(
        rope_type="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0)),
     dict(rope_scaling=("llama3", 32.0, 1.0, 4.0, 131072.0))),
    # null counts as false.
    ("Llama-3.2-1B", dict(rope_scaling=_YARN | dict(truncate=None, attention_factor=1.0)),
     dict(rope_scaling=("yarn", 4.0, 32.0, 1.0, 1024, 1.0, False))),
    ("Llama-3.2-1B", dict(rope_scaling=_YARN | dict(finetuned=True, attention_factor=1.0)),
     dict(rope_scaling=("yarn", 4.0, 32.0, 1.0, 1024, 1.0, True))),
    ("Mistral-7B-v0.1", dict(layer_types=["full_attention", "sliding_attention"] * 16),
     dict(windows=(0, 4096) * 16)),
    ("Mixtral-8x7B-v0.1", dict(layer_types=["full_attention"] * 32), {}),
    ("SmolLM3-3B", dict(no_rope_layers=[1, 1, 1, 0] * 10), {}),
    # The length that only rope_scaling has does not count in Phi-3: 4096.
    ("Phi-4-mini-instruct", dict(original_max_position_embeddings=ABSENT, rope_scaling=dict(
        PUBLISHED["Phi-4-mini-instruct"]["config"]["rope_scaling"],
        original_max_position_embeddings=8192)), {}),
    # Sampling, what the file is from, and what does not change the forward pass.
    ("Llama-3.2-1B", dict(temperature=0.6, max_length=4096, id2label={"0": "LABEL_0"},
                          output_hidden_states=True, is_encoder_decoder=False, unk_token_id=3,
                          _model_name_or_path="a/b", _name_or_path="c"), {}),
    # The default of head_dim is 128 in Qwen3; in its mixture hidden_size / heads, 2048 / 32.
    ("Qwen3-0.6B", dict(head_dim=ABSENT), {}),
    ("Qwen3-30B-A3B", dict(head_dim=ABSENT), dict(head_dim=64)),
    ("Mistral-7B-Instruct-v0.3", dict(sliding_window=ABSENT), dict(windows=(4096,) * 32)),
    # A window as long as the context is kept: sequences may be longer.
    ("Mistral-7B-Instruct-v0.3", dict(sliding_window=32768), dict(windows=(32768,) * 32)),
])
def test_unusual_files(name, change, expected):
  """As transformers reads them; tests/io/test_config_sweep.py compares the two."""
  assert decoder_config(changed(name, change)) == dataclasses.replace(
      decoder_config(PUBLISHED[name]["config"]), **expected)


def test_splash_takes_windows_that_cut_nothing_off():
  long, short = (decoder_config(changed("Mistral-7B-Instruct-v0.3", dict(sliding_window=n)))
                 for n in (32768, 4096))
  assert dataclasses.replace(long, attention="splash").windows
  with pytest.raises(ValueError, match="splash.*no windows"):
    dataclasses.replace(short, attention="splash")


@functools.cache
def cases():
  """{model_type: [config.json of its recorded cases]}, written by transformers."""
  out = {}
  for path in sorted(FIXTURES.glob("*/config.json")):
    file = json.loads(path.read_text())
    out.setdefault(file["model_type"], []).append(file)
  return out


@pytest.mark.parametrize("model_type", families.FAMILIES)
def test_tables_cover_every_parameter(model_type):
  """A table has a name for each of the decoder's parameters."""
  family = families.FAMILIES[model_type]
  for file in cases()[model_type]:
    wanted = set(tables.paths(family.decoder_config(file)))
    for table in (family.tensors, family.gguf_tensors):
      assert wanted <= {path for parts in table.values() for path, _ in tables.pairs(parts)}


# Fields of transformers' classes that stay at their defaults in all recorded cases:
# those that do not change the forward pass,
INERT = {
    "_name_or_path": "origin", "transformers_version": "origin",
    "attention_dropout": "of training; there is no dropout", "embd_pdrop": "the same",
    "resid_pdrop": "the same", "router_jitter_noise": "of training",
    "router_aux_loss_coef": "of a loss that the policy's loss replaces",
    "output_router_logits": "of that loss", "use_cache": "how it is computed",
    "chunk_size_feed_forward": "how it is computed", "return_dict": "what is returned",
    "output_attentions": "what is returned", "output_hidden_states": "what is returned",
    "is_encoder_decoder": "of other classes", "id2label": "of classifiers",
    "label2id": "of classifiers", "problem_type": "of classifiers",
    "pretraining_tp": "how it was trained",
    "no_rope_layer_interval": "read where no_rope_layers is absent",
    "_sliding_window_pattern": "read where layer_types is absent"}

# and those of which any other value is refused: {model_type: {field: such a value}}.
REFUSED = {model_type: {"hidden_act": "gelu"} for model_type in families.FAMILIES} | {
    model_type: {"hidden_activation": "gelu", "use_bidirectional_attention": True}
    for model_type in ("gemma2", "gemma3_text")}
# transformers 5 reads it and does not use it.
REFUSED["gemma3_text"]["attn_logit_softcapping"] = 50.0
# transformers 4 has a window on layers from max_window_layers on, transformers 5 on all.
REFUSED["qwen3_moe"] |= {"decoder_sparse_step": 2, "mlp_only_layers": [0],
                         "use_sliding_window": True}


@pytest.mark.parametrize("model_type", families.FAMILIES)
def test_every_field_of_transformers_is_accounted_for(model_type):
  import transformers
  defaults = transformers.AutoConfig.for_model(model_type).to_dict()
  untouched = {field for field, value in defaults.items()
               if all(file.get(field, value) == value for file in cases()[model_type])}
  if "use_sliding_window" in untouched: untouched.remove("sliding_window")
  assert untouched - set(INERT) - {"model_type"} == set(REFUSED[model_type])


def test_every_rotary_key_of_transformers_is_accounted_for():
  from transformers import modeling_rope_utils
  in_cases = set()
  for file in sum(cases().values(), []):
    nested = file["rope_parameters"]
    for rope in nested.values() if "full_attention" in nested else (nested,):
      in_cases |= {"rope_type=" + rope["rope_type"], *rope}
  # The two scales replace attention_factor; mrope is of images, proportional of Gemma 3n.
  assert set(modeling_rope_utils.RopeParameters.__annotations__) - in_cases == {
      "mrope_section", "mscale", "mscale_all_dim"}
  assert {f"rope_type={kind}" for kind in modeling_rope_utils.ROPE_INIT_FUNCTIONS} - in_cases == {
      "rope_type=proportional"}


@pytest.mark.parametrize("model_type, field, value", [
    (model_type, *item) for model_type, fields in REFUSED.items()
    for item in (*fields.items(), ("a_new_field", 1), ("quantization_config", {"bits": 4}))])
def test_what_is_not_computed_is_refused_by_name(model_type, field, value):
  with pytest.raises(ValueError, match=f"config.json: .*{field}="):
    decoder_config({**cases()[model_type][0], field: value})


@pytest.mark.parametrize("model_type", families.FAMILIES)
@pytest.mark.parametrize("field", ["a_new_field", "mrope_section"])
def test_rotary_fields_are_refused_by_name(model_type, field):
  file = cases()[model_type][0]
  rope = file["rope_parameters"]
  if "full_attention" in rope: rope = {kind: {**part, field: 1} for kind, part in rope.items()}
  else: rope = {**rope, field: 1}
  with pytest.raises(ValueError, match=f"{field}|rope_parameters"):
    decoder_config({**file, "rope_parameters": rope})
