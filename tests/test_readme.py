"""README and docs: their commands are accepted, what they name and link to exists."""
import json
import pathlib
import re
import runpy
import shlex
import sys

import numpy as np
import pytest

import rlx
from rlx import cli
from rlx.build import load
from rlx.core import fields, records, resolve
from rlx.loops import record
from rlx.stages import host_fields, model_fields

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
TEXTS = {str(p.relative_to(ROOT)): p.read_text() for p in sorted(PAGES)}
each = pytest.mark.parametrize("page", TEXTS)


def blocks(text, language=""):
  """Code blocks of a language; those without one hold commands."""
  return [block for name, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)
          if name == language]


# Commands of rlx in which nothing is left for the reader to fill in.
COMMANDS = sorted({command.strip() for text in TEXTS.values() for block in blocks(text)
                   for line in block.splitlines() for command in line.split(" && ")
                   if command.startswith(("python -m rlx.", "rlx "))
                   and not re.search(r"FOLDER|\$task", command) and not command.count('"') % 2})


def with_a_missing_file(command, workdir):
  """(module, arguments, what the message starts with): the command on a file that is not there."""
  words = shlex.split(re.sub(r"\$\([^)]*\)", "MODEL", command), comments=True)
  if words[0] == "rlx":  # rlx NAME ARGUMENT ... key=value ...
    name, module, first, words, dashes, config = words[1], "rlx", [words[1]], words[2:], "", ""
    while words and "=" not in words[0]: first.append(words.pop(0))
  else:                  # python -m MODULE --flag=value ...
    module, first, words, dashes, config = words[2], [], words[3:], "--", "--config."
    name = module.rpartition(".")[2]
  if name == "view": return module, [*first[:1], "/nowhere"], "rlx: "
  if name == "chat": return module, [name, "/nowhere", *words], "rlx: model.path='/nowhere' is mis"
  if name == "convert":
    words = [w for w in words if not re.match("-*(source|to|model)=", w)]
    return (module, [*first, *words, f"{dashes}source=/nowhere", f"{dashes}to={workdir}/m"],
            "rlx: source='/nowhere' is missing")
  # Where sft starts from a random model, the data are missing.
  is_fresh = name == "sft" and load.load_config(first[1]).model.path is None
  key, path = ("prompts.source", "nowhere") if is_fresh else ("model.path", "/nowhere")
  words = [w for w in words if not re.match(r"-*(workdir|(config\.)?model\.path)=", w)]
  if first[1:] and first[1].startswith("/tmp/"):  # The folder of a run.
    run_folder = workdir.with_name("of_a_run")
    record.record(load.load_config("quickstart"), run_folder)
    first[1] = str(run_folder)
  if name != "doctor": words.append(f"{dashes}workdir={workdir}")
  return module, [*first, *words, f"{config}{key}={path}"], f"rlx: {key}='{path}'"


@pytest.fixture
def run(monkeypatch, capsys):
  """Function (module, flags) -> (exit status, lines of stderr) of `python -m MODULE FLAG ...`."""
  def run_module(module, flags):
    monkeypatch.setattr(sys, "argv", [module, *flags])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended: runpy.run_module(module, run_name="__main__")
    return ended.value.code, capsys.readouterr().err.strip().splitlines()
  monkeypatch.chdir(ROOT)
  return run_module


def test_the_two_commands_come_first():
  assert blocks(TEXTS["README.md"])[0].splitlines() == [
      "python -m pip install -e . && python -m rlx.train "
      "--config=configs/quickstart.py --workdir=/tmp/rlx/quickstart",
      "python -m pip install -e '.[test]' && python -m pytest"]


def test_flags_and_configs_of_all_commands_are_accepted(run, tmp_path):
  """Each run ends because a file is missing, so the rest of its command was accepted."""
  names = set()
  for command in COMMANDS:
    if "mine:" in command: continue  # The reader's own module.
    module, flags, message = with_a_missing_file(command, tmp_path / "run")
    if module == "rlx": names.add(flags[0])
    status, lines = run(module, flags)
    assert status == 2 and lines[-1].startswith(message), (command, lines)
  assert names == set(cli.COMMANDS)


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


def test_the_extension_trains_from_outside_the_package(tmp_path, monkeypatch, command):
  """The module and the command of docs/architecture.md, in an empty folder."""
  page = TEXTS["docs/architecture.md"]
  (tmp_path / "mine.py").write_text(blocks(page, "python")[0])
  _, *words = shlex.split(next(c for c in COMMANDS if "mine:" in c).replace(
      "quickstart", "quickstart:smoke"))
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "path", sys.path[:])  # The command adds the current folder.
  done = command(*words, "workdir=run", "steps=1", "prompts.options.size=256")
  del sys.modules["mine"]
  assert done.returncode == 0, done.stderr
  step = json.loads((tmp_path / "run/metrics.jsonl").read_text())
  assert np.isfinite(step["rewards/outcome"])


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
    for f in fields.table(records, host_fields, model_fields).values():
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
