"""Reads the models that a config names."""
import dataclasses
import sys
from typing import Any

import jax

from rlx.build import judges as build_judges, keys, prompts as build_prompts
from rlx.core import records, rng
from rlx.io import energy, hub, tokenizer as tokenizer_io, weights
from rlx.learner import hosts, sharding
from rlx.models import decode_kernel, lora, transformer, value
from rlx.stages import host_fields, methods as methods_lib, passes as passes_lib

Model = tuple[transformer.DecoderConfig, records.Params, tokenizer_io.Tokenizer]


def load_models(c: keys.Config, methods: methods_lib.Methods, mesh: jax.sharding.Mesh, shapes: bool
                ) -> tuple[dict[str, tuple[transformer.DecoderConfig, records.Params]],
                           records.Params, tokenizer_io.Tokenizer]:
  """Returns ({"policy", "prm", "value"}: (DecoderConfig, params), frozen or None, tokenizer).

  There are also the models of `list_frozen` and `judges.list_models`.
  """
  compute = jax.eval_shape if shapes else lambda fn, *args: fn(*args)
  config, base, tokenizer = load_sampled(c, c.model.path, mesh, shapes)
  sharding.check(base, mesh)
  adapted = lambda config, path: adapt_to_mesh(choose_attention(c, config, mesh, path), mesh)
  params, frozen = base, None
  if c.lora.rank:
    config = dataclasses.replace(config, lora_scale=c.lora.alpha / c.lora.rank)
    params = compute(lambda base: lora.init(base, rng.key(c.seed, "lora"), rank=c.lora.rank,
                                            targets=tuple(c.lora.targets)), base)
    frozen = compute(lambda base: freeze(base, c.model.frozen_dtype), base)
  models = dict.fromkeys(("policy", "prm", "value"), (config, params))
  others = list_frozen(c, methods)
  if methods.needs("prm_logps_BT") and c.prm.path is not None:
    others = {"prm": c.prm.path, **others}
  shares_scorer = host_fields.is_scorer(c.value.path)
  if c.value.path is not None and not shares_scorer: others["value"] = c.value.path
  for name, path in others.items():
    own_config, own, own_tokenizer = load_model(c, path, shapes, f"{name}.path")
    if own_tokenizer.vocabulary != tokenizer.vocabulary:
      raise ValueError(f"{name}.path={path!r}: its tokenizer differs from "
                       f"that of model.path={c.model.path!r}.")
    if methods.needs(f"{name}_all_logps_BTV") and own_config.vocab_size != config.vocab_size:
      raise ValueError(
          f"{name}.path={path!r}: its table has {own_config.vocab_size} rows, that of "
          f"model.path={c.model.path!r} {config.vocab_size}; {_DRAWN_ONLY[name]} compares drawn "
          "tokens only, which both have.")
    if host_fields.is_scorer(name):
      check_scorer(c, name, own_config, own_tokenizer, tokenizer)
      if name in c.verifier.scores and own_config.score_head != "spread" and (
          readers := methods.find_readers("score_spreads_BE")):
        raise ValueError(f"{name}.path={path!r}: a scorer with train_scorer.head=spread, whose "
                         f"spread {readers[0]} reads; its head is {own_config.score_head}.")
    models[name] = adapted(own_config, path), own
  models |= load_judges(c, mesh, shapes)
  if c.train_scorer.labels is not None and c.train_scorer.head != "yes_no":
    kind, (own_config, own) = c.train_scorer.head, models["prm"]
    models["prm"] = dataclasses.replace(
        own_config, score_head=kind, outputs=value.count_outputs(kind, c.train_scorer.heads)), own
  if shares_scorer: models["value"] = models[c.value.path]
  return models, frozen, tokenizer


# {section of a model: a method that reads it at drawn tokens only}, in place of one of all tokens.
_DRAWN_ONLY = dict(prm="the loss policy.ppo_clip", teacher="the reward implicit.teacher")


