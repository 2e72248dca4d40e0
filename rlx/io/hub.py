"""Models on the Hugging Face hub: hf:OWNER/NAME or hf:OWNER/NAME@REVISION -> a folder, and back.

The folder is the snapshot of one commit in the hub's own cache. HF_HOME, HF_TOKEN,
HF_ENDPOINT and HF_HUB_OFFLINE mean what they mean to huggingface_hub.
"""
import fnmatch
import functools
import os
import pathlib
import sys

from rlx import configs
from rlx.io import terminal

# Config, tokenizer, card and weights in the top folder; no pickles, no second copy of the weights.
_FILES = ("config.json", "adapter_config.json", "generation_config.json", "tokenizer*",
          "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
          "chat_template.jinja", "README.md")
_ADAPTERS = {"adapter_config.json", "adapter_model.safetensors"}
_WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
_NOT = ("*/*", "consolidated*")


def folder(path: str | pathlib.Path, *, weights: bool = True) -> pathlib.Path:
  """The pathlib.Path of a model's files: a local path, or the snapshot of an hf: path.

  What comes with rlx, such as configs/models/NAME, exists in every working directory. Files that
  are not cached are downloaded, and the hub is asked once per process. If it does not answer, the
  newest cached commit of the revision is used, and a line on stderr says so.

  Args:
    weights: False: those of an hf: path are not downloaded.
  Raises:
    ValueError: the repository or revision does not exist or may not be read, it has no
      safetensors, a download was interrupted, or the hub does not answer and nothing is cached.
  """
  if not str(path).startswith("hf:"):
    folder_ = pathlib.Path(path)
    if folder_.exists() or folder_.parts[:1] != ("configs",): return folder_
    return pathlib.Path(configs.__path__[0], *folder_.parts[1:])
  return _snapshot(path, weights)


@functools.cache
def _snapshot(path, weights):
  """The folder of an hf: path. Raises as `folder`."""
  import huggingface_hub
  name, at, revision = str(path).removeprefix("hf:").partition("@")
  if not _is_name(name) or bool(at) != bool(revision):
    raise ValueError(f"{str(path)!r}: this is no name of a model on the hub; use hf:OWNER/NAME or "
                     "hf:OWNER/NAME@REVISION.")
  why = None  # The reason why the hub cannot be asked.
  try:
    info = huggingface_hub.HfApi().model_info(name, revision=revision or None)
  except Exception as e:  # The HTTP library has errors of its own.
    why, status = _reason(e, name), _status(e)
    if status is not None and status < 500: raise ValueError(f"{path}: {why}.") from e
  else:
    _check(path, [x.rfilename for x in info.siblings or []])
  try:
    folder_ = pathlib.Path(huggingface_hub.snapshot_download(
        name, revision=revision or None, allow_patterns=[*_FILES, *_WEIGHTS * weights],
        ignore_patterns=list(_NOT), local_files_only=why is not None))
  except Exception as e:
    if why: raise ValueError(f"{path}: {why}, and the cache has no complete copy of it.") from e
    if getattr(e, "errno", None) is not None: raise  # A full disk, say.
    raise ValueError(f"{path}: {_reason(e, name)}; downloaded parts are kept, run again to "
                     "continue.") from e
  if why:
    if weights: _check(path, [p.name for p in folder_.iterdir()])
    print(terminal.line(f"rlx: {path}: {why}; the cached commit {folder_.name} is used."),
          file=sys.stderr)
  return folder_


def commit(path: str | pathlib.Path | None) -> str | None:
  """The commit of an hf: path that `folder` resolved; None for a local path."""
  return folder(path).name if path is not None and str(path).startswith("hf:") else None


def check_target(path: str | pathlib.Path) -> str:
  """The name OWNER/NAME of hf:OWNER/NAME, to which a model is to be uploaded.

  Raises:
    ValueError: it is no name, HF_HUB_OFFLINE is set, or there is no token.
  """
  import huggingface_hub
  from huggingface_hub import constants
  name = str(path).removeprefix("hf:")
  if not _is_name(name):
    raise ValueError(f"to={str(path)!r}: this is no name of a model on the hub; use hf:OWNER/NAME.")
  if constants.HF_HUB_OFFLINE:
    raise ValueError(f"to={str(path)!r}: HF_HUB_OFFLINE is set, and an upload needs the hub.")
  if not huggingface_hub.get_token():
    raise ValueError(f"to={str(path)!r}: an upload needs a token that may write; log in with "
                     "`hf auth login`, or set HF_TOKEN.")
  return name


