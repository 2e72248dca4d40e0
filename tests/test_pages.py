"""Every command of the pages runs, in their order and with the files that they speak of.

Each is given as it is printed; then the sizes of its config are made tiny. Names of models and data
of the hub are those of a hub on loopback. What cannot run here is listed with the reason.
"""
import importlib.util
import io
import json
import pathlib
import re
import runpy
import shlex
import shutil
import sys
import types

import pytest

from rlx import build, cli
from rlx.build import load, own_data
from rlx.io import curves
from tests import test_bases, test_convert, test_readme, tiny
from tests.grids import test_plots
from tests.io import hub_stub
from tests.io.test_chat import bare  # pylint: disable=unused-import
from tests.test_bases import chat_model  # pylint: disable=unused-import

ROOT = pathlib.Path(__file__).parent.parent
# Why commands that begin so do not run.
CANNOT = {
    r"python -m pip |git clone |curl -|~/.local/bin/uv |source |cd ": "changes the machine",
    r"gcloud ": "needs a TPU VM",
    r"([A-Z_0-9]+=\S* )*python -m pytest|bash .ci/run": "runs the tests",
    r"rlx preflight .* target=": "needs the compiler of TPUs, as tests/test_targets.py does",
    r"python -m experiments.bench.graders": "takes minutes; tests/experiments/bench has its parts",
    r"vllm |python -m sglang|curl http": "needs vLLM or SGLang, and a GPU",
    r"rlx convert .*to=hf:": "writes to the hub; tests/test_publish.py does with a stub of it",
    r"rlx evaluate .*suite=": "reads benchmarks of the hub; tests/test_suites.py runs it",
    r"rlx evaluate judge=judge": "asks an endpoint; tests/test_measuring.py does",
    r"rlx write ": "asks an endpoint; tests/test_write.py does",
    r"python -m experiments.(scorers.held_out_pairs|judging.verdicts$)": "takes minutes",
    r"python -m experiments.claims": "takes minutes; tests/experiments/claims has its parts",
    r"rlx train quickstart prompts.mixture": "reads rows of its own; tests/test_mixture.py runs it",
    r"rlx train quickstart .*(mine|keeps):|python rows.py|rlx train guess.py":
        "reads files of its page; tests/test_readme.py runs it in an empty folder"}
# What the reader fills in, or what is elsewhere here.
FILLED = {r"\$\(ls [^)]*\)|\bWHEEL\b|[\w.-]+\.whl|(?<=model.path=)FOLDER": "model",
          r"models/llama-70b": "configs/models/chain", r"(?<=evaluate )FOLDER": "rlx/quickstart",
          r"FOLDER/": "dialogues/", r"RUN_A RUN_B": "rlx/quickstart rlx/dpo",
          r"\bRUN\b": "runs/lora", r"/tmp/rlx": "rlx",
          r"\bDIR\b": "runs/dir", r"^(\w+=\S+|timeout -s TERM \d+) ": "", r" \.\.\.$": ""}
GRIDS = "runs/compare", "runs/ablations", "runs/turns-search", "runs/GRID"


def commands(text):
  """The commands of a page's blocks; of a loop those of its first turn."""
  out = [""]
  for block in test_readme.blocks(text):
    block = re.sub(r"\\\n\s*", "", block)
    block = re.sub(r"(?s)for (\w+) in (\S+)[^;]*; do\s(.*?);?\s*done",
                   lambda m: m[3].replace(f"${m[1]}", m[2]), block)
    # Quoted texts, comments, and what ends a command.
    for part in re.finditer(r"""("[^"]*"|'[^']*')|[ \t]+#[^\n]*|(&&|\n)|.""", block):
      if part[2]: out.append("")
      elif part[1] or not part[0].lstrip().startswith("#"): out[-1] += part[0]
  return [command.strip() for command in out if command.strip()]


COMMANDS = {page: found for page, text in test_readme.TEXTS.items() if (found := commands(text))}


def find_reason(command):
  return next((why for start, why in CANNOT.items() if re.match(start, command)), None)


