"""The quickstart learns: its first steps, on fewer held-out prompts."""
from configs import quickstart
from rlx import train


def test_the_first_steps_raise_held_out_accuracy_and_the_prm_is_of_use(tmp_path):
  c = quickstart.get_config()
  c.steps = 24
  c.eval.prompts = c.eval.batch = 256
  c.eval.every, c.eval.final_samples = 0, 1
  summary = train.train(c, tmp_path)
  before, after = summary["before"], summary["after"]
  # Some but not most problems at the start; the rise seen is 0.3 or so.
  assert 0.2 < before["sampled"]["mean"] < 0.5
  assert after["sampled"]["mean"] > before["sampled"]["mean"] + 0.1
  assert summary["prm_accuracy"] > 0.6
