"""Whether verifiers pay their own references: of all data sets, and what `rlx data` says of it."""
import dataclasses
import json

import pytest

from rlx.core import records
from rlx.prompts import datasets
from rlx.tools import data, validate
from rlx.verifiers import errors, pool as pool_lib
from tests import tiny
from tests.prompts import test_datasets
from tests.verifiers import sandbox

# Prompts of the sets' fixtures without a reference solution; judge.chat, which segments asks, has
# none to state.
UNKNOWN = dict(code_contests=1, eurus_2_rl=2, livecodebench=2, segments=6)


def unsure(prompt, text):
  del prompt, text
  raise errors.Unknown("the server is down")


vars(unsure)["state"] = lambda prompt: prompt.answer


@pytest.fixture(scope="module")
def pool():
  pool = pool_lib.Pool(1, 30.0, functions=dict(unsure=unsure), options=dict(
      code=dict(unsafe=False, test_s=10, test_mb=512, total_s=60)))
  yield pool
  pool.close()


def read(name):
  """Prompts of a data set, those of all public sets that it reads."""
  rows = [lambda split, n=n: test_datasets.public_rows(n, split)
          for n, s in test_datasets.sets.list_sets().items() if s.dataset == name]
  reader = test_datasets.importlib.import_module(f"{datasets.__name__}.{name}")
  return [p for split in ("train", "test") for of_split in rows or [test_datasets.ROWS[name]]
          for p in reader.prompts(of_split(split), split) if isinstance(p, records.Prompt)]


@pytest.mark.parametrize("name", test_datasets.NAMES)
def test_every_data_set_pays_its_references(name, pool):
  if name == "reasoning_gym": pytest.importorskip("reasoning_gym")
  # Sets of several splits have two of each prompt, sets of several names more.
  prompts = [dataclasses.replace(p, id=str(i)) for i, p in enumerate(read(name))]
  if any("code" in p.verifier for p in prompts) and sandbox.is_left_out(): pytest.skip("no sandbox")
  found = validate.validate(prompts, pool)
  assert not found["unpaid"]
  assert sum(found["unknown"].values()) == 2 * UNKNOWN.get(name, 0)
  assert found["paid"] == len(prompts) - 2 * UNKNOWN.get(name, 0)


MATH = records.Prompt("m", "?", "3", "math_answer.boxed")


@pytest.mark.parametrize("changes, outcome", [
    (dict(), (1, 0, 0)), (dict(verifier="math_answer.final"), (1, 0, 0)),
    (dict(meta=dict(begun="<think>\n")), (1, 0, 0)),
    (dict(answer="}"), (0, 1, 0)),
    (dict(answer="3", answers=("3", r"}")), (0, 1, 0)),
    (dict(verifier="chain.answer", text="4M7m2M5=", answer="5"), (1, 0, 0)),
    (dict(verifier="chain.answer", text="4M7m2M5=", answer="10"), (0, 1, 0)),
    (dict(verifier="code_tests.passed", answer="", meta=dict(tests=["assert f(1)"])), (0, 0, 1)),
    (dict(verifier="format.boxed"), (0, 0, 1)), (dict(verifier=""), (0, 0, 1)),
    (dict(verifier="unsure"), (0, 0, 1))], ids=str)
def test_paid_not_paid_and_unknown(changes, outcome, pool):
  found = validate.validate([dataclasses.replace(MATH, **changes)], pool)
  assert (found["paid"], len(found["unpaid"]), sum(found["unknown"].values())) == outcome


def test_the_command_says_which(tmp_path, tiny_files, command):
  c = tiny.config(tiny_files, prompts__per_step=2, rollouts__oversample=1.0, eval__prompts=2)
  for split, x in (("train", "a"), ("test", "b")):
    (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(dict(question=q, answer=a)) + "\n"
        for q, a in ((f"{x}1", "1"), (f"{x}2", "}"), (f"{x}3", "2"))))
  c.prompts.source, c.prompts.max_tokens = f"{tmp_path}/{{split}}.jsonl", 8
  c.prompts.columns = dict(verifier="math_answer.boxed")
  with pytest.raises(ValueError, match="^validate: 2 references are not .* of 'jsonl/train/1'"):
    data.main(c, validate="true", json=str(tmp_path / "out.json"))
  found = json.loads((tmp_path / "out.json").read_text())
  assert [found[s]["references"]["paid"] for s in ("train", "eval")] == [2, 1]
  assert [u["completion"] for u in found["eval"]["references"]["unpaid"]] == [r"\boxed{}}"]
  done = command("data", "quickstart:smoke", "validate=true")
  assert done.returncode == 0 and "paid by their verifier" in done.stdout
  assert command("data", "quickstart:smoke", "validate=1").stderr.startswith("rlx: validate='1': ")
