"""config.json -> DecoderConfig: published files, and what is refused."""
import copy
import dataclasses
import functools
import json
import pathlib

import pytest

from rlx.io import tables
from rlx.models import families
from rlx.models import transformer

FIXTURES = pathlib.Path(__file__).parent / "fixtures"

# Of Phi-4-mini, by what each of 48 rotary frequencies is divided in long sequences.
_LONG = (
    1.0, 1.118320672, 1.250641126, 1.398617824, 1.564103225, 1.74916897, 1.956131817,
    2.187582649, 2.446418898, 2.735880826, 3.059592084, 3.421605075, 3.826451687,
    4.279200023, 4.785517845, 5.351743533, 5.984965424, 6.693110555, 7.485043894,
    8.370679318, 9.36110372, 10.4687158, 11.70738129, 13.09260651, 14.64173252,
    16.37415215, 18.31155283, 20.47818807, 22.90118105, 25.61086418, 28.64115884, 32.03,
    32.1, 32.13, 32.23, 32.6, 32.61, 32.64, 32.66, 32.7, 32.71, 32.93, 32.97, 33.28,
    33.49, 33.5, 44.16, 47.77)

# config.json as published, without what says where the file is from, and what it means.
PUBLISHED = {
    "Llama-2-7b": (dict(  # No rope_theta.
        architectures=["LlamaForCausalLM"], bos_token_id=1, eos_token_id=2,
        hidden_act="silu", hidden_size=4096, initializer_range=0.02,
        intermediate_size=11008, max_position_embeddings=4096, model_type="llama",
        num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=32,
        pretraining_tp=1, rms_norm_eps=1e-5, rope_scaling=None,
        tie_word_embeddings=False, use_cache=True, vocab_size=32000), dict(
            vocab_size=32000, context=4096, d_model=4096, n_layers=32, n_heads=32,
            n_kv_heads=32, head_dim=128, d_ff=11008, norm_eps=1e-5, tied_head=False)),
    "Llama-3.2-1B": (dict(
        architectures=["LlamaForCausalLM"], attention_bias=False, head_dim=64,
        hidden_act="silu", hidden_size=2048, intermediate_size=8192,
        max_position_embeddings=131072, mlp_bias=False, model_type="llama",
        num_attention_heads=32, num_hidden_layers=16, num_key_value_heads=8,
        pretraining_tp=1, rms_norm_eps=1e-5, rope_theta=500000.0, tie_word_embeddings=True,
        rope_scaling=dict(factor=32.0, high_freq_factor=4.0, low_freq_factor=1.0,
                          original_max_position_embeddings=8192, rope_type="llama3"),
        torch_dtype="bfloat16", vocab_size=128256), dict(
            vocab_size=128256, context=131072, d_model=2048, n_layers=16, n_heads=32,
            n_kv_heads=8, head_dim=64, d_ff=8192, rope_theta=5e5, norm_eps=1e-5,
            rope_scaling=("llama3", 32.0, 1.0, 4.0, 8192.0))),
    "SmolLM2-135M": (dict(
        architectures=["LlamaForCausalLM"], attention_bias=False, attention_dropout=0.0,
        bos_token_id=0, eos_token_id=0, hidden_act="silu", hidden_size=576,
        initializer_range=0.041666666666666664, intermediate_size=1536,
        is_llama_config=True, max_position_embeddings=8192, model_type="llama",
        num_attention_heads=9, num_hidden_layers=30, num_key_value_heads=3,
        pretraining_tp=1, rms_norm_eps=1e-5, rope_interleaved=False, rope_scaling=None,
        rope_theta=100000, tie_word_embeddings=True, use_cache=True, vocab_size=49152), dict(
            vocab_size=49152, context=8192, d_model=576, n_layers=30, n_heads=9,
            n_kv_heads=3, head_dim=64, d_ff=1536, rope_theta=1e5, norm_eps=1e-5)),
    # sliding_window is a number but not in use, here and in Qwen2.5-Math.
    "Qwen2.5-0.5B": (dict(
        hidden_act="silu", hidden_size=896, intermediate_size=4864,
        max_position_embeddings=32768, max_window_layers=24, model_type="qwen2",
        num_attention_heads=14, num_hidden_layers=24, num_key_value_heads=2,
        rms_norm_eps=1e-6, rope_theta=1000000.0, sliding_window=32768,
        tie_word_embeddings=True, use_mrope=False, use_sliding_window=False,
        vocab_size=151936), dict(
            vocab_size=151936, context=32768, d_model=896, n_layers=24, n_heads=14,
            n_kv_heads=2, head_dim=64, d_ff=4864, rope_theta=1e6, qkv_bias=True)),
    "Qwen2.5-Math-1.5B": (dict(
        architectures=["Qwen2ForCausalLM"], attention_dropout=0.0, bos_token_id=151643,
        eos_token_id=151643, hidden_act="silu", hidden_size=1536, initializer_range=0.02,
        intermediate_size=8960, max_position_embeddings=4096, max_window_layers=21,
        model_type="qwen2", num_attention_heads=12, num_hidden_layers=28,
        num_key_value_heads=2, rms_norm_eps=1e-6, rope_theta=10000, sliding_window=4096,
        tie_word_embeddings=True, use_cache=True, use_mrope=False,
        use_sliding_window=False, vocab_size=151936), dict(
            vocab_size=151936, context=4096, d_model=1536, n_layers=28, n_heads=12,
            n_kv_heads=2, head_dim=128, d_ff=8960, qkv_bias=True)),
    "Qwen2.5-Math-7B": (dict(
        architectures=["Qwen2ForCausalLM"], attention_dropout=0.0, bos_token_id=151643,
        eos_token_id=151643, hidden_act="silu", hidden_size=3584, initializer_range=0.02,
        intermediate_size=18944, max_position_embeddings=4096, max_window_layers=28,
        model_type="qwen2", num_attention_heads=28, num_hidden_layers=28,
        num_key_value_heads=4, rms_norm_eps=1e-6, rope_theta=10000, sliding_window=4096,
        tie_word_embeddings=False, use_cache=True, use_mrope=False,
        use_sliding_window=False, vocab_size=152064), dict(
            vocab_size=152064, context=4096, d_model=3584, n_layers=28, n_heads=28,
            n_kv_heads=4, head_dim=128, d_ff=18944, qkv_bias=True, tied_head=False)),
    # head_dim is not hidden_size / heads.
    "Qwen3-0.6B": (dict(
        attention_bias=False, attention_dropout=0.0, bos_token_id=151643,
        eos_token_id=151645, head_dim=128, hidden_act="silu", hidden_size=1024,
        intermediate_size=3072, max_position_embeddings=40960, max_window_layers=28,
        model_type="qwen3", num_attention_heads=16, num_hidden_layers=28,
        num_key_value_heads=8, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=1000000,
        sliding_window=None, tie_word_embeddings=True, use_sliding_window=False,
        vocab_size=151936), dict(
            vocab_size=151936, context=40960, d_model=1024, n_layers=28, n_heads=16,
            n_kv_heads=8, head_dim=128, d_ff=3072, rope_theta=1e6, qk_norm="head")),
    "Qwen3-30B-A3B": (dict(
        architectures=["Qwen3MoeForCausalLM"], attention_bias=False, attention_dropout=0.0,
        bos_token_id=151643, decoder_sparse_step=1, eos_token_id=151645, head_dim=128,
        hidden_act="silu", hidden_size=2048, initializer_range=0.02,
        intermediate_size=6144, max_position_embeddings=40960, max_window_layers=48,
        mlp_only_layers=[], model_type="qwen3_moe", moe_intermediate_size=768,
        norm_topk_prob=True, num_attention_heads=32, num_experts=128,
        num_experts_per_tok=8, num_hidden_layers=48, num_key_value_heads=4,
        output_router_logits=False, rms_norm_eps=1e-6, rope_scaling=None,
        rope_theta=1000000.0, router_aux_loss_coef=0.001, sliding_window=None,
        tie_word_embeddings=False, use_cache=True, use_sliding_window=False,
        vocab_size=151936), dict(
            vocab_size=151936, context=40960, d_model=2048, n_layers=48, n_heads=32,
            n_kv_heads=4, head_dim=128, d_ff=768, rope_theta=1e6, qk_norm="head",
            tied_head=False, n_experts=128, experts_per_token=8)),
    "Mistral-7B-v0.1": (dict(
        architectures=["MistralForCausalLM"], bos_token_id=1, eos_token_id=2,
        hidden_act="silu", hidden_size=4096, initializer_range=0.02,
        intermediate_size=14336, max_position_embeddings=32768, model_type="mistral",
        num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=8,
        rms_norm_eps=1e-5, rope_theta=10000.0, sliding_window=4096,
        tie_word_embeddings=False, use_cache=True, vocab_size=32000), dict(
            vocab_size=32000, context=32768, d_model=4096, n_layers=32, n_heads=32,
            n_kv_heads=8, head_dim=128, d_ff=14336, norm_eps=1e-5, tied_head=False,
            windows=(4096,) * 32)),
    # No window any more.
    "Mistral-7B-Instruct-v0.3": (dict(
        attention_dropout=0.0, hidden_act="silu", hidden_size=4096,
        intermediate_size=14336, max_position_embeddings=32768, model_type="mistral",
        num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=8,
        rms_norm_eps=1e-5, rope_theta=1000000.0, sliding_window=None,
        tie_word_embeddings=False, vocab_size=32768), dict(
            vocab_size=32768, context=32768, d_model=4096, n_layers=32, n_heads=32,
            n_kv_heads=8, head_dim=128, d_ff=14336, rope_theta=1e6, norm_eps=1e-5,
            tied_head=False)),
    "Mixtral-8x7B-v0.1": (dict(
        architectures=["MixtralForCausalLM"], attention_dropout=0.0, bos_token_id=1,
        eos_token_id=2, hidden_act="silu", hidden_size=4096, initializer_range=0.02,
        intermediate_size=14336, max_position_embeddings=32768, model_type="mixtral",
        num_attention_heads=32, num_experts_per_tok=2, num_hidden_layers=32,
        num_key_value_heads=8, num_local_experts=8, output_router_logits=False,
        rms_norm_eps=1e-5, rope_theta=1000000.0, router_aux_loss_coef=0.02,
        sliding_window=None, tie_word_embeddings=False, use_cache=True,
        vocab_size=32000), dict(
            vocab_size=32000, context=32768, d_model=4096, n_layers=32, n_heads=32,
            n_kv_heads=8, head_dim=128, d_ff=14336, rope_theta=1e6, norm_eps=1e-5,
            tied_head=False, n_experts=8, experts_per_token=2)),
    "gemma-2-2b-it": (dict(
        architectures=["Gemma2ForCausalLM"], attention_bias=False, attention_dropout=0.0,
        attn_logit_softcapping=50.0, bos_token_id=2, cache_implementation="hybrid",
        eos_token_id=[1, 107], final_logit_softcapping=30.0, head_dim=256,
        hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh",
        hidden_size=2304, initializer_range=0.02, intermediate_size=9216,
        max_position_embeddings=8192, model_type="gemma2", num_attention_heads=8,
        num_hidden_layers=26, num_key_value_heads=4, pad_token_id=0,
        query_pre_attn_scalar=256, rms_norm_eps=1e-6, rope_theta=10000.0,
        sliding_window=4096, use_cache=True, vocab_size=256000), dict(
            vocab_size=256000, context=8192, d_model=2304, n_layers=26, n_heads=8,
            n_kv_heads=4, head_dim=256, d_ff=9216, norms="both", norm_plus_one=True,
            activation="gelu_tanh", scaled_embedding=True, query_scalar=256.0,
            attn_softcap=50.0, logit_softcap=30.0, windows=(4096, 0) * 13)),
    "gemma-3-1b-it": (dict(
        architectures=["Gemma3ForCausalLM"], attention_bias=False, attention_dropout=0.0,
        attn_logit_softcapping=None, bos_token_id=2, cache_implementation="hybrid",
        eos_token_id=[1, 106], final_logit_softcapping=None, head_dim=256,
        hidden_activation="gelu_pytorch_tanh", hidden_size=1152, initializer_range=0.02,
        intermediate_size=6912, max_position_embeddings=32768, model_type="gemma3_text",
        num_attention_heads=4, num_hidden_layers=26, num_key_value_heads=1,
        pad_token_id=0, query_pre_attn_scalar=256, rms_norm_eps=1e-6,
        rope_local_base_freq=10000, rope_scaling=None, rope_theta=1000000,
        sliding_window=512, sliding_window_pattern=6, use_cache=True,
        vocab_size=262144), dict(
            vocab_size=262144, context=32768, d_model=1152, n_layers=26, n_heads=4,
            n_kv_heads=1, head_dim=256, d_ff=6912, rope_theta=1e6, local_theta=1e4,
            norms="both", norm_plus_one=True, activation="gelu_tanh",
            scaled_embedding=True, query_scalar=256.0, qk_norm="head",
            windows=((512,) * 5 + (0,)) * 4 + (512,) * 2)),
    "OLMo-2-0425-1B": (dict(
        architectures=["Olmo2ForCausalLM"], attention_bias=False, attention_dropout=0.0,
        hidden_act="silu", hidden_size=2048, initializer_range=0.02,
        intermediate_size=8192, max_position_embeddings=4096, model_type="olmo2",
        num_attention_heads=16, num_hidden_layers=16, num_key_value_heads=16,
        rms_norm_eps=1e-6, rope_scaling=None, rope_theta=500000,
        tie_word_embeddings=False, use_cache=True, vocab_size=100352), dict(
            vocab_size=100352, context=4096, d_model=2048, n_layers=16, n_heads=16,
            n_kv_heads=16, head_dim=128, d_ff=8192, rope_theta=5e5, tied_head=False,
            norms="post", qk_norm="all")),
    "SmolLM3-3B": (dict(
        architectures=["SmolLM3ForCausalLM"], attention_bias=False, attention_dropout=0.0,
        bos_token_id=None, eos_token_id=128012, hidden_act="silu", hidden_size=2048,
        initializer_range=0.02, intermediate_size=11008, max_position_embeddings=65536,
        max_window_layers=28, mlp_bias=False, model_type="smollm3",
        no_rope_layer_interval=4, no_rope_layers=[1, 1, 1, 0] * 9, num_attention_heads=16,
        num_hidden_layers=36, num_key_value_heads=4, pad_token_id=128004,
        pretraining_tp=2, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=5000000.0,
        sliding_window=None, use_cache=False, use_sliding_window=False,
        vocab_size=128256), dict(
            vocab_size=128256, context=65536, d_model=2048, n_layers=36, n_heads=16,
            n_kv_heads=4, head_dim=128, d_ff=11008, rope_theta=5e6,
            no_rope=tuple(range(3, 36, 4)))),
    "Phi-3-mini-4k-instruct": (dict(
        architectures=["Phi3ForCausalLM"], attention_bias=False, attention_dropout=0.0,
        auto_map={"AutoConfig": "configuration_phi3.Phi3Config"}, bos_token_id=1,
        embd_pdrop=0.0, eos_token_id=32000, hidden_act="silu", hidden_size=3072,
        initializer_range=0.02, intermediate_size=8192, max_position_embeddings=4096,
        model_type="phi3", num_attention_heads=32, num_hidden_layers=32,
        num_key_value_heads=32, original_max_position_embeddings=4096, pad_token_id=32000,
        resid_pdrop=0.0, rms_norm_eps=1e-5, rope_scaling=None, rope_theta=10000.0,
        sliding_window=2047, tie_word_embeddings=False, use_cache=True,
        vocab_size=32064), dict(
            vocab_size=32064, context=4096, d_model=3072, n_layers=32, n_heads=32,
            n_kv_heads=32, head_dim=96, d_ff=8192, norm_eps=1e-5, tied_head=False,
            windows=(2047,) * 32)),
    "Phi-4": (dict(
        attention_bias=False, attention_dropout=0.0, embd_pdrop=0.0, hidden_act="silu",
        hidden_size=5120, intermediate_size=17920, max_position_embeddings=16384,
        model_type="phi3", num_attention_heads=40, num_hidden_layers=40,
        num_key_value_heads=10, original_max_position_embeddings=16384, resid_pdrop=0.0,
        rms_norm_eps=1e-5, rope_scaling=None, rope_theta=250000, sliding_window=None,
        tie_word_embeddings=False, vocab_size=100352), dict(
            vocab_size=100352, context=16384, d_model=5120, n_layers=40, n_heads=40,
            n_kv_heads=10, head_dim=128, d_ff=17920, rope_theta=2.5e5, norm_eps=1e-5,
            tied_head=False)),
    "Phi-4-mini-instruct": (dict(
        architectures=["Phi3ForCausalLM"], attention_bias=False, attention_dropout=0.0,
        auto_map={"AutoConfig": "configuration_phi3.Phi3Config"}, bos_token_id=199999,
        embd_pdrop=0.0, eos_token_id=199999, full_attn_mod=1, hidden_act="silu",
        hidden_size=3072, initializer_range=0.02, intermediate_size=8192,
        interpolate_factor=1, lm_head_bias=False, max_position_embeddings=131072,
        mlp_bias=False, model_type="phi3", num_attention_heads=24, num_hidden_layers=32,
        num_key_value_heads=8, original_max_position_embeddings=4096, pad_token_id=199999,
        partial_rotary_factor=0.75, resid_pdrop=0.0, rms_norm_eps=1e-5,
        rope_scaling=dict(long_factor=list(_LONG), short_factor=[1.0] * 48,
                          type="longrope"), rope_theta=10000.0,
        sliding_window=262144, tie_word_embeddings=True, use_cache=True,
        vocab_size=200064), dict(
            vocab_size=200064, context=131072, d_model=3072, n_layers=32, n_heads=24,
            n_kv_heads=8, head_dim=128, d_ff=8192, norm_eps=1e-5, rope_dim=96,
            windows=(262144,) * 32,
            # sqrt(1 + ln(131072 / 4096) / ln(4096)) = sqrt(17 / 12)
            rope_scaling=("longrope", 4096, pytest.approx(1.1902380714238083),
                          (1.0,) * 48, _LONG))),
}


