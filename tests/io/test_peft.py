"""A folder of PEFT adapters is a model: its base with the adapters added."""
import shutil

import jax
import numpy as np
import pytest

from rlx import build
from rlx.io import hf, shards, strict_json, tables, weights
from rlx.tools import convert
from tests import test_convert, tiny
from tests.test_convert import bases  # pylint: disable=unused-import

RANK, ALPHA = test_convert.RANK, test_convert.ALPHA


def write_adapters(path, base, modules, *, rank=2, **said):
  """Random adapters of {module: (rows, columns)} as PEFT writes them."""
  noise, tensors = np.random.default_rng(1), {}
  for module, (n, m) in modules.items():
    for letter, shape in (("A", (rank, m)), ("B", (n, rank))):
      x = noise.normal(size=shape).astype(np.float32)
      tensors[f"base_model.model.{module}.lora_{letter}.weight"] = tables.Tensor(
          shape, lambda x=x: [x])
  path.mkdir(exist_ok=True)
  shards.write_file(path / "adapter_model.safetensors", tensors, "float32")
  strict_json.write(path / "adapter_config.json", dict(
      peft_type="LORA", base_model_name_or_path=str(base), r=rank, lora_alpha=6,
      bias="none") | said)
  return path


def modules_of(base, *ends):
  return {name.removesuffix(".weight"): x.shape for name, x in shards.tensors(base)[1].items()
          if name.removesuffix(".weight").endswith(ends)}


def adapted(tmp_path, base, **said):
  return write_adapters(tmp_path / "peft", base, modules_of(base, "q_proj", "down_proj"), **said)


@pytest.mark.parametrize("family, targets", test_convert.ADAPTED, ids=str)
def test_what_convert_wrote_loads_as_the_merged_model(bases, tmp_path, family, targets):
  """Also with the adapters of concatenated matrices; the tokenizer is that of the base."""
  test_convert.run_of(tmp_path / "run", bases(family), lora__rank=RANK, lora__alpha=ALPHA,
                      lora__targets=targets)
  convert.convert(tmp_path / "run", tmp_path / "peft", adapters="peft")
  convert.convert(tmp_path / "run", tmp_path / "merged")
  (config, params, tokens), (other, expected, _) = (
      weights.load(tmp_path / name) for name in ("peft", "merged"))
  assert config == other and tokens.vocabulary == weights.load(bases(family))[2].vocabulary
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-6), params, expected)
  base = hf.load(bases(family))[1]
  assert max(np.abs(x - y).max() for x, y in zip(*map(jax.tree.leaves, (params, base)))) > 0.01
  convert.convert(tmp_path / "peft", tmp_path / "again")  # As a whole model.
  again = weights.load(tmp_path / "again")[1]
  jax.tree.map(np.testing.assert_array_equal, again, params)
  shapes = weights.load(tmp_path / "peft", shapes=True)[1]
  assert jax.tree.map(np.shape, shapes) == jax.tree.map(np.shape, params)


@pytest.mark.parametrize("said, scale", [
    ({}, 3), (dict(use_rslora=True), 6 / 2**0.5), (dict(lora_alpha=1), 0.5),
    (dict(alpha_pattern={"self_attn.q_proj": 10, "down_proj": 10}), 5),
    (dict(r=7, rank_pattern={"q_proj": 2, "down_proj": 2}), 3),
    (dict(lora_dropout=0.1, init_lora_weights="gaussian", inference_mode=True, peft_version="1"),
     3)], ids=str)
def test_the_sum_by_hand(bases, tmp_path, said, scale):
  base = bases("qwen2")
  folder = adapted(tmp_path, base, **said)
  convert.convert(folder, tmp_path / "merged")
  held = shards.read_file(folder / "adapter_model.safetensors")
  merged, before = (shards.tensors(p)[1] for p in (tmp_path / "merged", base))
  changed = 0
  for name, x in before.items():
    pair = [held.get(f"base_model.model.{name.removesuffix('.weight')}.lora_{c}.weight")
            for c in "BA"]
    delta = 0 if pair[0] is None else scale * (pair[0][:] @ pair[1][:])
    changed += pair[0] is not None
    np.testing.assert_allclose(merged[name][:], x[:] + delta, atol=1e-5)
  assert changed == len(modules_of(base, "q_proj", "down_proj"))


def test_a_run_starts_from_adapters(tmp_path):
  """Merged; with lora.rank new adapters begin at 0 over the adapted model, the reference."""
  tiny.write(tmp_path)
  base = tmp_path / "model"
  folder = adapted(tmp_path, base)
  params = {name: jax.tree.leaves(weights.load(path)[1])
            for name, path in (("base", base), ("adapted", folder))}
  for rank in (0, 2):
    run = build.build(tiny.config(tmp_path, model__path=str(folder), lora__rank=rank))
    state = run.init()
    start = jax.tree.leaves(state.join_params("policy") if not rank else state.frozen)
    for x, y in zip(start, params["adapted"]): np.testing.assert_array_equal(x, y)
    if rank:
      assert all(not np.any(x) for path, x in jax.tree.leaves_with_path(state.policy)
                 if "_b_" in str(path[-1]))
    else: tiny.assert_equal_trees(state.reference, state.policy)
  assert any(np.any(x != y) for x, y in zip(params["base"], params["adapted"]))


