"""docs/library.md: its examples run; and the public functions compile once per process."""
import contextlib
import pathlib

import jax
import numpy as np
import pytest

import rlx
from rlx.io import hf, weights
from tests import test_readme, tiny

ROOT = pathlib.Path(__file__).parent.parent
CHAIN = str(ROOT / "configs/models/chain")


def test_the_examples_of_the_page_run_in_order(tmp_path, monkeypatch):
  (tmp_path / "configs").symlink_to(ROOT / "configs")
  monkeypatch.chdir(tmp_path)
  names = {}
  for block in test_readme.blocks(test_readme.TEXTS["docs/library.md"], "python"):
    exec(block, names)  # pylint: disable=exec-used
  assert (tmp_path / "runs/library/model/model.safetensors").exists()


@pytest.fixture
def compiled(caplog):
  """A list of the programs that are compiled within, whether they are on the disk or not.

  It starts with none in memory: other tests of the process may have compiled the same ones.
  """
  jax.clear_caches()
  @contextlib.contextmanager
  def listing():
    programs = []
    caplog.clear()
    with jax.log_compiles(): yield programs
    programs += [m for m in caplog.messages if m.startswith("Compiling")]
  return listing


def test_a_second_call_of_sample_compiles_nothing(compiled):
  sample = lambda seed, prompts: rlx.sample(CHAIN, prompts, per_prompt=2, max_tokens=7, seed=seed)
  with compiled() as first: one = sample(0, ["4M7m2M5=", "1M2="])
  with compiled() as second: two = sample(1, ["4M7=", "1M2m3="])  # Another longest prompt.
  assert first and not second and one != two


def test_a_second_call_of_score_compiles_nothing(compiled):
  """Nor does one with fewer texts and other lengths, which fit into the same shapes."""
  texts = [("4M7m2M5=", "7;2;5#5"), ("4M7=", "7#7"), ("4M7m1=", "7;1#1"), ("1M2=", "2#2")]
  with compiled() as first: scored = rlx.score(CHAIN, CHAIN, texts)
  with compiled() as second: again = rlx.score(CHAIN, CHAIN, [*texts[1:3], ("1M2m3M4m5=", "2#2")])
  assert first and not second
  assert [x["tokens"] for x in again[:2]] == [x["tokens"] for x in scored[1:3]]


def test_scores_do_not_depend_on_the_other_texts(tiny_files):
  """Two models, so that the rewards are no zeros."""
  other = str(tiny_files / "scored")
  config, params, tokenizer = weights.load(CHAIN)
  noise = jax.random.normal(jax.random.key(0), params["norm"]["scale_D"].shape)
  params = dict(params, norm=dict(scale_D=params["norm"]["scale_D"] + 0.3 * noise))
  hf.save(other, config, params, tokenizer)
  texts = [("4M7m2M5=", "7;2;5#5"), ("4M7=", "7#7"), ("4M7m1M3m9M2m8M4=", "7;1;3;3;3;3;4#4")]
  together = rlx.score(other, CHAIN, texts)
  for text, expected in zip(texts, together):
    alone, = rlx.score(other, CHAIN, [text])
    assert len(alone["rewards"]) == len(text[1]) + 1 and max(map(abs, alone["rewards"])) > 1e-3
    np.testing.assert_allclose(alone["rewards"], expected["rewards"], atol=1e-6)


def test_a_second_call_of_evaluate_compiles_nothing(compiled, tiny_files, tmp_path):
  """Although it builds the run, and what it is made of, anew."""
  evaluate = lambda: rlx.evaluate(tiny.config(tiny_files, compile_cache="off"),
                                  workdir=str(tmp_path))
  with compiled() as first: one = evaluate()
  with compiled() as second: two = evaluate()
  assert first and not second and one["greedy"] == two["greedy"]
