"""Reads the cases of tests from files in this folder."""
import json
import pathlib
import tomllib

FOLDER = pathlib.Path(__file__).parent


def read(name):
  """Returns the content of a .toml or .json file, or the rows of a .jsonl file."""
  text = (FOLDER / name).read_text("utf-8")
  if name.endswith(".jsonl"): return [json.loads(line) for line in text.splitlines()]
  return (tomllib if name.endswith(".toml") else json).loads(text)


def families(name):
  """Returns the attacks in a .toml file, {family: {name: Python source}}."""
  content = read(name)
  attacks, replaced = content["families"], content.get("replaced", dict(names="", attack=""))
  for builtin in replaced["names"].split():
    attacks["builtins"][builtin] = replaced["attack"].format(name=builtin)
  return attacks
