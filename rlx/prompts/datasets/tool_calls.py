"""Requests that are answered by tool calls (verifiers/tool_calls.py).

  question    Tools: weather(city, day); ... Request: Set a timer of 5 minutes.
  completion  <tool_call>
              {"name": "timer", "parameters": {"minutes": 5}}
              </tool_call>

Synthetic, `prompts.source=generated`: a row has the arguments of `generate`. `prompt.answer` is the
completion that is right; meta["items"] has the weights of ToolRL's reward.
"""
import functools
import json

from rlx.core import ranges
from rlx.prompts import generated

CITIES = ("Rome", "Oslo", "Lima", "Cairo", "Paris", "Delhi", "Quito", "Tokyo")
ROOMS = ("kitchen", "bedroom", "office", "hall")
COINS = ("euros", "dollars", "yen", "pesos")
# {tool: (its parameters, what a request says, how their values are drawn)}
TOOLS = {
    "weather": (("city", "day"), "Tell the weather in {city} in {day} days",
                lambda r: dict(city=r.choice(CITIES), day=r.randint(1, 9))),
    "timer": (("minutes",), "Set a timer of {minutes} minutes",
              lambda r: dict(minutes=r.randint(1, 99))),
    "light": (("room", "on"), "Switch the light in the {room} {state}",
              lambda r: dict(room=r.choice(ROOMS), on=r.random() < 0.5)),
    "convert": (("amount", "source", "target"), "Convert {amount} {source} to {target}",
                lambda r: dict(zip(("source", "target"), r.sample(COINS, 2)),
                               amount=r.randint(2, 500))),
    "remind": (("text", "hour"), "Remind me at {hour} o'clock: {text}",
               lambda r: dict(text=f"call {r.choice(CITIES)}", hour=r.randint(0, 23)))}


def generate(seed, index, n_min=1, n_max=2, tools=tuple(TOOLS), tags=(),
             verifier="tool_calls.matched", split="train"):
  """Draws the request of (seed, index): {"text", "answer", "verifier", "meta"}.

  Args:
    n_min, n_max: least and largest number of calls, which is uniform.
    tools: which of TOOLS, each equally likely; all are described.
    tags: of the blocks of a completion, which `format.tags` reads.
    verifier: one of verifiers/tool_calls.py.
    split: "train" or "test".
  """
  rng = generated.start("tool_calls", seed, index, split)
  if not tools or set(tools) - set(TOOLS):
    raise ValueError(f"prompts.options.tools={tools!r}: one or more of {', '.join(TOOLS)}.")
  ranges.check("prompts.options.n_min", n_min, ranges.Range(1, 8, is_whole=True))
  ranges.check("prompts.options.n_max", n_max, ranges.Range(n_min, 8, is_whole=True))
  described = "; ".join(f"{name}({', '.join(TOOLS[name][0])})" for name in sorted(tools))
  while True:
    calls, said = [], []
    for name in (rng.choice(sorted(tools)) for _ in range(rng.randint(n_min, n_max))):
      names, request, draw = TOOLS[name]
      drawn = draw(rng)
      calls.append(dict(name=name, parameters={key: drawn[key] for key in names}))
      said.append(request.format(**drawn, state="on" if drawn.get("on") else "off"))
    text = f"Tools: {described}. Request: {'. '.join(said)}."
    if generated.split_of(text) == split:
      lines = "\n".join(map(json.dumps, calls))
      return dict(text=text, answer=f"<tool_call>\n{lines}\n</tool_call>", verifier=verifier,
                  meta=dict(calls=calls, items=_weigh(calls)) | (
                      dict(format=dict(tags=list(tags))) if tags else {}))


def _weigh(calls):
  """Weights with which the mean of the parts is the reward of ToolRL: 1 + 6 s / s_max."""
  counts = dict(names=1, keys=len(calls), values=sum(len(c["parameters"]) for c in calls))
  return [dict(name="format", weight=1.0)] + [
      dict(name=name, weight=6 * n / sum(counts.values())) for name, n in counts.items() if n]


prompts = functools.partial(generated.prompts, "tool_calls", generate)
