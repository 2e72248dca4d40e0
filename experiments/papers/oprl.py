"""The world of PRIME's check: rare right answers, five steps of one token, of which any
wrong one spoils it. The other arm learns from outcomes alone. In both the advantages
are whitened, or step rewards would win by their size.

An accuracy counts as reached when it is first passed. PRIME is not an arm.
"""
from configs.papers import oprl
from experiments.worlds import steps
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("share of the steps of outcome rewards alone that step rewards save on the way "
           "to the accuracy both reach in 240")
REVISED = "step rewards took larger steps than outcomes; both arms are whitened now"


def effects(seeds):
  return steps.spared(tabular.changed(oprl.get_config(), advantages__whiten=True), seeds)