_ONE = dict(original_max_position_embeddings=1)


def decoder_config(file):
  return families.named(file["model_type"]).decoder_config(file)


@pytest.mark.parametrize("name", PUBLISHED)
def test_config(name):
  published, expected = PUBLISHED[name]
  config = decoder_config(published)
  assert dataclasses.asdict(config) == dataclasses.asdict(
      transformer.DecoderConfig(**expected))
  written = families.named(published["model_type"]).hf_config(config)
  assert decoder_config(written) == config


@pytest.mark.parametrize("name, change, message", [
    ("Qwen2.5-0.5B", dict(layer_types=["full_attention", "sliding_attention"]),
     "sliding_attention.*24 of full_attention"),
    ("Qwen3-0.6B", dict(num_experts=64), "num_experts=64"),
    ("Qwen3-0.6B", dict(attention_bias=1), "attention_bias=1"),
    ("Qwen3-0.6B", dict(layer_types="full_attention"), "layer_types='full_attention'"),
    ("Llama-3.2-1B", dict(sliding_window=4096), "sliding_window=4096"),
    ("Llama-3.2-1B", dict(use_sliding_window=True), "use_sliding_window=True.*only False"),
    ("Llama-3.2-1B", dict(partial_rotary_factor=0), "partial_rotary_factor=0.*only 1.0"),
    ("Llama-3.2-1B", dict(hidden_act=None), "hidden_act=None"),
    ("Mistral-7B-Instruct-v0.3", dict(attention_bias=True), "attention_bias=True"),
    # Off, but what it would be on is not known.
    ("Llama-3.2-1B", dict(is_causal=False), "is_causal=False"),
    ("Qwen2.5-0.5B", dict(use_mrope=True), "use_mrope=True"),
    ("Mistral-7B-Instruct-v0.3", dict(sliding_window="all"), "sliding_window='all'"),
    ("Phi-4", dict(sliding_window=-1), "sliding_window=-1"),
    ("Phi-4", dict(partial_rotary_factor=1.5), "partial_rotary_factor=1.5"),
    ("Phi-4", dict(rope_scaling=dict(type="longrope", short_factor=[1.0])),
     r"short_factor=\[1.0\]; 64 numbers"),
    ("Phi-4", dict(rope_scaling=dict(type="linear", factor=2.0)),
     "'linear' is not supported for phi3"),
    ("Llama-3.2-1B", dict(resid_pdrop=0.1), "resid_pdrop=0.1"),  # Phi's, not Llama's.
    ("Llama-3.2-1B", dict(hidden_act="gelu"), "hidden_act='gelu'.*only 'silu'"),
    ("Qwen2.5-0.5B", dict(mlp_bias=True), "mlp_bias=True"),
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
    ("Llama-3.2-1B", dict(quantization_config=dict(bits=4)), "quantization_config"),
    ("Llama-3.2-1B", dict(num_attention_heads=33), "num_key_value_heads=8 must divide"),
])
def test_refusals(name, change, message):
  with pytest.raises(ValueError, match=message):
    decoder_config({**PUBLISHED[name][0], **change})