def create(name: str, *, is_public: bool) -> None:
  """Creates the repository of a model, unless there is one, which stays as public as it is.

  Raises:
    ValueError: the hub does not answer, or refuses the token.
  """
  import huggingface_hub
  try:
    huggingface_hub.HfApi().create_repo(name, private=not is_public, exist_ok=True)
  except Exception as e:  # The HTTP library has errors of its own.
    raise ValueError(f"to='hf:{name}': {_reason_of_upload(e, name)}.") from e


def upload(folder_: pathlib.Path, name: str, mark: str) -> str:
  """Uploads the files of a model in one commit, so that a reader has the old model or the new one.

  Weights and adapters that are there under other names are removed, since they would be loaded with
  the new ones.

  Args:
    mark: a README.md in the repository without this line is not replaced.
  Returns:
    the address of the repository.
  Raises:
    ValueError: one line with the command that tries again.
  """
  import huggingface_hub
  api, files = huggingface_hub.HfApi(), {p.name: p for p in folder_.iterdir()}
  try:
    there = {f for f in api.list_repo_files(name) if "/" not in f}
    if "README.md" in there and mark not in pathlib.Path(
        api.hf_hub_download(name, "README.md")).read_text(): del files["README.md"]
    stale = [f for f in sorted(there - {*files}) if f in _ADAPTERS
             or any(fnmatch.fnmatch(f, pattern) for pattern in _WEIGHTS)]
    api.create_commit(name, commit_message="Upload by rlx convert", operations=[
        *(huggingface_hub.CommitOperationAdd(f, path) for f, path in sorted(files.items())),
        *map(huggingface_hub.CommitOperationDelete, stale)])
  except Exception as e:
    print(file=sys.stderr)  # Ends the line of a progress bar.
    raise ValueError(f"to='hf:{name}': {_reason_of_upload(e, name)}; the model is in {folder_}, "
                     f"and `hf upload {name} {folder_}` sends it.") from e
  return f"{api.endpoint}/{name}"


def _is_name(name):
  """Whether a text is OWNER/NAME."""
  from huggingface_hub import errors, utils
  try:
    utils.validate_repo_id(name)
  except errors.HFValidationError:
    return False
  return "/" in name


def check_links(path: pathlib.Path) -> None:
  """Raises ValueError if an entry of a folder is a link out of it, or is no file.

  Only files of the folder are read, and conversions copy its text files. All files of a snapshot in
  the hub's cache are links to blobs of the same repository, which is allowed.
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


def _check(path, files):
  """Raises ValueError if files of a supported model are missing."""
  if _ADAPTERS <= set(files): return
  if "config.json" not in files or not any(
      "/" not in f and f.endswith(".safetensors") for f in files):
    raise ValueError(f"{path}: config.json and *.safetensors are needed; there are "
                     f"{sorted(files)[:12]}.")


def _reason(error, name):
  """An error of huggingface_hub in words."""
  from huggingface_hub import constants, errors
  where, error = constants.ENDPOINT, _first(error)
  if isinstance(error, errors.OfflineModeIsEnabled): return "HF_HUB_OFFLINE is set"
  if isinstance(error, errors.GatedRepoError):
    return f"gated; ask for access at {where}/{name} and set HF_TOKEN"
  # The hub also answers 401 if a repository does not exist.
  if isinstance(error, errors.RepositoryNotFoundError) or _status(error) == 401:
    return f"{where} has no such repository, or it is private: set HF_TOKEN"
  if isinstance(error, errors.RevisionNotFoundError): return f"{where} has no such revision"
  text = " ".join(f"{type(error).__name__}: {error}".split())
  return f"{where} does not answer as it should ({text:.200})"


def _reason_of_upload(error, name):
  """As `_reason`, of an error in an upload."""
  from huggingface_hub import constants
  if isinstance(error, RuntimeError): error = error.__cause__ or error  # It names the file alone.
  if _status(error) == 401:
    return f"{constants.ENDPOINT} does not accept the token; `hf auth login` stores another one"
  if _status(error) == 403: return f"the token may not write to {name}"
  return _reason(error, name)


def _status(error):
  """The status of an HTTP error; None for other errors."""
  return getattr(getattr(error, "response", None), "status_code", None)


def _first(error):
  """The cause of an error which only says that the cache does not have the file either."""
  from huggingface_hub import errors
  is_of_cache = isinstance(error, errors.LocalEntryNotFoundError)
  return error.__cause__ if is_of_cache and error.__cause__ else error