def load_judges(c: keys.Config, mesh: jax.sharding.Mesh, shapes: bool = False
                ) -> dict[str, tuple[transformer.DecoderConfig, records.Params]]:
  """{section: (DecoderConfig, params)} of the models that are judges. Raises as `load_model`."""
  return {section: load_sampled(c, path, mesh, shapes, f"{section}.model",
                                build_judges.list_tokens(c, section))[:2]
          for section, path in build_judges.list_models(c).items()}


def load_sampled(c: keys.Config, path: str | None, mesh: jax.sharding.Mesh, *args: Any) -> Model:
  """`load_model` of a model that is sampled from, its config for this mesh; args as there."""
  config, params, tokenizer = load_model(c, path, *args)
  config = adapt_to_mesh(choose_attention(c, config, mesh, path), mesh)
  return choose_decoding(c, config, mesh), params, tokenizer


def list_frozen(c: keys.Config, methods: methods_lib.Methods) -> dict[str, str | None]:
  """{section of the config: path} of the models beside policy and PRM, which never learn."""
  teacher = {"teacher": c.teacher.path} if needs_teacher(methods) else {}
  return teacher | {f"scorers.{name}": part.path for name, part in read_scorers(c).items()}


def read_scorers(c: keys.Config) -> dict[str, keys.Config]:
  """{name: its section, with the defaults of the keys that it does not name} of `scorers`."""
  parts = {}
  for name, given in sorted(c.scorers.items()):
    parts[name] = keys.base.named_section("scorers")
    parts[name].update(dict(given.items()))
  return parts


def scorers_of(c: keys.Config, tokenizer: tokenizer_io.Tokenizer) -> dict[str, passes_lib.Scorer]:
  """{section: Scorer} of `scorers`.

  Raises:
    ValueError: an answer of one of kind yes_no is not one token.
  """
  return {f"scorers.{name}": _ask(part, f"scorers.{name}", tokenizer) if part.kind == "yes_no" else
          passes_lib.Scorer(part.kind, reference=part.reference,
                            reference_tokens=part.reference_tokens or 0)
          for name, part in read_scorers(c).items()}


def find_asked_scorer(c: keys.Config,
                      tokenizer: tokenizer_io.Tokenizer) -> passes_lib.Scorer | None:
  """The Scorer of train_scorer.head=yes_no; None with another head. Raises as `scorers_of`."""
  if c.train_scorer.labels is None or c.train_scorer.head != "yes_no": return None
  return _ask(c.train_scorer, "train_scorer", tokenizer)


def _ask(part: keys.Config, section: str, tokenizer: tokenizer_io.Tokenizer) -> passes_lib.Scorer:
  """The Scorer of kind yes_no of a section with `question`, `yes` and `no`."""
  ids = {key: tokenizer.encode(part[key], add_bos=False) for key in ("question", "yes", "no")}
  for key in ("yes", "no"):
    if len(ids[key]) != 1:
      raise ValueError(f"{section}.{key}={part[key]!r}: one token, not {len(ids[key])}.")
  if ids["yes"] == ids["no"]:
    raise ValueError(f"{section}.no={part.no!r}: another token than {section}.yes.")
  return passes_lib.Scorer("yes_no", tuple(ids["question"]), (*ids["yes"], *ids["no"]))


def check_question(name: str, part: keys.Config) -> None:
  """Refuses a scorer of kind yes_no without a question, and another one with it."""
  if (part.kind == "yes_no") != (part.question is not None):
    raise ValueError(f"scorers.{name}.question={part.question!r}: " + (
        "a text, which asks whether the completion is right, with kind='yes_no'."
        if part.question is None else f"None with kind={part.kind!r}; yes_no asks it."))
  if (part.reference is None) != (part.reference_tokens is None):
    raise ValueError(f"scorers.{name}.reference_tokens={part.reference_tokens!r}: " + (
        f"None without scorers.{name}.reference." if part.reference is None else
        f"the most tokens of scorers.{name}.reference with the answer in it."))
  if part.reference is not None and part.kind not in passes_lib.WITH_HEAD:
    raise ValueError(f"scorers.{name}.reference={part.reference!r}: None with kind={part.kind!r}; "
                     "a head reads it.")


