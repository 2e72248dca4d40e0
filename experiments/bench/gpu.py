"""Measures rlx on one GPU in a single call that ends within --limit seconds.

  python -m experiments.bench.gpu --limit 480 --out DIR
  python -m experiments.bench.gpu --parts decode,kernels --out NEW --cache OLD
  python -m experiments.bench.gpu --small  # every part on a tiny model, also without a GPU

  peaks        bytes/s of a copy, FLOP/s of a bfloat16 product, errors of float32 products
  determinism  whether processes, and a run that is killed and resumed, give the same bits
  gap          differences between the log-probs of sampler and trainer
  attention    one token's attention of a layer: in parts, as rlx's kernel, as the one in JAX
  decode       sampling with Qwen2.5-0.5B's shape and random weights, also of ragged lengths
  update       log-probs and a GRPO update of that model, and of one of 1.5B
  prime        whole steps of PRIME and RLOO, and their memory beside its estimate
  kernels      the kernels of decode and update, from a profiler's trace
  tests        `pytest -m gpu`

Each figure is a JSON line on the screen and in DIR/gpu.jsonl. Each case is a process of its own: a
crash ends that case alone, and peak memory is of that case. At the end DIR/cache.tar.* has the
programs that were compiled; the next call reads them with --cache.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import importlib.metadata
import io
import itertools
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import jax
from jax.experimental.pallas.ops.gpu import decode_attention
import jax.numpy as jnp
import numpy as np
import safetensors.numpy

from configs import quickstart
from experiments.bench import bench, roofline
from rlx import build
from rlx.io import hf, metrics as io_metrics
from rlx.models import decode as decoder, decode_kernel, transformer
from rlx.stages import passes as passes_lib
from rlx.tools import convert, doctor

PIECE = 15 * 2**20  # Bytes of a file of the compilation cache.
SHORTEST = 20  # Seconds below which no case starts.
LISTED = 0.2  # Seconds of compilation from which on a program is named.
SMALL = dict(random="tiny", prompt_len=8, new=8, batch=4, micro=2, prompts=2, group=2, chunk=4,
             attention="blocks")
SHORT = dict(prompt_len=256, new=512)

# Sets of XLA's flags whose runs are compared.
DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
FLAGS = {"deterministic": DETERMINISTIC,
         "deterministic, no Triton": f"{DETERMINISTIC} --xla_gpu_enable_triton_gemm=false",
         "no autotuning": "--xla_gpu_autotune_level=0", "none": ""}

# Options of the kernel for one token's attention.
TRIED = [dict(block=block, num_warps=warps, num_stages=stages)
         for block in (32, 64, 128) for warps in (2, 4, 8) for stages in (2, 4)]

# Part -> (seconds at most, options of its cases). Parts of TOGETHER start together: they measure
# no speed.
CASES = dict(
    peaks=(40, [{}]),
    determinism=(200, [{}]),
    gap=(200, [dict(model="quickstart"), dict(model="random", batch=64, prompt_len=256, new=256)]),
    attention=(100, [dict(batch=64, **SHORT), dict(batch=256, tried=len(TRIED), **SHORT)]),
    decode=(150, [dict(batch=rows, attention=attention, **chunk, **SHORT)
                  for rows, attention, chunk in (
                      (256, "auto", dict(chunk=512)), (64, "auto", dict(chunk=512)),
                      (256, "blocks", dict(chunk=512)), (256, "auto", {}), (64, "auto", {}))] + [
        dict(impl="ragged", prompts=32, group=8, **SHORT)]),
    update=(200, [dict(random=f"qwen2.5-{size}", batch=rows, micro=micro, attention=attention,
                       prompt_len=256, new=new)
                  for size, rows, micro, new in (
                      ("0.5b", 128, 16, 512), ("0.5b", 16, 4, 3840), ("1.5b", 64, 8, 512))
                  for attention in ("cudnn", "blocks")]),
    prime=(200, [dict(impl=impl, prompts=32, group=8, micro=16, chunk=512, attention=attention,
                      **SHORT)
                 # Blocks share the prompts of a group.
                 for impl, attention in (("prime", "auto"), ("rloo", "auto"), ("rloo", "blocks"))]),
    kernels=(100, [dict(task="gen", batch=256, chunk=512, **SHORT)] + [
        dict(task="upd", batch=128, micro=16, attention=attention, **SHORT)
        for attention in ("cudnn", "blocks")]),
    tests=(300, [{}]))
TOGETHER = ("determinism", "gap")


# ---- the parts: (args, options of a case) -> lines


def peaks(args):
  n = 256 if args.small else 8192
  a, b = (jax.random.normal(jax.random.key(i), (n, n), jnp.bfloat16) for i in (0, 1))
  x = jnp.ones(1 << (20 if args.small else 30), jnp.bfloat16)
  multiply, add = jax.jit(jnp.matmul), jax.jit(lambda x: x + 1)
  yield dict(
      product_tflops=2e-12 * n**3 / roofline.seconds_of(lambda: multiply(a, b).block_until_ready()),
      copy_tb_per_s=2e-12 * x.nbytes / roofline.seconds_of(lambda: add(x).block_until_ready()))
  a, b = np.random.default_rng(0).standard_normal((2, 512, 512), np.float32)
  exact = a.astype(float) @ b.astype(float)
  yield {f"float32_error_{precision}": float(np.linalg.norm(np.asarray(jnp.matmul(
      a, b, precision=precision)) - exact) / np.linalg.norm(exact))
         for precision in ("default", "highest")}


def determinism(args):
  """Compares runs of quickstart:smoke under each set of flags.

  first and second each compile for themselves; again and resumed read what first has compiled, and
  resumed is killed half-way and started again.
  """
  jax.config.update("jax_platforms", "cpu")  # This process only reads checkpoints.
  with concurrent.futures.ThreadPoolExecutor(6) as pool:
    def start(label, name, cache="first"):
      folder = args.scratch / label
      return pool.submit(train, folder / name, FLAGS[label], folder / f"cache-{cache}",
                         kill=name == "resumed")

    def compare(label, name, first, other):
      first, other = first.result(), other.result()
      line = dict(label=label, flags=FLAGS[label], run=name, first=first) | other
      folder, ran = args.scratch / label, "failed" not in line and "failed" not in first
      return line | (differences(folder / "first", folder / name) if ran else {})

    left = list(FLAGS)[:1 if args.small else None]
    pairs = {label: (start(label, "first"), start(label, "second", "second")) for label in left}
    for label, (first, second) in pairs.items():
      yield compare(label, "second", first, second)
      if "failed" in first.result(): continue
      for name, run in [(name, start(label, name)) for name in ("again", "resumed")]:
        yield compare(label, name, first, run)


def train(workdir, flags, cache, kill):
  """Runs quickstart:smoke; returns its seconds or why it failed."""
  env = dict(os.environ, XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {flags}",
             JAX_COMPILATION_CACHE_DIR=str(cache), XLA_PYTHON_CLIENT_MEM_FRACTION="0.08")
  command = [sys.executable, "-m", "rlx.train", "--config=configs/quickstart.py:smoke",
             f"--workdir={workdir}", "--config.steps=4"]
  workdir.mkdir(parents=True)
  start, killed = time.monotonic(), False
  with (workdir / "log").open("w") as log:
    while True:
      process = subprocess.Popen(command, cwd=bench.ROOT, env=env, stdout=log, stderr=log)
      while kill and not killed and process.poll() is None:
        if killed := (workdir / "checkpoints/2").exists(): process.kill()
        time.sleep(0.01)
      if process.wait() != -signal.SIGKILL or not kill: break
      kill = False
  if process.returncode: return dict(failed=(workdir / "log").read_text()[-800:])
  return dict(seconds=time.monotonic() - start, killed=killed)


def differences(workdir, other):
  """Returns how the metrics and the last parameters of two runs differ."""
  differ = differing(*(io_metrics.read(x) for x in (workdir, other)))
  largest = {}
  for model in ("policy", "prm"):
    for folder in (workdir, other):
      if not (to := folder / model).exists():
        with contextlib.redirect_stdout(sys.stderr): convert.convert(folder, to, model=model)
    tensors, then = (safetensors.numpy.load_file(x / model / "model.safetensors")
                     for x in (workdir, other))
    largest[model] = max(float(np.abs(tensors[k] - then[k]).max()) for k in tensors)
  first = min(differ.values(), default=None, key=lambda x: x[0])
  return dict(same=not differ and not any(largest.values()), differing_metrics=len(differ),
              first_differing_step=first and first[0], grad_norm=differ.get("policy/grad_norm"),
              largest_parameter_difference=largest)


def differing(rows, others):
  """{metric: [the first step at which it differs, its two values]} of two runs, without times."""
  found = {}
  for row, then in zip(rows, others, strict=True):
    for k in row.keys() | then.keys():
      pair = [x.get(k, math.inf) for x in (row, then)]
      if not ("seconds" in k or "_per_s" in k or np.array_equal(*pair, equal_nan=True)):
        found.setdefault(k, [row["step"], *pair])
  return found


def gap(args, model, **sizes):
  for dtype, precision in (("float32", "default"), ("float32", "highest"), ("bfloat16", "default")):
    with jax.default_matmul_precision(precision):
      if model == "quickstart":
        c = quickstart.get_config("smoke" if args.small else "")
        c.model.dtype = dtype
        with contextlib.closing(build.build(c)) as run:
          _, rollouts, _, logps_BT, _ = doctor.first_batch(run)
      else:
        config, params, draw = bench.sampling(options_of(args, "gen", dtype=dtype, **sizes))
        rollouts = draw()
        logps_BT = passes_lib.compile_logps(config, 1.0, 4, 1, (), False)(
            params, rollouts.rows(), None)
      gap_N = np.abs(np.asarray(rollouts.sampler_logps_BT, float) - logps_BT)[
          np.asarray(rollouts.action_BT)]
    yield dict(dtype=dtype, precision=precision, tokens=len(gap_N), mean=gap_N.mean(),
               p99=np.quantile(gap_N, 0.99), max=gap_N.max())


def attention(args, batch, prompt_len, new, tried=0):
  """Yields the microseconds of each, and how far its output is from that of the first."""
  config = dataclasses.replace(bench.SHAPES[options_of(args, "gen").random], dtype="bfloat16")
  k, h, r = config.n_kv_heads, config.head_dim, config.n_heads // config.n_kv_heads
  groups, column = -(-batch // 8), np.int32(new - 1)
  keys = iter(jax.random.split(jax.random.key(0), 7))
  array = lambda *shape: jax.random.normal(next(keys), shape, jnp.bfloat16)
  q_WKRH, k_WK1H, v_WK1H = array(batch, k, r, h), array(batch, k, 1, h), array(batch, k, 1, h)
  prompt, suffix = ((array(n, k, h, t), array(n, k, t, h))
                    for n, t in ((groups, prompt_len), (batch, new)))
  valid_PX, live_WT = jnp.ones((groups, prompt_len), bool), jnp.ones((batch, new), bool)

  def limits(limit):
    return limit(decoder.Prompts([], [], valid_PX), jnp.zeros(batch, jnp.int32), live_WT, 0)

  def in_parts():
    masks, tiled = limits(decoder._mask), lambda kv: (decoder._tile(config, kv[0]), kv[1])
    return lambda q_WKRH, kv: decoder._attend_parts(
        config, (*tiled(prompt), *kv), masks, column, *(
            x.transpose(1, 2, 3, 0) for x in (q_WKRH, k_WK1H, v_WK1H))), tiled(suffix)

  def fused(**options):
    bounds_W4 = limits(decoder._bounds)
    return lambda q_WKRH, kv: decode_kernel.attend(
        jnp.concatenate([q_WKRH, k_WK1H, v_WK1H], axis=2), *prompt, *kv, bounds_W4, column,
        scale=h ** -.5, interpret=jax.default_backend() != "gpu", **options), suffix

  def of_jax():
    cache = [jnp.concatenate([jnp.repeat(x, batch // groups, axis=0), y], axis=2) for x, y in (
        (prompt[0].swapaxes(2, 3), suffix[0].swapaxes(2, 3)), (prompt[1], suffix[1]))]
    return lambda q_WKRH, kv: (decode_attention.gqa(
        q_WKRH.reshape(batch, k * r, h), *(x.swapaxes(1, 2) for x in kv),
        block_k=16 if args.small else 64, k_splits=1,
        interpret=jax.default_backend() != "gpu").reshape(q_WKRH.shape), *kv), cache

  loops, n, first = 3 if args.small else 200, 1 if args.small else 8, None
  for name, (attend, kv) in [("parts", in_parts()), ("fused", fused()), ("jax", of_jax()), *(
      (f"fused, {options}", fused(**options)) for options in TRIED[:tried])]:
    def attend_again(_, carry, attend=attend):
      out_WKRH, *kv = carry  # Each attention waits for the last one, so that none is left out.
      return attend(q_WKRH + (1e-9 * out_WKRH).astype(q_WKRH.dtype), kv)
    run = jax.jit(lambda kv, attend=attend, again=attend_again: jax.lax.fori_loop(
        0, loops, again, attend(q_WKRH, kv), unroll=n)[0])
    out = np.asarray(run(kv), np.float32).ravel()
    first = out if first is None else first
    line = dict(kernel=name, us=1e6 / (loops + 1) * roofline.seconds_of(
        lambda: run(kv).block_until_ready()))
    # JAX's kernel reads an older token in the last column.
    yield line if name == "jax" else line | dict(difference=float(np.abs(out - first).max()))


def decode(args, impl="", **sizes):
  return measured(options_of(args, "gen", impl, **sizes))


def update(args, **sizes):
  return measured(options_of(args, "upd", **sizes))


def prime(args, impl, **sizes):
  folder = args.scratch / "model"
  if not folder.exists():  # hf.save needs the weights on the host.
    hf.save(folder, *bench.load(options_of(args, "gen", param_dtype="bfloat16")))
  return measured(options_of(args, "e2e", impl, model=folder, random=None, **sizes))


def options_of(args, task, impl="", **options):
  """The options of a task of the bench, whose flags these are."""
  options = dict(random="qwen2.5-0.5b", dtype="bfloat16") | options
  if args.small: options |= {k: v for k, v in SMALL.items() if options.get(k, "") is not None}
  flags = [f"--{k.replace('_', '-')}={v}" for k, v in options.items() if v is not None]
  return bench.resolved(bench.parser().parse_args(
      ["--worker", "--task", task, "--impl", impl, *flags]))


def measured(args, reps=3):
  """Yields the first repetition with what it compiled, then the fastest of the next ones."""
  compiled = watch_compilation()
  rep, info = {"gen": bench.gen, "upd": bench.upd, "e2e": bench.e2e}[args.task](args)
  setup_s, first = compiled["all", "s"], rep()
  took = lambda r: sum(r["s"].values())
  largest = {k: [n, compiled[k, "s"]] for k, n in compiled.items() if compiled[k, "s"] > LISTED}
  yield dict(first_s=took(first), stages=first.get("stages"), compiled=largest,
             compile_s_before=setup_s, from_cache=compiled["hits"], **bench.memory())
  best = min((rep() for _ in range(reps)), key=took)
  line = dict(s=took(best), parts=best.get("stages", best["s"]), tokens=best["tokens"],
              tokens_per_s=best["tokens"] / took(best),
              estimated_mb=info.get("estimated_mb"), **bench.memory())
  lengths = best.get("lengths") or [args.new] * bench.rows_of(args)
  if args.task == "gen": line["ms_per_step"] = 1e3 * took(best) / max(lengths)
  if peaks_ := roofline.PEAKS.get(jax.devices()[0].device_kind):
    config = transformer.DecoderConfig(**info["config"])
    line |= bench.limits_of(args, config, [lengths], [took(best)],
                            dict(peak=peaks_[0], bandwidth={"0": peaks_[2]}))
    if args.task == "upd":  # Three of its five passes; the limit's fraction is the MFU of all.
      line["gradient_mfu"] = 0.6 * line["flops"] / best["s"]["grad"] / peaks_[0]
  yield line


def watch_compilation():
  """Counts from now on: {name or "all": programs, (name, "s"): their seconds, "hits": cached}."""
  counts = collections.Counter()

  def on_seconds(event, seconds, fun_name="?", **_):
    if event.endswith("backend_compile_duration"):
      for name in (fun_name, "all"): counts.update({name: 1, (name, "s"): seconds})

  jax.monitoring.register_event_duration_secs_listener(on_seconds)
  jax.monitoring.register_event_listener(
      lambda event, **_: counts.update(hits=event.endswith("/cache_hits")))
  return counts


def kernels(args, task, **sizes):
  options = options_of(args, task, **sizes)
  rep, _ = (bench.gen if task == "gen" else bench.upd)(options)
  rep()
  untraced = roofline.timed(rep)
  with jax.profiler.trace(args.scratch / "trace"): rep()
  file = max((args.scratch / "trace").rglob("*.xplane.pb"), key=lambda x: x.stat().st_mtime)
  spans = [(e.name, e.start_ns, e.end_ns)
           for plane in jax.profiler.ProfileData.from_file(str(file)).planes if "GPU" in plane.name
           for line in plane.lines if "Stream" in line.name for e in line.events]
  yield dict(untraced_s=untraced) | summary(spans, options.new if task == "gen" else 1)


def summary(spans, steps, most=15):
  """What kernels took, from (name, start and end in ns) of each.

  Args:
    steps: how often a loop runs; a kernel that runs less often is outside of it.
  """
  counts, times, ns = (collections.Counter() for _ in range(3))
  busy, end = 0, 0
  for name, start, stop in sorted(spans, key=lambda x: x[1]):
    counts[name] += 1
    alike = re.sub(r"[_.]?\d+$", "", name.partition("(")[0])
    ns[alike] += stop - start
    times[alike] += 1
    busy, end = busy + max(0, stop - max(start, end)), max(end, stop)
  whole = end - min((start for _, start, _ in spans), default=0)
  return dict(kernels=len(spans), kernels_per_step=sum(n // steps for n in counts.values()),
              busy_s=busy / 1e9, busy_share=busy / whole if whole else None,
              top=[dict(name=k[:70], ms=n / 1e6, count=times[k]) for k, n in ns.most_common(most)])


def tests(args):
  """Runs the tests that are meant for a GPU."""
  env = dict(os.environ, XLA_PYTHON_CLIENT_MEM_FRACTION="0.08",
             JAX_COMPILATION_CACHE_DIR=str(args.scratch / "cache-tests"))  # Many small programs.
  if not args.small: env.setdefault("XLA_FLAGS", "")  # Those of conftest.py are for CPUs.
  log = args.scratch / "tests.txt"
  with log.open("w") as f, contextlib.suppress(subprocess.TimeoutExpired):
    subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-vv", "-m", "gpu", "-n",
         *(["2", "tests/losses"] if args.small else ["8", "--dist", "worksteal"])],
        cwd=bench.ROOT, env=env, stdout=f, stderr=f, timeout=0.95 * args.limit)
  text = log.read_text()
  found = collections.defaultdict(set)
  for outcome, name in re.findall(r"\] (PASSED|FAILED|ERROR|SKIPPED) (tests/.*)", text):
    found[outcome.lower()].add(name.strip())
  yield dict(failing=sorted(found["failed"] | found["error"]), last_line=text.splitlines()[-1:],
             **{k: len(v) for k, v in found.items()})


# ---- cases in turn


def emit(args, **line):
  """Prints a line and adds it to the file."""
  rounded = json.loads(json.dumps(line, default=float),
                       parse_float=lambda x: float(f"{float(x):.5g}"))
  text = json.dumps(rounded | dict(time=time.strftime("%FT%T")))
  print(text, flush=True)
  with (args.out / "gpu.jsonl").open("a") as f: f.write(text + "\n")


def machine():
  """The card and the versions of what runs on it, without taking the card."""
  try:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    card = subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip()
  except (OSError, subprocess.CalledProcessError):
    card = "none"
  named = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
  return dict(card=card, cores=os.cpu_count(), versions=bench.versions() | {
      k: v for k, v in sorted(named.items()) if re.match(r"jax|nvidia-(cudnn|cublas)", k)})


def cases(args, part):
  """The options of a part's cases."""
  if not args.small: return CASES[part][1]
  least = SMALL | dict(tried=1)
  small = [{k: least.get(k, v) for k, v in case.items()} for case in CASES[part][1]]
  return [case for i, case in enumerate(small) if case not in small[:i]]


