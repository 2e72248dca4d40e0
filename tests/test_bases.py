"""Methods over bases: every paper's config on the toy and on language models."""
import importlib
import json
import pathlib
import re
import zlib

import jax
import pytest

import rlx
from rlx.grids import grid
from rlx import build, cli
from rlx.build import keys, load, methods as build_methods, own_data, prompts as build_prompts
from rlx.build import run as run_lib, validation
from rlx.configs import base
from rlx.core import options
from rlx.io import hf, tokenizer
from rlx.models import transformer
from rlx.prompts.datasets import gsm8k
from tests.io import test_chat
from tests.io.test_chat import bare  # pylint: disable=unused-import

ROOT = pathlib.Path(__file__).parent.parent
PAPERS = sorted(f"papers/{p.stem}" for p in (ROOT / "configs/papers").glob("[!_]*.py"))
# {config: checksum of where it differs from configs/base.py}; --record writes it.
GOLDEN = ROOT / "tests/configs.json"

# Rows of the published shape.
GSM8K = [dict(question=f"Ann has {i} pens and buys {j} more. How many has she?",
              answer=f"She has {i} + {j} = <<{i}+{j}={i + j}>>{i + j} pens.\n#### {i + j}",
              split=split) for i in range(12) for j, split in enumerate(["train"] * 12 + ["test"])]
DAPO = [dict(prompt=f"Find ${i}^2$.", solution=str(i * i), data_source="math_dapo",
             split=split) for i in range(9) for split in ("train[512:]", "train[:512]")]
MATH = [dict(problem=f"Find ${i}/2$.", solution=rf"It is $\boxed{{\frac{{{i}}}{{2}}}}$.",
             level="Level 1", type="Algebra", split="train") for i in range(9)]
MBPP = [dict(task_id=1, text="Write a function to add two numbers.",
             code="def add(a, b):\r\n  return a + b", test_list=["assert add(1, 2) == 3"],
             test_setup_code="", challenge_test_list=[], split="train")]
STEPS = {"capo", "clip_delta", "fapo", "gdpo", "pav", "pure", "reasonflux", "rsbs", "tp_grpo",
         "vsrm"}
TURNS = {"agent_rrm", "ftrl", "gigpo", "gra", "igpo", "oprl", "ppr_renorm", "prs"}
ANSWERS = {"crew", "dro_r3", "ema_std_filter", "jepo", "ll_rew", "nover", "rlpr", "verifree",
           "vr_cli"}
JUDGES = {"aurora", "clarity", "drlc", "factuality", "fin_prm", "hybrid_rewards", "med_prm",
          "orbit", "pairwise_rl", "prm_lessons", "search_gen_v", "soft_verdicts", "writing_zero"}
WORDS = {"co_reward", "r_horizon", "laser", "lanser"}
# Of a data set of their own, over a chat model.
DOMAINS = {"alpha_align", "high_precision_if", "if_decorator", "job_application", "kg_path",
           "moderation_rl", "quote_tuning", "raif", "reasoning_sql", "ref_align", "refine", "rlpt",
           "rlver", "rlvrr", "sem_cos", "sql_rlvr", "tool_rm", "toolrl"}
# Verdicts about stored completions, over a chat model.
JUDGING = {"cloud", "compass_verifier", "critic_rm", "gen_prm", "gen_rm", "irpo", "rlbff",
           "rm_nlhf", "rm_r1", "rrm", "spct", "think_prm", "think_rm", "trm"}
# What a base cannot do.
REFUSED = dict(
    toy={"synlogic", "tango"} | DOMAINS | JUDGING,
    domains=STEPS | TURNS | WORDS | ANSWERS | JUDGES | {
        "rar", "reward_agent", "rgr", "rise", "rrd", "rubric_anchors", "rubric_tail", "verpo"},
    gsm8k=STEPS | TURNS | WORDS | {"opd", "tinyv", "ver_pitfall", "verpo"},
    math=STEPS | TURNS | WORDS | {"rl_plus", "verpo"},
    code=STEPS | TURNS | WORDS | JUDGES | {"fmt_len", "reward_gaming", "rise"},
    tools=STEPS | ANSWERS | WORDS | JUDGES | DOMAINS | JUDGING | {
        "cooper", "dars", "dph", "dua_shepherd", "fover", "hrm", "igrpo", "opd", "prlcoder", "red",
        "rise", "rl_plus", "spark", "synlogic", "tango", "tinyv", "tree_rm", "ver_pitfall",
        "verpo"})


def differences(config):
  """The keys of a config that are not those of configs/base.py, and those that it lacks."""
  own, common = (options.flatten(c.to_dict()) for c in (config, base.get_config()))
  missing = object()
  return [(key, own.get(key, "missing")) for key in sorted(own.keys() | common.keys())
          if own.get(key, missing) != common.get(key, missing)]


