"""Chains of digit operations with a model of 0.2M parameters: the base of the quickstart.

  rlx train papers/grpo base=toy

It is the base of all methods where none is named. A run takes one to two minutes on two CPU
threads; README.md has the figures of PRIME, RESULTS.md those of others. The initial model is
configs/models/chain: configs/sft_chain.py trained it on chains of 4 to 7 operations with noisy
steps; the chains here have 5 to 8. All values are ours.
"""
from rlx.configs import base

PARTS = {
    "checker of steps": "chain.steps",
    "checker of what each step leaves possible": "chain.recoverable",
    "checker of the form": "chain.form",
    "strict and a lenient verifier": "math_answer.final",  # It accepts "7;2;5;#5", too.
    # Two verifiers that stand in for reward models.
    "verifier of answers": "chain.answer",
    "teacher": "configs/models/chain_teacher",
    "graded verifier": "chain.step_share",
    "judge": dict(function="rlx.verifiers.chain:judge"),  # Stands in for a language model.
    # Before the answer, and its most tokens: one digit.
    "mark of the answer": ("#", 1),
    # The same where the last step belongs to what is scored.
    "mark of the last step": (";", "{}#{}", 3),
    "unit tests": "chain.checks",
    "rubric": (dict(name="right answer", weight=1.0, verifier="chain.answer"),
               dict(name="right steps", weight=0.7, verifier="chain.step_share"),
               dict(name="form", weight=0.3, verifier="chain.form")),
    # Of the alphabet of the toy, with its most tokens: one digit of an answer.
    "reference before a completion": ("{}=", 18),
    "demonstration": dict(name="chain.trace", wrong_rate=0.0),
    # An operation that does not occur in the chains, with its log-prob at the start, -9.7 +- 1.2.
    "token without use, with its log-prob": ("*", -9.7),
    "prompts for a verifier and for a judge": tuple(
        dict(source="chain", dataset="chain",
             options=dict(size=20000, n_min=n, n_max=n + 1, ops="Mm")) for n in (5, 7)),
    # In the letters of the chains; a judge's reply is a chain that ends with 1 or 0.
    "requests about completions": dict(
        verdict=dict(request="{question}{answer}=", reads=".*#([01])"),
        pair=dict(request="{question}{answer}+{other}=", reads=".*#([01])"),
        reflection=dict(request="{question}{answer}*{question}"),
        draft=dict(request="{question}{answer}+{question}")),
    "score of a completion": dict(request="{question}{answer}=", reads=".*#([01])"),
    "question in two wordings": "chain_pairs",
    "question made of several": "chain_horizon",
    "difficulty": "operations",
    **{f"dialogue with the environment {name}": name for name in (
        "calculator", "debug", "game", "python", "search", "sql")}}


def get_config(arg=""):
  c = base.get_config()
  c.steps = 100
  c.prompts.options = dict(size=20000, n_min=5, n_max=8, ops="Mm")
  c.prompts.per_step, c.prompts.max_tokens = 32, 18
  c.rollouts.per_prompt, c.rollouts.max_tokens = 8, 18
  c.rollouts.chunk = c.rollouts.bucket = 18
  c.rollouts.step_separator = ";"
  c.rollouts.filter_groups.low, c.rollouts.filter_groups.high = 0.1, 0.9
  # "failed" as in the recorded runs, where it filled 6 groups in 100 steps, all at the end.
  c.rollouts.max_draws, c.rollouts.fill = 4, "failed"
  c.learner.optimizer.lr = c.prm.optimizer.lr = 5e-4
  # Completions have 8 to 16 tokens, not thousands: with the paper's 0.05 the PRM would have to
  # change the log-prob of every token by nats before its logit is informative.
  c.prm.beta = 0.5
  # The normaliser must not amplify the rewards of the PRM before it has learned anything.
  c.rewards.process.floor = 0.5
  c.eval.prompts, c.eval.batch = 512, 512
  c.log.baseline = "configs/recorded/quickstart_outcome"
  return base.sized(c, arg)
