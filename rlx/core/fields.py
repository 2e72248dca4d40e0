"""Fields: the columns of a batch, each declared once, beside the function that computes it.

A field's name ends in its axes. Its declaration says its dtype, its meaning (the first line
of the producer's docstring), what of the config it needs, and when it is computed:

  given    by the rollouts or the verifiers
  host     from texts and token ids, in numpy, before the batch is placed on devices
  model    from forward passes, on devices
  later    by the stages after that: rewards, advantages, the update itself

A producer reads other fields and resources (`texts`, `tokenizer`, ...) by the names of its
positional parameters, as methods do; its keyword-only parameters are set from the config.
A host value whose name has no axes is an intermediate result that other producers read.

A field from outside the package, in the module of a reward or imported into it:

  @fields.field(np.float32)
  def words_B(texts):
    \"\"\"Words of each completion.\"\"\"
    return [len(t.split()) for t in texts]

  def brief(outcome_B, words_B, learn_B, *, most=4): ...

With `rewards.brief.name="package.module:brief"` the plan computes `words_B` for it.
"""
import dataclasses
import inspect
import math
from typing import Any, Callable, Mapping

import numpy as np

STAGES = ("given", "host", "model", "later")


@dataclasses.dataclass(frozen=True)
class Field:
  """The declaration of one column, which a stage of the loop sets if there is no producer."""
  name: str
  dtype: Any                   # None: a host value that is no array
  doc: str
  where: str = "given"         # one of STAGES
  fn: Callable | None = None   # the producer
  reads: tuple = ()            # fields and resources, in the order of fn's parameters
  options: Mapping = dataclasses.field(default_factory=dict)  # keyword of fn -> config key
  needs: Mapping = dataclasses.field(default_factory=dict)    # config key -> its value when off
  statistic: tuple = ()        # of the policy's distribution, see models/logps.py
  measure: Callable | None = None  # values of the completions with tokens -> {name: metric}
  show: Callable | None = None     # the value of a completion -> its entry in completions.jsonl

  @property
  def axes(self):
    """The axis letters that end the name; "" for a host value without axes."""
    return axes_of(self.name)

  @property
  def stem(self):
    """The name without its axes."""
    return self.name.removesuffix(f"_{self.axes}") if self.axes else self.name

  @property
  def is_logged(self):
    """Whether something of it is logged."""
    return self.measure is not None or self.show is not None


def axes_of(name):
  """Axis letters of a field's name, "" if it has none."""
  _, separator, letters = name.rpartition("_")
  return letters if separator and letters.isupper() else ""


def field(dtype, *, where="host", options=None, needs=None, statistic=(), measure=None, show=None):
  """Declares the decorated function as the producer of the field of the same name.

  Args:
    dtype: of the column; None for a host value without axes.
    where: "host" or "model".
    options: {keyword-only parameter: config key}.
    needs: {config key: value with which the field cannot be computed}.
    measure, show: what is logged of a host field that has a value for each completion. `measure`
      is given the values of all completions with tokens and returns {name: number}, the metrics
      "FIELD/name" of the step; `show` is given the value of one and returns what JSON can express,
      its entry FIELD in completions.jsonl. FIELD is the name without axes. A field with either is
      computed if the config allows it, whether or not a method reads it.
  Raises:
    ValueError: something is logged of a field that is not computed on the host.
  """
  if where != "host" and (measure or show):
    raise ValueError(f"where={where!r}: measure and show are for fields on the host.")
  def declare(fn):
    parameters = inspect.signature(fn).parameters.values()
    fn.field = Field(fn.__name__, dtype, (inspect.getdoc(fn) or "").partition("\n")[0], where, fn,
                     reads=tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD),
                     options=options or {}, needs=needs or {}, statistic=statistic,
                     measure=measure, show=show)
    return fn
  return declare


def mean(values):
  """{"mean": of the numbers that are known}, for `measure`; {} without one."""
  known = [x for x in map(float, values) if not math.isnan(x)]
  return dict(mean=sum(known) / len(known)) if known else {}