def test_configs_without_a_base_are_what_they_were(request):
  names = [n for n in load._names() if n != "base" and not n.startswith("bases/")]
  found = {name: zlib.crc32(repr(differences(load.load_config(name))).encode())
           for name in [*names, *(f"{name}:smoke" for name in names)]}
  if request.config.getoption("record"):
    GOLDEN.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
  assert found == json.loads(GOLDEN.read_text())
  for name in PAPERS:
    # Not of the toy without a base.
    if name.removeprefix("papers/") in {"prime", "synlogic", "tango"} | DOMAINS | JUDGING: continue
    assert load.load_config(name, "toy").to_dict() == load.load_config(name).to_dict(), name


@pytest.mark.parametrize("over", base.bases())
def test_every_paper_s_config_is_accepted_or_refused_in_one_line(over):
  """Refusals name the bases that can, or the key that does not go with an environment.

  The methods of all are tried on one base of completions and on the one of dialogues; those of
  the toy in test_configs.
  """
  refused = {}
  for name in PAPERS:
    try:
      run_lib.check_cuts(c := load.load_config(name, over), 1)
      run_lib.check_cuts(load.load_config(f"{name}:smoke", over), 1)
      if over not in ("gsm8k", "tools"): continue
      keys.check(c)
      validation.check(c, build_methods.resolve_methods(c))
    except ValueError as e:
      refused[name.removeprefix("papers/")] = str(e)
  assert set(refused) == REFUSED[over]
  for key, line in refused.items():
    assert "\n" not in line and (f"papers/{key}: it needs a " in line or "environment.name" in line
                                 or key == "opd" and line.startswith("teacher.path=None: "))
    for able in base.bases():
      if f"base={able}" in line.partition("; write ")[2]: assert key not in REFUSED[able], line


def of_rows(config, rows, path):
  path.write_text("".join(json.dumps(row) + "\n" for row in rows))
  config.prompts.source = str(path)
  return config


@pytest.mark.parametrize("over, rows, answer, asks", [
    ("gsm8k", GSM8K, "0", r"\boxed{}"), ("math", DAPO, "0", r"\boxed{}"),
    ("math:hendrycks", MATH, r"\frac{0}{2}", r"\boxed{}"),
    ("code", MBPP, MBPP[0]["code"], "assert add(1, 2) == 3\n\nReply with one block")])
def test_rows_of_the_published_shape_are_read(over, rows, answer, asks, bare, tmp_path):
  c = of_rows(load.load_config("papers/grpo", over).copy_and_resolve_references(), rows,
              tmp_path / "rows.jsonl")
  bare.hf.chat_template = test_chat.TEMPLATES["qwen2_5"]
  texts = build_prompts.texts_of(c, tokenizer.wrap(bare.hf))
  prompt = next(iter(build_prompts.read_prompts(c, c.prompts.split)))
  assert prompt.answer == answer and asks in texts.prompt(prompt)
  if over == "gsm8k":
    assert gsm8k.demonstration(prompt, None).splitlines() == [
        "She has 0 + 0 = <<0+0=0>>0 pens.", r"\boxed{0}"]
  assert validation.find_toy_numbers(c, texts, [prompt]) == []


@pytest.fixture(scope="module")
def chat_model(bare, tmp_path_factory):
  """A tiny model of the shape of Qwen, with its chat template."""
  bare.hf.chat_template = test_chat.TEMPLATES["qwen2_5"]
  config = transformer.DecoderConfig(
      vocab_size=len(bare.vocabulary), d_model=16, n_layers=1, n_heads=2, n_kv_heads=1, head_dim=8,
      d_ff=32)
  folder = tmp_path_factory.mktemp("chat") / "model"
  hf.save(folder, config, transformer.init(config, jax.random.key(0)), tokenizer.wrap(bare.hf))
  return folder


def test_a_chat_model_is_built_over_gsm8k(chat_model, tmp_path, caplog):
  """Of methods that need a part of the base, and with a PRM."""
  for name in ("rl_plus", "rlpr", "prime"):
    c = load.load_config(f"papers/{name}", "gsm8k").copy_and_resolve_references()
    c.model.path, c.eval.prompts, c.eval.batch = str(chat_model), 4, 4
    build.build(of_rows(c, GSM8K, tmp_path / "rows.jsonl")).close()
  assert "base=gsm8k" not in caplog.text


def test_refined_completions_join_their_groups(chat_model, tmp_path):
  """Rows of `rlx write task=refine`."""
  c = load.load_config("papers/rgr:guided", "gsm8k").copy_and_resolve_references()
  c.model.path, c.eval.prompts, c.eval.batch = str(chat_model), 4, 4
  with c.unlocked():
    c.prompts.dataset, c.prompts.columns = "jsonl", dict(meta=("items", "demonstration"))
  rows = [dict(row, answer=row["answer"].split()[-1], items=[dict(name="is short", weight=1.0)],
               demonstration="It is 1.") for row in GSM8K]
  run = build.build(of_rows(c, rows, tmp_path / "rows.jsonl"))
  shown = {run.texts.tokenizer.decode(ids) for ids in run.collect.demonstrations.values()}
  assert len(run.collect.demonstrations) == 144 and all("It is 1." in text for text in shown)
  run.close()


