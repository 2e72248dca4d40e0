"""Random legal config.json files against transformers; config_sweep.py makes them.

  python -m pytest tests/io/test_config_sweep.py -n 0 --soak --record   # writes docs/models.md
"""
import collections
import dataclasses
import pathlib
import re

import pytest

from rlx.models import families
from tests.io import config_sweep

DOCS = pathlib.Path(__file__).parent.parent.parent / "docs" / "models.md"
# Files of each family: of an ordinary run, and of one with --soak.
SAMPLE, ALL = 2, 40
_counted = {}


@pytest.mark.parametrize("family", families.FAMILIES)
def test_draws_have_every_field_of_transformers(family):
  import transformers
  fields = {f.name for f in dataclasses.fields(transformers.AutoConfig.for_model(family))}
  drawn = {key for seed in range(300) for key in config_sweep.draw(family, seed)}
  assert fields <= drawn


@pytest.mark.parametrize("family", families.FAMILIES)
def test_as_transformers_or_refused(family, tmp_path, request):
  pytest.importorskip("torch")
  wanted = ALL if request.config.getoption("soak") else SAMPLE
  refused, compared = collections.Counter(), 0
  for seed in range(10 * wanted):
    if compared + sum(refused.values()) == wanted: break
    file, path = config_sweep.draw(family, seed), tmp_path / str(seed)
    try:
      model = config_sweep.checkpoint(file, path, seed)
    except config_sweep.Illegal:
      continue
    differences, why = config_sweep.compare(file, path, model)
    assert not differences, (seed, file)
    if why is None:
      compared += 1
    else:
      assert "\n" not in why
      refused[re.match(r"[^=]*?(\w+)=", why)[1]] += 1
  assert compared + sum(refused.values()) == wanted
  assert sum(refused.values()) <= max(1, wanted // 5)
  _counted[family] = compared, refused


def test_a_difference_is_found(tmp_path, monkeypatch):
  """The comparison means something: with another theta all of it fails."""
  pytest.importorskip("torch")
  file = dict(model_type="llama", vocab_size=61, hidden_size=32, intermediate_size=24,
              num_hidden_layers=2, num_attention_heads=4, rms_norm_eps=1e-5, rope_theta=1e4)
  model = config_sweep.checkpoint(file, tmp_path / "model", 0)
  load = config_sweep.hf.load
  assert config_sweep.compare(file, tmp_path / "model", model) == ({}, None)
  def altered(path):
    config, params = load(path)
    return dataclasses.replace(config, rope_theta=2e4), params
  monkeypatch.setattr(config_sweep.hf, "load", altered)
  monkeypatch.setattr(config_sweep.hf, "hf_of", lambda config, hf=None: file | dict(
      rope_theta=3e4, architectures=["LlamaForCausalLM"]))
  differences, why = config_sweep.compare(file, tmp_path / "model", model)
  assert why is None
  assert set(differences) == {"logits", "decode", "saved", "config", "as_rlx"}
  assert differences["config"] == ["architectures", "rope_theta"]


def test_table(request):
  """docs/models.md has a row of each family; with --soak --record it is written."""
  before, table, after = re.fullmatch(
      r"(.*<!-- sweep -->\n)(.*?)(<!-- end sweep -->.*)", DOCS.read_text(), re.DOTALL).groups()
  if request.config.getoption("record") and request.config.getoption("soak"):
    rows = [["model_type", "as transformers", "refused", "for their"], ["---"] * 4]
    for family, (compared, refused) in _counted.items():
      reasons = ", ".join(f"`{key}`" + f" ({n})" * (n > 1) for key, n in refused.most_common())
      rows.append([family, str(compared), str(sum(refused.values())), reasons])
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    DOCS.write_text(before + table + after)
  rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
  assert [row[0] for row in rows] == list(families.FAMILIES)
  assert all(int(row[1]) + int(row[2]) == ALL and int(row[2]) <= ALL / 5 for row in rows)
