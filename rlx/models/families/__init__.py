"""Model families by the name that checkpoints give them."""
from rlx.models.families import llama
from rlx.models.families import mistral
from rlx.models.families import phi3
from rlx.models.families import qwen2
from rlx.models.families import qwen3

# config.json's model_type and GGUF's general.architecture.
FAMILIES = {"llama": llama, "mistral": mistral, "phi3": phi3, "qwen2": qwen2,
            "qwen3": qwen3}


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
