"""The model card that `rlx convert` writes: README.md, with the entries that the hub reads."""
import json
import pathlib
import re
from typing import Any

from rlx.configs import base  # type: ignore[attr-defined]  # Found by its __path__.
from rlx.core import options, version
from rlx.io import hub, report, run_folder, strict_json

# A card on the hub that has this line is replaced by that of a newer model.
MARK = "<!-- Written by rlx convert. Without this line the card is yours, and stays as it is. -->"
_ADDRESS = re.compile(r"hf:([\w.-]+/[\w.-]+)")  # Of a model or of rows on the hub.
_METHODS = re.compile(r"(rewards|advantages|learner)\..*name")


def write(folder: pathlib.Path, path: str, start: Any, *, workdir: pathlib.Path | None = None,
          step: int | None = None, model: str = "policy", is_scorer: bool = False) -> None:
  """Writes README.md into the folder of a converted model, unless there is one.

  Args:
    path: the model as model.path, in the commands that load it: a folder or hf:OWNER/NAME.
    start: model.path of the model that was converted, or from which the run started.
    workdir: the folder of the run; None: the model is not one of a run.
    step: of the run's checkpoint.
    model: policy, prm, or the name of a section scorers.NAME.
    is_scorer: whether the model has a head for scores and none for tokens.
  """
  if (folder / "README.md").exists(): return
  about, first = _read_metadata(start), _shorten(str(start)).removeprefix("hf:")
  flat = options.flatten(run_folder.read_config(workdir)) if workdir else {}
  versions = run_folder.read_versions(workdir) if workdir else {}
  sources = _list_sources(flat)
  front = dict(
      library_name="peft" if _is_peft(folder) else "transformers",
      pipeline_tag="text-classification" if is_scorer else "text-generation",
      base_model=m[1] if (m := _ADDRESS.match(str(start))) else about.get("base_model"),
      datasets=sorted({m[1] for source in sources if (m := _ADDRESS.match(source))}),
      license=about.get("license"), tags=["rlx"])
  by = f"[rlx]({version.ADDRESS}) {versions.get('rlx') or version.__version__}"
  parts = [f"# {path.rpartition('/')[2]}", f"Converted from {first} by {by}."]
  if workdir:
    what = {"policy": "policy", "prm": "process reward model"}.get(model, "scorer")
    key = "prm.path" if model == "prm" and flat["prm.path"] else "model.path"
    if what == "scorer": key = f"scorers.{model.removeprefix('scorers.')}.path"
    commit = f", commit {x[:12]}" if (x := versions.get(key)) else ""
    parts[1] = (f"The {what} after {step} steps of training with {by}, which started from "
                f"{first}{commit}.")
    parts += _write_results(workdir, step)
  parts += ["## Use", *(_write_scorer(path) if is_scorer else
                        _write_prm(path, start, flat["prm.beta"]) if model == "prm" else
                        _write_use(folder, path.removeprefix("hf:"), first.partition("@")[0]))]
  if workdir:
    parts += ["## Training", f"Prompts: {', '.join(map(_shorten, sources))}. Keys of the config "
              "that differ from the defaults of rlx, and the methods:",
              "\n".join(["```text", *_list_changes(flat), "```"])]
  lines = [f"{key}: {json.dumps(value)}" for key, value in front.items() if value]
  (folder / "README.md").write_text(
      "\n".join(["---", *lines, "---", MARK, "", ""]) + "\n\n".join(parts) + "\n")


def _write_results(workdir, step):
  """Held-out accuracies of the run, if they are those of this step."""
  path = workdir / "summary.json"
  summary = strict_json.read(path, has_nan=True) if path.exists() else {}
  if summary.get("steps") != step or "after" not in summary: return []
  shown = lambda x: f"{report.format_interval(x)} | {x['prompts']}"
  return ["## Results", "Held-out accuracy with 95% intervals over prompts, of one run with seed "
          f"{summary['seed']}.",
          "\n".join(["| | before training | after training | prompts |",
                     "| --- | --- | --- | --- |"] + [
              f"| {name} | {report.format_interval(summary['before'][name])} | {shown(after)} |"
              for name, after in summary["after"].items()])]


def _write_use(folder, name, start):
  """How transformers and vLLM load the model."""
  if _is_peft(folder):
    return ["With peft and transformers:", "```python\nimport peft\nimport transformers\n\n"
            f'model = peft.AutoPeftModelForCausalLM.from_pretrained("{name}")\n'
            f'tokenizer = transformers.AutoTokenizer.from_pretrained("{start}")\n```',
            f"With vLLM: `vllm serve {start} --enable-lora --lora-modules policy={name}`"]
  config = folder / "tokenizer_config.json"
  has_template = (folder / "chat_template.jinja").exists() or config.exists() and (
      "chat_template" in strict_json.read(config, any_name=True))
  prompt = '[{"role": "user", "content": "What is 3 + 4?"}]' if has_template else '"A prompt"'
  return ["With transformers:", "```python\nimport transformers\n\n"
          f'generate = transformers.pipeline("text-generation", "{name}")\n'
          f"(completion,) = generate({prompt}, max_new_tokens=256, return_full_text=False)\n"
          'print(completion["generated_text"])\n```', f"With vLLM: `vllm serve {name}`"]


def _write_prm(path, start, beta):
  """How rlx scores completions with an implicit PRM."""
  return ["The reward of a token is `beta * (log p(token) - log p_start(token))`, where `p_start` "
          "is the model from which it started:", "```python\nimport rlx\n\n"
          f'rlx.score("{path}", "{_shorten(str(start))}", [("a prompt", "a completion")], '
          f"beta={beta})\n```"]


def _write_scorer(path):
  """How rlx scores completions with a model that has a head for scores."""
  return ["The model gives a score after each token; the last one is that of a completion. A run "
          "of rlx reads it as a scorer:", f"```\nrlx train CONFIG scorers.mine.path={path} "
          "\"verifier.scores=('scorers.mine',)\"\n```"]


def _list_changes(flat):
  """KEY=VALUE of the keys that differ from configs/base.py, and of the names of methods."""
  defaults = options.flatten(json.loads(json.dumps(base.get_config().to_dict(), default=list)))
  for key, value in sorted(flat.items()):
    is_method = value is not None and _METHODS.fullmatch(key)
    if key in defaults and defaults[key] == value and not is_method: continue
    text = json.dumps(_shorten(value), ensure_ascii=False).replace("```", "'''")
    yield f"{key}={text[:200] + '...' if len(text) > 200 else text}"


def _list_sources(flat):
  """prompts.source, or those of the mixture."""
  named = {key.split(".")[2] for key in flat if key.startswith("prompts.mixture.")}
  own = [flat.get(f"prompts.mixture.{name}.source") for name in sorted(named)] or [None]
  return [str(x) for x in dict.fromkeys(x or flat.get("prompts.source") for x in own) if x]


def _is_peft(folder):
  return (folder / "adapter_config.json").exists()


def _shorten(value):
  """Of a path its last part alone: the folders above are those of one machine."""
  is_path = isinstance(value, str) and value.startswith(("/", "~"))
  return pathlib.PurePath(value).name if is_path else value


def _read_metadata(start):
  """Licence and base model by the card of the model at `start`; {} without one."""
  import huggingface_hub
  try:
    about = huggingface_hub.metadata_load(hub.folder(start) / "README.md") or {}
  except Exception:  # pylint: disable=broad-exception-caught  # The file may hold anything.
    return {}
  return {key: x for key in ("license", "base_model") if isinstance(x := about.get(key), str)}