def test_a_file_is_read_and_not_changed():
  """config.json is written again as it was; parameters of a kind of layer lie within it."""
  for file in [*(published for published, _ in PUBLISHED.values()), *sum(cases().values(), [])]:
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
    # In Gemma 3 it is laid over the parameters of layers without a window.
    ("gemma-3-1b-it", dict(rope_scaling=dict(rope_type="linear", factor=8.0), rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=2.0, rope_theta=5e5),
        sliding_attention=dict(rope_theta=2e4))),
     dict(rope_scaling=("linear", 8.0), rope_theta=5e5, local_theta=2e4)),
    ("gemma-3-1b-it", dict(rope_parameters=dict(sliding_attention=None, full_attention=dict(
        type="linear", factor=8.0)), rope_local_base_freq=2e4),
     dict(rope_scaling=("linear", 8.0), rope_theta=1e6, local_theta=2e4)),
    ("gemma-3-1b-it", dict(sliding_window=32768),
     dict(windows=((32768,) * 5 + (0,)) * 4 + (32768,) * 2)),
    # As io/gguf.py says that the file has no original length beside its scaling.
    ("Phi-4", dict(original_max_position_embeddings=None, rope_scaling=dict(
        type="su", original_max_position_embeddings=64, attention_factor=1.0,
        short_factor=[1.0] * 64, long_factor=[2.0] * 64)),
     dict(rope_scaling=("longrope", 64, 1.0, (1.0,) * 64, (2.0,) * 64))),
    ("Llama-3.2-1B", dict(rope_scaling=dict(
        rope_type="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0)),
     dict(rope_scaling=("llama3", 32.0, 1.0, 4.0, 131072.0))),
    # null is not true.
    ("Llama-3.2-1B", dict(rope_scaling=_YARN | dict(truncate=None, attention_factor=1.0)),
     dict(rope_scaling=("yarn", 4.0, 32.0, 1.0, 1024, 1.0, False))),
    ("Llama-3.2-1B", dict(rope_scaling=_YARN | dict(finetuned=True, attention_factor=1.0)),
     dict(rope_scaling=("yarn", 4.0, 32.0, 1.0, 1024, 1.0, True))),
    ("Mistral-7B-v0.1", dict(layer_types=["full_attention", "sliding_attention"] * 16),
     dict(windows=(0, 4096) * 16)),
    ("Mixtral-8x7B-v0.1", dict(layer_types=["full_attention"] * 32), {}),
    ("SmolLM3-3B", dict(no_rope_layers=[1, 1, 1, 0] * 10), {}),
    ("Llama-3.2-1B", dict(temperature=0.6, max_length=4096, id2label={"0": "LABEL_0"},
                          output_hidden_states=True, is_encoder_decoder=False), {}),
])
def test_unusual_files(name, change, expected):
  """What transformers makes of them; tests/io/test_config_sweep.py compares the two."""
  published = PUBLISHED[name][0]
  assert decoder_config({**published, **change}) == dataclasses.replace(
      decoder_config(published), **expected)