def check_scorer(c: keys.Config, section: str, config: transformer.DecoderConfig,
                 own: tokenizer_io.Tokenizer, tokenizer: tokenizer_io.Tokenizer) -> None:
  """Refuses a model that cannot score as its kind says, or reads prompts in another form."""
  part, key = read_scorers(c)[section.partition(".")[2]], f"{section}.kind"
  learns = part.online.labels is not None  # A language model then gets a head of zeros.
  if (part.kind in passes_lib.WITH_HEAD) != (config.has_head or learns):
    has, kinds = (("a head for scores and none for tokens", "head, probability or energy")
                  if config.has_head else ("no head for scores", "implicit or yes_no"))
    raise ValueError(f"{key}={part.kind!r}: {part.path!r} has {has}; {kinds}.")
  uses_chat = c.prompts.template.name in ("chat", "boxed")
  if uses_chat and own.hf.chat_template != tokenizer.hf.chat_template:
    raise ValueError(f"{section}.path={part.path!r}: its chat template differs from that of "
                     f"model.path={c.model.path!r}, whose prompts it would score.")


def needs_teacher(methods: methods_lib.Methods) -> bool:
  """Whether a method reads the model of teacher.path."""
  return methods.needs("teacher_logps_BT") or methods.needs("teacher_all_logps_BTV")


_FLASH = dict(gpu="cudnn", tpu="splash")


def choose_attention(c: keys.Config, config: transformer.DecoderConfig, mesh: jax.sharding.Mesh,
                     path: str | None, group: int | None = None) -> transformer.DecoderConfig:
  """A DecoderConfig with the kernel that model.attention stands for; a line on stderr says why.

  auto is the flash attention of the platform. Where rows are packed, blocks computes a prompt once
  for all its completions and flash attention for each: auto is blocks if that makes 1.5 times the
  tokens or more, at full lengths. On one H200 an update with cudnn took 0.77 of the time of blocks
  at 1.33 times the tokens, and 0.51 at 1.05 times.

  Args:
    path: of the model, for the line.
    group: rows that share a prompt; None: rollouts.per_prompt.
  """
  kernel, platform = c.model.attention, sharding.platform(mesh)
  if is_auto := kernel == "auto":
    if platform not in _FLASH: return dataclasses.replace(config, attention="blocks")
    kernel = _FLASH[platform]
  lacks = config.lacks(kernel) or (is_auto and _disadvantage(
      c, config, kernel, group or c.rollouts.per_prompt))
  if hosts.is_first() and (lacks or is_auto):
    reason = f"{lacks}: blocks is used" if lacks else f"is used on {platform}"
    print(f"rlx: model.attention={c.model.attention!r}: {kernel} {reason} for {path!r}.",
          file=sys.stderr)
  return dataclasses.replace(config, attention="blocks" if lacks else kernel)


def choose_decoding(c: keys.Config, config: transformer.DecoderConfig, mesh: jax.sharding.Mesh
                    ) -> transformer.DecoderConfig:
  """A DecoderConfig whose attention of one token is the fused kernel where a GPU and the model have
  it, unless model.attention is blocks; a line on stderr says why."""
  if sharding.platform(mesh) != "gpu" or c.model.attention == "blocks": return config
  lacks = decode_kernel.lacks(head_dim=config.head_dim, dtype=config.dtype,
                              devices=mesh.shape["tensor"])
  if not lacks and mesh.devices.flat[0] in jax.devices():  # Not one that is only compiled for.
    lacks = decode_kernel.find_fault(group=config.n_heads // config.n_kv_heads,
                                     head_dim=config.head_dim)
  if hosts.is_first():
    print(f"rlx: model.attention={c.model.attention!r}: the kernel for one token "
          f"{f'{lacks}: it is not used' if lacks else 'is used on gpu'}.", file=sys.stderr)
  return config if lacks else dataclasses.replace(config, decoding="fused")


