"""SmolLM2: Llama with a tied head. Its files say model_type "llama"."""
from rlx.models.families import llama

KEYS = llama.KEYS
GGUF_KEYS = llama.GGUF_KEYS
decoder_config = llama.decoder_config
hf_config = llama.hf_config
