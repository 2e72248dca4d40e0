"""Measures the speed of sampling, updates and whole steps, of rlx alone or beside other systems.

  python -m experiments.bench --model DIR --out new.jsonl --compare old.jsonl
  python -m experiments.bench --random qwen2.5-0.5b --dtype bfloat16 --tasks gen upd
  python -m experiments.bench --report new.jsonl peers.jsonl --docs docs/performance.md
  python -m experiments.bench --worker --task gen --model DIR  # see `serve`

  gen     different prompts, completions of exactly --new tokens, no EOS
  ragged  --prompts x --group completions that end with probability 1/48 a token
  upd     log-probs of policy and reference, then one GRPO update, on random tokens
  e2e     a training step of GRPO with KL loss: sampling, verdicts, log-probs, update
  prime   a training step of PRIME: an implicit PRM is scored and trained; no KL
  rloo    a training step of RLOO with outcome rewards, without reference and PRM

Each task runs in its own process. The limit of a task is the time that its necessary matrix
products and memory traffic take at the peak of this machine, which is measured in the same run,
or of the accelerator (`roofline.PEAKS`).
"""
import argparse
import dataclasses
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from configs import base
from experiments.bench import roofline, speed_tables
from rlx import build
from rlx.build import memory as run_memory, methods as build_methods, updates
from rlx.core import records, rng
from rlx.io import hf, progress, tokenizer, weights
from rlx.learner import memory as memory_lib, sharding
from rlx.loops import rl
from rlx.models import attention, decode_kernel, transformer
from rlx.rollouts import sampler
from rlx.stages import annotate, host_state, outcomes, passes as passes_lib, place

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")
MEAN_LENGTH = 48  # Of ragged completions, in tokens.

# Forward passes of log-probs that a step needs; a gradient is 3. The PRM's
# scores before its update are the forward pass of its gradient.
PASSES = {("upd", ""): 1 + 1 + 3, ("e2e", ""): 1 + 3, ("e2e", "rloo"): 3,
          ("e2e", "prime"): 1 + 3 + 3}

SHAPES = {
    "qwen2.5-0.5b": transformer.DecoderConfig(
        vocab_size=151936, d_model=896, n_layers=24, n_heads=14, n_kv_heads=2,
        head_dim=64, d_ff=4864, rope_theta=1e6, qkv_bias=True),
    "qwen2.5-1.5b": transformer.DecoderConfig(
        vocab_size=151936, d_model=1536, n_layers=28, n_heads=12, n_kv_heads=2,
        head_dim=128, d_ff=8960, rope_theta=1e6, qkv_bias=True),
    "tiny": transformer.DecoderConfig(  # To try the benchmarks.
        vocab_size=512, d_model=32, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=8,
        d_ff=64, qkv_bias=True),
}


def needed(config, args, lengths_B):
  """Returns [(FLOPs, bytes)] of one repetition; bytes matter only in decoding."""
  work = []
  prompts = args.prompts if is_grouped(args) else args.batch
  if args.task != "upd":
    work = roofline.sampling_work(config, prompts, args.prompt_len, lengths_B)
  if passes := PASSES.get((args.task, args.impl)):
    if (args.task, args.impl, args.beta) == ("e2e", "", 0): passes -= 1
    once = roofline.logps_flops(config, rows_of(args), args.prompt_len, args.new, prompts)
    work.append((passes * once, 0))
  return work


def is_grouped(args):
  return args.task == "e2e" or args.impl == "ragged"


def rows_of(args):
  return args.prompts * args.group if is_grouped(args) else args.batch


# ---- the tasks: args -> (repetition, what is known before it)


def sampling(args):
  """Returns (config, params, function that samples as the trainer does, with a new key each time).

  The function's Rollouts are on the device.
  """
  config, params = load(args)
  params = sharding.place(params, sharding.make_mesh())
  group = args.group if is_grouped(args) else 1
  prompts = rows_of(args) // group
  # Random weights spread evenly over the vocabulary, so that this many of its
  # ids make lengths geometric; trained weights do not (the lengths are reported).
  eos = range(1, config.vocab_size, MEAN_LENGTH) if args.impl == "ragged" else ()
  sample = sampler.make(config, group=group, max_tokens=args.new, chunk=args.chunk,
                        temperature=1.0, eos_ids=tuple(eos), pad_id=0)
  batch = (jnp.asarray(random_ids(config, prompts, args.prompt_len)),
           jnp.full(prompts, args.prompt_len, jnp.int32),
           jnp.arange(prompts, dtype=jnp.uint32))
  calls = iter(range(2**31))
  return config, params, lambda: sample(params, *batch, rng.key(0, "bench", next(calls)))


