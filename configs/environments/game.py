"""Guess a number; the game says whether it is higher or lower (rlx/environments/zoo/game.py).

  rlx sft environments/game:sft workdir=runs/game_start
  rlx train environments/game workdir=runs/game model.path=runs/game_start/model
  rlx train environments/game:outcome workdir=runs/game_outcome model.path=runs/game_start/model

The first command trains the initial model, the second is PRIME, the third has the outcome alone.
configs/environments/__init__.py has what all environments share.
"""
from rlx.configs import environments
from rlx.environments.zoo import game


def get_config(arg=""):
  return environments.get_config(
      arg, "game", alphabet=game.ALPHABET, wrong_rate=0.4,
      environment=dict(name="zoo.game.Game", turns=4), options=dict(n_min=8, n_max=15),
      turns=4, prompt_tokens=8, turn_tokens=4, observation_tokens=12, total_tokens=48,
      steps=120, per_step=32, lr=3e-4)  # Luck decides many games: gradients need more of them.
