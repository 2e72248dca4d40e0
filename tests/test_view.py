"""The page of a run, from files written here."""
import html.parser
import http.client
import json
import math
import re
import shutil
import subprocess
import threading
import types

import numpy as np
import pytest

from configs import quickstart
from rlx.core import records, resolve
from rlx.io import tokenizer
from rlx.loops import rl
from rlx.rollouts import trajectories
from rlx.stages import outcomes, texts as texts_lib
from rlx.tools import view

HOSTILE = "</script><script>document.title='run'</script><img src=x onerror=alert(1)>"
VOID = {"meta", "input", "br", "img", "link", "hr", "area", "base", "col", "embed",
        "source", "track", "wbr"}
BETA = 0.5


def config_of():
  return json.loads(json.dumps(quickstart.get_config().to_dict(), default=list))


def row(step, prompt="3m4=", verdict=1.0, log_ratio=(0.5, -1.0), advantages=(1.0, -0.25),
        tokens=("a", ""), finish="eos", **more):
  listed = lambda x: None if x is None else list(x)
  return dict(step=step, prompt=prompt, completion="".join(tokens), verdict=verdict,
              finish=finish, tokens=listed(tokens), log_ratio=listed(log_ratio),
              beta=BETA, advantages=listed(advantages)) | more


def line(step, **more):
  return {"step": step, "rollouts/accuracy": 0.25, "rewards/outcome": 0.5,
          "seconds/sample": 3.0 if step else 9.0, "seconds/policy": 1.0,
          "seconds/step": 4.0} | more