def gen(args):
  """Samples as the trainer does."""
  config, _, draw = sampling(args)

  def rep():
    start = time.perf_counter()
    rollouts = jax.device_get(draw())
    seconds = time.perf_counter() - start
    lengths_B = rollouts.completion_len_B.tolist()
    if args.impl != "ragged": assert set(lengths_B) == {args.new}, lengths_B
    return dict(s=dict(gen=seconds), tokens=sum(lengths_B), lengths=lengths_B)

  return rep, dict(config=dataclasses.asdict(config))


def upd(args):
  """Computes log-probs and one update with the functions of the trainer."""
  config, params = load(args)
  if args.batch % args.group:
    raise ValueError(f"--batch={args.batch}: a multiple of --group={args.group}.")
  c = config_of(args)
  mesh = sharding.make_mesh()
  adamw = updates.optimizer_of(c, "learner")
  learn = updates.device_stages(
      c, build_methods.resolve_methods(c), dict.fromkeys(("policy", "prm", "value"), config), mesh,
      dict.fromkeys(("learner", "prm", "value"), adamw))["update_policy"]
  logps_of = passes_lib.compile_logps(config, 1.0, c.learner.microbatches, 1, (), False)
  params = sharding.place(params, mesh)
  state = records.TrainState(
      step=0, policy=params,
      policy_opt=sharding.compute_sharded(adamw.init, params, mesh),
      reference=jax.tree.map(jnp.copy, params), kl_coef=jnp.float32(args.beta))
  b, t = args.batch, args.new
  annotated = random_rollouts(config, args)
  advantages_B1 = np.random.default_rng(0).standard_normal((b, 1), np.float32)

  def rep():
    nonlocal state
    clock = progress.Clock()
    placed = place.Place(mesh, c.learner.pack)(annotated)
    plan = placed.plan(config, c.learner.microbatches)
    old_BT = logps_of(state.policy, placed.rollouts.rows(), plan)
    clock.lap("old", old_BT)
    ref_BT = logps_of(state.reference, placed.rollouts.rows(), plan)
    clock.lap("ref", ref_BT)
    state, _, metrics = learn(state, placed.replace(batch=placed.batch.replace(
        old_logps_BT=old_BT, ref_logps_BT=ref_BT,
        advantages_BT=jnp.broadcast_to(advantages_B1, (b, t)))), 0)
    clock.lap("grad", state.policy)
    return dict(s=stages(clock), tokens=annotated.rollouts.tokens_BS.size,
                grad_norm=float(metrics["policy/grad_norm"]))

  return rep, dict(config=dataclasses.asdict(config))


