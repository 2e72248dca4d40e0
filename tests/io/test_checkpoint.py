"""Damaged checkpoints: the newest intact one is used, and stderr names those that are skipped."""
import json
import os
import shutil

import numpy as np
import pytest

from rlx.io import checkpoint

STATE = {"a": np.arange(4.0)}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
  """Three checkpoints, saved one after the other without waiting."""
  workdir = tmp_path_factory.mktemp("start")
  checkpoints = checkpoint.Checkpoints(workdir, max_to_keep=3)
  for step in (1, 2, 3): checkpoints.save(step, STATE, dict(step=step))
  checkpoints.close()
  return workdir


def _seal(text): return lambda d: (d / "3/CHECKSUMS").write_text(text)
def _files(text): return _seal(f'{{"step": 3, "files": {text}}}')
def _times(text): return lambda d: (d / "3/_CHECKPOINT_METADATA").write_text(text)


def _file_for_folder(d):
  shutil.rmtree(d / "3")
  (d / "3").write_text("")


def _folder_for_file(d):
  (d / "3/CHECKSUMS").unlink()
  (d / "3/CHECKSUMS").mkdir()


def _empty(d):
  shutil.rmtree(d / "3")
  (d / "3").mkdir()
  _files("{}")(d)


def _linked(d):
  (d / "3").rename(d / "x")
  (d / "3").symlink_to("x")


def _put_aside_before(d):
  (d / "3/CHECKSUMS").unlink()
  (d / "damaged-3").mkdir()
  (d / "damaged-3/x").write_text("")


def _less(d):
  """One file less, which the checksums then do not have."""
  then = json.loads((d / "3/CHECKSUMS").read_text())
  del then["files"]["host/metadata"]
  (d / "3/CHECKSUMS").write_text(json.dumps(then))


@pytest.mark.parametrize("damage, newest, said", [
    (lambda d: (d / "3/CHECKSUMS").unlink(), 2, "CHECKSUMS is missing"),
    (lambda d: (d / "2/CHECKSUMS").unlink(), 3, ""),
    (_seal("[]"), 2, "an object is needed, not []"),
    (_seal("{}"), 2, "it is of step None"), (_files("5"), 2, "CHECKSUMS has no files"),
    (_files("{}"), 2, "host/metadata is not in CHECKSUMS"),
    (lambda d: (d / "2").rename(d / "4"), 3, "4: it is of step 2"),
    (_files('{"host/metadata": 5}'), 2, "host/metadata was altered: [bytes, CRC-32] are"),
    (_seal("{"), 2, "not JSON"), (_seal("\0\0"), 2, "not JSON"),
    (_less, 2, "host/metadata is not in CHECKSUMS"),
    (_folder_for_file, 2, "CHECKSUMS is missing"), (_file_for_folder, 2, "it is no folder"),
    (_empty, 2, "it is empty"), (_linked, 2, "it is no folder"),
    (_put_aside_before, 2, "CHECKSUMS is missing"),
    (lambda d: shutil.rmtree(d / "3/state"), 2, "is missing"),
    (lambda d: (d / "3/host/metadata").write_text("{}"), 2, "host/metadata was altered"),
    (lambda d: (d / "7").mkdir(), 3, "7: CHECKSUMS is missing"),
    (lambda d: (d / "7").symlink_to("nowhere"), 3, "7: it is no folder"),
    (lambda d: (d / "99999999999999999999").mkdir(), 3, "99: CHECKSUMS is missing"),
    (lambda d: (d / "007").mkdir(), 3, ""),
    (lambda d: (d / "7.orbax-checkpoint-tmp-1").mkdir(), 3, ""),
    (lambda d: (d / "³").mkdir(), 3, ""), (lambda d: (d / "3/.nfs01").write_text("x"), 3, ""),
    (lambda d: os.mkfifo(d / "3/state/pipe"), 3, ""),
    (_times("[]"), 3, "_CHECKPOINT_METADATA could not be read and are removed"),
    (_times('{"item_handlers": 5}'), 3, "_CHECKPOINT_METADATA could not be read"),
])
def test_the_newest_whole_checkpoint_is_used(start, tmp_path, capsys, damage, newest, said):
  workdir = tmp_path / "w"
  shutil.copytree(start, workdir)
  damage(workdir / "checkpoints")
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