def test_every_command_runs_or_is_listed_with_its_reason():
  listed = {start: 0 for start in CANNOT}
  for command in {c for found in COMMANDS.values() for c in found}:
    starts = [start for start in CANNOT if re.match(start, command)]
    for start in starts: listed[start] += 1
    assert starts or re.search(r"(^|\d |=\S+ )(rlx|python -m|python -c) ", command), command
  assert all(listed.values()), listed
  labels = re.findall(r"(?m)^```(\w+)$", "".join(test_readme.TEXTS.values()))
  assert set(labels) == {"python", "json", "text"}  # No command stands in a block with another one.
  run = {c.split()[1] for found in COMMANDS.values() for c in found
         if c.startswith("rlx ") and not find_reason(c)}
  assert run == set(cli.COMMANDS) - {"write"}


def shrink(c):
  """The config at a tiny size; one of reasoning-gym, which may not be installed, is of the toy."""
  with c.unlocked():
    c.steps = 2 if c.steps == 468 else 1  # The guide continues a run.
    rows = 4 if c.mesh.data == 1 else 8  # Of which each device of the tests has one.
    c.prompts.per_step, c.rollouts.per_prompt, c.rollouts.oversample = rows, 2, 1.0
    c.rollouts.max_draws, c.rollouts.fill = 1, "failed"
    c.rollouts.chunk = c.rollouts.bucket = 8
    if c.rollouts.max_tokens > 32 and c.environment.name is None: c.rollouts.max_tokens = 8
    for name in ("learner", "prm", "value"): c[name].microbatches = c[name].minibatches = 1
    c.eval.prompts, c.eval.batch, c.eval.final_samples, c.eval.every = 4, rows, 1, 0
    c.eval.samples = min(c.eval.samples, 2)
    for part in c.eval.sets.values():
      part.update({k: x for k, x in dict(prompts=4, samples=2, max_tokens=8).items() if k in part})
    c.train_scorer.prompts, c.sft.steps, c.sft.batch = 8, 1, 8
    for judge in c.verifier.judges.values():
      if "online" not in judge: continue
      judge.update(max_tokens=8, concurrent=4)
      judge.online.replies, c.verifier.max_error_rate = 2, 1.0  # A random model writes no verdict.
    c.learner.pack, c.verifier.workers = False, min(c.verifier.workers, 1)
    if "size" in c.prompts.options: c.prompts.options.size = 128
    if str(c.prompts.source).startswith("gym:"):
      toy = shrink(load.load_config("quickstart"))
      c.model.path, c.prompts, c.rollouts = toy.model.path, toy.prompts, toy.rollouts
  return c


@pytest.fixture(scope="module")
def folder(tmp_path_factory, chat_model):
  """A folder with what the pages speak of: a model, rows, finished cells of grids, adapters."""
  folder = tmp_path_factory.mktemp("pages")
  (folder / "configs").symlink_to(ROOT / "configs")
  # A copy: some commands write a record there.
  shutil.copytree(ROOT / "experiments", folder / "experiments",
                  ignore=shutil.ignore_patterns("__pycache__"))
  (folder / "model").symlink_to(chat_model)
  write = lambda name, rows: (folder / name).write_text("".join(json.dumps(r) + "\n" for r in rows))
  for name in ("rows.jsonl", "other.jsonl"): write(name, test_bases.GSM8K)
  write("pairs.jsonl", json.loads("[%s]" % next(
      b for b in test_readme.blocks(test_readme.TEXTS["docs/runs.md"], "json"))))
  write("judged.jsonl", [dict(question=f"{i} + 1?", completion=str(i + j), verdict=float(j == 1))
                         for i in range(24) for j in (0, 1)])
  (folder / "dialogues").mkdir()
  for split in ("train", "test"):
    write(f"dialogues/{split}.jsonl", [dict(messages=[
        dict(role="user", content=f"{split} {i}"), dict(role="assistant", content=str(i))])
                                       for i in range(12)])
  write("dialogues/aime.jsonl", [dict(question=f"{i}?", answer=i, split="test") for i in range(4)])
  (folder / "compare.py").write_text(next(
      b for b in test_readme.blocks(test_readme.TEXTS["README.md"], "python") if "def grid" in b))
  (folder / "my_config.py").write_text(
      "from rlx.configs import base\ndef get_config(arg=''):\n  c = base.get_config()\n"
      "  c.model.path, c.prompts.dataset, c.prompts.max_tokens = 'model', 'jsonl', 512\n"
      "  c.prompts.template.name = 'chat'\n  return c\n")
  for grid in GRIDS:
    for i, (arm, seed) in enumerate([(a, s) for a in ("dense", "outcome") for s in (0, 1)]):
      test_plots.cell(folder / grid, arm, seed, [0.1 * i, 0.9], i)
  for path in folder.glob("runs/*/*/metrics.jsonl"):
    text = path.read_text()
    path.write_text(text.replace('"eval/sampled"', '"eval/greedy": 0.5, "eval/sampled"'))
  test_convert.run_of(folder / "runs/lora", ROOT / "configs/models/chain", lora__rank=2)
  return folder


