"""README and docs: examples run, what they name and link to exists; test_pages.py runs commands."""
import json
import pathlib
import re
import runpy
import shlex
import sys

import numpy as np
import pytest

import rlx
from rlx import build
from rlx.build import own_data
from rlx.core import fields, records, resolve
from rlx.stages import host_fields, model_fields, scorer_fields

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
TEXTS = {str(p.relative_to(ROOT)): p.read_text() for p in sorted(PAGES)}
each = pytest.mark.parametrize("page", TEXTS)


def blocks(text, language=""):
  """Code blocks of a language; those without one hold commands."""
  return [block for name, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)
          if name == language]


def test_the_two_commands_come_first():
  assert blocks(TEXTS["README.md"])[0].splitlines() == [
      "python -m pip install -e . && python -m rlx.train "
      "--config=configs/quickstart.py --workdir=/tmp/rlx/quickstart",
      "python -m pip install -e '.[test]' && python -m pytest"]


@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_python_examples_run(page, tmp_path, monkeypatch):
  """As printed, but with the small form of the config, up to the first evaluation."""
  train = rlx.train
  monkeypatch.setattr(rlx, "train", lambda config, workdir, **options: train(
      f"{config}:smoke", workdir=tmp_path / workdir, **options | {"steps": 0}))
  monkeypatch.chdir(ROOT)
  names = {}
  for block in blocks(TEXTS[page], "python"): exec(block, names)  # pylint: disable=exec-used
  assert (tmp_path / "runs/mine/summary.json").exists()


@pytest.mark.parametrize("i, name", [(0, "mine"), (1, "keeps")])
def test_the_extension_trains_from_outside_the_package(tmp_path, monkeypatch, command, i, name):
  """The modules and the commands of docs/architecture.md, in an empty folder."""
  page = TEXTS["docs/architecture.md"]
  (tmp_path / f"{name}.py").write_text(blocks(page, "python")[i])
  _, *words = shlex.split(next(b for b in blocks(page) if f"{name}:" in b).replace(
      "quickstart", "quickstart:smoke"))
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "path", sys.path[:])  # The command adds the current folder.
  done = command(*words, "workdir=run", "steps=1", "prompts.options.size=256")
  del sys.modules[name]
  assert done.returncode == 0, done.stderr
  step = json.loads((tmp_path / "run/metrics.jsonl").read_text())
  assert np.isfinite(step["rewards/outcome"])


def test_an_environment_of_one_s_own_trains_in_an_empty_folder(tmp_path, monkeypatch, command):
  """The files and commands of docs/environments.md; rows from Python need no verifier either."""
  page = TEXTS["docs/environments.md"]
  files = {name: text for text in blocks(page, "python")
           if (name := text.partition(":")[0].removeprefix('"""')).endswith(".py")}
  assert list(files) == ["mine.py", "rows.py", "guess.py"]
  for name, text in files.items(): (tmp_path / name).write_text(text)
  first, second = next(b for b in blocks(page) if "guess.py" in b).splitlines()
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "path", sys.path[:])  # The command adds the current folder.
  runpy.run_path(first.removeprefix("python "))
  done = command(*shlex.split(second.replace("guess.py", "guess.py:smoke"))[1:], "steps=1")
  assert done.returncode == 0, done.stderr
  step = json.loads((tmp_path / "guess/metrics.jsonl").read_text())
  assert step["environment/failed"] == 0 and 0 <= step["rewards/outcome"] <= 1
  texts = [json.loads(line)["completion"] for line in (tmp_path / "guess/completions.jsonl").open()]
  assert any({"M", "m"} & set(text) for text in texts)  # Hints that the policy has read.
  rows = [dict(prompt=f"{i}=", answer="4") for i in range(30)]
  config, _ = own_data.prepare("guess.py:smoke", rows, *[None] * 4, "other", {})
  build.build(config).close()
  del sys.modules["mine"]


@each
def test_links_lead_to_files_and_headings(page):
  for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
    if re.match(r"https?:", target): continue
    name, _, heading = target.partition("#")
    path = (ROOT / page).parent / name if name else ROOT / page
    assert path.exists(), target
    if heading:
      titles = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
      assert heading in [re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles]


@each
def test_files_that_are_named_exist(page):
  for name in re.findall(r"`((?:rlx|configs|tests|experiments|colab|docs)/[\w./]+?)`", TEXTS[page]):
    assert (ROOT / name).exists(), name


def test_methods_that_are_named_exist():
  """The tables of docs/methods.md: `module.function` below one of the stages."""
  text = TEXTS["docs/methods.md"]
  stages = ("rewards", "advantages", "losses", "rollouts")
  modules = {p.stem: s for s in stages for p in (ROOT / "rlx" / s).glob("[a-z]*.py")}
  named = set(re.findall(r"`((?:%s)\.\w+)`" % "|".join(modules), text))
  assert len(named) > 50
  for name in named - set(re.findall(r"^\| `([\w.]+)`", text, re.M)):
    assert any(callable(_function(stage, name)) for stage in stages), name


def _function(stage, name):
  try:
    return resolve.lookup(stage, name)
  except ValueError:
    return None


def fields_page():
  """docs/fields.md: every field that rlx declares, by where it is computed."""
  stages = dict(given="Given by the rollouts and the verifiers",
                host="Computed on the host, from texts and token ids",
                model="Computed by forward passes, on devices",
                later="Set by later stages: rewards, advantages, the update")
  page = ["# Fields", "", "The columns of a batch, which rewards, estimators and losses read "
          "by the names of their arguments.", "A name ends in its axes ([glossary](glossary.md)); "
          "`outcome_PG` is `outcome_B` by prompt. A value without axes is",
          "an intermediate result that other producers read. `python -m pytest -k fields "
          "tests/test_readme.py --record`", "writes this page from the declarations "
          "(`rlx/core/fields.py`).", ""]
  for stage, title in stages.items():
    page += [f"## {title}", "", "| field | axes | dtype | meaning | config keys | producer |",
             "| --- | --- | --- | --- | --- | --- |"]
    for f in (*fields.table(records, host_fields, model_fields).values(),
              *fields.table(scorer_fields).values()):
      if f.where != stage: continue
      keys = ", ".join(f"`{key}`" for key in dict.fromkeys([*f.needs, *f.options.values()]))
      module = f.fn and f.fn.__module__.removeprefix("rlx.")
      producer = f"`{module}`, from {', '.join(f.reads)}" if f.fn else ""
      dtype = "" if f.dtype is None else np.dtype(f.dtype).name
      page.append(f"| `{f.name}` | {' '.join(f.axes)} | {dtype} | {f.doc} | {keys} | {producer} |")
    page.append("")
  return "\n".join(page)


def test_the_page_of_fields_is_up_to_date(request):
  path = ROOT / "docs/fields.md"
  if request.config.getoption("--record"): path.write_text(fields_page())
  assert path.read_text() == fields_page(), "run this test with --record"