def run_part(args, part, deadline):
  """Runs the cases of a part until its time is over. Returns whether all went well."""
  end, well = min(deadline, time.monotonic() + CASES[part][0]), True
  env = dict(os.environ, JAX_COMPILATION_CACHE_DIR=str(args.scratch / "cache"),
             JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
             JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1")
  if part in (*TOGETHER, "tests"): env["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
  for i, case in enumerate(cases(args, part)):
    known, left = dict(part=part, **case), end - time.monotonic()
    if left < SHORTEST:
      emit(args, **known, skipped=f"{max(0, left):.0f} s are left")
      continue
    command = [sys.executable, "-m", "experiments.bench.gpu", f"--case={part}:{i}",
               f"--limit={left}", f"--out={args.out}", f"--scratch={args.scratch}",
               *["--small"] * args.small]
    log, start = args.scratch / f"{part}-{i}.log", time.monotonic()
    with log.open("w") as f:
      child = subprocess.Popen(command, cwd=bench.ROOT, env=env, stderr=f, start_new_session=True)
      try:
        why = child.wait(left) and f"exit code {child.returncode}: {log.read_text()[-800:]}"
      except subprocess.TimeoutExpired:
        why = f"stopped after {left:.0f} s"
    with contextlib.suppress(ProcessLookupError): os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    emit(args, **known, seconds=time.monotonic() - start, **dict(failed=why) if why else {})
    well &= not why
  return well


def pack(folder, out, most):
  """Writes the files of a folder, the small ones first, to at most `most` bytes of pieces."""
  buffer, left_out = io.BytesIO(), 0
  with tarfile.open(fileobj=buffer, mode="w") as tar:
    for path in sorted((p for p in folder.rglob("*") if p.is_file()),
                       key=lambda p: p.stat().st_size):
      if buffer.tell() + path.stat().st_size > most: left_out += 1
      else: tar.add(path, path.relative_to(folder))
  for i, start in enumerate(range(0, buffer.tell(), PIECE)):
    (out / f"cache.tar.{i}").write_bytes(buffer.getbuffer()[start:start + PIECE])
  return dict(cache_mb=buffer.tell() / 2**20, files_left_out=left_out)


def unpack(pieces, folder):
  """Reads what `pack` wrote into the folder `pieces`, if it wrote something."""
  packed = b"".join(p.read_bytes() for p in sorted(pieces.glob("cache.tar.*")))
  if packed: tarfile.open(fileobj=io.BytesIO(packed)).extractall(folder, filter="data")


def main():
  p = argparse.ArgumentParser(description=__doc__,
                              formatter_class=argparse.RawDescriptionHelpFormatter)
  p.add_argument("--parts", default=",".join(CASES))
  p.add_argument("--limit", type=float, default=480, help="seconds (480)")
  p.add_argument("--out", type=pathlib.Path, default=".", help="folder for the figures")
  p.add_argument("--cache", type=pathlib.Path, help="--out of an earlier call, for its cache.tar.*")
  p.add_argument("--cache-mb", type=float, default=30, help="size of the cache that is kept (30)")
  p.add_argument("--small", action="store_true", help="try all parts on a tiny model")
  for flag in ("--case", "--scratch"): p.add_argument(flag, help=argparse.SUPPRESS)
  args = p.parse_args()
  if args.case:
    args.scratch = pathlib.Path(args.scratch)
    part, _, i = args.case.partition(":")
    case = cases(args, part)[int(i)]
    for line in globals()[part](args, **case): emit(args, part=part, **case | line)
    return
  parts, deadline = args.parts.split(","), time.monotonic() + args.limit
  if unknown := set(parts) - CASES.keys():
    p.error(f"--parts: {sorted(unknown)}; there are {list(CASES)}.")
  args.out = args.out.absolute()
  args.out.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
    args.scratch = pathlib.Path(scratch)
    (args.scratch / "cache").mkdir()
    if args.cache: unpack(args.cache, args.scratch / "cache")
    emit(args, **machine(), parts=parts, limit=args.limit, small=args.small)
    well = []
    for _, group in itertools.groupby(parts, lambda part: part in TOGETHER or part):
      with concurrent.futures.ThreadPoolExecutor() as pool:
        well += pool.map(lambda part: run_part(args, part, deadline), group)
    emit(args, **pack(args.scratch / "cache", args.out, args.cache_mb * 2**20))
  sys.exit(0 if all(well) else 1)


if __name__ == "__main__":
  main()