@pytest.fixture(scope="module")
def execute(folder):
  """Function that runs a command in the folder, unless it has been run."""
  done = set()
  with pytest.MonkeyPatch.context() as patch, hub_stub.serve({
      f"Qwen/Qwen2.5-{size}-Instruct": {hub_stub.COMMITS["main"]: {
          p.name: p.read_bytes() for p in (folder / "model").iterdir()}}
      for size in ("0.5B", "1.5B")}) as server:
    hub_stub.use(server, folder / "hub", patch)
    rows = {"openai/gsm8k": test_bases.GSM8K, "open-r1/DAPO-Math-17k-Processed": test_bases.DAPO,
            "agentica-org/DeepScaleR-Preview-Dataset": [
                dict(problem=row["prompt"], answer=row["solution"], solution="", split=row["split"])
                for row in test_bases.DAPO]}
    patch.setitem(sys.modules, "datasets", types.SimpleNamespace(
        load_dataset=lambda name, config, split, revision: [
            row for row in rows[name] if row["split"] == split]))
    build_, override, prepare = build.build, cli._override, own_data.prepare
    patch.setattr(build, "build", lambda *args, **given: tiny.share_programs(
        build_(*args, **given)))
    patch.setattr(cli, "_override", lambda *args: shrink(override(*args)))
    patch.setattr(own_data, "prepare", lambda *args, **given: (
        lambda config, workdir: (shrink(config), workdir))(*prepare(*args, **given)))
    patch.setattr(curves, "draw_at_k", lambda *args: None)
    patch.setattr(sys, "path", sys.path[:])
    patch.chdir(folder)
    def execute(command):
      for pattern, value in FILLED.items(): command = re.sub(pattern, value, command)
      if command in done: return
      done.add(command)
      patch.setattr(sys, "stdin", io.StringIO("4M7=\n"))
      words = shlex.split(command)
      if words[:2] == ["python", "-c"]: return exec(words[2], {})  # pylint: disable=exec-used
      if words[0] == "python" and (name := words[2].removeprefix("rlx.")) in cli.COMMANDS:
        words = ["rlx", name, *words[3:]]
      if words[:2] == ["rlx", "grid"]: words += ["--dry-run", "--out", "runs/dry"]
      patch.setattr(sys, "argv", words if words[0] == "rlx" else words[2:])
      try:
        if words[0] == "rlx": cli.main()
        else: runpy.run_module(words[2], run_name="__main__")
      except SystemExit as e:
        # A doctor's status is 1 where the batch has faults, as that of a random model does.
        assert e.code in (None, 0) or (words[1] == "doctor" and e.code == 1), command
    execute(commands(test_readme.TEXTS["README.md"])[1])
    yield execute


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_run(page, execute):
  for command in COMMANDS[page]:
    if not find_reason(command): execute(command)


def test_the_python_of_the_guide_runs(execute):
  """After its commands; the part that needs PyTorch only where it is installed."""
  page, names = "docs/guide.md", {}
  for command in COMMANDS[page]:
    if not find_reason(command): execute(command)
  for block in test_readme.blocks(test_readme.TEXTS[page], "python"):
    if "AutoModel" in block and not importlib.util.find_spec("torch"): continue
    exec(block, names)  # pylint: disable=exec-used
  assert pathlib.Path("runs/python/summary.json").exists() and names["summary"]["steps"] == 1
