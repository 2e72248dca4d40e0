"""Terms and verdict on hand-made numbers; bytes of real trees and steps."""
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.learner import memory, sharding

GB = 10**9
HELD = {"policy + optimizer": 3.2 * GB, "PRM + optimizer": 3.2 * GB, "reference": .5 * GB}
STAGES = {"KV cache": 1.1 * GB, "activations of the policy update": 9.8 * GB,
          "activations of the PRM update": 6 * GB}
ADVICE = {"KV cache": "lower max_tokens", "activations of the policy update": "raise A",
          "activations of the PRM update": "raise B", "held": "use fsdp"}


def test_stages_take_turns():
  assert memory.need(HELD, STAGES) == pytest.approx(16.7 * GB)
  assert memory.need({}, {}) == 0


NEED = ("this run needs 16.7 GB: activations of the policy update 9.8 GB, "
        "policy + optimizer 3.2 GB, PRM + optimizer 3.2 GB, reference 0.5 GB; ")


@pytest.mark.parametrize("limit, message", [
    (17 * GB, None),
    # 6.9 are held: only the policy's 9.8 do not fit into the rest.
    (16 * GB, f"a device has 16.0 GB, {NEED}raise A"),
    # Nor do the PRM's 6, but the cache does.
    (12 * GB, f"a device has 12.0 GB, {NEED}raise A; raise B"),
    # No microbatch is small enough.
    (5 * GB, f"a device has 5.0 GB, {NEED}use fsdp"),
])
def test_verdict_names_what_is_large_and_what_to_change(limit, message):
  assert memory.refusal(HELD, STAGES, limit, ADVICE) == message


def test_table():
  assert memory.table({"a": 41e6, "b": 2 * GB}, {"c": GB}, 4 * GB, "estimated").splitlines() == [
      "memory per device, of 4.0 GB (estimated)",
      f"  {'b':36}    2.0 GB", f"  {'a':36}   41.0 MB", f"  {'c *':36}    1.0 GB",
      f"  {'at most':36}    3.0 GB  (* one at a time)"]
  assert memory.table({}, {}, None, "compiled").startswith("memory per device (compiled)\n")


def test_tree_bytes_are_per_device():
  tree = {"w_DF": np.zeros((8, 4), np.float32), "count": np.zeros(3, jnp.bfloat16)}
  assert memory.tree_bytes(tree) == 8 * 4 * 4 + 3 * 2
  placed = sharding.place(tree, sharding.make_mesh(fsdp=2, tensor=2))
  held = memory.tree_bytes(placed)
  assert held == 8 * 4 * 4 / 4 + 3 * 2
  assert held == sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(placed))


def test_stage_bytes():
  """Parameters of 100, a batch of 20, donated: 5 more come out, 50 in between."""
  donated = types.SimpleNamespace(argument_size_in_bytes=120, output_size_in_bytes=105,
                                  alias_size_in_bytes=100, temp_size_in_bytes=50)
  assert memory.stage_bytes(donated, 100) == 20 + 5 + 50


def test_stage_bytes_of_a_compiled_step():
  x_BD, w_DF = np.ones((64, 32), np.float32), np.ones((32, 128), np.float32)
  def step(w_DF, x_BD): return w_DF + x_BD.T @ jnp.sin(x_BD @ w_DF)
  compiled = jax.jit(step, donate_argnums=0).lower(w_DF, x_BD).compile()
  # The batch, and at least the one [64, 128] between the two products.
  needed = memory.stage_bytes(compiled.memory_analysis(), w_DF.nbytes)
  assert x_BD.nbytes + 64 * 128 * 4 <= needed <= x_BD.nbytes + 4 * 64 * 128 * 4