def random_rollouts(config, args):
  """Returns completions of random tokens with verdict 0, annotated as in the training loop."""
  b, t = args.batch, args.new
  rollouts = records.Rollouts(
      tokens_BS=random_ids(config, b, args.prompt_len + t),
      prompt_len_B=np.full(b, args.prompt_len, np.int32),
      completion_len_B=np.full(b, t, np.int32),
      sampler_logps_BT=np.zeros((b, t), np.float32), finish_B=np.zeros(b, np.int32),
      prompt_P=np.arange(b // args.group, dtype=np.uint32))
  return annotate.Annotated(rollouts, records.Batch(args.group, **outcomes.make_columns(
      rollouts, np.zeros(b, np.float32))), {})


def e2e(args):
  """Steps of the trainer: build(config), then the calls of train.py's loop.

  What is known before it includes the memory that a device needs, as estimated.
  """
  start = time.perf_counter()
  with tempfile.TemporaryDirectory() as folder:
    write_files(pathlib.Path(args.model), pathlib.Path(folder), args)
    c = config_of(args)
    c.model.path = f"{folder}/model"
    c.prompts.source = f"jsonl:{folder}/{{split}}.jsonl"
    with mock.patch.object(weights, "load", endless): run = build.build(c)
    state = jax.block_until_ready(run.init())
  host = host_state.HostState(rehearsed={})
  build_s = time.perf_counter() - start
  held, needed_by, _ = next(run_memory.memory_terms(run, None))

  def rep():
    nonlocal state
    clock = progress.Clock()
    state, *_, metrics = rl.iteration(run, state, host, state.step, clock)
    tokens = int(metrics["rollouts/tokens"])
    assert tokens == rows_of(args) * args.new, tokens
    split = stages(clock)
    return dict(s=dict(step=sum(split.values())), stages=split, tokens=tokens,
                grad_norm=float(metrics["policy/grad_norm"]))

  return rep, dict(config=dataclasses.asdict(run.passes.models["policy"]), setup_s=build_s,
                   estimated_mb=memory_lib.need(held, needed_by) / 2**20)


def config_of(args):
  """Returns the config of the trainer for an update or a step."""
  c = base.get_config()
  c.model.dtype, c.model.param_dtype = args.dtype, args.param_dtype
  c.model.remat, c.model.attention = args.remat, args.attention
  c.prompts.dataset, c.prompts.columns = "jsonl", dict(verifier="format.ascii_share")
  c.prompts.per_step = rows_of(args) // args.group
  c.prompts.max_tokens = args.prompt_len
  c.rollouts.per_prompt, c.rollouts.max_tokens = args.group, args.new
  c.rollouts.chunk = args.chunk
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  c.learner.microbatches = c.prm.microbatches = rows_of(args) // args.micro if args.micro else 1
  c.learner.optimizer.lr = c.prm.optimizer.lr = args.lr
  c.eval.prompts = c.eval.batch = 1
  if args.impl != "prime":
    del c.rewards.process, c.advantages.process
  if not args.impl:  # GRPO
    c.advantages.outcome = dict(name="group.grpo")
    c.advantages.whiten = False
    c.kl.coef = args.beta
  return c


def endless(*args, load=weights.load, **more):
  """Loads weights with an EOS outside of the vocabulary, so that no completion ends early."""
  config, params, tokens = load(*args, **more)
  return config, params, dataclasses.replace(tokens, eos_ids=(config.vocab_size,))


def write_files(model, folder, args):
  """Writes a model, and prompts of exactly the requested length.

  The weights are those of `model`. The tokenizer is new: its tokens are bytes, then words that
  contain an ASCII letter or another letter in turn, so that `format.ascii_share` differs
  between completions.
  """
  import tokenizers  # pylint: disable=g-import-not-at-top
  import transformers  # pylint: disable=g-import-not-at-top
  count = json.loads((model / "config.json").read_text())["vocab_size"]
  letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
  if count < len(letters):
    raise ValueError(f"--model={str(model)!r}: a vocabulary of {count}; a step's "
                     f"prompts need >= {len(letters)}.")
  (folder / "model").mkdir()
  for file in (model / "config.json", *model.glob("*.safetensors*")):
    shutil.copyfile(file, folder / "model" / file.name)  # A link out of it would be refused.
  words = [("a" if i % 2 else "Ã©") + str(i) for i in range(count - len(letters))]
  vocabulary = {t: i for i, t in enumerate(letters + words)}
  core = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
  core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
  core.decoder = tokenizers.decoders.ByteLevel()
  tokenizer.wrap(transformers.PreTrainedTokenizerFast(
      tokenizer_object=core, eos_token="!", pad_token="!")).save(folder / "model")
  random = np.random.default_rng(0)
  for split, n in (("train", 64 * args.prompts), ("test", 1)):
    rows = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), args.prompt_len))
            for _ in range(n)]
    (folder / f"{split}.jsonl").write_text("".join(
        json.dumps(dict(question=row, answer="-")) + "\n" for row in rows))


def load(args):
  """Returns (DecoderConfig, host params) of the given model, or of random weights of a shape."""
  if args.random:
    config = SHAPES[args.random]
    params = transformer.init(
        dataclasses.replace(config, param_dtype=args.param_dtype), jax.random.key(0))
  else:
    config, params = hf.load(args.model, args.param_dtype)
  kernel = "blocks" if args.attention == "auto" else args.attention
  fused = jax.default_backend() == "gpu" and args.attention != "blocks" and not decode_kernel.lacks(
      head_dim=config.head_dim, dtype=args.dtype, devices=1)
  return dataclasses.replace(
      config, dtype=args.dtype, param_dtype=args.param_dtype, remat=args.remat, attention=kernel,
      decoding="fused" if fused else "parts"), params


