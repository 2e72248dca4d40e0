"""Any data set of tensorflow-datasets, `tfds:NAME`, with text columns question and answer."""
import functools

from rlx.prompts.datasets import _columns

prompts = functools.partial(_columns.prompts, "tfds")