def test_a_tokenizer_beside_the_adapters_is_theirs(bases, tmp_path):
  """With all ends of the base, which are in a file that PEFT does not write."""
  base = shutil.copytree(bases("llama"), tmp_path / "base")
  strict_json.write(base / "generation_config.json", dict(eos_token_id=[1, 5], temperature=0.5))
  folder = adapted(tmp_path, base)
  for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copyfile(base / name, folder / name)
  (folder / "chat_template.jinja").write_text("{{ messages[0].content }}!")
  own = weights.load_tokenizer(folder)
  assert own.chat([dict(role="user", content="7")]) == "7!" and set(own.eos_ids) == {1, 5}
  assert own.generation["temperature"] == 0.5


@pytest.mark.parametrize("said, message", [
    (dict(peft_type="IA3"), "peft_type='IA3'; LORA is read."),
    (dict(use_dora=True), "use_dora=True: adapters of this kind are not read"),
    (dict(modules_to_save=["lm_head"]), "modules_to_save=['lm_head']: adapters of this kind"),
    (dict(bias="all"), "bias='all': adapters of this kind"),
    (dict(fan_in_fan_out=True), "fan_in_fan_out=True: adapters of this kind"),
    (dict(init_lora_weights="pissa"), "init_lora_weights='pissa': adapters of this kind"),
    (dict(something_new=1), "something_new=1: adapters of this kind"),
    (dict(r=5), "lora_A has shape (2, 16) and lora_B (32, 2); adapter_config.json has r=5."),
    (dict(r=None), "r=None, lora_alpha=6: numbers are needed."),
    (dict(rank_pattern={"^model.*": 2}), "rank_pattern: '^model.*': names of modules are read"),
    (dict(base_model_name_or_path="nowhere"), "base_model_name_or_path='nowhere': there is no such "
     "model here; write its path or its hub name, OWNER/NAME, there."),
    (dict(base_model_name_or_path="/no/where/x"), "base_model_name_or_path='/no/where/x': there i"),
    (dict(base_model_name_or_path=None), "base_model_name_or_path=None; write the path or hub "),
], ids=str)
def test_refusals_are_one_line(tmp_path, said, message):
  tiny.write(tmp_path)
  folder = write_adapters(tmp_path / "peft", tmp_path / "model", modules_of(
      tmp_path / "model", "q_proj"), **said)
  c = tiny.config(tmp_path, model__path=str(folder))
  with pytest.raises(ValueError) as e: build.build(c)
  assert message in str(e.value) and str(folder) in str(e.value) and "\n" not in str(e.value)


def test_other_refusals(tmp_path):
  tiny.write(tmp_path)
  base, folder = tmp_path / "model", tmp_path / "peft"
  (module, shape), *_ = modules_of(base, "q_proj").items()
  for modules, message in (({"model.layers.9.self_attn.q_proj": shape}, "the model has no such "),
                           ({module: (7, 16)}, "has shape (7, 16); the config makes it"),
                           ({}, "there are no adapters in it")):
    with pytest.raises(ValueError, match="^.*adapter_model.safetensors: ") as e:
      weights.load(write_adapters(folder, base, modules))
    assert message in str(e.value)
  outer = write_adapters(tmp_path / "outer", write_adapters(folder, base, {module: shape}),
                         {module: shape})
  with pytest.raises(ValueError, match="it has adapters, too; a whole model is needed."):
    weights.load(outer)
  (folder / "adapter_model.safetensors").unlink()
  with pytest.raises(ValueError, match="no such file; only safetensors are read."):
    weights.load(folder)


# Live, where torch and peft are.


@pytest.mark.parametrize("said", [{}, dict(use_rslora=True), dict(
    rank_pattern={"q_proj": 5}, alpha_pattern={"self_attn.q_proj": 9, "down_proj": 2})], ids=str)
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mistral", "phi3"])
def test_log_probs_are_those_of_peft(bases, tmp_path, family, said):
  torch, peft = pytest.importorskip("torch"), pytest.importorskip("peft")
  import transformers
  model = transformers.AutoModelForCausalLM.from_pretrained(bases(family)).float()
  torch.manual_seed(0)
  targets = ["qkv_proj", "down_proj"] if family == "phi3" else ["q_proj", "v_proj", "down_proj"]
  model = peft.get_peft_model(model, peft.LoraConfig(
      r=3, lora_alpha=8, target_modules=targets, init_lora_weights=False, **said))
  model.save_pretrained(tmp_path / "peft")
  config, params, _ = weights.load(tmp_path / "peft")
  expected, found = test_convert.theirs(model.eval()), test_convert.logits_of(config, params)
  logps = lambda x: x - np.logaddexp.reduce(x, axis=-1, keepdims=True)
  np.testing.assert_allclose(logps(found), logps(expected), atol=1e-5, rtol=5e-6)
  with model.disable_adapter():
    assert np.abs(test_convert.theirs(model) - expected).max() > 0.1
