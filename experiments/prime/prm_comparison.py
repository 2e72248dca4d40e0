"""Compares an implicit PRM with a PRM of Monte Carlo step labels, at equal data and equal cost.

  python -m experiments.prime.prm_comparison --out=DIR --seeds=5

All arms start from the same model, make the same number of updates and are evaluated on the same
completions, 16 for each held-out prompt. Each arm and seed is a run of rlx/loops/train_scorer.py in
a folder of its own:

  implicit           the verdicts of N completions, which have S tokens
  mc, same data      hard labels of the steps of these completions, each estimated from 8
                     continuations; M tokens in total
  mc, same cost      the labelled first completion of each prompt, up to S sampled tokens in total
  implicit, mc cost  the verdicts of completions with M tokens in total

The cost is the number of sampled tokens. Finished arms are not run again. DIR/table.md has means
over seeds with 95% intervals (Student's t), and DIR/results.jsonl the values of each run.
"""
import argparse
import json
import pathlib

from configs.papers import implicit_prm
from rlx.grids import tables
from rlx.loops import train_scorer

MEASURES = {
    "best of {k}, min": lambda s, k: s[f"best@{k}/min"]["mean"],
    "best of {k}, sum": lambda s, k: s[f"best@{k}/sum"]["mean"],
    "best of {k}, product": lambda s, k: s[f"best@{k}/product"]["mean"],
    "weighted majority of {k}, product": lambda s, k: s[f"weighted@{k}/product"]["mean"],
    "pairs, min": lambda s, k: s["prm"]["held out"]["pair/min"]["mean"],
    "F1 by step": lambda s, k: s["prm"]["held out"]["f1/step"]["mean"],
    "F1 by value": lambda s, k: s["prm"]["held out"]["f1/value"]["mean"]}
COSTS = ("completions", "sampled_tokens", "training_tokens")
OF_POLICY = {"policy: one completion": "pass@1", "policy: majority of {k}": "maj@{k}",
             "policy: any of {k}": "pass@{k}"}


def arms(seed, out, variant, labels):
  """Returns {arm: its summary}; later arms reuse the completions of earlier ones."""
  folder = lambda arm: out / f"seed{seed}" / arm.replace(", ", "_").replace(" ", "_")

  def run(arm, **changes):
    c = implicit_prm.get_config(variant)
    c.seed = seed
    c.train_scorer.update(changes)
    done = folder(arm) / "summary.json"
    if done.exists(): return json.loads(done.read_text())
    print(f"seed {seed}: {arm}", flush=True)
    return train_scorer.train(c, folder(arm))

  first = folder("implicit")
  shared = dict(rollouts=str(first / "rollouts.jsonl"), held_out=str(first / "held_out.jsonl"))
  results = {"implicit": run("implicit")}
  cheap = results["implicit"]["sampled_tokens"]
  results["mc, same data"] = run("mc, same data", **shared, labels=labels)
  dear = results["mc, same data"]["sampled_tokens"]
  results["mc, same cost"] = run(
      "mc, same cost", labels=labels, max_sampled=cheap, held_out=shared["held_out"],
      rollouts=str(folder("mc, same data") / "labelled.jsonl"))
  prompts = implicit_prm.get_config(variant).train_scorer.prompts
  # 5% more than the mean length suggests, so that M tokens are reached.
  results["implicit, mc cost"] = run(
      "implicit, mc cost", max_sampled=dear, held_out=shared["held_out"],
      prompts=int(1.05 * prompts * dear / cheap))
  return results


def table(results, k):
  """Returns {arm: [summary of each seed]} as Markdown."""
  costs = [name.replace("_", " ") for name in COSTS]
  names = [name.format(k=k) for name in MEASURES]
  rows = [[arm, *(f"{sum(s[cost] for s in scores) / len(scores):.0f}" for cost in COSTS),
           *(shown([of(s, k) for s in scores]) for of in MEASURES.values())]
          for arm, scores in results.items()]
  less = [[arm, *(shown([of(a, k) - of(b, k) for a, b in zip(results["implicit"], scores)])
                  for of in MEASURES.values())] for arm, scores in list(results.items())[1:]]
  policy = [f"{name.format(k=k)} " + shown([s[key.format(k=k)]["mean"] for s in
                                           results["implicit"]])
            for name, key in OF_POLICY.items()]
  return "\n".join([
      tables.markdown(["arm", *costs, *names], rows), "",
      "implicit less the other, the same seeds:", "", tables.markdown(["arm", *names], less), "",
      "; ".join(policy) + f"; {len(results['implicit'])} seeds."])


def shown(values):
  """Returns the mean with its interval over seeds; for one seed only the number."""
  if len(values) < 2: return f"{values[0]:.3f}"
  return "{:.3f} [{:.3f}, {:.3f}]".format(*tables.interval(values))


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("--out", type=pathlib.Path, required=True)
  args.add_argument("--seeds", type=int, default=5)
  args.add_argument("--variant", default="", help="of configs/papers/implicit_prm.py: "
                    "another loss, smoke")
  args.add_argument("--labels", default="hard",
                    help="labels of the Monte Carlo arms, as in train_scorer.labels")
  args = args.parse_args()
  results = {}
  for seed in range(args.seeds):
    for arm, summary in arms(seed, args.out, args.variant, args.labels).items():
      results.setdefault(arm, []).append(summary)
  (args.out / "results.jsonl").write_text("".join(
      json.dumps(dict(arm=arm, **s)) + "\n" for arm, scores in results.items() for s in scores))
  k = implicit_prm.get_config(args.variant).eval.samples
  (args.out / "table.md").write_text(table(results, k) + "\n")
  print(table(results, k))


if __name__ == "__main__":
  main()
