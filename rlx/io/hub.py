"""Models on the Hugging Face hub: hf:OWNER/NAME or hf:OWNER/NAME@REVISION -> a folder.

The folder is the snapshot of one commit in the hub's own cache. HF_HOME, HF_TOKEN,
HF_ENDPOINT and HF_HUB_OFFLINE mean what they mean to huggingface_hub.
"""
import functools
import os
import pathlib
import sys

from rlx import configs
from rlx.io import terminal

# Of the top folder: config, weights and tokenizer; no pickles, no second copy of the weights.
_FILES = ("config.json", "generation_config.json", "*.safetensors",
          "*.safetensors.index.json", "tokenizer*", "special_tokens_map.json",
          "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja")
_NOT = ("*/*", "consolidated*")


@functools.cache
def folder(path):
  """The pathlib.Path of a model's files; one that does not start with hf: is `path` itself.

  The models that come with rlx, configs/models/NAME, are found from every working directory.

  What is missing is fetched once a process. If the hub does not answer, the newest cached
  commit of the revision is taken, with a line on stderr.

  Raises:
    ValueError: no such repository or revision, none that may be read, no safetensors, a
      download that ended early, or no answer and nothing cached; one line.
  """
  if not str(path).startswith("hf:"):
    folder_ = pathlib.Path(path)
    if folder_.exists() or folder_.parts[:2] != ("configs", "models"): return folder_
    return pathlib.Path(configs.__path__[0], *folder_.parts[1:])
  import huggingface_hub
  from huggingface_hub import errors
  from huggingface_hub import utils
  name, at, revision = str(path).removeprefix("hf:").partition("@")
  try:
    utils.validate_repo_id(name)
    is_right = "/" in name and bool(at) == bool(revision)
  except errors.HFValidationError:
    is_right = False
  if not is_right:
    raise ValueError(f"{str(path)!r}: no name on the hub; hf:OWNER/NAME or "
                     "hf:OWNER/NAME@REVISION.")
  snapshot = functools.partial(
      huggingface_hub.snapshot_download, name, revision=revision or None,
      allow_patterns=list(_FILES), ignore_patterns=list(_NOT))
  try:
    info = huggingface_hub.HfApi().model_info(name, revision=revision or None)
  except Exception as e:  # The HTTP library has errors of its own.
    is_refusal = _status(e) is not None and _status(e) < 500
    if is_refusal: raise ValueError(f"{path}: {_said(e, name)}.") from e
    return _cached(path, snapshot, _said(e, name))
  _check(path, [x.rfilename for x in info.siblings])
  try:
    return pathlib.Path(snapshot())
  except Exception as e:
    if getattr(e, "errno", None) is not None: raise  # A full disk, say.
    raise ValueError(f"{path}: {_said(e, name)}; what has arrived is kept, run again to go "
                     "on.") from e


def commit(path):
  """The commit behind a path that starts with hf:, after `folder`; None of another."""
  return folder(path).name if str(path).startswith("hf:") else None


def check_links(path):
  """Raises ValueError if a file of a folder is a link to one elsewhere, or is no file.

  What is read is what the folder has, and conversions copy texts that lie beside weights.
  Of a snapshot in the hub's cache all files are links, to blobs of the same repository.
  """
  folder_ = path.resolve()
  inside = [folder_, *[folder_.parent.parent / "blobs"] * (folder_.parent.name == "snapshots")]
  for entry in path.iterdir():
    target = pathlib.Path(os.path.realpath(entry))
    if target.is_dir(): continue
    if entry.is_symlink() and not any(target.is_relative_to(x) for x in inside):
      raise ValueError(f"{entry}: a link to {target}, outside of the folder; put the file itself "
                       "here.")
    if not target.is_file(): raise ValueError(f"{entry}: this is no file.")


def _cached(path, snapshot, why):
  """The newest snapshot in the cache.

  Raises:
    ValueError: there is none, or not all of it.
  """
  from huggingface_hub import errors
  try:
    found = pathlib.Path(snapshot(local_files_only=True))
  except errors.LocalEntryNotFoundError:
    raise ValueError(f"{path}: {why}, and the cache has no whole copy of it.") from None
  _check(path, [p.name for p in found.iterdir()])
  print(terminal.line(f"rlx: {path}: {why}; the cached commit {found.name} is taken."),
        file=sys.stderr)
  return found


def _check(path, files):
  """Raises ValueError if the names are not those of a model that can be read."""
  if "config.json" not in files or not any(
      "/" not in f and f.endswith(".safetensors") for f in files):
    raise ValueError(f"{path}: config.json and *.safetensors are needed; there are "
                     f"{sorted(files)[:12]}.")


def _said(error, name):
  """What an error of huggingface_hub means."""
  from huggingface_hub import constants
  from huggingface_hub import errors
  where, error = constants.ENDPOINT, _first(error)
  if isinstance(error, errors.OfflineModeIsEnabled): return "HF_HUB_OFFLINE is set"
  if isinstance(error, errors.GatedRepoError):
    return f"gated; ask for access at {where}/{name} and set HF_TOKEN"
  # 401 is also what the hub says of a repository that does not exist.
  if isinstance(error, errors.RepositoryNotFoundError) or _status(error) == 401:
    return f"{where} has no such repository, or a private one, which takes HF_TOKEN"
  if isinstance(error, errors.RevisionNotFoundError): return f"{where} has no such revision"
  text = " ".join(f"{type(error).__name__}: {error}".split())
  return f"{where} does not answer as it should ({text:.200})"


def _status(error):
  """Of an HTTP answer; None of an error that is none."""
  return getattr(getattr(error, "response", None), "status_code", None)


def _first(error):
  """The error behind one that only says that the cache does not have it either."""
  from huggingface_hub import errors
  is_of_cache = isinstance(error, errors.LocalEntryNotFoundError)
  return error.__cause__ if is_of_cache and error.__cause__ else error
