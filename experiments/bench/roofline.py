"""The least time that work can take: its FLOPs and bytes against a machine's peaks."""
import os
import pathlib
import platform
import time

import jax
import jax.numpy as jnp
import numpy as np

# device_kind -> dense peak FLOP/s in bfloat16 and float32, bytes/s of its memory,
# from the vendors' data sheets. float32 is what jax's default precision runs:
# TF32 on NVIDIA, one bfloat16 pass on TPU.
PEAKS = {
    "NVIDIA H100 80GB HBM3": (989e12, 495e12, 3.35e12),
    "NVIDIA H200": (989e12, 495e12, 4.8e12),
    "TPU v4": (275e12, 275e12, 1.2e12),
    "TPU v5 lite": (197e12, 197e12, 0.82e12),
    "TPU v5e": (197e12, 197e12, 0.82e12),
    "TPU v5p": (459e12, 459e12, 2.77e12),
    "TPU v5": (459e12, 459e12, 2.77e12),
    "TPU v6 lite": (918e12, 918e12, 1.64e12),
    "TPU v6e": (918e12, 918e12, 1.64e12),
}


# ---- what the work needs


def matmul_weights(config):
  """Weights a token is multiplied with: (of all layers, of the head)."""
  d, h = config.d_model, config.head_dim
  layer = (d * (config.n_heads + 2 * config.n_kv_heads) * h
           + config.n_heads * h * d + 3 * d * config.d_ff)
  return config.n_layers * layer, config.vocab_size * d


def attention_flops(config, start, stop):
  """Scores and weighted values of a row's positions start to stop - 1, causal."""
  seen = (stop * (stop + 1) - start * (start + 1)) // 2
  return 4 * config.n_layers * config.n_heads * config.head_dim * seen


def logps_flops(config, rows, prompt_len, new, prompts=None):
  """One forward pass; the head sees the completion's positions only.

  Args:
    prompts: how many different ones the rows have, each computed once; None: all are.
  """
  layers, head = matmul_weights(config)
  prompts = rows if prompts is None else prompts
  return (prompts * (2 * layers * prompt_len + attention_flops(config, 0, prompt_len))
          + rows * (2 * (layers + head) * new
                    + attention_flops(config, prompt_len, prompt_len + new)))


def sampling_work(config, prompts, prompt_len, lengths_B):
  """[(FLOPs, bytes)] of the prefill and of every decoding step.

  Bytes are weights, and keys and values read and written, in the dtype of the
  activations; those of a prompt are read once for all of its completions.
  """
  layers, head = matmul_weights(config)
  width = jnp.dtype(config.dtype).itemsize
  weights = (layers + head) * width
  position = 2 * config.n_layers * config.n_kv_heads * config.head_dim * width
  work = [(prompts * (2 * layers * prompt_len + 2 * head
                      + attention_flops(config, 0, prompt_len)),
           weights + prompts * prompt_len * position)]
  for t in range(1, max(lengths_B)):
    live = sum(n > t for n in lengths_B)
    seen = prompt_len + t
    work.append((
        live * (2 * (layers + head) + attention_flops(config, seen - 1, seen)),
        weights + position * (min(prompts, live) * prompt_len + live * t + live)))
  return work


def limit_s(work, peak, bandwidth):
  """(seconds, what bounds most of them) at `peak` FLOP/s and `bandwidth` bytes/s."""
  by = {"FLOPs": 0.0, "bandwidth": 0.0}
  for flops, nbytes in work:
    flops_s, bytes_s = flops / peak, nbytes / bandwidth
    by["FLOPs" if flops_s >= bytes_s else "bandwidth"] += max(flops_s, bytes_s)
  return sum(by.values()), max(by, key=by.get)


# ---- what the machine can do


def limits(dtype):
  """Peak FLOP/s and {bytes of the working set: bytes/s read}, measured and listed.

  Returns dict(peak, bandwidth, source, gemm, read): `peak` of matmuls in `dtype`,
  from `PEAKS` where the device is listed, else the best measured; bandwidth by the
  size of what is read, as caches make it depend on that.
  """
  dtype = jnp.dtype(dtype)
  device = jax.devices()[0]
  on_cpu = device.platform == "cpu"
  shapes = ([(2048,) * 3, (6144, 576, 1536), (6144, 1536, 576)] if on_cpu else [(8192,) * 3])
  multiply, total = jax.jit(jnp.matmul), jax.jit(jnp.sum)
  draw = np.random.default_rng(0).standard_normal
  gemm, rates = {"jax": [], "numpy": []}, {}
  for m, k, n in shapes:
    a, b = draw((m, k), np.float32), draw((k, n), np.float32)
    jax_a, jax_b = jnp.asarray(a, dtype), jnp.asarray(b, dtype)
    work = 2 * m * k * n
    gemm["jax"].append(work / seconds_of(lambda: multiply(jax_a, jax_b).block_until_ready()))
    if on_cpu: gemm["numpy"].append(work / seconds_of(lambda: a @ b))
  for rows in (1_200, 8_700, 33_000) if on_cpu else (120_000,):
    x = jnp.ones((rows, 4096), jnp.float32)
    seconds = [seconds_of(lambda: total(x).block_until_ready())]
    if on_cpu:
      host, ones = np.asarray(x), np.ones(4096, np.float32)
      seconds.append(seconds_of(lambda: host @ ones))
    rates[str(x.nbytes)] = x.nbytes / min(seconds)
  measured = dict(gemm={k: max(v) for k, v in gemm.items() if v}, read=rates)
  if device.device_kind in PEAKS:
    half, single, bandwidth = PEAKS[device.device_kind]
    return measured | dict(peak=half if dtype == jnp.bfloat16 else single,
                           bandwidth={"0": bandwidth}, source="data sheet")
  return measured | dict(peak=max(measured["gemm"].values()), bandwidth=rates, source="measured")


def seconds_of(call, reps=5, at_least=0.03):
  """Best seconds of a call, repeated within a timing so that it lasts a while."""
  call()
  once = timed(call)
  n = max(1, int(at_least / max(once, 1e-7)))
  return min(timed(lambda: [call() for _ in range(n)]) for _ in range(reps)) / n


def timed(call):
  start = time.perf_counter()
  call()
  return time.perf_counter() - start


def hardware():
  """The accelerator's name, or the processor's with its cores in use."""
  device = jax.devices()[0]
  if device.platform != "cpu": return f"{len(jax.devices())} x {device.device_kind}"
  info = pathlib.Path("/proc/cpuinfo")
  names = [line.partition(":")[2].strip() for line in info.read_text().splitlines()
           if line.startswith("model name")] if info.exists() else []
  return f"{names[0] if names else platform.machine()}, {_cores()} cores"


def _cores():
  has_affinity = hasattr(os, "sched_getaffinity")  # Linux.
  return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()