def test_original_length_of_phi3_that_only_rope_parameters_have():
  published = PUBLISHED["Phi-4-mini-instruct"][0]
  file = {k: v for k, v in published.items() if k != "original_max_position_embeddings"}
  file["rope_scaling"] = {**published["rope_scaling"], "original_max_position_embeddings": 8192}
  assert decoder_config(file) == decoder_config(published)  # 4096


def test_what_a_file_says_of_its_origin_is_not_the_model():
  published = PUBLISHED["Llama-3.2-1B"][0]
  origin = {"_model_name_or_path": "a/b", "_name_or_path": "c", "unk_token_id": 3}
  assert decoder_config({**published, **origin}) == decoder_config(published)


def test_qwen3_without_head_dim_means_128():
  published = {k: v for k, v in PUBLISHED["Qwen3-0.6B"][0].items() if k != "head_dim"}
  assert decoder_config(published).head_dim == 128
  mixture = {k: v for k, v in PUBLISHED["Qwen3-30B-A3B"][0].items() if k != "head_dim"}
  assert decoder_config(mixture).head_dim == 64  # 2048 / 32: its class has no such field.


def test_a_window_over_the_whole_context_stays():
  """Sequences may be longer than the context, and rotary angles may depend on the window."""
  published = PUBLISHED["Mistral-7B-Instruct-v0.3"][0]
  config = decoder_config({**published, "sliding_window": 32768})
  assert config == dataclasses.replace(decoder_config(published), windows=(32768,) * 32)
  assert dataclasses.replace(config, attention="splash").windows  # It never cuts anything off.
  short = decoder_config({**published, "sliding_window": 4096})
  with pytest.raises(ValueError, match="splash.*no windows"):
    dataclasses.replace(short, attention="splash")
  absent = {k: v for k, v in published.items() if k != "sliding_window"}
  assert decoder_config(absent).windows == (4096,) * 32  # What absent means.


def test_missing_key():
  published = {k: v for k, v in PUBLISHED["Llama-3.2-1B"][0].items() if k != "rms_norm_eps"}
  with pytest.raises(ValueError, match="rms_norm_eps"):
    decoder_config(published)


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
  found = set()
  for file in sum(cases().values(), []):
    nested = file["rope_parameters"]
    for rope in nested.values() if "full_attention" in nested else (nested,):
      found |= {"rope_type=" + rope["rope_type"], *rope}
  # The two scales replace attention_factor; mrope is of images, proportional of Gemma 3n.
  assert set(modeling_rope_utils.RopeParameters.__annotations__) - found == {
      "mrope_section", "mscale", "mscale_all_dim"}
  assert {f"rope_type={kind}" for kind in modeling_rope_utils.ROPE_INIT_FUNCTIONS} - found == {
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
  rope = {kind: {**of, field: 1} for kind, of in rope.items()} if "full_attention" in rope else {
      **rope, field: 1}
  with pytest.raises(ValueError, match=f"{field}|rope_parameters"):
    decoder_config({**file, "rope_parameters": rope})
