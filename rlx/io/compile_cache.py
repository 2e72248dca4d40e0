"""JAX's cache of compiled programs on disk."""
import os
import pathlib
import sys
import tempfile

import jax


def keep_compiled(setting: str | None, workdir: str | os.PathLike | None = None) -> None:
  """Enables JAX's compilation cache, so that the next run with the same shapes does not compile.

  The environment variable JAX_COMPILATION_CACHE_DIR takes precedence. If the folder cannot be
  written, a line on stderr says so and the run continues without a cache.

  Args:
    setting: config.compile_cache. None is <workdir>/../.jax_cache, which runs in the same parent
      folder share; "" or "off" disables the cache; any other text is the cache's folder.
    workdir: the run's folder; used only if the setting is None.
  Raises:
    ValueError: the setting is neither text nor None.
  """
  if not isinstance(setting, str | None):
    raise ValueError(f"compile_cache={setting!r}: a folder, off or None.")
  if "JAX_COMPILATION_CACHE_DIR" in os.environ or setting in ("", "off"): return
  folder = pathlib.Path(setting or pathlib.Path(workdir or "").absolute().parent / ".jax_cache")
  try:
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
  except OSError as e:
    print(f"rlx: compile_cache={str(folder)!r}: {e.strerror}; this run does not "
          "cache compiled programs.", file=sys.stderr)
    return
  jax.config.update("jax_compilation_cache_dir", str(folder))
  # Small programs are cached too: a run compiles tens of them at its start, 1 MB in total.
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
  jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
