"""Several sources of prompts: what a source inherits, refusals, and runs that are resumed."""
import collections
import itertools
import json
import pathlib
import shlex
import shutil

import numpy as np
import pytest

from configs import quickstart
from rlx.grids import grid
from rlx import build, cli
from rlx.build import keys, load, own_data, prompts as build_prompts, sets, sft, validation
from rlx.core import records
from rlx.evals import accuracy
from rlx.io import metrics as io_metrics, tokenizer
from rlx.loops import record, rl, session, train_scorer
from rlx.prompts.datasets import chain as chain_data
from rlx.stages import host_state
from rlx.tools import data, doctor, evaluate
from rlx.verifiers import chain, format as format_lib
from tests import test_dialogue, test_resume, tiny
from tests.io import test_chat
from tests.io.test_chat import bare  # pylint: disable=unused-import
from tests.test_dialogue import files as episode_files  # pylint: disable=unused-import

ROOT = pathlib.Path(__file__).parent.parent
ALPHABET = "0123456789abcdefghMm= \n"
CHAIN = dict(source="chain", dataset="chain", options=dict(size=60, n_min=1, n_max=1))


def write_rows(path, **splits):
  """A file of questions: {split: texts}."""
  path.write_text("".join(json.dumps(dict(question=q, answer="7", split=split)) + "\n"
                          for split, texts in splits.items() for q in texts))
  return str(path)


def load_prompts(c, tokens=tokenizer.characters(ALPHABET), splits=("train", "eval")):
  """(texts, training prompts, held-out prompts) of a config."""
  keys.check(c)
  texts = build_prompts.texts_of(c, tokens)
  return texts, *build_prompts.load_prompts(c, texts, splits)


def config_of(folder, mixture, **changes):
  return tiny.config(folder, prompts__mixture=mixture, **changes)


def count(prompts):
  return dict(collections.Counter(p.source for p in prompts))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  """A model that reads chains and letters, and three small files of letters."""
  folder = tmp_path_factory.mktemp("mixture")
  tiny.write(folder, train=20, alphabet=ALPHABET)  # a00 .. a19, held out b00 .. b07
  write_rows(folder / "c.jsonl", train=[f"c{i}" for i in range(9)], test=["d0", "d1", "d2"])
  write_rows(folder / "leaks.jsonl", train=["c0", " c0", "b00", "e0", "e1"], test=["d1", "f0"])
  return folder


def test_a_source_has_the_keys_of_prompts_but_not_what_belongs_to_another_source():
  c = quickstart.get_config()
  c.prompts.limit, c.prompts.columns = 99, dict(x="y")
  c.prompts.template = dict(name="chat", system="s")
  c.prompts.mixture = dict(
      longer=dict(options=dict(n_max=9), weight=2.0, template=dict(system="t"), limit=None),
      file=dict(source="x.jsonl", dataset="jsonl", columns=dict(answer="a"), eval_split="dev",
                template=dict(name="plain"), split="all"))
  parts = build_prompts.list_sources(c)
  longer, file = (parts[name].prompts for name in ("longer", "file"))
  assert list(parts) == ["file", "longer"] and not longer.mixture
  assert longer.options.to_dict() == dict(size=20000, n_min=5, n_max=9, ops="Mm")
  assert longer.template.to_dict() == dict(name="chat", system="t") and longer.limit is None
  assert longer.columns.to_dict() == dict(x="y") and longer.source == longer.dataset == "chain"
  assert file.columns.to_dict() == dict(answer="a") and not file.options and file.limit == 99
  assert file.template.to_dict() == dict(name="plain")
  assert [(p.prompts.split, p.eval.split) for p in parts.values()] == [
      ("all", "dev"), ("train", "test")]
  assert list(build_prompts.list_sources(quickstart.get_config())) == [""]


