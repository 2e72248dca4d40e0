"""Checkpoints of everything a run needs to go on, through orbax."""
import pathlib

import jax
import numpy as np
import orbax.checkpoint as ocp


class Checkpoints:
  """Numbered checkpoints in `<workdir>/checkpoints`.

  One holds the arrays of a TrainState and a JSON-able dict of host state
  (iterator, buffer, counters): k steps, a kill, a resume and n - k steps give
  what n steps give, bit for bit.
  """

  def __init__(self, workdir, *, max_to_keep=2):
    path = pathlib.Path(workdir).absolute() / "checkpoints"
    self._manager = ocp.CheckpointManager(
        path, item_handlers=dict(state=ocp.StandardCheckpointHandler(),
                                 host=ocp.JsonCheckpointHandler()),
        options=ocp.CheckpointManagerOptions(max_to_keep=max_to_keep, create=True))

  @property
  def latest(self):
    """Number of the newest complete checkpoint, or None."""
    return self._manager.latest_step()

  def save(self, step, state, host):
    """Starts writing; the arrays may be donated as soon as this returns."""
    self._manager.save(step, args=ocp.args.Composite(
        state=ocp.args.StandardSave(state), host=ocp.args.JsonSave(host)))

  def restore(self, template):
    """(state, host) of the newest checkpoint, in the template's shardings.

    Raises:
      ValueError: the checkpoint's arrays do not fit the template, which means
        that the config's model differs from the one that was saved.
    """
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, template)
    saved = self._manager.item_metadata(self.latest)["state"]
    shapes = {_name(path): tuple(x.shape) for path, x in
              jax.tree.leaves_with_path(saved) if hasattr(x, "shape")}
    for path, x in jax.tree.leaves_with_path(abstract):
      found = shapes.get(_name(path), np.shape(x))
      if found != np.shape(x):
        raise ValueError(
            f"{self._manager.directory}/{self.latest}: {_name(path)} has shape "
            f"{found}, this config makes it {np.shape(x)}; use the config the "
            "run was started with or another --workdir.")
    out = self._manager.restore(self.latest, args=ocp.args.Composite(
        state=ocp.args.StandardRestore(abstract), host=ocp.args.JsonRestore()))
    return out["state"], out["host"]

  def close(self):
    """Waits for writes under way."""
    self._manager.wait_until_finished()
    self._manager.close()


def _name(path):
  """Path as text, the same for records, tuples and the dicts orbax reports."""
  return ".".join(str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k))))
                  for k in path)