def write(workdir, lines=(), rows=(), summary=None, config=None, **versions):
  workdir.mkdir(exist_ok=True)
  (workdir / "config.json").write_text(json.dumps(config or config_of()))
  if versions: (workdir / "versions.json").write_text(json.dumps(versions))
  if summary: (workdir / "summary.json").write_text(json.dumps(summary))
  for name, written in (("metrics", lines), ("completions", rows)):
    if written: (workdir / f"{name}.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in written))
  return workdir


class Page(html.parser.HTMLParser):
  """Elements with their attributes, and the text a reader sees."""

  def __init__(self, path):
    super().__init__()
    self.elements, self.open, self.text, self.styles = [], [], "", ""
    self.feed(path.read_text())
    self.close()
    assert not self.open, f"not closed: {self.open}"

  def handle_starttag(self, tag, attrs):
    self.elements.append((tag, dict(attrs)))
    if tag not in VOID: self.open.append(tag)

  def handle_startendtag(self, tag, attrs):
    self.elements.append((tag, dict(attrs)))

  def handle_endtag(self, tag):
    assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"
    if tag in ("td", "th"): self.text += " "

  def handle_data(self, data):
    if self.open and self.open[-1] == "style": self.styles += data
    else: self.text += data

  def section(self, title):
    return self.text.split(f"\n{title}\n")[1]


def check(page):
  """Whole, without anything from elsewhere, and nothing that runs."""
  tags = {tag for tag, _ in page.elements}
  assert not tags & {"script", "img", "link", "iframe", "object", "embed", "form", "b"}
  ids, links = [], []
  for tag, attrs in page.elements:
    for name, value in attrs.items():
      assert not name.startswith("on"), (tag, attrs)
      if name == "id": ids.append(value)
      if name in ("href", "xlink:href", "src", "for"): links.append(value)
      links += re.findall(r"url\(([^)]*)\)", value or "")
  assert not re.search(r"url\(|@import", page.styles)
  assert len(ids) == len(set(ids)), "an id twice"
  for link in links: assert link.removeprefix("#") in ids, link


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
  """A finished run whose files hold markup wherever they hold text."""
  accuracy = dict(mean=0.5, low=0.4, high=0.6, prompts=9, unknown=0.0)
  config = config_of()
  config["model"]["path"], config["prompts"]["options"] = HOSTILE, {HOSTILE: HOSTILE}
  rows = [row(s, prompt=HOSTILE + str(s), tokens=(HOSTILE, "\n", " ", ""),
              log_ratio=[0.1, -0.2, 3.0, -4.0], advantages=[0.0, 1.0, 2.0, -1.0],
              verdict=v, finish="eos") for s in (0, 1) for v in (1.0, 0.0, None, 0.25)]
  rows.append(row(1, prompt="word" * 200, tokens=("x" * 500, "<b>"), finish="length"))
  return write(
      tmp_path_factory.mktemp("w") / "run <i>one", [
          line(s, **{"eval/sampled": 0.5, "prm/accuracy": 0.5}) for s in range(3)],
      rows, config=config, summary=dict(
          before=dict(greedy=accuracy, sampled=accuracy), steps=3,
          after=dict(greedy=accuracy, sampled=accuracy),
          seconds=dict(total=300.0, to_first_step=12.0)),
      commit="abc" + HOSTILE, config_=HOSTILE)


def test_what_files_hold_is_text_and_nothing_else(hostile):
  page = Page(view.view(hostile))
  check(page)
  assert page.text.count(HOSTILE) >= 2 + 8 + 4  # Prompts, tokens, config, commit.
  assert "<b>" in page.text and "run <i>one" in page.text


def test_titles_hold_the_numbers_and_shades_follow_them(hostile):
  spans = [(a["class"], a["title"]) for t, a in Page(view.view(hostile)).elements
           if t == "span" and "title" in a]
  # The largest of both kinds is what is shown darkest, up to the last 2% of values.
  assert spans[:4] == [
      ("l0 a0 ", "log-ratio +0.1, advantage +0"), ("l0 a2 ", "log-ratio -0.2, advantage +1"),
      ("l3 a4 ", "log-ratio +3, advantage +2"), ("l-4 a-2 end", "log-ratio -4, advantage -1")]


def test_prompts_ends_and_what_was_read_are_shown(tmp_path):
  numbers = dict(log_ratio=None, advantages=[1.0, 1.0, 0.0, 1.0])
  prompt = "<|im_start|>user\n2+2<|im_end|>\n"
  rows = [row(0, prompt=prompt, prompt_tokens=7, tokens=("a", "<|im_end|>", "tool", "<|im_end|>"),
              turns=[0, 0, -1, 1], length=4, **numbers),
          row(0, prompt=prompt, prompt_tokens=7, tokens=("a", "b", "c", "d"), finish="length",
              length=4, **numbers)]
  page = Page(view.view(write(tmp_path, rows=rows)))
  check(page)
  assert "<|im_start|>user↵\n2+2<|im_end|>↵\n 7 tokens" in page.text
  assert "✓ 4 tokens in 2 turns, ended" in page.text
  assert "turn 0a<|im_end|>readstoolturn 1<|im_end|>" in page.text
  assert "✓ 4 tokens, cut off at rollouts.max_tokensabcd" in page.text
  assert [(a["class"].split()[-1], a["title"]) for t, a in page.elements
          if t == "span" and "title" in a][:4] == [
              ("a4", "advantage +1"), ("a4", "advantage +1"), ("read", ""), ("end", "advantage +1")]


TEMPLATE = ("{% for t in tools or [] %}<tool>{{ t.name }}{% endfor %}{% for m in messages %}"
            "<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")


@pytest.mark.parametrize("messages, tools, segments, finish, shown, said", [
    ([dict(role="user", content="2+2")], [], [("action", "4<eos>")], "eos",
     "<user>2+2<eos><assistant>", "4"),
    ([dict(role="user", content="2+2")], [dict(name="sum")], [("action", "<call>4")], "length",
     "<tool>sum<user>2+2<eos><assistant>", "<call>4"),
    # A reply that is continued.
    ([dict(role="user", content="2"), dict(role="assistant", content="so ")], [],
     [("action", "4<eos>")], "eos", "<user>2<eos><assistant>so ", "4"),
    ([dict(role="user", content="2")], [], [("action", "<call>4<eos>"), ("observation", "<tool>5"),
                                            ("action", "7<eos>")], "eos",
     "<user>2<eos><assistant>", "<call>4<tool>57")])
def test_rows_are_what_the_model_read_and_drew(tmp_path, messages, tools, segments, finish, shown,
                                               said):
  hf = tokenizer.characters("0123456789+so um").hf
  hf.add_special_tokens(dict(additional_special_tokens=[
      "<user>", "<assistant>", "<tool>", "<call>"]))
  hf.chat_template = TEMPLATE
  tokens = tokenizer.wrap(hf)
  template = resolve.bind("prompts.templates", dict(name="plain"), "prompts.template", n_given=1)
  made = texts_lib.Texts(tokenizer=tokens, template=template, stops=(), answer="(.)", thoughts=(),
                         step_separator=None, reference=None, prompt_tokens=32,
                         completion_tokens=16)
  prompt = records.Prompt(id="p", text="2", messages=tuple(messages), tools=tuple(tools))
  rollouts = trajectories.rows(
      [made.prompt_ids(prompt)], [[(kind, tokens.encode(text)) for kind, text in segments]],
      prompt_width=32, width=16, pad_id=tokens.pad_id, finish=finish)
  batch = records.Batch(1, **outcomes.make_columns(rollouts, np.ones(1)),
                        advantages_BT=np.full((1, 16), 0.5))
  run = types.SimpleNamespace(texts=made)
  annotated = types.SimpleNamespace(rollouts=rollouts, show=lambda b: {})
  made_row, = rl.completion_rows(run, annotated, batch, 1)
  drawn = "".join(text for _, text in segments)
  assert made_row["prompt"] == shown and "".join(made_row["tokens"]) == drawn
  assert made_row["completion"] == said
  assert made_row["prompt_tokens"] == len(made.prompt_ids(prompt))
  assert made_row["length"] == len(tokens.encode(drawn)) == len(made_row["advantages"])
  kinds = [kind for kind, text in segments for _ in tokens.encode(text)]
  assert made_row["advantages"] == [0.5 * (kind == "action") for kind in kinds]
  assert [t >= 0 for t in made_row.get("turns", [0] * len(kinds))] == [k == "action" for k in kinds]
  page = Page(view.view(write(tmp_path, rows=[dict(step=0, **made_row)])))
  check(page)
  assert shown in page.text
  if "turns" not in made_row: assert drawn in page.text
  for _, text in segments: assert text in page.text


def test_episodes_show_turns_observations_and_rewards_and_long_ones_are_folded(tmp_path):
  given = dict(tokens=["[1+1]", "", "2", ";", "#2", ""], turns=[0, 0, -1, -1, 1, 1], length=6,
               log_ratio=[1.0, 2.0, 0, 0, 3.0, 4.0], advantages=[0.0] * 6, turn_rewards=[None, 0.25])
  n = view.UNFOLDED + 1
  long = dict(tokens=["a"] * n, turns=list(range(n)), log_ratio=None, advantages=[0.0] * n)
  bad = [given | dict(turn_rewards=x) for x in (["1", None], 1, [True, None])]
  page = Page(view.view(write(tmp_path, rows=[row(0, **x) for x in (given, long, *bad)])))
  check(page)
  assert page.text.count("6 tokens in 2 turns, ended") == 1
  assert "turn 0[1+1]·reads2;turn 1, reward 0.25#2EOS" in page.text
  assert page.text.count("reward 0.25") == 1
  assert ["open" in a for t, a in page.elements if t == "details" and "episode" in a.get(
      "class", "")] == [True, False]


def test_what_is_no_number_has_no_shade_and_zeros_set_no_scale():
  rows = [row(0, log_ratio=[math.nan, 2.0, *[0.0] * 98], advantages=[0.0] * 100,
              tokens=["t"] * 100)]
  shown = view.completions(rows)
  shades = [t["shades"] for t in shown["steps"][0]["groups"][0]["rows"][0]["parts"][0]["tokens"]]
  assert shades[:3] == ["l0 a0", "l4 a0", "l0 a0"]
  assert shown["scales"] == {"log_ratio": [-2, -1.5, -1, -.5, 0, .5, 1, 1.5, 2]}


def test_sections_say_what_the_files_say(hostile):
  page = Page(view.view(hostile))
  assert "3 of 100" in page.text and "5 min, first step after 12 s" in page.text
  assert "0.500 [0.400, 0.600]" in page.text
  # Two later steps of 3 and 1 seconds.
  time = page.section("Time").split("Completions")[0].split()
  assert time[6:14] == ["sample", "9.00", "3.000", "75%", "policy", "1.00", "1.000", "25%"]
  assert "? not judged" in page.text and "✗ 0.25" in page.text
  for label in ("reward (sampled accuracy)", "all groups drawn", "PRM accuracy"):
    assert label in page.text  # Those in pictures are text, too.


def test_calibration_is_of_the_later_half_and_says_of_how_many(tmp_path):
  log3 = math.log(3) / BETA  # The PRM says 3/4.
  rows = [row(0, log_ratio=[9.0, 9.0])]
  rows += [row(s, prompt=f"p{s}", verdict=v, log_ratio=[log3, x]) for s in (1, 2, 3)
           for v, x in ((1.0, 0.0), (0.0, -2 * log3), (None, 0.0))]
  calibrated = view.measure_calibration(rows, config_of())
  assert [calibrated[k] for k in ("n", "prompts", "first", "last")] == [4, 2, 2, 3]
  of_bin = {b["low_edge"]: (b["n"], b["predicted"], b["right"])
            for b in calibrated["bins"] if b["n"]}
  assert of_bin == {0.2: (2, pytest.approx(0.25), 0.0), 0.6: (2, pytest.approx(0.75), 1.0)}
  assert calibrated["brier"] == pytest.approx(1 / 16) and calibrated["constant"] == 0.25
  page = Page(view.view(write(tmp_path, rows=rows)))
  check(page)
  assert "n = 4 completions of 2 prompts" in page.text and "steps 2 to 3" in page.text
  assert "(Brier) 0.062; always saying the mean verdict 0.50 gives 0.250" in page.text


def test_what_differs_from_base_is_named(tmp_path):
  def changes_of(config): return [c for c in view.compare_config(config) if c["differs"]]
  changes = {c["key"]: (c["value"], c["base"]) for c in changes_of(config_of())}
  assert changes["rollouts.step_separator"] == ('";"', "null")
  assert changes["prompts.options.n_min"] == ("5", "not there")
  assert "steps" not in changes and "seed" not in changes
  base = json.loads(json.dumps(view.base.get_config().to_dict(), default=list))
  assert changes_of(base) == []
  del base["rewards"]["process"]
  absent = changes_of(base)
  assert {c["value"] for c in absent} == {"not there"} and len(absent) == 10


@pytest.mark.parametrize("given, said", [
    (dict(), ["No held-out accuracy yet.", "No step is in metrics.jsonl yet.",
              "No completions are in completions.jsonl yet",
              "No completion with a PRM's log-ratio and a verdict", "0 of 100"]),
    (dict(lines=[line(0, **{"eval/greedy": 0.125})]),
     ["not finished", "0.125 (step 0)", "1 of 100"]),
    (dict(rows=[row(0, log_ratio=None)]),
     ["No completion with a PRM's log-ratio and a verdict", "2 tokens, ended"]),
    (dict(rows=[row(0, log_ratio=[0.0, 0.0], advantages=[0.0, 0.0])]), ["PRM 0.50", "n = 1"]),
    (dict(rows=[row(0, log_ratio=[], advantages=[], tokens=[])]), ["0 tokens, ended"]),
    (dict(rows=[row(0, log_ratio=[math.nan, 1.0])]), ["No completion with a PRM's"]),
], ids=["config_only", "one_step", "no_prm", "all_zero", "empty", "nan"])
def test_what_is_not_there_is_left_out_with_a_line(tmp_path, given, said):
  page = Page(view.view(write(tmp_path, **given)))
  check(page)
  for text in said: assert text in page.text, text


def test_rows_that_no_run_writes_are_left_out_with_a_line(tmp_path, capsys):
  other = {k: v for k, v in row(0).items() if k != "tokens"}
  page = Page(view.view(write(tmp_path, rows=[other, row(0)])))
  assert page.text.count("2 tokens, ended") == 1
  assert "1 of 2 lines cannot be read and are left out, the first is line 1." in (
      capsys.readouterr().err)


def test_half_a_line_of_a_run_under_way_is_not_read(tmp_path):
  write(tmp_path, [line(0), line(1)], [row(0)])
  for name in ("metrics", "completions"):
    with (tmp_path / f"{name}.jsonl").open("a") as f: f.write('{"step": 2, "verd')
  assert "2 of 100" in Page(view.view(tmp_path)).text


def test_what_a_run_was_before_it_went_on_is_not_what_it_is(hostile, tmp_path):
  shutil.copytree(hostile, tmp_path / "w")
  with (tmp_path / "w" / "metrics.jsonl").open("a") as f:
    f.write(json.dumps(line(3)) + "\n")
  text = Page(view.view(tmp_path / "w")).text
  assert "4 of 100" in text and "not finished" in text and "0.500 [" not in text


def test_a_long_run_shows_steps_from_first_to_last(monkeypatch, tmp_path):
  monkeypatch.setattr(view, "TOKENS", 20)
  monkeypatch.setattr(view, "LONGEST", 4)
  numbers = [0.5] * 6
  rows = [row(10 * s, log_ratio=numbers, advantages=numbers, tokens=["t"] * 6) for s in range(31)]
  shown = view.completions(rows)
  # Of 31 steps with 4 tokens shown each there is room for 5.
  assert [s["step"] for s in shown["steps"]] == [0, 80, 150, 220, 300]
  assert len(shown["steps"][0]["groups"][0]["rows"][0]["parts"][0]["tokens"]) == 4
  page = Page(view.view(write(tmp_path, rows=rows)))
  assert "5 of the 31 steps" in page.text and page.text.count("… 2 more tokens") == 5


def test_one_page_for_each_folder_and_a_line_for_what_is_none(tmp_path, command):
  folders = [str(write(tmp_path / name)) for name in "ab"]
  done = command("view", *folders, str(tmp_path))
  assert done.returncode == 2
  assert done.stdout.splitlines() == [f"{f}/view.html" for f in folders]
  assert done.stderr.splitlines() == [
      f"rlx: {tmp_path}: no config.json there; name the --workdir of a run."]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_in_a_browser_nothing_runs_and_nothing_is_wider_than_a_phone(hostile, tmp_path):
  def title(text):
    (tmp_path / "page.html").write_text(text)
    dom = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
         "--window-size=390,2400", (tmp_path / "page.html").as_uri()],
        capture_output=True, text=True, timeout=600, check=True).stdout
    return re.search("<title>(.*?)</title>", dom)[1]
  text = view.view(hostile).read_text()
  assert title(text) == "run &lt;i&gt;one"
  # In a frame, since windows have a least width.
  framed = text.replace("<details>", "<details open>").replace("&", "&amp;").replace('"', "&quot;")
  wide, frame = map(int, title(
      f'<title></title><iframe width=360 height=2000 srcdoc="{framed}" onload="const e = '
      'this.contentDocument.documentElement; document.title = e.scrollWidth + \' \' '
      '+ e.clientWidth"></iframe>').split())
  assert wide <= frame <= 360


