"""RED's redistributed verdict against the verdict on the last token.

On the chains of environments/chains.py both arms have verdicts as the only
rewards. With beta = 1 the whole verdict is distributed over the tokens by the changes of the
value that a table predicts; with beta = 0 the last token receives it. The mean accuracy is
measured.
"""
from configs.papers import red
from experiments.claims.environments import chains, tabular

CLAIM = 1
MEASURE = ("mean accuracy over 300 steps with the verdict redistributed minus that with it on the "
           "last token")
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)


def arms():
  def config(share):
    return tabular.changed(red.get_config(), rewards__outcome__share=share)
  return chains.arms({"redistributed": config(1.0), "at the end": config(0.0)},
                     tabular.mean("accuracy"))
