"""InfiMed-ORBIT: Aligning LLMs on Open-Ended Complex Tasks via Rubric-Based Incremental Training
(arXiv:2510.15859): the reward is the sum of the points of the criteria that a judge finds met,
divided by the sum of those that are above 0; prompts that are too easy or too hard are dropped.

  rlx train papers/orbit workdir=DIR
  rlx train papers/orbit:smoke workdir=DIR
  rlx train papers/orbit base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME

Rows with a column `items` have their own criteria, {"name", "text",
"weight"} with the points as weight, below 0 for what an answer has to avoid (HealthBench).

Letters beside the values: P stated in the paper, O our choice (the band). Differences from the
paper: its rubrics are written with retrieved examples, and criteria are filtered by their pass
rates, too; here the rubric of the base stands for all prompts, and groups are filtered while the
batch is sampled.

The figures of CLAIMS are those of the abstract, first version; later ones have 27.5.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "2,000 prompts raise HealthBench-Hard from 7.0 to 27.2 with Qwen3-4B-Instruct",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  base.use_judge(c)
  c.prompts.columns = dict(verifier="judge.rubric")
  c.verifier.by_item, c.verifier.default_items = "judge.rubric", base.part("rubric")
  c.rewards.outcome = dict(name="outcome.verdict", coef=1.0)                       # P
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=0.05, high=0.95)   # O
  return c
