"""Model families by the name that checkpoints give them."""
from rlx.models.families import gemma2
from rlx.models.families import gemma3_text
from rlx.models.families import llama
from rlx.models.families import mistral
from rlx.models.families import mixtral
from rlx.models.families import olmo2
from rlx.models.families import phi3
from rlx.models.families import qwen2
from rlx.models.families import qwen3
from rlx.models.families import qwen3_moe
from rlx.models.families import smollm3

# config.json's model_type; io/gguf.py says which of them a GGUF file holds.
FAMILIES = {module.__name__.rpartition(".")[2]: module for module in (
    llama, mistral, qwen2, qwen3, smollm3, gemma2, gemma3_text, olmo2, phi3, mixtral,
    qwen3_moe)}


def of(name, key):
  """The family's module.

  Args:
    name: from a checkpoint, of any type.
    key: what names it there, for messages.
  Raises:
    ValueError: there is none.
  """
  if not isinstance(name, str) or name not in FAMILIES:
    raise ValueError(f"{key}={name!r:.60} is not supported; {sorted(FAMILIES)} are.")
  return FAMILIES[name]
