"""The site's generated pages: start, catalogue of methods, reference. mkdocs.yml names this file.

Pages are made from README.md, RESULTS.md, CHANGELOG.md and CONTRIBUTING.md, from the docstrings of
configs/papers, and from the modules of rlx, so that nothing is written twice.
"""
import ast
import pathlib
import posixpath
import re
import runpy

from mkdocs.structure import files as mkdocs_files

ROOT = pathlib.Path(__file__).parents[2]
EQUATIONS = runpy.run_path(str(pathlib.Path(__file__).with_name("equations.py")))
VERSION = runpy.run_path(str(ROOT / "rlx" / "core" / "version.py"))
# Page -> file of the repository with its text.
COPIED = {"index.md": "README.md", "results.md": "RESULTS.md", "changes.md": "CHANGELOG.md",
          "contributing.md": "CONTRIBUTING.md"}
# Page of the reference -> (title, modules or folders of rlx).
REFERENCE = {
    "rewards": ("Rewards", ["rewards"]),
    "advantages": ("Advantages", ["advantages"]),
    "losses": ("Losses", ["losses"]),
    "verifiers": ("Verifiers", ["verifiers"]),
    "library": ("Library", ["models/logps.py", "models/transformer.py", "rollouts/sampler.py",
                            "learner/step.py", "io/hf.py", "io/tokenizer.py", "evals"])}
_LINK = re.compile(r"(\]\()([^)#\s]+)([^)]*\))")


def on_config(config):
  config.repo_url, config.repo_name = VERSION["ADDRESS"], "rlx"
  config.extra["version"] = VERSION["__version__"]
  return config


def on_files(files, config):
  for path, text in _generate().items():
    files.append(mkdocs_files.File.generated(config, path, content=text))
  return files


def on_page_markdown(markdown, page, config, files):
  """Points links to files of the repository at the page made from them, or at the repository."""
  pages = {source: name for name, source in COPIED.items()}
  here = pages.get(page.file.src_uri, page.file.src_uri)
  folder = posixpath.dirname(COPIED.get(here, f"docs/{page.file.src_uri}"))

  def point(match):
    before, target, after = match.groups()
    if ":" in target: return match[0]
    path = posixpath.normpath(posixpath.join(folder, target))
    if path in pages: target = pages[path]
    elif (path.startswith("docs/") and (ROOT / path).is_file()
          and not path.endswith(("jsonl", "tsv"))):
      target = path.removeprefix("docs/")
    elif (ROOT / path).exists(): return f"{before}{config.repo_url}/blob/main/{path}{after}"
    else: return match[0]
    return before + posixpath.relpath(target, posixpath.dirname(page.file.src_uri)) + after
  return _LINK.sub(point, markdown)


def _generate():
  """{path: text} of all generated pages."""
  pages = {name: (ROOT / source).read_text() for name, source in COPIED.items()}
  pages |= {f"reference/{name}.md": _write_reference(*about) for name, about in REFERENCE.items()}
  base = (ROOT / "configs" / "base.py").read_text()
  pages["reference/keys.md"] = (
      "# Keys of a config\n\nAll keys with their defaults, ranges and meanings, as "
      f"`configs/base.py` states them.\n\n```python\n{base}```\n")
  rows = []
  for path in sorted((ROOT / "configs" / "papers").glob("[!_]*.py")):
    source = path.read_text()
    doc, code = ast.get_docstring(ast.parse(source)), source.split('"""', 2)[2].lstrip()
    title = re.split(r"(?<=\.)\s|\s\(arXiv", doc)[0].rstrip(".").replace("\n", " ")
    arxiv = re.search(r"arXiv:(\d{4}\.\d{4,5})", doc)
    methods = [m for m in re.findall(r'name="([a-z_]+\.[a-z_0-9]+)"', source)
               if _find_method(m)]
    link = f"[{arxiv[1]}](https://arxiv.org/abs/{arxiv[1]})" if arxiv else ""
    used = ", ".join(f"[`{m}`][rlx.{_find_method(m)}.{m}]" for m in dict.fromkeys(methods))
    rows.append(f"| [{title}](configs/{path.stem}.md) | `papers/{path.stem}` | {link} | {used} |")
    pages[f"catalogue/configs/{path.stem}.md"] = (
        f"# {title}\n\n`rlx train papers/{path.stem}`\n\n"
        f"Functions: {used or 'those of the base'}.\n\n{EQUATIONS['fence'](doc)}\n\n## Config\n\n"
        f"```python\n{code}```\n")
  pages["catalogue/index.md"] = (
      "# Methods of papers\n\nEach config sets up the method of one paper. Its page has the "
      "sources of its numbers and what differs from the paper; [papers.md](../papers.md) says "
      "which of the papers' claims were checked, and how that ended.\n\n"
      "| paper | config | arXiv | functions |\n| --- | --- | --- | --- |\n" + "\n".join(rows)
      + "\n")
  return pages


def _find_method(name):
  """The folder of rlx with the function MODULE.NAME that the reference lists, or None."""
  module, function = name.split(".")
  for folder in ("rewards", "advantages", "losses", "verifiers"):
    path = ROOT / "rlx" / folder / f"{module}.py"
    if path.is_file() and f"\ndef {function}(" in path.read_text(): return folder
  return None


def _write_reference(title, places):
  modules = []
  for place in places:
    path = ROOT / "rlx" / place
    modules += [path] if path.is_file() else sorted(path.glob("[!_]*.py"))
  names = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in modules]
  return f"# {title}\n\n" + "\n".join(
      f"## {name.removeprefix('rlx.')}\n\n::: {name}\n    options:\n"
      "      show_root_heading: false\n"
      for name in names)