def test_numbers_of_the_toy_are_said_before_anything_compiles(chat_model, tmp_path, caplog):
  c = load.load_config("papers/grpo").copy_and_resolve_references()
  c.prompts.options.size = 200
  c.model.path, c.prompts.max_tokens, c.eval.prompts = str(chat_model), 256, 4
  build.build(c).close()
  lines = [r.getMessage() for r in caplog.records if "base=gsm8k" in r.getMessage()]
  assert [line.partition("=")[0] for line in lines] == [
      "rollouts.max_tokens", "learner.optimizer.lr", "prompts.template.name", "eval.answer"]
  assert all("\n" not in line for line in lines)
  caplog.clear()
  c.lora.rank, c.rollouts.max_tokens = 4, 64
  c.prompts.template.name, c.eval.answer = "boxed", r"\\boxed\{(.*)\}"
  build.build(c).close()
  assert "base=gsm8k" not in caplog.text
  toy = load.load_config("papers/grpo").copy_and_resolve_references()
  toy.eval.prompts, toy.prompts.options.size = 4, 200
  build.build(toy).close()
  assert "base=gsm8k" not in caplog.text


def test_a_base_is_named_on_the_command_line_in_python_and_in_grids(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  seen = []
  monkeypatch.setattr("rlx.loops.rl.train",
                      lambda config, workdir: seen.append((config, workdir)) or {})
  monkeypatch.setattr("rlx.io.compile_cache.keep_compiled", lambda *_: None)
  cli.parse("train", "papers/grpo", "base=gsm8k", "model.path=here")[0]()
  cli.parse("train", f"--config={ROOT}/configs/papers/grpo.py", "--base=gsm8k",
            "--config.model.path=here")[0]()
  rlx.train("papers/grpo", base="gsm8k", model="here")
  cell = grid._cell(0, dict(arm="a", seed=0, config=str(ROOT / "configs/papers/grpo.py"),
                            base="gsm8k", **{"model.path": "here"}))
  grid.check(cell)
  seen.append((grid.make_config(cell), "runs/papers-grpo-gsm8k"))
  first = seen[0][0]
  assert first.rollouts.max_tokens == 1024 and first.model.path == "here"
  assert all(config.to_dict() == first.to_dict() for config, _ in seen)
  assert [workdir for _, workdir in seen] == ["runs/papers-grpo-gsm8k", "runs/grpo-gsm8k",
                                              "runs/papers-grpo-gsm8k", "runs/papers-grpo-gsm8k"]


@pytest.mark.parametrize("name, over, message", [
    ("papers/grpo", "gsmk", "base='gsmk': there are code, .*; did you mean gsm8k"),
    ("papers/grpo", "gsm8k:loar", "papers/grpo: argument 'loar' of the base: there are lora and"),
    ("smollm2", "gsm8k", "base='gsm8k': smollm2 is no method over a base"),
    ("papers/capo", "gsm8k", "papers/capo: it needs a checker of steps, which base=gsm8k does not "
     "have; write base=toy"),
    ("environments/debug", "tools", "environments/debug: it needs a dialogue with .* base=toy")])
def test_a_base_that_does_not_fit_is_refused(name, over, message):
  with pytest.raises(ValueError, match=message) as e: load.load_config(name, over)
  assert "\n" not in str(e.value)
  with pytest.raises(ValueError, match="only with the name of a config"):
    own_data.prepare(base.get_config(), None, None, None, None, None, None, {}, "gsm8k")


@pytest.mark.parametrize("name", base.bases())
def test_a_recipe_says_its_command_hardware_and_what_to_expect(name):
  """Or that it has not been run at that size; its commands are accepted."""
  text = " ".join(importlib.import_module(f"rlx.configs.bases.{name}").__doc__.split())
  commands = re.findall(rf"rlx train (papers/\w+ base={name}[\w:-]*(?: model\.path=hf:\S+)?)", text)
  assert commands and ("GPU with" in text or "CPU threads" in text)
  for command in commands: cli.parse("train", *command.split())
  assert "neither a time nor a figure to expect" in text or "one to two minutes" in text


def test_a_doctor_says_which_numbers_are_the_toy_s(chat_model, command, caplog):
  """In a line each, of a model that is no toy; of the toy none."""
  said = {}
  chat = [f"model.path={chat_model}", "prompts.max_tokens=256"]
  for name, words in (("chat", chat), ("toy", [])):
    caplog.clear()
    done = command("doctor", "papers/grpo:smoke", "prompts.options.size=64", *words)
    assert "answers fit the length" in done.stdout
    said[name] = [line.partition("=")[0] for line in caplog.messages if "; base=gsm8k, or" in line]
  assert said == dict(chat=["rollouts.max_tokens", "learner.optimizer.lr", "prompts.template.name",
                            "eval.answer"], toy=[])