def test_a_prompt_names_its_source_and_ids_are_unique(files):
  same = dict(source=str(files / "c.jsonl"), columns=dict(verifier="format.ascii_share"))
  c = config_of(files, dict(one=same, two=same | dict(columns=dict(verifier="chain.answer"))))
  with pytest.raises(ValueError, match="prompts.mixture.two: no held-out prompts are left of 3"):
    load_prompts(c)
  c.prompts.mixture.two.update(template=dict(name="few_shot", examples=(), question="h", answer=""))
  texts, train, held_out = load_prompts(c)
  assert count(train) == dict(one=9, two=9) and count(held_out) == dict(one=3, two=3)
  assert len({p.id for p in train + held_out}) == 24 and train[0].id == "one/jsonl/train/0"
  assert {p.source: p.verifier for p in train} == dict(
      one="format.ascii_share", two="chain.answer")
  assert [texts.prompt(p) for p in (train[0], train[9])] == ["c0", "hc0"]
  assert texts.prompt(records.Prompt(id="", text="c0")) == "c0"  # Of no source.


def test_variables_of_the_chat_template_differ_by_source(bare, files):
  bare.hf.chat_template = test_chat.VARIABLES
  own = dict(source=str(files / "c.jsonl"), columns=dict(verifier="chain.answer"))
  c = config_of(files, dict(
      fast=own | dict(template=dict(enable_thinking=False), split="test"), slow=own),
                prompts__template=dict(name="chat"), prompts__max_tokens=99)
  texts, train, _ = load_prompts(c, bare, splits=["train"])
  read = {p.source: texts.prompt(p) for p in train}
  assert read == dict(fast="user: d2\nassistant: <think></think>", slow="user: c8\nassistant: ")
  assert build_prompts.prompt_lengths(c, texts) == [len(texts.prompt_ids(p)) for p in train]
  c.prompts.mixture.fast.template.thinking = 1
  with pytest.raises(ValueError, match="^prompts.mixture.fast: prompts.template.thinking: no opti"):
    build_prompts.texts_of(c, bare)


def test_duplicates_and_leaks_between_sources_go(files, caplog):
  """Leaks are of any source's held-out prompts; white space does not matter."""
  mixture = dict(c=dict(source=str(files / "c.jsonl")), letters={},
                 leaks=dict(source=str(files / "leaks.jsonl")))
  for own in mixture.values(): own["columns"] = dict(verifier="format.ascii_share")
  _, train, held_out = load_prompts(config_of(files, mixture, eval__prompts=99))
  assert count(held_out) == dict(c=3, letters=8, leaks=1) and "leaks/jsonl/test/1" in {
      p.id for p in held_out}
  assert count(train) == dict(c=9, letters=20, leaks=2)
  assert {p.text for p in train if p.source == "leaks"} == {"e0", "e1"}
  assert "2 of 5 prompts of leaks dropped: duplicates" in caplog.text
  assert "1 of 3 prompts of leaks dropped: also in the evaluation split" in caplog.text


@pytest.mark.parametrize("weights, n, expected", [
    ((1, 3), 8, dict(c=2, letters=6)), ((1, 1), 8, dict(c=3, letters=5)),  # c has 3.
    ((1, 1), 5, dict(c=3, letters=2)), ((1, 9), 4, dict(letters=4)),
    ((None, None), 4, dict(c=1, letters=3)), ((None, None), 99, dict(c=3, letters=8))])
def test_held_out_prompts_follow_the_weights_as_far_as_there_are(files, weights, n, expected):
  mixture = dict(c=dict(source=str(files / "c.jsonl"), weight=weights[0]),
                 letters=dict(weight=weights[1]))
  mixture["c"]["columns"] = dict(verifier="format.ascii_share")
  _, _, held_out = load_prompts(config_of(files, mixture, eval__prompts=n), splits=["eval"])
  assert count(held_out) == expected


def test_a_source_without_held_out_prompts(files):
  own = dict(source=str(files / "c.jsonl"), columns=dict(verifier="chain.answer"))
  c = config_of(files, dict(c=own | dict(eval_split=""), letters={}))
  assert count(load_prompts(c)[2]) == dict(letters=8)
  c.prompts.mixture.letters.eval_split = "nowhere"
  with pytest.raises(ValueError, match="^prompts.mixture.letters: prompts.source='jsonl:.*nowhere"):
    load_prompts(c)
  for own in c.prompts.mixture.values(): own.eval_split = ""
  texts = build_prompts.texts_of(c, tokenizer.characters(ALPHABET))
  with pytest.raises(ValueError, match="eval.split='test' of prompts.* has no prompts"):
    build_prompts.load_and_check_prompts(c, 8, texts, ("train", "eval"))


