"""Model families by the model_type of their checkpoints."""
from rlx.models.families import gemma, llama, olmo2, phi3, qwen, smollm3

# Of two families that can hold a decoder, the first writes it; see `io.hf.family_of`.
FAMILIES = {family.model_type: family for family in (
    llama.LLAMA, llama.MISTRAL, qwen.QWEN2, qwen.QWEN3, smollm3.SMOLLM3, gemma.GEMMA2,
    gemma.GEMMA3_TEXT, olmo2.OLMO2, phi3.PHI3, llama.MIXTRAL, qwen.QWEN3_MOE)}


def find_family(model_type, key="model_type"):
  """The family of that name.

  Args:
    model_type: from a checkpoint, of any type.
    key: where the checkpoint has it, for messages.
  Raises:
    ValueError: there is none.
  """
  if not isinstance(model_type, str) or model_type not in FAMILIES:
    raise ValueError(f"{key}={model_type!r:.60} is not supported; {sorted(FAMILIES)} are.")
  return FAMILIES[model_type]
