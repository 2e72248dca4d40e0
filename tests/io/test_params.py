"""Models of rlx: what orbax and meshes make of them, and what is read of their files."""
import json
import pathlib

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

from rlx.io import hf, params as params_io, refusals, tokenizer, weights
from rlx.learner import sharding

FIXTURES = pathlib.Path(__file__).parent.parent / "models" / "fixtures"


@pytest.fixture
def model(tmp_path):
  """The Qwen2 fixture as a model of rlx, with a tokenizer."""
  config, params = hf.load(FIXTURES / "qwen2")
  params_io.save(tmp_path / "m", config, params, hf=None)
  tokenizer.characters("".join(map(chr, range(48, 107)))).save(tmp_path / "m")
  return tmp_path / "m"


def test_orbax_restores_it_into_shardings(model):
  expected, mesh = hf.load(FIXTURES / "qwen2")[1], sharding.make_mesh(fsdp=4, data=2)
  restored = ocp.StandardCheckpointer().restore(model / "params", sharding.shapes(expected, mesh))
  jax.tree.map(np.testing.assert_array_equal, restored, expected)
  where = lambda tree: jax.tree.map(lambda x: x.sharding, tree)
  assert where(restored) == where(sharding.place(expected, mesh))
  assert len({str(s.index) for s in restored["layers"]["mlp"]["up_LDF"].addressable_shards}) == 4


def test_a_file_with_several_layers_is_read_once(tmp_path, monkeypatch):
  """As orbax writes a run's checkpoint; and it is let go after the last."""
  x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
  checkpointer = ocp.StandardCheckpointer()
  checkpointer.save(tmp_path / "c", {"a": {"b_LDF": x}, "step": 3})
  checkpointer.wait_until_finished()
  leaf, = params_io.leaves(tmp_path / "c").values()
  reads, one_line = [], params_io._one_line
  monkeypatch.setattr(params_io, "_one_line", lambda call: reads.append(1) or one_line(call))
  for layer in range(4): np.testing.assert_array_equal(leaf[(layer,)], x[layer])
  assert len(reads) == 1 and leaf._block is None
  for place in np.ndindex(4, 3): np.testing.assert_array_equal(leaf[place], x[place])
  assert len(reads) == 2 and leaf._block is None
  np.testing.assert_array_equal(leaf[(1, slice(0, 2))], x[1, :2])


def test_a_layer_is_read_once_for_all_its_places(tmp_path, monkeypatch):
  """Such as experts, of which a file has several."""
  x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
  params_io.write(tmp_path / "p", {"a.b_LEF": x}, {"a.b_LEF": x.shape}, np.float32)
  leaf, = params_io.leaves(tmp_path / "p").values()
  reads, one_line = [], params_io._one_line
  monkeypatch.setattr(params_io, "_one_line", lambda call: reads.append(1) or one_line(call))
  for place in np.ndindex(2, 3): np.testing.assert_array_equal(leaf[place], x[place])
  assert len(reads) == 2 and leaf._block is None


def test_files_are_of_one_layer_and_of_a_few_megabytes(tmp_path):
  shapes = {"layers.mlp.up_LDF": (2, 3000, 300), "embed.w_VD": (1000, 300), "norm.scale_D": (300,)}
  draw = np.random.default_rng(0)
  leaves = {path: draw.normal(size=shape).astype(np.float32) for path, shape in shapes.items()}
  params_io.write(tmp_path / "p", leaves, shapes, np.float32)
  for path, files in (("layers.mlp.up_LDF", 8), ("embed.w_VD", 2), ("norm.scale_D", 1)):
    parts = [f for f in (tmp_path / "p" / path).iterdir() if f.name != ".zarray"]
    assert len(parts) == files and max(f.stat().st_size for f in parts) <= 2**20
    np.testing.assert_array_equal(params_io.leaves(tmp_path / "p")[path], leaves[path])


@pytest.mark.parametrize("damage, message", [
    (lambda m: next(m.glob("params/layers.mlp.up_LDF/1.*")).unlink(), "up_LDF"),
    (lambda m: (m / "params" / "norm.scale_D" / ".zarray").unlink(), "norm.scale_D"),
    (lambda m: (m / "params" / "_METADATA").write_text('{"tree_metadata": 3}'),
     "_METADATA: this is no metadata of orbax"),
    (lambda m: edit(m / "config.json", intermediate_size=50),
     r"down_LFD has shape \(2, 48, 32\); the model's config.json makes it \(2, 50, 32\)"),
    (lambda m: edit(m / "config.json", tie_word_embeddings=False),
     r"head.w_DV has shape none; the model's config.json makes it \(32, 61\)"),
], ids=["part", "array", "tree", "size", "head"])
def test_damage_is_named(model, damage, message):
  """Above all, a part that is missing is no zeros."""
  damage(model)
  with pytest.raises(ValueError, match=message) as e: weights.load(model)
  assert refusals._is_raised_here(e.value) and "\n" not in str(e.value)


def edit(file, **changes):
  file.write_text(json.dumps(json.loads(file.read_text()) | changes))