def test_a_limit_is_of_its_source(files):
  c = config_of(files, dict(c=dict(source=str(files / "c.jsonl"), columns=dict(
      verifier="chain.answer")), letters=dict(limit=None)), prompts__limit=4)
  assert count(load_prompts(c)[1]) == dict(c=4, letters=20)


@pytest.mark.parametrize("mixture, message", [
    (dict(a=dict(sorce="x")), "prompts.mixture.a.sorce: no such key; did you mean prompts.mixture."
     "a.source? There are ['columns', 'dataset', 'eval_split', 'limit', 'options', 'source', "
     "'split', 'template', 'weight']."),
    (dict(a=dict(per_step=8)), "prompts.mixture.a.per_step: no such key; there are ['columns',"),
    (dict(a=5), "prompts.mixture.a=5: a section of keys."),
    ({"a-b": {}}, "prompts.mixture.a-b: another name for the source, of letters, digits and _,"),
    (dict(items=dict(weight=1)), "prompts.mixture.items: another name for the source"),
    ({"if": dict(weight=1)}, "prompts.mixture.if: another name for the source"),
    (dict(a=dict(weight=0)), "prompts.mixture.a.weight=0: a number from 1e-12 to 1e+12, or None."),
    (dict(a=dict(weight=-1.0)), "prompts.mixture.a.weight=-1.0: a number from"),
    (dict(a=dict(weight=float("nan"))), "prompts.mixture.a.weight=nan: a number from"),
    (dict(a=dict(weight="1")), "prompts.mixture.a.weight='1': a number from"),
    (dict(a=dict(limit=0)), "prompts.mixture.a.limit=0: a whole number from 1"),
    (dict(a=dict(weight=1.0), b={}), "prompts.mixture.b.weight is missing; give all sources a "
     "weight, or none, for the numbers of their prompts."),
    (dict(a=dict(options=dict(n=1))), "prompts.mixture.a: prompts.options.n: jsonl takes []."),
    (dict(a=dict(source="x")), "prompts.mixture.a.source='x': no such data set. By name"),
    (dict(a=dict(template=dict(name="boxd"))), "prompts.mixture.a: prompts.template.name='boxd': "),
    (dict(a=dict(columns=dict(verifier="judge.chat"))), "verifier.judge.url=None: judge.chat need"),
    (dict(a=dict(source="missing.jsonl")), "prompts.mixture.a: prompts.source='missing.jsonl': no"),
    (dict(a=dict(columns=dict(x="y"))), "prompts.mixture.a: prompts.columns.x: datasets.jsonl."),
    (dict(a=dict(dataset="chain")), "prompts.mixture.a: prompts.dataset='chain': it makes ques"),
    (dict(a=dict(limit=3, weight=2.0), b=dict(CHAIN, weight=1.0)), "prompts.mixture.a.weight=2: "
     "that is 8 different prompts of a draw of 12, and there are 3; lower it or prompts.per_step,"),
], ids=str)
def test_refusals_are_one_line(files, mixture, message):
  with pytest.raises(ValueError) as e: build.build(config_of(
      files, mixture, verifier__workers=1))
  assert str(e.value).startswith(message) and "\n" not in str(e.value)


def test_public_sets_by_name(files, command):
  """What a name stands for is filled in, what is given stays; a mixture is none of rows=NAME."""
  c = config_of(files, dict(a=dict(source="GSM8K", split="train[:9]"), b=dict(source="deepscaler"),
                            c=dict(source="math", eval_split="", columns=dict(answer="x"))))
  sets.fill(c)
  a, b, math = (part for part in build_prompts.list_sources(c).values())
  assert a.prompts.source == "hf:openai/gsm8k:main" and a.prompts.dataset == "gsm8k"
  assert (a.prompts.split, a.eval.split, not a.prompts.columns) == ("train[:9]", "test", True)
  assert (b.prompts.split, b.eval.split) == ("train[512:]", "train[:512]")
  assert (math.eval.split, math.prompts.columns.to_dict()) == ("", dict(answer="x"))
  c.prompts.mixture.a.source = "gsm9k"
  with pytest.raises(ValueError, match="^prompts.mixture.a.source='gsm9k': no such data set; did"):
    build.build(c)
  error = command("train", "quickstart:smoke", "rows=gsm8k", "prompts.mixture.a.weight=1").stderr
  assert error.startswith("rlx: prompts.mixture: rows and a reward of a call are for one source;")