@pytest.fixture
def ask():
  """Function (workdirs, path, host) -> (status, text) of a server of their pages."""
  servers = []

  def ask(workdirs, path="/", host=None):
    servers.append(server := view.make_server(workdirs, 0))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=300)
    headers = {"Host": host} if host else {}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()

  yield ask
  for server in servers:
    server.shutdown()
    server.server_close()


def test_a_served_page_follows_the_run_until_it_is_done(tmp_path, ask):
  workdir = write(tmp_path / "run", [line(0)], [row(0)])
  status, text = ask([workdir])
  assert status == 200 and 'http-equiv="refresh"' in text and "1 of 100" in text
  write(workdir, [line(0), line(1)], [row(0)])
  assert "2 of 100" in ask([workdir])[1]
  accuracy = dict(mean=0.5, low=0.4, high=0.6)
  write(workdir, [line(0), line(1)], [row(0)], summary=dict(
      steps=2, seed=0, before=dict(greedy=accuracy), after=dict(greedy=accuracy),
      prm_accuracy=None, seconds=dict(total=1.0, to_first_step=0.5)))
  assert "http-equiv" not in ask([workdir])[1]
  assert "http-equiv" not in view.view(workdir).read_text()  # A file is not loaded again.


def test_runs_are_served_side_by_side_to_this_machine_alone(tmp_path, ask):
  runs = [write(tmp_path / name, [line(0)]) for name in ("a", '"><script>')]
  status, text = ask(runs)
  assert status == 200 and text.count("<iframe ") == 2
  assert "<script>" not in text
  assert ask(runs, "/1")[0] == 200 and ask(runs, "/2")[0] == 404
  assert ask(runs, "/../a/config.json")[0] == 404
  assert ask(runs, host="evil.example:80")[0] == 403
  (runs[0] / "config.json").unlink()
  assert ask(runs, "/0")[0] == 503


@pytest.mark.parametrize("words, message", [
    (("run", "serve=x"), "serve=x: a port"), (("run", "--serve=99999"), "serve=99999: a port"),
    (("nowhere", "serve=0"), "no config.json"), (("serve=0",), "a run's folder is needed")])
def test_what_cannot_be_served_is_refused(tmp_path, monkeypatch, words, message):
  monkeypatch.chdir(tmp_path)
  write(tmp_path / "run", [line(0)])
  with pytest.raises(ValueError, match=message): view.main(*words)


def test_a_port_that_is_taken_is_refused(tmp_path):
  workdir = write(tmp_path / "run", [line(0)])
  with view.make_server([workdir], 0) as server:
    with pytest.raises(ValueError, match="take another port"):
      view.main(str(workdir), f"serve={server.server_port}")