def number(value):
  """The number, None if it is unknown, for `show`."""
  return None if math.isnan(value) else float(value)


def table(*modules):
  """{name: Field} of all fields that modules declare or import, and of their `FIELDS`.

  Raises:
    ValueError: two different fields have one name.
  """
  declared = {}
  for module in modules:
    members = [getattr(x, "field", None) for x in vars(module).values()]
    for f in [*getattr(module, "FIELDS", ()), *(f for f in members if isinstance(f, Field))]:
      if declared.setdefault(f.name, f) is not f:
        raise ValueError(f"{f.name} is declared twice, also in {module.__name__}.")
  return declared


def column(name):
  """The column that a name reads: `outcome_PG` is `outcome_B` by prompt."""
  return name.removesuffix("_PG") + "_B" if name.endswith("_PG") else name


@dataclasses.dataclass(frozen=True)
class Reader:
  """A method or stage that reads fields, by the config key that names it."""
  key: str
  required: tuple
  optional: tuple = ()


def plan(declared, readers, resources, setting):
  """The fields to compute for readers, each after the fields that it reads.

  A field that is optional for a reader is computed if the config allows it.

  Args:
    declared: {name: Field}.
    resources: names of what the loop passes to producers.
    setting: config key -> value.
  Raises:
    ValueError: a reader or producer reads what nothing computes, the config lacks what a
      field needs, or fields need each other.
  """
  order, visiting = [], []

  def need(name, by):
    name = column(name)
    if name not in declared and name + "_B" in declared: name += "_B"  # Its first row.
    if name in resources or name in order: return
    if name in visiting:
      raise ValueError(f"{' <- '.join([*visiting, name])}: fields need each other.")
    if name not in declared: raise ValueError(f"{by} reads {name}, which nothing computes.")
    f = declared[name]
    require(f, by, setting)
    visiting.append(name)
    for other in f.reads: need(other, by)
    visiting.pop()
    order.append(name)

  for reader in readers:
    for name in reader.required: need(name, reader.key)
    for name in map(column, reader.optional):
      if name in declared and find_missing_key(declared[name], setting) is None:
        need(name, reader.key)
  for name in order:
    if late := [r for r in declared[name].reads if r in declared and STAGES.index(
        declared[r].where) > STAGES.index(declared[name].where)]:
      raise ValueError(f"{name} is computed in the stage {declared[name].where!r} and reads "
                       f"{late[0]}, which is computed later.")
  return [declared[name] for name in order]


def find_missing_key(f, setting):
  """The first config key that the field needs and that is off; None if there is none."""
  return next((key for key, off in f.needs.items() if setting(key) == off), None)


def require(f, by, setting):
  """Raises a ValueError if the config lacks what the field needs."""
  if (key := find_missing_key(f, setting)) is not None:
    raise ValueError(f"{key}={setting(key)!r}: {by} reads {f.name}, which needs it.")


def compute(planned, where, values, options, view=None):
  """The values of the planned fields of a stage, added to `values`.

  Args:
    planned: of `plan`.
    values: {name: fields and resources that are known}; host arrays are numpy.
    options: {field: {keyword: value}} of the producers that have options.
    view: (values, name) -> what a name stands for that is in no column, such as outcome_PG.
  Returns:
    {name: value} of values and of the fields of this stage.
  """
  values = dict(values)
  for f in planned:
    if f.where != where or f.name in values: continue
    value = f.fn(*(values[name] if name in values else view(values, name) for name in f.reads),
                 **options.get(f.name, {}))
    if where == "host" and f.dtype is not None: value = np.asarray(value, f.dtype)
    values[f.name] = value
  return values


def example(declared, names, sizes):
  """{column: zeros} of what readers ask for by these names; a name without a column has none.

  Args:
    sizes: {axis letter: size}.
  """
  columns = (column(name) if column(name) in declared else f"{name}_B" for name in names)
  return {name: np.zeros([sizes[letter] for letter in f.axes], f.dtype)
          for name in dict.fromkeys(columns) if (f := declared.get(name)) and f.axes}
