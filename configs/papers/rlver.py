"""RLVER: Reinforcement Learning with Verifiable Emotion Rewards for Empathetic Agents
(arXiv:2507.03112). The policy talks with a simulated person, and the reward is the emotion of this
person at the end of the conversation, from 0 to 1.

  rlx train papers/rlver prompts.source=FOLDER/{split}.jsonl workdir=DIR model.path=MODEL \
      environment.url=URL environment.model=NAME

URL is an OpenAI-compatible endpoint, whose model plays the person
(rlx/environments/zoo/person.py). A row is {"question": what the person says first, "person": who it
is and what it hopes for}.

Letters beside the values: P stated in the paper, C taken from a copy of the released code
(llsune/RLVER, hard_player_simulator_dsv3.py), O our choice. Differences from the paper: it asks its
model, DeepSeek-V3, twice a turn, first for the emotion and then for the words, and its persons have
hidden topics; it also trains by PPO. Its 500 persons are not here.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "raises Qwen2.5-7B-Instruct from 13.3 to 79.2 on the Sentient Benchmark",
    "policies that think before they speak gain empathy, others ways to act",
)


def get_config(arg=""):
  with base.over(base.chosen() or "domains"):
    base.part("chat model")
    c = quickstart.grpo(arg)
  c.prompts.source, c.prompts.dataset = "PERSONS/{split}.jsonl", "jsonl"
  c.prompts.split, c.eval.split, c.prompts.options = "train", "test", {}
  c.prompts.columns = dict(answer="person", meta="person", verifier="format.length")
  c.prompts.template = dict(name="chat", system="Think in <think></think> about how the user feels "
                            "and what may help, then reply as you would talk.")               # P, O
  c.prompts.max_tokens = 512                                                                  # O
  c.environment = dict(name="zoo.person.Person", url="", model="", start=30)                   # C
  c.episodes.turns = 8                                                                        # O
  c.episodes.turn_tokens, c.episodes.observation_tokens = 256, 128                            # O
  c.episodes.timeout_s, c.episodes.seconds = 60.0, 600.0                                      # O
  c.rollouts.max_tokens = max(c.rollouts.max_tokens, 2048)                                    # O
  c.rollouts.step_separator = "<turn>"
  c.learner.pack = False  # As in bases/tools.
  return c
