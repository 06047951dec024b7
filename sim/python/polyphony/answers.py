"""The answers of the commands as frozen dataclasses.

Written by scripts/python_answers from `polyphony schema COMMAND`; do not edit. A field is named like
its key in the command's JSON, and its unit is part of its name: `_seconds`, `_bytes`. Shares and
relative changes are fractions of 1.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Mapping

from ._values import Answer


@dataclass(frozen=True, kw_only=True, repr=False)
class PredictionChanceError(Answer):
    """One error.

    Attributes
    ----------
    effect: change of the natural logarithm of the step time
    parameters: the parameters of the profile that change together, with their relative change
    """

    effect: float
    parameters: Mapping[str, float]


@dataclass(frozen=True, kw_only=True, repr=False)
class PredictionChanceExtrapolated(Answer):
    """Work outside the fitted ranges.

    Attributes
    ----------
    count: number of such ops or messages
    share: fraction of that kind of work that is outside
    what: a kind of work outside the ranges that the profile was fitted to
    """

    count: int
    share: float
    what: str


@dataclass(frozen=True, kw_only=True, repr=False)
class PredictionChanceJitter(Answer):
    """Step times with random jitter; only with --jitter.

    Attributes
    ----------
    largest_seconds: the largest step time drawn, in seconds
    p50_seconds: percentile of the step time in seconds; null: too few steps were drawn
    p95_seconds: percentile of the step time in seconds; null: too few steps were drawn
    p99_seconds: percentile of the step time in seconds; null: too few steps were drawn
    predictor: how these steps were predicted: simulate or estimate
    steps: number of steps drawn
    """

    largest_seconds: float
    p50_seconds: float | None
    p95_seconds: float | None
    p99_seconds: float | None
    predictor: str
    steps: int


@dataclass(frozen=True, kw_only=True, repr=False)
class PredictionChance(Answer):
    """Uncertainty of the step time.

    Attributes
    ----------
    deviation: standard deviation of the natural logarithm of the step time
    errors: errors that the profile states
    extrapolated: work for which the profile extrapolates
    footing: calibration basis: whether the profile was fitted to measurements of this stack and device
    freedom: degrees of freedom of Student's t distribution, whose scale is the deviation; 0: normal
    interval90_seconds: 90 % interval of the step time, in seconds
    jitter: step times with random jitter; only with --jitter
    jitter_known: whether the profile has a model of jitter (variation between steps)
    megatron_core_0_12_tflops_per_gpu: as Megatron-LM from core 0.12 on prints it: half of causal attention; 0: not known
    megatron_mfu: MFU as Megatron-LM would compute it, a fraction; 0: unknown
    megatron_tflops_per_gpu: as Megatron-LM before core 0.12 prints it: all of the attention matrix; 0: not known
    mfu: model FLOPs utilization, a fraction; 0: unknown
    other_software: the profile's software, if the scenario names another stack; else empty
    parameter_deviation: part of the deviation that is due to errors of the profile's parameters
    residual_deviation: part of the deviation that is due to what is not modeled
    torchtitan_mfu: MFU as torchtitan would compute it, a fraction; 0: unknown
    """

    deviation: float
    errors: tuple[PredictionChanceError, ...]
    extrapolated: tuple[PredictionChanceExtrapolated, ...]
    footing: str
    freedom: int
    interval90_seconds: tuple[float, ...]
    jitter: PredictionChanceJitter | None = field(metadata={"optional": True}, default=None)
    jitter_known: bool
    megatron_core_0_12_tflops_per_gpu: float
    megatron_mfu: float
    megatron_tflops_per_gpu: float
    mfu: float
    other_software: str
    parameter_deviation: float
    residual_deviation: float
    torchtitan_mfu: float


@dataclass(frozen=True, kw_only=True, repr=False)
class PredictionUnchanged(Answer):
    """Its answer.

    Attributes
    ----------
    fits: whether it fits in the device's memory
    layout: the best layout; only for a sweep
    mfu: model FLOPs utilization, a fraction
    peak_memory_bytes: peak memory of the worst rank
    step_seconds: step time of the scenario as written, in seconds
    tokens_per_second_per_rank: language tokens per second and rank
    """

    fits: bool
    layout: str | None = field(metadata={"optional": True}, default=None)
    mfu: float
    peak_memory_bytes: int
    step_seconds: float
    tokens_per_second_per_rank: float


@dataclass(frozen=True, kw_only=True, repr=False)
class NoAnswer(Answer):
    """There is no answer.

    Attributes
    ----------
    no_answer: why the scenario as written has no answer
    """

    no_answer: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Prediction(Answer):
    """The prediction of one training step.

    Attributes
    ----------
    backward_recomputes: whether backward passes include recomputation
    busiest_rank: rank that idles least
    busiest_rank_seconds: seconds of that rank, by part of the step
    chance: uncertainty of the step time
    dollars_per_million_tokens: dollars per million tokens; null: the price is unknown
    dollars_per_step: dollars per step; null: the price is unknown
    estimate_seconds: step time in seconds without contention, a lower bound of the simulation
    fits: whether it fits in the device's memory
    folded: whether only representative ranks were predicted, each for all that do the same
    host_memory_bytes: offloaded activations in host memory, the most of any rank
    kwh_per_million_tokens: kilowatt-hours of all devices per million tokens; null: the power is unknown
    kwh_per_step: kilowatt-hours of all devices per step; null: the power is unknown
    layout: the layout in words
    library_memory_bytes: memory of that rank's GPU that libraries take besides tensors: CUDA context, NCCL, cuBLAS; 0: not a GPU, or another framework's
    memory_of: the software whose rules give which activations a layer saves
    mfu: model FLOPs utilization, a fraction; 0: unknown
    notes: remarks on the answer
    out_of_memory: what the layout needs and what would fit; only if it does not fit in memory
    peak_memory_bytes: peak memory of the worst rank
    predictor: how the step was predicted: simulate or estimate
    profile: name of the hardware profile
    set: the changes made by --set
    stack: name of the software stack
    stated_error: relative error of step times that the profile states: half of a 90 % interval
    step_change: relative change of the step time: (step - unchanged) / unchanged
    step_seconds: predicted step time in seconds
    tokens_per_second_per_rank: language tokens per second and rank
    unchanged: answer for the scenario as written, without --set
    worst_stage: pipeline stage of the rank that needs most memory
    """

    backward_recomputes: bool
    busiest_rank: int
    busiest_rank_seconds: Mapping[str, float]
    chance: PredictionChance
    dollars_per_million_tokens: float | None
    dollars_per_step: float | None
    estimate_seconds: float
    fits: bool
    folded: bool
    host_memory_bytes: int
    kwh_per_million_tokens: float | None
    kwh_per_step: float | None
    layout: str
    library_memory_bytes: int
    memory_of: str
    mfu: float
    notes: tuple[str, ...]
    out_of_memory: str | None = field(metadata={"optional": True}, default=None)
    peak_memory_bytes: int
    predictor: str
    profile: str
    set: tuple[str, ...] | None = field(metadata={"optional": True}, default=None)
    stack: str
    stated_error: float
    step_change: float | None = field(metadata={"optional": True}, default=None)
    step_seconds: float
    tokens_per_second_per_rank: float
    unchanged: PredictionUnchanged | NoAnswer | None = field(metadata={"optional": True}, default=None)
    worst_stage: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Candidate(Answer):
    """One layout of the answer.

    Attributes
    ----------
    beats_best: probability that it is faster than the first row
    bound_seconds: lower bound of the step time in seconds, in closed form
    breakdown_seconds: seconds of the step of the rank that idles least: compute by kind, and idle time by what it waited for; only for rows that are compared with the first
    brief: the layout in short form (scenarios/GLOSSARY.md)
    difference90_seconds: 90 % interval of its step time minus that of the first row, in seconds
    dollars_per_million_tokens: dollars or kilowatt-hours, as the key states; null: the price or the power is unknown
    dollars_per_step: dollars or kilowatt-hours, as the key states; null: the price or the power is unknown
    estimate_seconds: step time in seconds by the longest path, without contention
    interval90_seconds: 90 % interval of the step time, in seconds
    kwh_per_million_tokens: dollars or kilowatt-hours, as the key states; null: the price or the power is unknown
    kwh_per_step: dollars or kilowatt-hours, as the key states; null: the price or the power is unknown
    layout: the layout in words
    layout_form: the layout in the form of a scenario's /layout
    leading: true for the first row with its placement, ranks of modules and grid of the language module
    library_memory_bytes: memory of that rank's GPU that libraries take besides tensors; 0: not a GPU, or another framework's
    mfu: model FLOPs utilization, a fraction; 0: the peak of the device is unknown
    name: name of the baseline; only for baselines
    p95_seconds: 95th percentile of the step time over varying batches, in seconds; only for the first rows, if it is the goal; null: a batch does not fit in memory
    peak_memory_bytes: peak memory of the worst rank
    placement: how the modules share the ranks
    simulated: true: simulated; false: only estimated
    step_change: relative difference from the first baseline: (step - baseline) / baseline
    step_change90: 90 % interval of step_change
    step_seconds: step time in seconds, from the most accurate predictor that ran
    tied: within the stated errors of the profile, this layout could be the fastest
    tokens_per_second_per_rank: language tokens per second and rank
    words: the layout as the table of `polyphony sweep` writes it
    worst_stage: pipeline stage of the rank that needs most memory
    """

    beats_best: float | None = field(metadata={"optional": True}, default=None)
    bound_seconds: float
    breakdown_seconds: Mapping[str, float] | None = field(metadata={"optional": True}, default=None)
    brief: str
    difference90_seconds: tuple[float, ...] | None = field(metadata={"optional": True}, default=None)
    dollars_per_million_tokens: float | None
    dollars_per_step: float | None
    estimate_seconds: float
    interval90_seconds: tuple[float, ...] | None = field(metadata={"optional": True}, default=None)
    kwh_per_million_tokens: float | None
    kwh_per_step: float | None
    layout: str
    layout_form: Mapping[str, Any]
    leading: bool
    library_memory_bytes: int
    mfu: float
    name: str | None = field(metadata={"optional": True}, default=None)
    p95_seconds: float | None = field(metadata={"optional": True}, default=None)
    peak_memory_bytes: int
    placement: Literal["homogeneous", "colocated", "non-colocated", "mixed"]
    simulated: bool
    step_change: float | None = field(metadata={"optional": True}, default=None)
    step_change90: tuple[float, ...] | None = field(metadata={"optional": True}, default=None)
    step_seconds: float
    tied: bool
    tokens_per_second_per_rank: float
    words: str
    worst_stage: str


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchGoalPointCampaign(Answer):
    """The whole run; only if the goal has a number of tokens.

    Attributes
    ----------
    checkpoint_interval_seconds: seconds of training between two checkpoints
    checkpoint_seconds: seconds to write a checkpoint
    days: duration of the run in days, including failures
    dollars: price of all allocated ranks for that time; 0: the price is unknown
    share_at_work: fraction of the time spent on training; the rest goes to checkpoints and failures
    steps: number of steps of the run
    """

    checkpoint_interval_seconds: float
    checkpoint_seconds: float
    days: float
    dollars: float
    share_at_work: float
    steps: float


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchGoalPoint(Answer):
    """One choice of nodes and batch.

    Attributes
    ----------
    campaign: the whole run; only if the goal has a number of tokens
    candidate: the layout
    global_batch: samples per step
    nodes: number of nodes used
    ranks: number of ranks on these nodes
    values: by objective: seconds for the scenario's batch, tokens per second and GPU, days, dollars, or bytes
    """

    campaign: SearchGoalPointCampaign | None = field(metadata={"optional": True}, default=None)
    candidate: Candidate
    global_batch: int
    nodes: int
    ranks: int
    values: Mapping[str, float]


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchGoal(Answer):
    """Result for the scenario's goal; only if it has one.

    Attributes
    ----------
    objective: the objectives: one or two
    points: the best layout of each choice, best first; for two objectives, the Pareto front
    """

    objective: tuple[Literal["step", "tokens_per_gpu", "days", "dollars", "p95", "memory"], ...]
    points: tuple[SearchGoalPoint, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchLeastNodesTried(Answer):
    """One number of nodes.

    Attributes
    ----------
    fits: whether a layout was found that fits
    nodes: number of nodes
    """

    fits: bool
    nodes: int


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchLeastNodes(Answer):
    """How many nodes are needed; only with --gpus ?xNAME. The key "goal" then has the best layout of that number and of its doublings.

    Attributes
    ----------
    nodes: the least number of nodes on which a layout fits; null: none of those tried is enough
    tried: the numbers of nodes that were searched for it, in this order
    """

    nodes: int | None
    tried: tuple[SearchLeastNodesTried, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchNearestMisfit(Answer):
    """SearchNearestMisfit.

    Attributes
    ----------
    layout
    memory_bytes
    where
    """

    layout: str
    memory_bytes: int
    where: str


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchQuestion(Answer):
    """What was asked, in words.

    Attributes
    ----------
    accuracy
    cluster
    data
    model
    software
    """

    accuracy: str | None = field(metadata={"optional": True}, default=None)
    cluster: str | None = field(metadata={"optional": True}, default=None)
    data: str | None = field(metadata={"optional": True}, default=None)
    model: str | None = field(metadata={"optional": True}, default=None)
    software: str | None = field(metadata={"optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchRejected(Answer):
    """Illegal combinations with one reason.

    Attributes
    ----------
    count: number of combinations rejected for this reason
    example: the reason, with the values of one of the combinations
    placement: placement of the combinations
    """

    count: int
    example: str
    placement: Literal["homogeneous", "colocated", "non-colocated", "mixed"]


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchTarget(Answer):
    """What a search for the framework of --for found.

    Attributes
    ----------
    best: the best layout of all, in words; null: row 1, which it can run
    best_step_seconds: of that layout
    framework: the framework
    missing: what the best layout needs and the framework does not have
    runs: it can run the rows of the answer; false: none that was searched
    slower: relative difference of row 1's step from that of the best layout
    version: of the framework; null: the newest that is known
    """

    best: str | None
    best_step_seconds: float | None
    framework: str
    missing: tuple[str, ...]
    runs: bool
    slower: float
    version: str | None


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchTiedBy(Answer):
    """SearchTiedBy.

    Attributes
    ----------
    share
    what
    """

    share: float
    what: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Search(Answer):
    """The ranking of layouts found by a search.

    Attributes
    ----------
    assumed: what the question left open, and what was assumed
    baselines: the scenario's own layout, and those that are commonly chosen without a search
    combinations: number of combinations in the whole search space
    device_memory_bytes: memory of one device; null: unknown
    estimated: number of layouts estimated by the longest path
    failed: error messages of failed workers
    footing: calibration basis: whether the profile was fitted to measurements of this stack and device
    gaps: by placement: fraction by which a layout that was not evaluated could be faster than the best
    goal: result for the scenario's goal; only if it has one
    least_nodes: how many nodes are needed; only with --gpus ?xNAME. The key "goal" then has the best layout of that number and of its doublings
    legal: legal combinations that were evaluated individually
    nearest_misfit: of the layouts that do not fit, the one that needs the least memory
    not_runnable: why the executor cannot run any layout, if --runnable was given; else empty
    notes: remarks on the answer
    over_margin: true if no layout leaves the search's memory_margin free, so that rows take more
    profile: name of the hardware profile
    question: what was asked, in words
    ranked: layouts, fastest first
    rejected: illegal combinations, by reason
    scenario: the question as a scenario (`polyphony schema scenario`)
    screened_by_bound: combinations that fit, but were ruled out by their lower bound
    set: the changes made by --set
    simplest: index, from 0, of the tied row within 2 % of the best step that has the fewest kinds of parallelism, sharding and recomputation
    simulated: number of layouts simulated
    stack: name of the software stack
    stated_error: relative error of step times that the profile states: half of a 90 % interval
    step_change: relative change of the step time: (step - unchanged) / unchanged
    stopped: true if the search ended early
    target: what a search for the framework of --for found
    tied: number of tied rows, including the first
    tied_by: what determines the order of the tied rows, with its share of the variance of differences
    too_large: legal combinations that do not fit in memory
    unchanged: answer for the scenario as written, without --set
    why: for each other placement, where its best layout loses time
    """
    _rows: ClassVar[str] = "ranked"

    assumed: tuple[str, ...] | None = field(metadata={"optional": True}, default=None)
    baselines: tuple[Candidate, ...]
    combinations: float
    device_memory_bytes: int | None
    estimated: int
    failed: tuple[str, ...]
    footing: str
    gaps: Mapping[str, float]
    goal: SearchGoal | None = field(metadata={"optional": True}, default=None)
    least_nodes: SearchLeastNodes | None = field(metadata={"optional": True}, default=None)
    legal: int
    nearest_misfit: SearchNearestMisfit | None
    not_runnable: str
    notes: tuple[str, ...]
    over_margin: bool
    profile: str
    question: SearchQuestion | None = field(metadata={"optional": True}, default=None)
    ranked: tuple[Candidate, ...]
    rejected: tuple[SearchRejected, ...]
    scenario: Mapping[str, Any] | None = field(metadata={"optional": True}, default=None)
    screened_by_bound: int
    set: tuple[str, ...] | None = field(metadata={"optional": True}, default=None)
    simplest: int
    simulated: int
    stack: str
    stated_error: float
    step_change: float | None = field(metadata={"optional": True}, default=None)
    stopped: bool
    target: SearchTarget | None = field(metadata={"optional": True}, default=None)
    tied: int
    tied_by: tuple[SearchTiedBy, ...]
    too_large: int
    unchanged: PredictionUnchanged | NoAnswer | None = field(metadata={"optional": True}, default=None)
    why: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanModule(Answer):
    """A module.

    Attributes
    ----------
    kind: kind of module
    module: name of the module
    parameters: number of parameters of the whole module
    trainable: which part of it is trained
    """

    kind: str
    module: str
    parameters: int
    trainable: str


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanOrderMicrobatch(Answer):
    """Microbatches of one module.

    Attributes
    ----------
    module: name of the module
    planned_seconds: seconds of each microbatch with the planner; for planner dip, of each sub-microbatch, in execution order
    unplanned_seconds: seconds of each microbatch without the planner, ordered by data-parallel replica
    """

    module: str
    planned_seconds: tuple[float, ...]
    unplanned_seconds: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanOrder(Answer):
    """Plan of the typical batch; only if the layout has planner dip.

    Attributes
    ----------
    as_the_layout_says: forward actions whose backward recomputes what the layout states
    believed_seconds: makespan of the order in seconds, by the costs that the planner uses
    bound_seconds: lower bound of the makespan of any order in seconds, by the same costs
    filled: number of these that have items
    kept: forward actions whose backward recomputes nothing
    microbatches: compute time of microbatches: forward and backward through all stages of the module
    offloaded: forward actions whose saved activations are offloaded to host memory
    recomputed: forward actions whose backward recomputes everything
    recomputed_selectively: forward actions whose backward recomputes attention
    step_seconds: estimated step time with the planner, in seconds
    unplanned_fits: whether the step without the planner fits in the devices' memory
    unplanned_seconds: estimated step time without the planner, in seconds
    works: number of encoder sub-microbatches, over all data-parallel replicas
    """

    as_the_layout_says: int
    believed_seconds: float
    bound_seconds: float
    filled: int
    kept: int
    microbatches: tuple[PlanOrderMicrobatch, ...]
    offloaded: int
    recomputed: int
    recomputed_selectively: int
    step_seconds: float
    unplanned_fits: bool
    unplanned_seconds: float
    works: int


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanProgram(Answer):
    """The Program of one step.

    Attributes
    ----------
    hash: hash of the whole Program
    messages: number of messages between ranks
    ops: number of ops of all ranks
    ranks: number of ranks
    """

    hash: str
    messages: int
    ops: int
    ranks: int


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanSplitBetter(Answer):
    """The split that an aware balance chooses; only if it differs from this one.

    Attributes
    ----------
    blocks: number of blocks of each stage
    dearest_seconds: cost of the bottleneck rank for a mean microbatch, in seconds
    memory_bytes: lower bound of the peak memory of the layout's worst rank with this split
    """

    blocks: tuple[int, ...]
    dearest_seconds: float
    memory_bytes: int


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanSplitBoundary(Answer):
    """One block moved.

    Attributes
    ----------
    earlier: the split with one more block in the stage before the boundary
    later: the split with one more block in the stage after the boundary
    """

    earlier: PlanSplitBetter | None = field(metadata={"optional": True}, default=None)
    later: PlanSplitBetter | None = field(metadata={"optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanSplit(Answer):
    """A branch with several stages.

    Attributes
    ----------
    better: the split that an aware balance chooses; only if it differs from this one
    blocks: number of blocks of each stage
    bottleneck: stages of the bottleneck, the most expensive rank
    boundaries: boundaries after stage 0, 1, …
    branch: modules of the branch
    dearest_seconds: cost of the bottleneck rank for a mean microbatch, in seconds: forward and backward passes, and waiting for messages
    exact: whether better and next are the best of all splits, rather than of those found by a heuristic
    given: whether the layout states the split
    mean_seconds: mean cost over all ranks, in seconds
    next: the next best split; only if this one is what an aware balance chooses
    """

    better: PlanSplitBetter | None = field(metadata={"optional": True}, default=None)
    blocks: tuple[int, ...]
    bottleneck: str
    boundaries: tuple[PlanSplitBoundary, ...]
    branch: str
    dearest_seconds: float
    exact: bool
    given: bool
    mean_seconds: float
    next: PlanSplitBetter | None = field(metadata={"optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanStage(Answer):
    """A pipeline stage.

    Attributes
    ----------
    backward_seconds: backward time for a mean microbatch including recomputation, in seconds
    forward_seconds: forward time for a mean microbatch, in seconds
    grid: parallel degrees of its branch
    layers: layers by module: [first, last + 1)
    memory_bytes: predicted peak memory of its worst rank, including other stages on that rank
    parameters_per_rank: parameters per rank before data-parallel sharding
    ranks: first and last rank
    stage: number of the stage in its branch, from 0
    """

    backward_seconds: float
    forward_seconds: float
    grid: str
    layers: str
    memory_bytes: int
    parameters_per_rank: int
    ranks: str
    stage: int


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanWorkEncoder(Answer):
    """Spread of the work of all encoders together.

    Attributes
    ----------
    least: lower bound of the spread over all assignments of whole samples
    planned: spread with the planner
    unplanned: spread without the planner, in the order of the batch
    """

    least: float
    planned: float
    unplanned: float


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanWork(Answer):
    """Plan of the typical batch; only if the layout has planner entrain.

    Attributes
    ----------
    deferred: number of samples deferred to the next microbatch
    encoder: spread of the work of all encoders together
    language: spread of the work of the language module
    microbatches: compute time of microbatches: forward and backward through all stages of the module
    planner: name of the planner
    ranks: ranks of each branch in one data-parallel replica; empty: branches share ranks
    samples: number of samples in the batch
    stable_batch: number of samples from which on every batch suggests the same division of ranks; 0: none found
    stable_ranks: that division of ranks, by branch
    step_seconds: estimated step time with the planner, in seconds
    unplanned_seconds: estimated step time without a planner, in seconds
    """

    deferred: int
    encoder: PlanWorkEncoder
    language: PlanWorkEncoder
    microbatches: tuple[PlanOrderMicrobatch, ...]
    planner: str
    ranks: tuple[int, ...]
    samples: int
    stable_batch: int
    stable_ranks: tuple[int, ...]
    step_seconds: float
    unplanned_seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Answer):
    """Modules, stages and costs of a scenario's layout.

    Attributes
    ----------
    balance: how stages are balanced if the layout does not state their blocks
    device_memory_bytes: memory of one device; 0: unknown
    layout: the layout in one line
    modules: modules of the model
    order: plan of the typical batch; only if the layout has planner dip
    program: the Program of one step
    simulation_only: why the executor cannot run the layout; only if it cannot
    splits: comparison of the split into stages with other splits
    stages: pipeline stages of all branches
    work: plan of the typical batch; only if the layout has planner entrain
    """
    _rows: ClassVar[str] = "stages"

    balance: str | None = field(metadata={"optional": True}, default=None)
    device_memory_bytes: int | None = field(metadata={"optional": True}, default=None)
    layout: str | None = field(metadata={"optional": True}, default=None)
    modules: tuple[PlanModule, ...]
    order: PlanOrder | None = field(metadata={"optional": True}, default=None)
    program: PlanProgram | None = field(metadata={"optional": True}, default=None)
    simulation_only: str | None = field(metadata={"optional": True}, default=None)
    splits: tuple[PlanSplit, ...] | None = field(metadata={"optional": True}, default=None)
    stages: tuple[PlanStage, ...] | None = field(metadata={"optional": True}, default=None)
    work: PlanWork | None = field(metadata={"optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class ExplanationMemory(Answer):
    """Memory of the rank with the largest peak.

    Attributes
    ----------
    at_peak_bytes: memory at the peak, by kind of buffer
    device_bytes: memory of the device; 0: unknown
    fits: whether the peak fits in the device's memory
    host_bytes: its offloaded activations in host memory
    peak_bytes: peak memory of that rank
    rank: rank with the largest peak
    stage: pipeline stage of the rank with the largest peak
    """

    at_peak_bytes: Mapping[str, int]
    device_bytes: int
    fits: bool
    host_bytes: int
    peak_bytes: int
    rank: int
    stage: str


@dataclass(frozen=True, kw_only=True, repr=False)
class ExplanationWorthTrying(Answer):
    """A change.

    Attributes
    ----------
    certainty: probability that the step becomes faster
    changes: what is changed, in words
    estimate_seconds: estimated step time of the changed layout, in seconds
    gain: relative reduction of the step time: (now - then) / now
    layout: the changed layout in words
    peak_memory_bytes: peak memory of the worst rank
    settings: the change in the settings of the framework that --for names
    """

    certainty: float
    changes: tuple[str, ...]
    estimate_seconds: float
    gain: float
    layout: str
    peak_memory_bytes: int
    settings: tuple[str, ...] | None = field(metadata={"optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation(Answer):
    """Where the time of a step goes.

    Attributes
    ----------
    backward_recomputes: whether backward passes include recomputation
    critical_rank: rank that idles least
    critical_rank_seconds: seconds of that rank, by part of the step
    estimate_seconds: estimated step time in seconds, for comparison with the changes; null: none was tried
    fitting: number of changes that fit in memory
    layout: the layout in words
    looked_at: number of changes evaluated
    mean_seconds: seconds by part of the step, mean over ranks
    memory: memory of the rank with the largest peak
    notes: remarks on the answer
    out_of_memory: what the layout needs; only if it does not fit in memory
    predictor: simulate or estimate
    profile: name of the hardware profile
    set: the changes made by --set
    stack: software
    step_change: relative change of the step time: (step - unchanged) / unchanged
    step_seconds: predicted step time in seconds
    unanswered: number of changes that could not be predicted
    unchanged: answer for the scenario as written, without --set
    worth_trying: changes worth trying, best first
    """
    _rows: ClassVar[str] = "worth_trying"

    backward_recomputes: bool
    critical_rank: int
    critical_rank_seconds: Mapping[str, Any]
    estimate_seconds: float | None
    fitting: int
    layout: str
    looked_at: int
    mean_seconds: Mapping[str, Any]
    memory: ExplanationMemory
    notes: tuple[str, ...]
    out_of_memory: str | None = field(metadata={"optional": True}, default=None)
    predictor: str
    profile: str
    set: tuple[str, ...] | None = field(metadata={"optional": True}, default=None)
    stack: str
    step_change: float | None = field(metadata={"optional": True}, default=None)
    step_seconds: float
    unanswered: int
    unchanged: PredictionUnchanged | NoAnswer | None = field(metadata={"optional": True}, default=None)
    worth_trying: tuple[ExplanationWorthTrying, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class SchedulesSchedule(Answer):
    """A schedule at its best setting.

    Attributes
    ----------
    bound_seconds: lower bound for any order of these stages
    bubbles: idle share of the step, by rank
    drawn_makespan_seconds: times of steps with randomly drawn microbatches, ascending
    fits: whether it fits in the given memory
    makespan_seconds: time of the step
    peak_activation_bytes: saved activations, by rank
    refusal: why no setting can run; if present, the other keys are absent
    schedule: its name
    setting: the best setting of the schedule
    """

    bound_seconds: float | None = field(metadata={"optional": True}, default=None)
    bubbles: tuple[float, ...] | None = field(metadata={"optional": True}, default=None)
    drawn_makespan_seconds: tuple[float, ...] | None = field(metadata={"optional": True}, default=None)
    fits: bool | None = field(metadata={"optional": True}, default=None)
    makespan_seconds: float | None = field(metadata={"optional": True}, default=None)
    peak_activation_bytes: tuple[int, ...] | None = field(metadata={"optional": True}, default=None)
    refusal: str | None = field(metadata={"optional": True}, default=None)
    schedule: str
    setting: str | None = field(metadata={"optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class Schedules(Answer):
    """Comparison of schedules.

    Attributes
    ----------
    bound_seconds: lower bound for any stages and any order
    schedules: those that fit first, fastest first; refused ones last
    """
    _rows: ClassVar[str] = "schedules"

    bound_seconds: float
    schedules: tuple[SchedulesSchedule, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class ReplayAfterCriticalPath(Answer):
    """Ops of one class on one rank.

    Attributes
    ----------
    class_: class of the ops
    end_seconds: from the step's start
    ops: number of consecutive ops
    rank: rank that runs the ops
    start_seconds: from the step's start
    """

    class_: str = field(metadata={"key": "class"})
    end_seconds: float
    ops: int
    rank: int
    start_seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class ReplayAfterPartsSeconds(Answer):
    """Of the step shown in detail, mean over ranks.

    Attributes
    ----------
    all_reduce
    backward
    exchange
    forward
    host_copies
    idle
    optimizer
    recompute
    """

    all_reduce: float = field(metadata={"key": "all-reduce"})
    backward: float
    exchange: float
    forward: float
    host_copies: float = field(metadata={"key": "host copies"})
    idle: float
    optimizer: float
    recompute: float


@dataclass(frozen=True, kw_only=True, repr=False)
class ReplayAfterTimesFrom(Answer):
    """Durations of a class of ops.

    Attributes
    ----------
    class_: class of ops
    measured_seconds: of ops that keep their measured times
    modelled_seconds: of ops without a measurement, priced by the cost model and corrected by its error on their kind
    scaled_seconds: of ops with measured times scaled by the cost model
    """

    class_: str = field(metadata={"key": "class"})
    measured_seconds: float
    modelled_seconds: float
    scaled_seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class ReplayAfter(Answer):
    """With the changes.

    Attributes
    ----------
    critical_path: of the step shown in detail
    layout: description of the layout
    parts_seconds: of the step shown in detail, mean over ranks
    peak_memory_bytes: predicted, of the rank that needs most
    step_seconds: median over the replayed steps
    steps_seconds: 10th and 90th percentile of the replayed steps
    times_from: origin of the durations, by class of ops
    """

    critical_path: tuple[ReplayAfterCriticalPath, ...]
    layout: str
    parts_seconds: ReplayAfterPartsSeconds
    peak_memory_bytes: int
    step_seconds: float
    steps_seconds: tuple[float, ...]
    times_from: tuple[ReplayAfterTimesFrom, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class ReplayDifference(Answer):
    """A class of ops.

    Attributes
    ----------
    after_seconds: on the critical path
    before_seconds: on the critical path
    class_: class of ops
    """

    after_seconds: float
    before_seconds: float
    class_: str = field(metadata={"key": "class"})


@dataclass(frozen=True, kw_only=True, repr=False)
class Replay(Answer):
    """A replay; with --vary one per value.

    Attributes
    ----------
    after: with the changes
    before: as it was measured
    changes: the changes, as on the command line
    differences: what explains the change: critical path seconds by class, the largest difference first
    interval80_seconds: 80 % interval of the changed run's median step
    interval90_seconds: 90 % interval of the changed run's median step
    measured_seconds: median of the measured steps
    notes: notes for the user
    profile: profile that prices changes
    repeatability: half of the interquartile range of the measured steps, relative
    replay_error: (replayed unchanged - measured) / measured
    run: its folder or trace files
    step_change: (after - before) / before
    steps: number of measured steps
    """

    after: ReplayAfter | None = field(metadata={"optional": True}, default=None)
    before: ReplayAfter
    changes: tuple[str, ...]
    differences: tuple[ReplayDifference, ...] | None = field(metadata={"optional": True}, default=None)
    interval80_seconds: tuple[float, ...] | None = field(metadata={"optional": True}, default=None)
    interval90_seconds: tuple[float, ...] | None = field(metadata={"optional": True}, default=None)
    measured_seconds: float
    notes: tuple[str, ...]
    profile: str
    repeatability: float
    replay_error: float
    run: str
    step_change: float | None = field(metadata={"optional": True}, default=None)
    steps: int


@dataclass(frozen=True, kw_only=True, repr=False)
class StepTimeCalibrationError(Answer):
    """One parameter.

    Attributes
    ----------
    deviation: relative deviation after the fit
    moved: false: no measurement depends on it and it kept its prior
    parameter: its key in the profile
    prior: value before the fit: seconds, or a ratio
    prior_deviation: relative deviation before the fit
    value: fitted value
    """

    deviation: float
    moved: bool
    parameter: str
    prior: float
    prior_deviation: float
    value: float


@dataclass(frozen=True, kw_only=True, repr=False)
class StepTimeCalibrationEvidence(Answer):
    """One run.

    Attributes
    ----------
    after_seconds: step time predicted by the fitted profile
    before_seconds: step time predicted by the prior profile
    measured_seconds: measured step time; 0: not measured
    memory_bytes: measured peak of allocated memory
    outlier: true: further off than any stated error, not used in the fit
    predicted_memory_bytes: predicted peak of allocated memory
    reserved_bytes: measured peak of reserved memory
    source: file, or the name given in the evidence file
    unseen: ln(measured / predicted) of a fit without this run
    unseen_deviation: deviation stated for `unseen`
    """

    after_seconds: float
    before_seconds: float
    measured_seconds: float
    memory_bytes: int | None
    outlier: bool
    predicted_memory_bytes: int
    reserved_bytes: int | None
    source: str
    unseen: float
    unseen_deviation: float


@dataclass(frozen=True, kw_only=True, repr=False)
class StepTimeCalibrationKernel(Answer):
    """One group of kernels.

    Attributes
    ----------
    after_seconds: the same as predicted by the fitted profile
    before_seconds: the same as predicted by the prior profile
    count: number of these kernels in a step
    kernels: the group of kernels
    longest: name of the kernel with the most time
    longest_share: its share of the measured time
    measured_seconds: their time in a step, added up over the profiled ranks
    outlier: true: further off than any stated error, not used in the fit
    source: the first profile, or the name given in the evidence file
    """

    after_seconds: float
    before_seconds: float
    count: int
    kernels: str
    longest: str
    longest_share: float
    measured_seconds: float
    outlier: bool
    source: str


@dataclass(frozen=True, kw_only=True, repr=False)
class StepTimeCalibration(Answer):
    """Fit of a profile to step times.

    Attributes
    ----------
    errors: parameters with stated errors
    evidence: step times and memory
    freedom: degrees of freedom of Student's t, whose scales the deviations are; 0: normal
    kernels: kernels of profiles; empty without profiles
    profile: the fitted profile, as in its file
    step_error: half of a step's 90 % interval, relative
    """

    errors: tuple[StepTimeCalibrationError, ...]
    evidence: tuple[StepTimeCalibrationEvidence, ...]
    freedom: int
    kernels: tuple[StepTimeCalibrationKernel, ...]
    profile: Mapping[str, Any]
    step_error: float


@dataclass(frozen=True, kw_only=True, repr=False)
class RunCalibrationParameter(Answer):
    """One parameter.

    Attributes
    ----------
    informed: false: no measurement depends on it, so it has its prior value
    name: key of the parameter in the profile
    prior: value before the fit: seconds or a ratio
    rows: number of measured activities that it was fitted to
    standard_error: standard error of the fitted value
    value: fitted value
    """

    informed: bool
    name: str
    prior: float
    rows: int
    standard_error: float
    value: float


@dataclass(frozen=True, kw_only=True, repr=False)
class RunCalibrationRunSharedCore(Answer):
    """One such rank.

    Attributes
    ----------
    rank: rank that shared its CPU core with other processes
    recorded_over_processor: recorded time of its compute ops / processor time
    """

    rank: int
    recorded_over_processor: float


@dataclass(frozen=True, kw_only=True, repr=False)
class RunCalibrationRun(Answer):
    """One run.

    Attributes
    ----------
    after: relative error of the step time predicted with the fitted profile
    before: relative error of the step time predicted before the fit
    jitter_repeatability: repeatability predicted by the fitted jitter; null: no jitter was fitted
    measured_seconds: measured step time in seconds
    repeatability: half the interquartile range of measured step times, relative to the median
    run: folder or trace files of the run
    shared_cores: ranks that shared their CPU core with other processes
    """

    after: float
    before: float
    jitter_repeatability: float | None
    measured_seconds: float
    repeatability: float
    run: str
    shared_cores: tuple[RunCalibrationRunSharedCore, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class RunCalibration(Answer):
    """A profile fitted to runs.

    Attributes
    ----------
    parameters: parameters fitted to the runs
    profile: the fitted profile, in the form of a profile file
    runs: runs that the profile was fitted to
    step_error: relative error of step times: half of a 90 % interval
    unseen: for each run, the error of a fit to the other runs
    """

    parameters: tuple[RunCalibrationParameter, ...]
    profile: Mapping[str, Any]
    runs: tuple[RunCalibrationRun, ...]
    step_error: float
    unseen: tuple[float, ...] | None = field(metadata={"optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class JointCalibration(Answer):
    """Fit of a profile to runs and step times.

    Attributes
    ----------
    errors: parameters with stated errors
    evidence: step times and memory
    freedom: degrees of freedom of Student's t, whose scales the deviations are; 0: normal
    kernels: kernels of profiles; empty without profiles
    parameters: parameters fitted to the runs
    profile: the fitted profile, in the form of a profile file
    runs: runs that the profile was fitted to
    step_error: relative error of step times: half of a 90 % interval
    unseen: for each run, the error of a fit to the other runs
    """

    errors: tuple[StepTimeCalibrationError, ...]
    evidence: tuple[StepTimeCalibrationEvidence, ...]
    freedom: int
    kernels: tuple[StepTimeCalibrationKernel, ...]
    parameters: tuple[RunCalibrationParameter, ...]
    profile: Mapping[str, Any]
    runs: tuple[RunCalibrationRun, ...]
    step_error: float
    unseen: tuple[float, ...] | None = field(metadata={"optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class ImportReportApproximated(Answer):
    """A setting.

    Attributes
    ----------
    place: where it stands: file and line, or file and JSON pointer
    setting: the setting as written; empty: the text is about no single setting
    text: what it became, or why it does not matter
    """

    place: str
    setting: str
    text: str


@dataclass(frozen=True, kw_only=True, repr=False)
class ImportReport(Answer):
    """What became of every setting.

    Attributes
    ----------
    approximated: settings of which the scenario has the nearest
    assumed: what no setting states
    contradictions: settings that exclude each other
    ignored: settings that change neither time nor memory
    not_modeled: settings that change time or memory and that no prediction knows
    off: number of printed settings that are switched off
    unknown: settings that are not understood
    used: settings that are part of the scenario
    """

    approximated: tuple[ImportReportApproximated, ...]
    assumed: tuple[ImportReportApproximated, ...]
    contradictions: tuple[ImportReportApproximated, ...]
    ignored: tuple[ImportReportApproximated, ...]
    not_modeled: tuple[ImportReportApproximated, ...]
    off: int
    unknown: tuple[ImportReportApproximated, ...]
    used: tuple[ImportReportApproximated, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Import(Answer):
    """A scenario from another framework's settings.

    Attributes
    ----------
    framework: the framework whose settings they are
    illegal: why the layout cannot be predicted; empty: it can
    layout: the layout in words; empty: it cannot be predicted
    measured_step: seconds of a step by a log or profiles; null: none has steps
    predicted_memory: bytes of the rank that needs most
    predicted_step: seconds of a step as predicted; null: it cannot be predicted
    report: what became of every setting
    scenario: the scenario (`polyphony schema scenario`)
    stack: the software stack by which it is predicted
    """

    framework: str
    illegal: str
    layout: str
    measured_step: float | None
    predicted_memory: int | None
    predicted_step: float | None
    report: ImportReport
    scenario: Mapping[str, Any]
    stack: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Emission(Answer):
    """A layout as another framework's settings.

    Attributes
    ----------
    arguments: the framework's own names and values; sections are joined by dots
    cannot: what the framework cannot run; if there is any, no file is written
    files: paths of the files that were written
    framework: the framework that the files are for
    interval: its 90 % interval
    layout: the layout in words
    memory: bytes of the rank that needs most
    notes: differences from the prediction
    start: the command that starts the run, in the folder of the files
    step: predicted seconds of a step
    tokens_per_second: of a device
    version: of the framework; null: the newest that is known
    """

    arguments: Mapping[str, Any]
    cannot: tuple[str, ...]
    files: tuple[str, ...]
    framework: str
    interval: tuple[float, ...]
    layout: str
    memory: int
    notes: tuple[str, ...]
    start: str
    step: float
    tokens_per_second: float
    version: str | None


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceSummaryCollective(Answer):
    """A collective.

    Attributes
    ----------
    best_bus_bytes_per_second: bus bytes per second at the shortest duration, which includes the least waiting
    bus_bytes_per_second: bus bytes per second at the median duration (busbw of nccl-tests)
    bytes: bytes of the whole array; null: not recorded
    bytes_per_second: bytes per second at the median duration (algbw of nccl-tests)
    call: kind of collective: all_reduce, all_gather, …
    count: number of calls on all ranks
    group: name and ranks of its group
    median_seconds: median duration, in seconds
    ranks: number of ranks in its group; null: not recorded
    seconds: sum of durations, in seconds
    shortest_seconds: shortest duration, in seconds
    """

    best_bus_bytes_per_second: float | None
    bus_bytes_per_second: float | None
    bytes: int | None
    bytes_per_second: float | None
    call: str
    count: int
    group: str
    median_seconds: float
    ranks: int | None
    seconds: float
    shortest_seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceSummaryKernel(Answer):
    """A kernel.

    Attributes
    ----------
    class_: class of the kernel; unknown: its name is in no table
    count: number of launches
    name: name of the kernel
    seconds: sum of durations, in seconds
    """

    class_: str = field(metadata={"key": "class"})
    count: int
    name: str
    seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceSummaryProduct(Answer):
    """GEMMs of one size.

    Attributes
    ----------
    batch: number of products [m, k] x [k, n] in one call
    count: number of calls
    flops_per_second: FLOPs of all / sum of durations
    k: columns of the first matrix, rows of the second
    m: rows of the first matrix
    n: columns of the second matrix
    seconds: sum of durations, in seconds
    """

    batch: int
    count: int
    flops_per_second: float
    k: int
    m: int
    n: int
    seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceSummaryRankDeviceClasses(Answer):
    """Time of one class.

    Attributes
    ----------
    count: number of events
    kernel_seconds: sum of the durations of its events, in seconds
    wall_seconds: seconds of the span counted for this class; each moment counts for one class only
    """

    count: int
    kernel_seconds: float
    wall_seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceSummaryRankDevice(Answer):
    """Times of all events of the device.

    Attributes
    ----------
    classes: by class of kernel; their wall_seconds and idle_seconds add up to the span
    communication_seconds: seconds in which any collective or message ran
    compute_seconds: seconds in which any compute kernel ran
    idle_seconds: seconds of the span in which nothing ran
    memory_seconds: seconds in which any memory copy or fill ran
    overlapped_seconds: seconds of communication overlapped with computation
    span_seconds: seconds from the start of the first event to the end of the last
    """

    classes: Mapping[str, TraceSummaryRankDeviceClasses]
    communication_seconds: float
    compute_seconds: float
    idle_seconds: float
    memory_seconds: float
    overlapped_seconds: float
    span_seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceSummaryRankStep(Answer):
    """A step.

    Attributes
    ----------
    device: times of what was launched in the step
    gap_seconds: seconds from its last event to the first of the next step; null: the last step
    host_seconds: duration of the annotation on the host, in seconds
    name: name of its annotation in the trace
    step: number of the step
    """

    device: TraceSummaryRankDevice
    gap_seconds: float | None
    host_seconds: float
    name: str
    step: int


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceSummaryRank(Answer):
    """A rank.

    Attributes
    ----------
    clock_seconds: seconds added to its clock to align it with the other ranks
    device: times of all events of the device
    device_name: name of its GPU
    events: number of events in the file by category, including events on the host
    file: trace file
    notes: what was repaired in the file, and what is missing
    rank: rank; null: the file does not state it
    steps: steps in which anything was launched
    world: number of ranks of the job; null: the file does not state it
    """

    clock_seconds: float
    device: TraceSummaryRankDevice
    device_name: str
    events: Mapping[str, int]
    file: str
    notes: tuple[str, ...]
    rank: int | None
    steps: tuple[TraceSummaryRankStep, ...]
    world: int | None


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceSummarySlowRank(Answer):
    """The rank that computes longest.

    Attributes
    ----------
    busy_seconds: seconds of computation and copies in its median step
    last_in: number of matched collectives in which the other ranks waited for it
    matched: number of collectives that were matched across ranks
    median_seconds: seconds of computation and copies of the median rank
    rank: the slowest rank
    """

    busy_seconds: float
    last_in: int
    matched: int
    median_seconds: float
    rank: int


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceSummary(Answer):
    """Where the time of the recorded devices goes.

    Attributes
    ----------
    collectives: collectives by kind and size, largest total time first
    kernels: kernels by name, largest total time first
    notes: remarks on the answer
    products: GEMMs with a recorded size, largest total time first
    ranks: one entry per rank
    slow_rank: the slowest rank; null: there is only one rank
    """
    _rows: ClassVar[str] = "ranks"

    collectives: tuple[TraceSummaryCollective, ...]
    kernels: tuple[TraceSummaryKernel, ...]
    notes: tuple[str, ...]
    products: tuple[TraceSummaryProduct, ...]
    ranks: tuple[TraceSummaryRank, ...]
    slow_rank: TraceSummarySlowRank | None


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchesBubblesCommunication(Answer):
    """Part of the mean spent waiting for messages and collectives.

    Attributes
    ----------
    largest: largest value of all batches
    p5: quantile over batches; only if there are enough batches
    p50: quantile over batches; only if there are enough batches
    p95: quantile over batches; only if there are enough batches
    p99_9: quantile over batches; only if there are enough batches
    """

    largest: float
    p5: float | None = field(metadata={"optional": True}, default=None)
    p50: float | None = field(metadata={"optional": True}, default=None)
    p95: float | None = field(metadata={"optional": True}, default=None)
    p99_9: float | None = field(metadata={"key": "p99.9", "optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchesBubbles(Answer):
    """Idle time of compute streams as a fraction of the step, quantiles over batches.

    Attributes
    ----------
    communication: part of the mean spent waiting for messages and collectives
    mean: mean over ranks
    worst_rank: idle time of the rank that idles most
    """

    communication: BatchesBubblesCommunication
    mean: BatchesBubblesCommunication
    worst_rank: BatchesBubblesCommunication


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchesOutOfMemory(Answer):
    """Probability of running out of memory.

    Attributes
    ----------
    batches: number of batches that do not fit in memory
    in_run: probability in the whole run, from per_step
    in_run_most: probability in the whole run, from per_step_most
    in_run_tail: probability in the whole run, from per_step_tail
    per_step: probability per step: fraction of batches that do not fit
    per_step_most: 95 % upper bound of the probability per step
    per_step_tail: probability per step by an exponential tail; absent: too few batches
    steps: number of steps of the run
    """

    batches: int
    in_run: float
    in_run_most: float
    in_run_tail: float | None = field(metadata={"optional": True}, default=None)
    per_step: float
    per_step_most: float
    per_step_tail: float | None = field(metadata={"optional": True}, default=None)
    steps: int


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchesStage(Answer):
    """Peak memory of one stage, quantiles over batches.

    Attributes
    ----------
    largest_bytes: largest value of all batches
    p50_bytes: quantile over batches; only if there are enough batches
    p5_bytes: quantile over batches; only if there are enough batches
    p95_bytes: quantile over batches; only if there are enough batches
    p99_9_bytes: quantile over batches; only if there are enough batches
    stage: name of the stage
    """

    largest_bytes: int
    p50_bytes: int | None = field(metadata={"optional": True}, default=None)
    p5_bytes: int | None = field(metadata={"optional": True}, default=None)
    p95_bytes: int | None = field(metadata={"optional": True}, default=None)
    p99_9_bytes: int | None = field(metadata={"key": "p99.9_bytes", "optional": True}, default=None)
    stage: str


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchesStep(Answer):
    """Step time, quantiles over batches.

    Attributes
    ----------
    largest_seconds: largest value of all batches
    p50_seconds: quantile over batches; only if there are enough batches
    p5_seconds: quantile over batches; only if there are enough batches
    p95_seconds: quantile over batches; only if there are enough batches
    p99_9_seconds: quantile over batches; only if there are enough batches
    """

    largest_seconds: float
    p50_seconds: float | None = field(metadata={"optional": True}, default=None)
    p5_seconds: float | None = field(metadata={"optional": True}, default=None)
    p95_seconds: float | None = field(metadata={"optional": True}, default=None)
    p99_9_seconds: float | None = field(metadata={"key": "p99.9_seconds", "optional": True}, default=None)


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchesWorstSample(Answer):
    """A sample.

    Attributes
    ----------
    held_bytes: memory of the sample at the time of the peak
    id: id of the sample
    tokens: number of tokens by modality
    """

    held_bytes: int
    id: int
    tokens: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchesWorst(Answer):
    """The batch with the largest peak memory.

    Attributes
    ----------
    batch: number of the batch
    peak_bytes: peak memory of the stage's worst rank
    samples: the samples with the most memory at the peak
    stage: pipeline stage with the peak
    """

    batch: int
    peak_bytes: int
    samples: tuple[BatchesWorstSample, ...]
    stage: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Batches(Answer):
    """Predictions of a stream of batches.

    Attributes
    ----------
    batch_seconds: step time of each batch in seconds, in the order of batches
    batches: number of batches that were predicted
    bubbles: idle time of compute streams as a fraction of the step, quantiles over batches
    device_bytes: memory of one device; 0: unknown
    failed: error messages of batches that could not be predicted
    largest_samples_peak_bytes: of a data set: the peak of a batch of its largest samples
    out_of_memory: probability of running out of memory
    planner: planner that planned each batch; only if the layout has one
    predictor: how the batches were predicted: simulate or estimate
    profile: name of the hardware profile
    stack: name of the software stack
    stages: peak memory by pipeline stage
    step: step time, quantiles over batches
    worst: the batch with the largest peak memory
    """
    _rows: ClassVar[str] = "stages"

    batch_seconds: tuple[float, ...]
    batches: int
    bubbles: BatchesBubbles
    device_bytes: int
    failed: tuple[str, ...]
    largest_samples_peak_bytes: int | None = field(metadata={"optional": True}, default=None)
    out_of_memory: BatchesOutOfMemory
    planner: str | None = field(metadata={"optional": True}, default=None)
    predictor: str
    profile: str
    stack: str
    stages: tuple[BatchesStage, ...]
    step: BatchesStep
    worst: BatchesWorst


@dataclass(frozen=True, kw_only=True, repr=False)
class VariationsQuestion(Answer):
    """One combination of values.

    Attributes
    ----------
    best: the fastest layout; null: no layout was found
    set: value of each varied path
    step_seconds: by placement: step time of the fastest layout, in seconds
    why_not: why no layout was found; empty: one was found
    """

    best: Candidate | None
    set: Mapping[str, str]
    step_seconds: Mapping[str, float]
    why_not: str


@dataclass(frozen=True, kw_only=True, repr=False)
class VariationsVariation(Answer):
    """One option --vary.

    Attributes
    ----------
    path: path of the value that is varied
    values: its values
    """

    path: str
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Variations(Answer):
    """Best layouts for varied values.

    Attributes
    ----------
    questions: all combinations, the last variation changing fastest; fewer if stopped
    variations: the varied values, one entry per --vary
    """
    _rows: ClassVar[str] = "variations"

    questions: tuple[VariationsQuestion, ...]
    variations: tuple[VariationsVariation, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceReplayAfterCriticalPath(Answer):
    """A class.

    Attributes
    ----------
    class_: class of kernels, or what they wait for
    seconds: on the longest path, per step
    """

    class_: str = field(metadata={"key": "class"})
    seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceReplayAfterTimesFrom(Answer):
    """Durations of a class of kernels.

    Attributes
    ----------
    class_: class of kernels
    measured_seconds: of kernels that keep their measured times
    scaled_seconds: of kernels with measured times scaled by the change
    """

    class_: str = field(metadata={"key": "class"})
    measured_seconds: float
    scaled_seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceReplayAfter(Answer):
    """With the changes.

    Attributes
    ----------
    classes_seconds: by rank, over all steps: wall time by class, and idle time; they add up to the span
    critical_path: seconds by class; they add up to the mean step
    overlapped_seconds: communication overlapped with computation, by rank
    ranks_seconds: median step by rank, from the rank's own events
    step_seconds: median over the steps
    steps_seconds: 10th and 90th percentile of the steps
    times_from: origin of the durations by class, over all ranks and steps
    """

    classes_seconds: tuple[Mapping[str, float], ...]
    critical_path: tuple[TraceReplayAfterCriticalPath, ...]
    overlapped_seconds: tuple[float, ...]
    ranks_seconds: tuple[float, ...]
    step_seconds: float
    steps_seconds: tuple[float, ...]
    times_from: tuple[TraceReplayAfterTimesFrom, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceReplay(Answer):
    """A replay of a profiler's traces.

    Attributes
    ----------
    after: with the changes
    before: as they were recorded
    changes: the changes, as on the command line
    device: name of the device
    differences: what explains the change: longest path seconds by class, the largest difference first
    measured_seconds: median of the recorded steps
    notes: notes for the user
    rank_error: largest absolute error of any rank's median step, relative
    ranks: numbers of the recorded ranks
    repeatability: half of the interquartile range of the recorded steps, relative
    replay_error: (replayed unchanged - measured) / measured
    step_change: (after - before) / before
    steps: number of recorded steps
    traces: trace files, by rank
    world: number of ranks of the job
    """

    after: TraceReplayAfter | None = field(metadata={"optional": True}, default=None)
    before: TraceReplayAfter
    changes: tuple[str, ...]
    device: str
    differences: tuple[ReplayDifference, ...] | None = field(metadata={"optional": True}, default=None)
    measured_seconds: float
    notes: tuple[str, ...]
    rank_error: float
    ranks: tuple[int, ...]
    repeatability: float
    replay_error: float
    step_change: float | None = field(metadata={"optional": True}, default=None)
    steps: int
    traces: tuple[str, ...]
    world: int | None = field(metadata={"optional": True}, default=None)
