"""config.json -> DecoderConfig: published files, and what is refused."""
import dataclasses
import functools
import pathlib

import jax
import pytest

from rlx.io import hf
from rlx.io import tables
from rlx.models import families
from rlx.models import transformer
from rlx.models.families import llama
from rlx.models.families import mistral
from rlx.models.families import phi3
from rlx.models.families import qwen2
from rlx.models.families import qwen3

FAMILIES = dict(llama=llama, smollm2=llama, qwen2=qwen2, qwen3=qwen3, mistral=mistral,
                phi3=phi3)
FIXTURES = pathlib.Path(__file__).parent / "fixtures"


# config.json as published, shortened to what is read, and with what is ignored.
PUBLISHED = {
    # Llama-3.2-1B.
    "llama": (dict(
        architectures=["LlamaForCausalLM"], attention_bias=False, head_dim=64,
        hidden_act="silu", hidden_size=2048, intermediate_size=8192,
        mlp_bias=False, model_type="llama", num_attention_heads=32,
        num_hidden_layers=16, num_key_value_heads=8, pretraining_tp=1,
        rms_norm_eps=1e-5, rope_theta=500000.0, tie_word_embeddings=True,
        rope_scaling=dict(factor=32.0, high_freq_factor=4.0, low_freq_factor=1.0,
                          original_max_position_embeddings=8192,
                          rope_type="llama3"),
        torch_dtype="bfloat16", vocab_size=128256), dict(
            vocab_size=128256, d_model=2048, n_layers=16, n_heads=32,
            n_kv_heads=8, head_dim=64, d_ff=8192, rope_theta=5e5, norm_eps=1e-5,
            rope_scaling=("llama3", 32.0, 1.0, 4.0, 8192.0))),
    # Qwen2.5-0.5B: no head_dim; sliding_window is a number but not in use.
    "qwen2": (dict(
        hidden_act="silu", hidden_size=896, intermediate_size=4864,
        max_window_layers=24, model_type="qwen2", num_attention_heads=14,
        num_hidden_layers=24, num_key_value_heads=2, rms_norm_eps=1e-6,
        rope_theta=1000000.0, sliding_window=32768, tie_word_embeddings=True,
        use_mrope=False, use_sliding_window=False, vocab_size=151936), dict(
            vocab_size=151936, d_model=896, n_layers=24, n_heads=14, n_kv_heads=2,
            head_dim=64, d_ff=4864, rope_theta=1e6, qkv_bias=True)),
    # Qwen3-0.6B: head_dim is not hidden_size / heads.
    "qwen3": (dict(
        attention_bias=False, head_dim=128, hidden_act="silu", hidden_size=1024,
        intermediate_size=3072, model_type="qwen3", num_attention_heads=16,
        num_hidden_layers=28, num_key_value_heads=8, rms_norm_eps=1e-6,
        rope_scaling=None, rope_theta=1000000, sliding_window=None,
        tie_word_embeddings=True, use_sliding_window=False, vocab_size=151936), dict(
            vocab_size=151936, d_model=1024, n_layers=28, n_heads=16, n_kv_heads=8,
            head_dim=128, d_ff=3072, rope_theta=1e6, qk_norm="head")),
    # Mistral-7B-Instruct-v0.3: no window any more.
    "mistral": (dict(
        attention_dropout=0.0, hidden_act="silu", hidden_size=4096,
        intermediate_size=14336, max_position_embeddings=32768, model_type="mistral",
        num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=8,
        rms_norm_eps=1e-5, rope_theta=1000000.0, sliding_window=None,
        tie_word_embeddings=False, vocab_size=32768), dict(
            vocab_size=32768, context=32768, d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8,
            head_dim=128, d_ff=14336, rope_theta=1e6, norm_eps=1e-5, tied_head=False)),
    # Phi-4.
    "phi3": (dict(
        attention_bias=False, attention_dropout=0.0, embd_pdrop=0.0, hidden_act="silu",
        hidden_size=5120, intermediate_size=17920, max_position_embeddings=16384,
        model_type="phi3", num_attention_heads=40, num_hidden_layers=40,
        num_key_value_heads=10, original_max_position_embeddings=16384, resid_pdrop=0.0,
        rms_norm_eps=1e-5, rope_scaling=None, rope_theta=250000, sliding_window=None,
        tie_word_embeddings=False, vocab_size=100352), dict(
            vocab_size=100352, context=16384, d_model=5120, n_layers=40, n_heads=40, n_kv_heads=10,
            head_dim=128, d_ff=17920, rope_theta=2.5e5, norm_eps=1e-5, tied_head=False)),
}


