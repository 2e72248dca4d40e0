"""The quickstart learns: its first steps, on fewer held-out prompts."""
import json


def test_the_first_steps_raise_held_out_accuracy_and_the_prm_is_of_use(
    tmp_path, command, pictures):
  done = command("train", "quickstart", f"workdir={tmp_path}", "steps=14", "eval.prompts=256",
                 "eval.batch=256", "prompts.options.size=2048", "eval.every=0",
                 "eval.final_samples=1")
  assert done.returncode == 0, done.stderr
  summary = json.loads((tmp_path / "summary.json").read_text())
  before, after = summary["before"], summary["after"]
  # Some but not most problems at the start; the rise seen is 0.2 or so.
  assert 0.2 < before["sampled"]["mean"] < 0.5
  assert after["sampled"]["mean"] > before["sampled"]["mean"] + 0.1
  assert summary["prm_accuracy"] > 0.6
  assert pictures.draw(tmp_path).read_bytes().startswith(b"\x89PNG")