def random_ids(config, rows, columns):
  """Returns int32 [rows, columns] without special tokens, which have low ids."""
  low = min(100, config.vocab_size // 2)
  return np.random.default_rng(0).integers(low, config.vocab_size, (rows, columns), np.int32)


def stages(clock):
  """Returns {stage: seconds} of the last step of a clock."""
  return {k.removeprefix("seconds/"): v for k, v in clock.metrics(0).items()
          if k.startswith("seconds/") and k != "seconds/step"}


# ---- a worker: one task, driven by lines


def serve(args, out):
  """Builds and warms up a task, then times a repetition for every line "go".

    worker   @@{"ready": 1, "setup_s": ..., "first_s": ..., ...}   once, warm
    driver   go                                                    for each repetition
    worker   @@{"s": {part: seconds}, "tokens": n, ...}
    driver   quit, or the end of the input
    worker   @@{"bye": 1, "peak_rss_mb": ...}

  With --reps the worker needs no driver. setup_s is the time until the task is warm, for e2e until
  it is built; first_s is that of the first call, with compilation. other is the number of cores
  that other processes used meanwhile, in ticks of 0.01 s.
  """
  def send(**line):
    print("@@" + json.dumps(line), file=out, flush=True)

  start = time.perf_counter()
  known = dict(versions=versions(), hardware=roofline.hardware())
  if args.task == "limits":
    send(ready=1, limits=roofline.limits(args.dtype), **known)
    return
  rep, info = dict(gen=gen, upd=upd, e2e=e2e)[args.task](args)
  warm_ups = max(1, int(os.environ.get("WARM", "2")))
  warm = [roofline.timed(rep) for _ in range(warm_ups)]
  send(**dict(ready=1, setup_s=time.perf_counter() - start, first_s=warm[0],
              second_s=warm[-1], **memory(), **known) | info)
  lines = range(args.reps) if args.reps else iter(sys.stdin.readline, "")
  for line in lines:
    if not args.reps and line.strip() != "go": break
    others, start = others_s(), time.perf_counter()
    reply = rep()
    if others is not None:
      reply["other"] = (others_s() - others) / (time.perf_counter() - start)
    send(**reply)
  send(bye=1, **memory())


def others_s():
  """Returns the CPU seconds that other processes used since boot; None without /proc."""
  stat = pathlib.Path("/proc/stat")
  if not stat.exists(): return None
  user, nice, system, _, _, *interrupts_and_steal = map(int, stat.read_text().split()[1:9])
  busy = user + nice + system + sum(interrupts_and_steal)
  return busy / os.sysconf("SC_CLK_TCK") - time.process_time()


def memory():
  """Returns the peak memory of the process and of the accelerator in MB."""
  peaks = dict(peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
  stats = jax.devices()[0].memory_stats()
  if stats: peaks["peak_device_mb"] = stats["peak_bytes_in_use"] / 2**20
  return peaks


def versions():
  return dict(python=platform.python_version(),
              **{p: importlib.metadata.version(p) for p in PACKAGES})


# ---- alone: every task in turn


def ask(args, task, reps):
  """Returns (ready line, repetitions, last line) of a worker; (None, errors, None) if it fails."""
  command = [sys.executable, "-m", "experiments.bench", "--worker", *arguments(args, task)]
  with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
      command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
      stderr=errors) as worker:
    def reply():
      for line in worker.stdout:
        if line.startswith("@@"): return json.loads(line[2:])
      return None

    def say(word):
      try:
        print(word, file=worker.stdin, flush=True)
      except BrokenPipeError:
        pass  # The end of its output has the reason.
      return reply()

    ready = reply()
    reports = [say("go") for _ in range(reps)] if ready and reps else []
    last = say("quit") if ready and reps else ready
    if last is None or None in reports:
      worker.wait()
      errors.seek(0)
      return None, errors.read()[-600:], None
  return ready, reports, last


def arguments(args, task):
  """Returns the flags of the worker; `task` is "limits" or a key of speed_tables.TASKS."""
  stem, impl = speed_tables.TASKS.get(task, (task, ""))
  flags = ["--task", stem, "--impl", impl]
  for name in ("model", "random", "batch", "prompt_len", "new", "prompts", "group",
               "beta", "micro", "lr", "threads", "dtype", "param_dtype", "remat",
               "attention", "chunk"):
    value = getattr(args, name)
    if value is not None: flags += ["--" + name.replace("_", "-"), str(value)]
  return flags


def measure(args, task, machine):
  """Returns the line of one task: its options, its measurements and its limits."""
  full = resolved(parser().parse_args(["--worker", *arguments(args, task)]))
  line = dict(
      task=full.task, impl=full.impl, system="rlx",
      model=full.random or pathlib.Path(full.model).name, batch=rows_of(full),
      **{k: getattr(full, k) for k in (
          "prompt_len", "new", "prompts", "group", "beta", "micro", "chunk", "dtype",
          "param_dtype", "remat", "attention", "threads")})
  ready, reps, last = ask(args, task, args.reps)
  if ready is None: return line | dict(failed=reps)
  seconds = [sum(r["s"].values()) for r in reps]
  lengths = [r.get("lengths") or [full.new] * rows_of(full) for r in reps]
  median = statistics.median
  line |= dict(
      median_s=median(seconds), min_s=min(seconds), max_s=max(seconds), all_s=seconds,
      parts=medians(r["s"] for r in reps), tokens=reps[0]["tokens"],
      tok_s=median(r["tokens"] / s for r, s in zip(reps, seconds)),
      **limits_of(full, transformer.DecoderConfig(**ready["config"]), lengths, seconds, machine),
      compile_s=ready["first_s"] - median(seconds))
  if "other" in reps[0]: line["other"] = [r["other"] for r in reps]
  if "stages" in reps[0]: line["stages"] = medians(r["stages"] for r in reps)
  if full.impl == "ragged":
    line["lengths"] = [dict(mean=statistics.mean(l), longest=max(l)) for l in lengths]
  keep = ("setup_s", "first_s", "second_s", "versions", "hardware")
  return line | {k: ready[k] for k in keep} | {
      k: v for k, v in last.items() if k != "bye"} | dict(
          limits=machine, time=time.strftime("%FT%T"))


def limits_of(args, config, lengths, seconds, machine):
  """Returns the FLOPs of a repetition, its limit in seconds, and the share of it that was reached.

  Args:
    lengths: the lengths of the completions of each repetition.
    seconds: the time of each repetition.
    machine: what `roofline.limits` returned.
  """
  works = [needed(config, args, lengths_B) for lengths_B in lengths]
  weights = sum(roofline.matmul_weights(config)) * jnp.dtype(config.dtype).itemsize
  # Of the measured working sets, the one whose size is nearest to that of the weights.
  nearest = min(machine["bandwidth"], key=lambda nbytes: abs(float(nbytes) - weights))
  limits = [roofline.limit_s(w, machine["peak"], machine["bandwidth"][nearest]) for w in works]
  median = statistics.median
  return dict(
      flops=median(sum(f for f, _ in w) for w in works),
      limit_s=median(l for l, _ in limits), bound=limits[0][1],
      limit_fraction=median(l / s for (l, _), s in zip(limits, seconds)))


def medians(dicts):
  dicts = list(dicts)
  return {k: statistics.median(d[k] for d in dicts) for k in dicts[0]}


def alone(args):
  """Runs the tasks; prints and keeps a line each. Returns whether all went well."""
  ready, why, _ = ask(args, "limits", 0)
  if ready is None: raise ValueError(f"limits: {why}")
  lines = []
  for task in args.tasks:
    for sized in sizes(args, task):
      lines.append(measure(sized, task, ready["limits"]))
      print(json.dumps(lines[-1]), flush=True)
      if args.out:
        with open(args.out, "a") as f: f.write(json.dumps(lines[-1]) + "\n")
  if args.compare:
    before = {speed_tables.key(line): line for line in speed_tables.read(args.compare)
              if "failed" not in line}
    for line in lines:
      print(speed_tables.compared(line, before.get(speed_tables.key(line))), flush=True)
  return not any("failed" in line for line in lines)


def sizes(args, task):
  """args once, or with the batches that a shape is measured at: a context of 1024."""
  if not args.random or args.batch is not None: return [args]
  batches = {"gen": (64,), "upd": (8, 32)}.get(task, (None,))
  return [argparse.Namespace(**vars(args) | dict(batch=b)) for b in batches]


# ---- the command line

def parser():
  # No usage: a mistake is one line.
  p = argparse.ArgumentParser(prog="bench", usage=argparse.SUPPRESS, description=__doc__,
                              formatter_class=argparse.RawDescriptionHelpFormatter)
  p.add_argument("--model", help="Hugging Face directory")
  p.add_argument("--random", choices=sorted(SHAPES), help="random weights of a shape instead")
  p.add_argument("--batch", type=int, help="rows of gen and upd (32)")
  p.add_argument("--prompt-len", type=int, help="tokens of a prompt (64)")
  p.add_argument("--new", type=int, help="tokens of a completion (128), at most (ragged, 256)")
  p.add_argument("--prompts", type=int, help="of e2e and ragged (8)")
  p.add_argument("--group", type=int, help="completions per prompt (4; ragged 8)")
  p.add_argument("--beta", type=float, help="KL coefficient of upd and e2e (0.04)")
  p.add_argument("--micro", type=int, default=0, help="rows of a forward and backward pass; 0: all")
  p.add_argument("--lr", type=float, default=1e-6)
  p.add_argument("--threads", type=int, help="CPU cores used; 0: all (worker 2, else 0)")
  p.add_argument("--reps", type=int, help="repetitions (5; worker: as driven)")
  p.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32",
                 help="of activations and cache")
  p.add_argument("--param-dtype", choices=("float32", "bfloat16"), default="float32")
  p.add_argument("--remat", choices=("none", "full", "dots"), default=base.get_config().model.remat)
  p.add_argument("--attention", choices=attention.CHOICES, default="auto",
                 help="auto is blocks in gen and upd, with the kernel of one token on GPUs")
  p.add_argument("--chunk", type=int, default=base.get_config().rollouts.chunk,
                 help="tokens decoded between two looks from the host")
  p.add_argument("--tasks", nargs="+", choices=speed_tables.TASKS, default=None)
  p.add_argument("--out", help="file that the lines are added to")
  p.add_argument("--compare", help="file of an earlier run")
  p.add_argument("--report", nargs="+", metavar="FILE", help="files to make tables of")
  p.add_argument("--docs", help="where the tables go; default the screen")
  p.add_argument("--worker", action="store_true")
  p.add_argument("--task", choices=("gen", "upd", "e2e", "limits"), help="of a worker")
  p.add_argument("--impl", choices=("", "ragged", "prime", "rloo"), default="",
                 help="of a worker: its variant")
  p.add_argument("--gguf", help="other systems' flag; not used")
  return p