def test_a_weight_may_be_a_whole_number_in_a_file(files):
  config = config_of(files, dict(a=dict(weight=1, template=dict(name="plain"))))
  changed = cli._override(config, {"prompts.mixture.a.weight": "0.5"})
  assert changed.prompts.mixture.to_dict() == dict(a=dict(weight=0.5, template=dict(name="plain")))


def test_rows_of_a_call_are_no_mixture(files, tmp_path):
  config = config_of(files, dict(a=dict(weight=1)))
  judge = lambda completions, **columns: [1.0] * len(completions)
  for rows, reward in (([dict(prompt="a")], None), (None, judge)):
    with pytest.raises(ValueError, match="^prompts.mixture: rows and a reward of a call are for"):
      own_data.prepare(config, rows, None, reward, None, None, None, {})
  with pytest.raises(ValueError, match="^prompts.mixture.a.wieght: no such key; did you mean prom"):
    own_data.prepare(config, None, None, None, None, None, None, {"prompts.mixture.a.wieght": 2})
  rows = [dict(prompt="a01", answer="7", verifier="math_answer.final")]
  other, _ = own_data.prepare(  # Of an evaluation.
      config, None, rows, None, None, None, str(tmp_path), {}, learns=False)
  assert not other.prompts.mixture and other.prompts.dataset == "_rows"
  changes = {"prompts.mixture.a.weight": 2, "prompts.mixture.b.options.n": 3}
  made, _ = own_data.prepare(config, None, None, None, None, None, None, changes)
  assert made.prompts.mixture.to_dict() == dict(a=dict(weight=2), b=dict(options=dict(n=3)))
  config = tiny.config(files)
  for key, value in changes.items(): grid._set(config, key, value)
  assert config.prompts.mixture == made.prompts.mixture


def test_a_mixture_on_the_command_line(files, tmp_path, monkeypatch, command):
  """As text, in a recorded config, and back from it."""
  made = []
  monkeypatch.setattr(rl, "train", lambda config, workdir: made.append(config))
  name = "prompts.mixture"
  cli.parse("train", "quickstart:smoke", f"workdir={tmp_path}", f"{name}.easy.options.n_max=5",
            f"{name}.easy.weight=0.7", f"{name}.mine.source=x.jsonl", f"{name}.mine.weight=1",
            f"{name}.mine.columns.question=q", f"{name}.mine.limit=5", f"{name}.mine.eval_split=",
            f"{name}.mine.template.name=chat", f"{name}.mine.template.enable_thinking=false")[0]()
  mixture = made[0].prompts.mixture.to_dict()
  assert mixture == dict(
      easy=dict(options=dict(n_max=5), weight=0.7),
      mine=dict(source="x.jsonl", weight=1.0, columns=dict(question="q"), limit=5, eval_split="",
                template=dict(name="chat", enable_thinking=False)))
  record.record(made[0], tmp_path)  # As the loop writes it.
  assert load.load_config(str(tmp_path)).prompts.mixture.to_dict() == mixture
  for word, message in (
      (f"{name}.a-b.weight=1", "prompts.mixture.a-b: another name for the source, of letters"),
      (f"{name}.a.wieght=1", "did you mean prompts.mixture.a.weight?"),
      (f"{name}.a=x", "prompts.mixture.a='x': a section of keys, such as prompts.mixture.a.source"),
      (f"{name}.a.weight=much", "could not convert string to float: 'much'")):
    error = command("train", "quickstart:smoke", word).stderr
    assert message in error and error.count("\n") == 1


