"""Guess a number; the game says whether it is higher or lower (rlx/environments/game.py)."""
from rlx.configs import environments
from rlx.environments import game


def get_config(arg=""):
  return environments.get_config(
      arg, "game", alphabet=game.ALPHABET, wrong_rate=0.4,
      environment=dict(name="game.Game", turns=4), options=dict(n_min=8, n_max=15),
      turns=4, prompt_tokens=8, turn_tokens=4, observation_tokens=12, total_tokens=48)
