"""Damaged checkpoints: the newest intact one is used, and stderr names those that are skipped."""
import json
import os
import shutil

import numpy as np
import pytest

from rlx.io import checkpoint
from tests.io import strings

STATE = {"a": np.arange(4.0)}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
  """Three checkpoints, saved one after the other without waiting."""
  workdir = tmp_path_factory.mktemp("start")
  checkpoints = checkpoint.Checkpoints(workdir, max_to_keep=3)
  for step in (1, 2, 3): checkpoints.save(step, STATE, dict(step=step))
  checkpoints.close()
  return workdir


def _unlist(file, name):
  """Removes a name from the checksums."""
  checksums = json.loads(file.read_text())
  del checksums["files"][name]
  file.write_text(json.dumps(checksums))


# The verbs of fixtures/checkpoints.json.
CHANGES = dict(
    remove=lambda path: shutil.rmtree(path) if path.is_dir() else path.unlink(),
    write=lambda path, text: path.write_text(text), folder=lambda path: path.mkdir(),
    rename=lambda path, name: path.rename(path.with_name(name)), unlist=_unlist,
    link=lambda path, target: path.symlink_to(target), pipe=os.mkfifo)


@pytest.mark.parametrize("damage, newest, said", strings.fixture("checkpoints"))
def test_the_newest_whole_checkpoint_is_used(start, tmp_path, capsys, damage, newest, said):
  workdir = tmp_path / "w"
  shutil.copytree(start, workdir)
  for verb, path, *args in damage: CHANGES[verb](workdir / "checkpoints" / path, *args)
  checkpoints = checkpoint.Checkpoints(workdir, max_to_keep=3)
  assert checkpoints.latest == newest
  state, host = checkpoints.restore(STATE)
  np.testing.assert_array_equal(state["a"], STATE["a"])
  assert host == dict(step=newest)
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == bool(said) and said in "".join(lines)
  checkpoints.save(newest + 1, STATE, dict(step=newest + 1))
  checkpoints.close()
  assert checkpoint.Checkpoints(workdir).latest == newest + 1
  assert not capsys.readouterr().err


def test_an_old_one_that_is_a_link_is_put_aside(start, tmp_path):
  shutil.copytree(start, tmp_path, dirs_exist_ok=True)
  (tmp_path / "checkpoints/1").rename(tmp_path / "x")
  (tmp_path / "checkpoints/1").symlink_to(tmp_path / "x")
  checkpoints = checkpoint.Checkpoints(tmp_path, max_to_keep=1)
  assert checkpoints.latest == 3
  checkpoints.save(4, STATE, {})
  checkpoints.close()
  assert checkpoint.Checkpoints(tmp_path).latest == 4 and (tmp_path / "x/CHECKSUMS").exists()


def test_what_was_not_sealed_is_not_sealed_later(start, tmp_path):
  shutil.copytree(start, tmp_path, dirs_exist_ok=True)
  (tmp_path / "checkpoints/2/CHECKSUMS").unlink()
  checkpoints = checkpoint.Checkpoints(tmp_path, max_to_keep=9)
  checkpoints.save(4, STATE, {})
  checkpoints.close()
  assert not (tmp_path / "checkpoints/2/CHECKSUMS").exists()


def test_what_orbax_cannot_read_is_one_line(start, tmp_path):
  """The checksums are right, the content is not: a bug or another version wrote it."""
  shutil.copytree(start, tmp_path, dirs_exist_ok=True)
  folder = tmp_path / "checkpoints/3"
  (folder / "state/_METADATA").write_text("{}")
  (folder / "CHECKSUMS").write_text(json.dumps(dict(step=3, files=checkpoint._checksums(folder))))
  with pytest.raises(ValueError, match="checkpoints/3: ") as e:
    checkpoint.Checkpoints(tmp_path).restore(STATE)
  assert "\n" not in str(e.value)