def test_the_command_of_the_page_trains(tmp_path, command):
  """docs/data.md, "Mixtures", on chains of two operations."""
  page = (ROOT / "docs/data.md").read_text()
  text = page[page.index("## Mixtures"):].split("```")[1].replace("\\\n", "")
  for i, split in enumerate(("train", "test")):
    questions = [f"{2 * j + i}M{j}m{9 - j}=" for j in range(5)]
    (tmp_path / f"{split}.jsonl").write_text("".join(
        json.dumps(dict(question=q, answer=str(chain_data.solve(q)[-1]))) + "\n"
        for q in questions))
  _, *words = shlex.split(text.replace("FOLDER", str(tmp_path)).replace(
      "quickstart", "quickstart:smoke"))
  done = command(*words, f"workdir={tmp_path}/run", "steps=1")
  assert done.returncode == 0, done.stderr
  taken = json.loads((tmp_path / "run/checkpoints/1/host/metadata").read_text())["prompts"]["taken"]
  n = sum(taken.values())
  assert n >= 8 and abs(taken["mine"] - 0.3 * n) <= 0.5
  assert "greedy/mine" in done.stdout and "greedy/chains" in done.stdout


def test_a_run_from_before_there_were_mixtures_is_loaded(files, tmp_path):
  c = tiny.config(files)
  record.record(c, tmp_path)
  path = tmp_path / "config.json"
  old = json.loads(path.read_text())
  del old["prompts"]["mixture"]
  path.write_text(json.dumps(old))
  assert load.load_config(str(tmp_path)).to_dict() == c.to_dict()
  (tmp_path / "metrics.jsonl").touch()
  now = json.loads(json.dumps(c.to_dict(), default=list))
  assert session._baseline(str(tmp_path), now) == tmp_path  # The prompts are the same.


def test_questions_in_two_wordings_of_two_sources(files):
  own = dict(source="chain", dataset="chain_pairs")
  c = config_of(files, dict(short=own | dict(options=dict(size=99, n_min=1, n_max=1)), long=(
      own | dict(options=dict(size=99, n_min=2, n_max=2)))), prompts__paired=True,
                prompts__max_tokens=6)
  prompts = [p for name, part in build_prompts.list_sources(c).items()
             for p in itertools.islice(build_prompts._read_source(name, part, "train"), 20)]
  taken = build_prompts.make_iterator(c, prompts).take(8)
  assert [p.meta["pair"] for p in taken[::2]] == [p.id for p in taken[1::2]]
  assert [p.source for p in taken] == [s for s in ("long", "short") * 2 for _ in range(2)]


def test_a_source_without_the_chat_template_is_named(bare, files):
  bare.hf.chat_template = test_chat.TEMPLATES["qwen2_5"]
  c = config_of(files, dict(a={}, b=dict(template=dict(name="plain"))), prompts__template=dict(
      name="chat"))
  texts = build_prompts.texts_of(c, tokenizer.wrap(bare.hf))
  line, = [x for x in validation.find_toy_numbers(c, texts, []) if "template" in x]
  assert line.startswith("prompts.mixture.b.template.name='plain': ") and line.endswith(
      "prompts.mixture.b.template.name=chat")


RUN = dict(steps=5, rollouts__per_prompt=2, rollouts__max_draws=2, learner__minibatches=1,
           eval__every=2, eval__prompts=8, eval__batch=4, checkpoint__every=1,
           checkpoint__max_to_keep=5)


def run_config(files, **changes):
  rare = dict(source=str(files / "c.jsonl"), weight=1e-6, columns=dict(verifier="chain.answer"))
  return config_of(files, dict(letters=dict(weight=2), chain=CHAIN | dict(weight=1), rare=rare),
                   **RUN | changes)


@pytest.fixture(scope="module")
def run(files): return tiny.build_run(run_config(files))


@pytest.fixture(scope="module")
def whole(files, run, tmp_path_factory):
  """(state of the prompts at the start, the workdir of a run that nothing happens to)."""
  start, workdir = run.prompts.state(), tmp_path_factory.mktemp("whole")
  with tiny.building(run): rl.train(run_config(files), workdir)
  return start, workdir


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_killed_run_resumes_bit_for_bit(k, files, run, whole, tmp_path):
  start, whole = whole
  killed = tiny.killed_after(whole, k, tmp_path / "killed")
  run.prompts.restore(start)
  with tiny.building(run): rl.train(run_config(files), killed)
  test_resume.assert_same(killed, whole)
  (state, host), (expected, expected_host) = (tiny.restored(run, w) for w in (killed, whole))
  tiny.assert_equal_trees(state, expected)
  assert host.prompts == expected_host.prompts and host.buffer == expected_host.buffer


