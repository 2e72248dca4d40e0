"""The energy of a scorer on disk: energy.npz beside its weights, see models/energy.py."""
import pathlib
import zipfile

import numpy as np

FILE = "energy.npz"


def save(folder: pathlib.Path, params: dict[str, list[dict]]) -> pathlib.Path:
  """Writes the parameters of `models.energy.init` into a folder; returns the path of the file."""
  np.savez(folder / FILE, **{  # type: ignore[arg-type]
      f"{part}.{i}.{name}": np.asarray(x, np.float32) for part, layers in params.items()
      for i, layer in enumerate(layers) for name, x in layer.items()})
  return folder / FILE


def load(folder: pathlib.Path, features: int) -> dict[str, list[dict[str, np.ndarray]]]:
  """The parameters that `save` wrote.

  Args:
    features: of the model in this folder.
  Raises:
    ValueError: there is no such file, it is damaged, or of another number of features.
  """
  file = folder / FILE
  if not file.is_file():
    raise ValueError(f"{file} is missing; `rlx train_scorer` writes it with "
                     "train_scorer.energy.steps above 0.")
  params: dict[str, list] = {}
  try:
    with np.load(file, allow_pickle=False) as arrays:
      for key in sorted(arrays, key=lambda key: (key.split(".")[0], int(key.split(".")[1]))):
        part, i, name = key.split(".")
        layers = params.setdefault(part, [])
        if int(i) == len(layers): layers.append({})
        layers[int(i)][name] = np.asarray(arrays[key], np.float32)
    given = len(params["joint"][0]["w_IO"]) - params["score"][-1]["w_IO"].shape[1]
  except (KeyError, IndexError, ValueError, OSError, EOFError, zipfile.BadZipFile):
    raise ValueError(f"{file} is damaged: not the energy that `rlx train_scorer` writes.") from None
  if given != features:
    raise ValueError(f"{file} is of {given} features, the model beside it has {features}.")
  return params
