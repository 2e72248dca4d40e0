"""The folder configs/ of a checkout as the package `rlx.configs`; a wheel has the folder itself
in this place, which Python prefers to this file."""
import pathlib

__path__ = [str(pathlib.Path(__file__).parent.parent / "configs")]