def test_what_the_resumes_cross(whole):
  """A source goes through several epochs while another has not finished one."""
  hosts = [json.loads((whole[1] / f"checkpoints/{k}/host/metadata").read_text())["prompts"]
           for k in range(1, 6)]
  epochs = {name: source["epoch"] for name, source in hosts[-1]["sources"].items()}
  assert epochs["letters"] >= 2 and epochs["chain"] == epochs["rare"] == 0
  for host in hosts:
    n = sum(host["taken"].values())
    assert abs(host["taken"]["letters"] - 2 / 3 * n) <= 0.75 and host["taken"]["rare"] <= 1


def test_another_mixture_does_not_continue_a_run(files, whole, tmp_path):
  workdir, c = tiny.killed_after(whole[1], 1, tmp_path / "run"), run_config(files)
  c.prompts.mixture.chain.weight = 3
  with pytest.raises(ValueError, match="^prompts.mixture.chain.weight=3: .* has checkpoints of a"):
    rl.train(c, workdir)
  c = run_config(files)
  c.prompts.mixture = {}
  with pytest.raises(ValueError, match="^prompts.mixture.chain.*=None: .* has checkpoints of a"):
    rl.train(c, workdir)


def test_accuracy_by_source_is_that_of_its_verifier(run, whole):
  """By hand, from the texts; a source of which no prompt was drawn has no accuracy."""
  run.prompts.restore(whole[0])
  seen = []
  verify = type(run.pool).verify
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(type(run.pool), "verify", lambda self, prompts, texts: (
        seen.extend(zip(prompts, texts)), verify(self, prompts, texts))[1])
    _, metrics = run.collect(run.init(), host_state.HostState(), 0, tiny.CLOCK)
  judges = {"format.ascii_share": format_lib.ascii_share, "chain.answer": chain.answer}
  right = collections.defaultdict(list)
  for p, text in seen: right[p.source].append(judges[p.verifier](p, text))
  assert {p.source: p.verifier for p, _ in seen} == dict(
      letters="format.ascii_share", chain="chain.answer")
  assert {name: metrics[f"rollouts/accuracy/{name}"] for name in right} == pytest.approx(
      {name: np.mean(x) for name, x in right.items()})
  assert 0 < np.mean(right["letters"]) < 1 and "rollouts/accuracy/rare" not in metrics
  assert metrics["rollouts/accuracy"] == pytest.approx(np.mean(sum(right.values(), [])))


def test_unknown_verdicts_are_in_no_accuracy():
  prompts = [records.Prompt(id=str(i), text="", source=s) for i, s in enumerate("aab")]
  nan = np.nan
  split = accuracy.split_by_source(np.array([[1, nan], [0, 0], [nan, nan]]), prompts)
  means = {s: accuracy.mean(x[~np.isnan(x)]) for s, x in split.items()}
  assert means["a"] == pytest.approx(1 / 3) and np.isnan(means["b"]) and set(means) == {"a", "b"}
  assert accuracy.split_by_source(np.zeros((1, 2)), [records.Prompt(id="", text="")]) == {}


def test_held_out_accuracy_is_logged_by_source(whole, capsys):
  lines, summary = io_metrics.read(whole[1]), io_metrics.summary(whole[1])
  for which in ("greedy", "sampled"):
    after = {name: summary["after"][f"{which}/{name}"] for name in ("letters", "chain")}
    assert {name: x["prompts"] for name, x in after.items()} == dict(letters=5, chain=3)
    assert sum(x["mean"] * x["prompts"] for x in after.values()) == pytest.approx(
        8 * summary["after"][which]["mean"])
    assert f"{which}/rare" not in summary["after"]
  assert lines[2]["eval/greedy/letters"] > 0 and "eval/greedy/letters" not in lines[1]


