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
# "refused" and "unusual": [{"file": name of a published file, "change": its keys with other
# values, "without": keys that it lacks, "why": of the case}], each with the "message" or the
# "fields" of DecoderConfig that follow. "inert": see below.
CHANGED = json.loads((FIXTURES / "changed.json").read_text())


def decoder_config(file):
  return families.find_family(file["model_type"]).decoder_config(file)


def changed(file, change, without=(), **_):
  """A published file with other values."""
  hf = PUBLISHED[file]["config"] | change
  return {key: value for key, value in hf.items() if key not in without}


def tuples(value):
  """JSON with tuples for lists."""
  if isinstance(value, dict): return {key: tuples(x) for key, x in value.items()}
  return tuple(map(tuples, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("name", PUBLISHED)
def test_config(name):
  published, expected = PUBLISHED[name]["config"], PUBLISHED[name]["decoder"]
  config = decoder_config(published)
  fields = {f.name: f.default for f in dataclasses.fields(config)} | expected
  rounded = lambda x: json.loads(json.dumps(x), parse_float=lambda text: round(float(text), 12))
  assert rounded(dataclasses.asdict(config)) == rounded(fields)
  written = families.find_family(published["model_type"]).hf_config(config)
  assert decoder_config(written) == config


@pytest.mark.parametrize("case", CHANGED["refused"], ids=lambda case: case["message"])
def test_refusals(case):
  with pytest.raises(ValueError, match=case["message"]):
    decoder_config(changed(**case))


def test_a_file_is_read_and_not_changed():
  """Nested objects, too: `hf.save` writes config.json as it was."""
  for file in [*(x["config"] for x in PUBLISHED.values()), *sum(cases().values(), [])]:
    before = copy.deepcopy(file)
    decoder_config(file)
    assert file == before


@pytest.mark.parametrize("case", CHANGED["unusual"], ids=lambda case: case["why"])
def test_unusual_files(case):
  """As transformers reads them; tests/io/test_config_sweep.py compares the two."""
  expected = dataclasses.replace(
      decoder_config(PUBLISHED[case["file"]]["config"]), **tuples(case["fields"]))
  assert decoder_config(changed(**case)) == expected


def test_kernels_take_one_window_for_all_layers():
  long, short = (decoder_config(changed("Mistral-7B-Instruct-v0.3", dict(sliding_window=n)))
                 for n in (32768, 4096))
  assert long.window_sizes == {0}  # It cuts nothing off.
  assert dataclasses.replace(short, attention="splash").window_sizes == {4096}
  windows = (0, *short.windows[1:])
  with pytest.raises(ValueError, match=r"splash.*one window for all layers, not \[0, 4096\]"):
    dataclasses.replace(short, windows=windows, attention="splash")


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


# Fields of transformers' classes that stay at their defaults in all recorded cases are those of
# CHANGED["inert"], {field: why it does not change the forward pass}, and those of which any
# other value is refused: {model_type: {field: such a value}}.
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
  assert untouched - CHANGED["inert"].keys() - {"model_type"} == set(REFUSED[model_type])


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