@pytest.mark.parametrize("family", PUBLISHED)
def test_config(family):
  published, expected = PUBLISHED[family]
  config = FAMILIES[family].decoder_config(published)
  assert config == transformer.DecoderConfig(**expected)
  written = FAMILIES[family].hf_config(config)
  assert families.of(written["model_type"], "").decoder_config(written) == config


@pytest.mark.parametrize("family, change, message", [
    ("qwen2", dict(layer_types=["full_attention", "sliding_attention"]),
     "sliding_attention.*24 of full_attention"),
    ("qwen3", dict(num_experts=64), "num_experts=64"),
    ("qwen3", dict(attention_bias=1), "attention_bias=1"),
    ("qwen3", dict(layer_types="full_attention"), "layer_types='full_attention'"),
    ("llama", dict(sliding_window=4096), "sliding_window=4096"),
    ("llama", dict(use_sliding_window=True), "use_sliding_window=True.*only False"),
    ("llama", dict(partial_rotary_factor=0), "partial_rotary_factor=0.*only 1.0"),
    ("llama", dict(hidden_act=None), "hidden_act=None"),
    ("mistral", dict(attention_bias=True), "attention_bias=True"),
    # Off, but what it would be on is not known.
    ("llama", dict(is_causal=False), "is_causal=False"),
    ("qwen2", dict(use_mrope=True), "use_mrope=True"),
    ("mistral", dict(sliding_window="all"), "sliding_window='all'"),
    ("phi3", dict(sliding_window=-1), "sliding_window=-1"),
    ("phi3", dict(partial_rotary_factor=1.5), "partial_rotary_factor=1.5"),
    ("phi3", dict(rope_scaling=dict(type="longrope", short_factor=[1.0])),
     r"short_factor=\[1.0\]; 64 numbers"),
    ("phi3", dict(rope_scaling=dict(type="linear", factor=2.0)), "'linear' is not supported for phi3"),
    ("llama", dict(resid_pdrop=0.1), "resid_pdrop=0.1"),  # Phi's, not Llama's.
    ("llama", dict(hidden_act="gelu"), "hidden_act='gelu'.*only 'silu'"),
    ("qwen2", dict(mlp_bias=True), "mlp_bias=True"),
    ("llama", dict(rope_scaling=dict(rope_type="ntk", factor=4.0)), "'ntk'"),
    ("llama", dict(rope_scaling=dict(rope_type="yarn")), "original_max_position_embeddings"),
    ("llama", dict(rope_parameters=dict(rope_type="default", partial_rotary_factor=0.5)),
     "partial_rotary_factor=0.5"),
    ("llama", dict(quantization_config=dict(bits=4)), "quantization_config"),
    ("llama", dict(num_attention_heads=33), "num_key_value_heads=8 must divide"),
])
def test_refusals(family, change, message):
  with pytest.raises(ValueError, match=message):
    FAMILIES[family].decoder_config({**PUBLISHED[family][0], **change})


def test_what_a_file_says_of_its_origin_is_not_the_model():
  published = PUBLISHED["llama"][0]
  origin = {"_model_name_or_path": "a/b", "_name_or_path": "c", "unk_token_id": 3}
  assert llama.decoder_config({**published, **origin}) == llama.decoder_config(published)


def test_qwen3_without_head_dim_means_128():
  published = {k: v for k, v in PUBLISHED["qwen3"][0].items() if k != "head_dim"}
  assert qwen3.decoder_config(published).head_dim == 128


def test_a_window_over_the_whole_context_is_none():
  published = PUBLISHED["mistral"][0]
  for window, context in ((32768, 32768), (None, None)):
    same = {**published, "sliding_window": window, "max_position_embeddings": context}
    assert mistral.decoder_config(same) == dataclasses.replace(
        mistral.decoder_config(published), context=context)
  absent = {k: v for k, v in published.items() if k != "sliding_window"}
  assert mistral.decoder_config(absent).windows == (4096,) * 32  # What absent means.


def test_missing_key():
  published = {k: v for k, v in PUBLISHED["llama"][0].items() if k != "rms_norm_eps"}
  with pytest.raises(ValueError, match="rms_norm_eps"):
    llama.decoder_config(published)


def test_tables_cover_every_parameter():
  """A table has a name for each of the decoder's parameters."""
  for family, module in FAMILIES.items():
    config = hf.load(FIXTURES / family)[0]
    for table in (module.KEYS, module.GGUF_KEYS):
      assert set(tables.paths(config)) <= {
          path for parts in table.values() for path, _ in tables.pairs(parts)}