def test_evaluate_has_accuracy_by_source(files, whole, tmp_path, capsys):
  workdir = shutil.copytree(whole[1], tmp_path / "run")
  c = run_config(files, eval__samples=2, eval__difficulty="operations")
  metrics = evaluate.evaluate(c, workdir)
  assert metrics == json.loads((workdir / "evaluate.json").read_text())
  out = capsys.readouterr().out
  for which in ("greedy", "sampled"):
    assert f"{which}/chain" in out and metrics[f"{which}/letters"]["prompts"] == 5
    assert metrics[which]["mean"] * 8 == pytest.approx(sum(
        metrics[f"{which}/{name}"]["mean"] * n for name, n in (("letters", 5), ("chain", 3))))
  assert metrics["difficulty/1"]["prompts"] == 3  # Letters have no operations.
  with pytest.raises(ValueError, match="eval.difficulty='level': the meta of"):
    evaluate.evaluate(run_config(files, eval__difficulty="level"), workdir)


def test_prompts_are_shown_by_rlx_data(files, capsys):
  c = run_config(files)
  c.prompts.mixture.rare.source = str(files / "leaks.jsonl")
  figures = data.main(c)
  assert figures["train"]["source"] == (
      f"chain: chain, split train; letters: jsonl:{files}/{{split}}.jsonl, split train; "
      f"rare: {files}/leaks.jsonl, split train")
  assert figures["train"]["rows"] == 85 and figures["train"]["dropped"][
      "duplicates"]["first"][-1]["id"].startswith("chain/")
  named = data.main(c, examples="99")["train"]["dropped"]["duplicates"]["first"]
  assert "rare/jsonl/train/1" in {p["id"] for p in named}


def test_a_doctor_and_a_prm_of_a_mixture(files, tmp_path, capsys):
  c, rendered, make_example = run_config(files), [], doctor.example
  c.prompts.mixture.letters.template = dict(name="few_shot", examples=(), question="h", answer="")
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(doctor, "example", lambda tokenizer, prompt, *more: (
        rendered.append(prompt), make_example(tokenizer, prompt, *more))[1])
    doctor.doctor(c)
  assert {text[:2] for text in rendered if text[0] == "h"} == {"ha"} and any(
      "=" in text for text in rendered)
  assert "prompts fit" in capsys.readouterr().out
  train_scorer.train(run_config(files, steps=1, train_scorer__prompts=12, eval__every=0), tmp_path)
  groups = {json.loads(line)["group"].split("/")[0]
            for line in (tmp_path / "rollouts.jsonl").read_text().splitlines()}
  assert groups == {"letters", "chain"}


def test_episodes_of_several_sources(episode_files, tmp_path):
  """One environment for all; a template of a source's own is refused."""
  more = write_rows(tmp_path / "more.jsonl", train=["c0", "c1", "c2", "c3"], test=["d0"])
  mixture = dict(letters=dict(weight=3), more=dict(source=more, weight=1, columns=dict(
      verifier="format.ascii_share")))
  c = test_dialogue.config_of(episode_files, prompts__mixture=mixture, eval__prompts=4,
                              eval__batch=4)
  with tiny.building(tiny.build_run(c)): summary = rl.train(c, tmp_path / "run")
  assert summary["after"]["greedy/more"]["prompts"] == 1
  assert "rollouts/accuracy/more" in io_metrics.read(tmp_path / "run")[0]
  c.prompts.mixture.more.template = dict(name="few_shot", examples=())
  with pytest.raises(ValueError, match="^prompts.mixture.more.template: that of prompts.template"):
    build.build(c)


def test_sft_takes_all_sources_and_no_weights(files):
  c = run_config(files, sft__target=dict(name="jsonl.demonstration"), sft__batch=8)
  with pytest.raises(ValueError, match="^prompts.mixture.chain.weight=1: None; sft draws all exam"):
    sft.build_sft(c)
  for own in c.prompts.mixture.values(): own.weight = None
  c.prompts.mixture.rare.template = dict(name="few_shot", examples=(), question="h", answer="")
  made = sft.build_sft(c)
  assert count(made.prompts).keys() == {"letters", "chain", "rare"}
  assert made.texts.prompt(next(p for p in made.prompts if p.source == "rare")).startswith("hc")
  c.prompts.mixture.rare.template.question = "hhhh"
  with pytest.raises(ValueError, match="^prompts.mixture.rare: no held-out prompts are left of 3"):
    sft.build_sft(c)