def resolved(args):
  """Returns the arguments of a worker with all sizes set and checked."""
  if args.task is None: raise ValueError("--task is missing.")
  if args.task != "limits" and (args.task, args.impl) not in speed_tables.TASKS.values():
    raise ValueError(f"--impl={args.impl!r}: {args.task} has "
                     f"{[i for t, i in speed_tables.TASKS.values() if t == args.task]}.")
  if args.task != "limits" and (args.model is None) == (args.random is None):
    raise ValueError("--model or --random, one of them.")
  if args.random and args.task == "e2e":
    raise ValueError(f"--random={args.random}: e2e needs the files of a --model.")
  if args.model and not (pathlib.Path(args.model) / "config.json").is_file():
    raise ValueError(f"--model={args.model!r}: a directory with config.json.")
  chosen = [speed_tables.DEFAULTS[""]] + [speed_tables.DEFAULTS["random"]] * bool(args.random)
  chosen += [speed_tables.DEFAULTS["ragged"]] * (args.impl == "ragged")
  merged = functools.reduce(dict.__or__, chosen)
  args = argparse.Namespace(**vars(args) | {
      k: v for k, v in merged.items() if getattr(args, k) is None})
  if args.micro and rows_of(args) % args.micro:
    raise ValueError(f"--micro={args.micro}: must divide {rows_of(args)} rows.")
  return args


def main():
  p = parser()
  args = p.parse_args()
  try:
    if args.report:
      text = speed_tables.report([line for path in args.report for line in speed_tables.read(path)])
      pathlib.Path(args.docs).write_text(text) if args.docs else print(text, end="")
      return
    if args.threads is None: args.threads = 2 if args.worker else 0
    use_cores(args.threads)
    if args.worker:
      args = resolved(args)
      # Only the protocol goes to stdout; what libraries print goes to stderr.
      out = os.fdopen(os.dup(1), "w")
      os.dup2(2, 1)
      serve(args, out)
      return
    if args.model: args.model = str(pathlib.Path(args.model).resolve())
    args.reps = 5 if args.reps is None else args.reps
    args.tasks = args.tasks or (["gen", "ragged", "upd"] + (
        [] if args.random else ["e2e", "prime", "rloo"]))
    for task in args.tasks:
      resolved(parser().parse_args(["--worker", *arguments(args, task)]))
    sys.exit(0 if alone(args) else 1)
  except ValueError as e:
    p.error(str(e))


def use_cores(n):
  """Binds this process and its children to n cores; XLA starts one thread for each core."""
  if n and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n])


if __name__ == "__main__":
  main()
