"""The config of a run: that of a cell of a grid, from its folder (--config=THIS_FILE:FOLDER)."""
from rlx.grids import cell, grid


def get_config(folder):
  """Returns the config of the cell in `folder`."""
  return grid.make_config(cell.read(folder))