def _disadvantage(c: keys.Config, config: transformer.DecoderConfig, kernel: str,
                  group: int) -> str | None:
  """Why auto takes blocks though the kernel has all that the model needs; None: it does not."""
  h, x, t = config.head_dim, c.prompts.max_tokens, c.rollouts.max_tokens
  if kernel == "cudnn" and config.dtype != "bfloat16":
    return f"needs model.dtype=bfloat16, not {config.dtype}"
  if kernel == "cudnn" and (h > 128 or h % 8):
    return f"needs head_dim to be a multiple of 8 up to 128, not {h}"
  more = group * (x + t) / (x + group * t)
  if c.learner.pack and more >= 1.5:
    return f"makes {more:.1f} times the tokens, as completions do not share prompts"
  return None


def adapt_to_mesh(config: transformer.DecoderConfig,
                  mesh: jax.sharding.Mesh) -> transformer.DecoderConfig:
  """A DecoderConfig for the devices of a mesh.

  Activations and caches are sharded by rows: without these constraints XLA keeps the parameters in
  place and transfers activations. If there are fewer key-value heads than devices of the tensor
  axis, each device has a copy of one.
  """
  platform = sharding.platform(mesh)
  if config.attention == "cudnn" and platform not in ("gpu", None):
    raise ValueError("model.attention='cudnn': blocks; cudnn needs a GPU.")
  config = dataclasses.replace(config, platform=platform)
  tensor, heads = mesh.shape["tensor"], config.n_kv_heads
  if tensor % heads == 0 and config.n_heads % tensor == 0:
    config = dataclasses.replace(config, kv_copies=tensor // heads)
  if mesh.size == 1: return config
  by_rows = lambda *axes: jax.sharding.NamedSharding(
      mesh, jax.sharding.PartitionSpec(*sharding.ROWS, *axes))
  return dataclasses.replace(config, rows=by_rows(), heads=by_rows("tensor"))


def freeze(params: records.Params, dtype: str | None) -> records.Params:
  """Casts parameters that only forward passes read to model.frozen_dtype, None: as they are.

  Norm scales, heads for scores and energies keep their dtype, because a forward pass multiplies by
  them in float32 and casts all other parameters to model.dtype first. The results are the same, bit
  for bit.
  """
  if dtype is None: return params
  return jax.tree.map_with_path(
      lambda path, x: x if path[-1].key.startswith("scale_")
      or path[0].key in ("value", "energy") else x.astype(dtype), params)


def load_model(c: keys.Config, path: str | None, shapes: bool = False,
               key: str = "model.path", parts: dict[str, int] | None = None) -> Model:
  """(DecoderConfig, params, tokenizer) of a path, in the dtypes of `model`.

  Args:
    shapes: see `weights.load`.
    key: that names the path.
    parts: {key: tokens} of a sequence; None: of a prompt, a completion and a reference answer.

  Raises:
    ValueError: no path, or sequences could be longer than the model supports.
  """
  if path is None:
    raise ValueError(f"{key}=None: {_say_model(c, key)}.")
  try:
    config, params, tokenizer = weights.load(path, dtype=c.model.param_dtype, shapes=shapes)
  except ValueError as e:
    raise ValueError(str(e).replace("model.path=", f"{key}=", 1)) from None
  if host_fields.is_scorer(key) and read_scorers(c)[key.split(".")[1]].kind == "energy":
    params = {**params, "energy": energy.load(hub.folder(path, weights=False), config.d_model)}
  learns_scores = (key == "prm.path" and c.train_scorer.labels is not None
                   and c.train_scorer.head != "yes_no")  # Which go on from those of its head.
  if config.has_head and not key.startswith(("scorers.", "value.")) and not learns_scores:
    raise ValueError(f"{key}={path!r}: a language model; this one has a head for scores and none "
                     "for tokens, and can be named by scorers.NAME.path or value.path, and by "
                     "prm.path where train_scorer.labels trains a head.")
  if parts is None:
    limits = build_prompts.list_limits(c)
    longest = max(limits, key=lambda key: limits[key])
    parts = {"prompts.max_tokens": c.prompts.max_tokens, longest: limits[longest],
             "likelihood.max_tokens": c.likelihood.max_tokens}
    if host_fields.is_scorer(key):
      name = key.split(".")[1]
      parts[f"scorers.{name}.reference_tokens"] = read_scorers(c)[name].reference_tokens or 0
  length = sum(parts.values())
  if config.max_positions is not None and length > config.max_positions:
    terms = [f"{key}={tokens}" for key, tokens in parts.items() if tokens]
    raise ValueError(f"{' + '.join(terms)}: {path!r} supports at most "
                     f"{config.max_positions} positions (max_position_embeddings).")
  return dataclasses.replace(
      config, dtype=c.model.dtype, length=length, param_dtype=c.model.param_dtype,
      remat=c.model.remat, matmul_precision=c.model.matmul_precision), params, tokenizer


def _say_model(c: keys.Config, key: str) -> str:
  """What the path of a model at a key is, for a message that there is none."""
  model = "the folder or file of a language model, or hf:OWNER/NAME"
  if key == "model.path": return f"{model}; only `rlx sft` makes one, of sft.fresh"
  if not key.startswith("scorers."): return model
  part = read_scorers(c)[key.split(".")[1]]
  if part.kind not in passes_lib.WITH_HEAD: return f"{model}, for kind={part.kind!r}"
  return ("the folder `scorer` that `rlx train_scorer` wrote into its workdir, or a Hugging Face "
          "model with a head for scores, as a folder or hf:OWNER/NAME"
          + "; a language model gets one with online.labels" * (part.online.labels is not None))


def load_tokenizer(c: keys.Config) -> tokenizer_io.Tokenizer:
  """The tokenizer of model.path, or of sft.fresh without one; reads no weights.

  Raises:
    ValueError: there is neither, or the tokenizer cannot be read.
  """
  if c.model.path is not None:
    folder = hub.folder(c.model.path, weights=False)
    weights.kind(folder)  # It says what a model is.
    return weights.load_tokenizer(folder)
  if "alphabet" not in c.sft.fresh:
    raise ValueError(f"model.path=None: {_say_model(c, 'model.path')}.")
  return tokenizer_io.characters(c.sft.fresh.alphabet)


def load_sft_model(c: keys.Config) -> Model:
  """Loads the model of model.path; if it is None, initialises one with the sizes of sft.fresh.

  Raises:
    ValueError: sft.fresh lacks a size or has an unknown one.
  """
  if c.model.path is not None: return load_model(c, c.model.path)
  sizes = c.sft.fresh.to_dict()
  options = {f.name: f.default for f in dataclasses.fields(transformer.DecoderConfig)}
  needed = {k for k, v in options.items() if v is dataclasses.MISSING}
  needed = needed - {"vocab_size"} | {"alphabet"}
  if needed - sizes.keys() or any(keys.find_range(f"sft.fresh.{name}") is None for name in sizes):
    raise ValueError(f"sft.fresh has {sorted(sizes)}; needed are {sorted(needed)}.")
  tokens = tokenizer_io.characters(sizes.pop("alphabet"))
  config = transformer.DecoderConfig(
      vocab_size=len(tokens.vocabulary), dtype=c.model.dtype, param_dtype=c.model.param_dtype,
      remat=c.model.remat, matmul_precision=c.model.matmul_precision, **sizes)
  return config, transformer.init(config, rng.key(c.seed, "init")), tokens
