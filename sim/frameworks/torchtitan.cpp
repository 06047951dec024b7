// torchtitan: the sections of its configuration (torchtitan/config, b5bcd76c, 2026-08-21; older
// names from its TOML files).
#include <algorithm>

#include "shared/error.h"
#include "shared/schedule/action_text.h"
#include "shared/text/figure_text.h"
#include "sim/frameworks/translate.h"

namespace polyphony::sim {
namespace {

int degree(SettingReader& s, const char* key, const char* what) {
  const auto value = s.integer(key, what);
  if (value && (*value < -1 || *value == 0 || *value > 1000000))
    s.refuse(key, "must be at least 1", "correct the file");
  return static_cast<int>(value.value_or(1));
}

// Reads the actions of every rank, and which schedule places its stages as they do.
void read_actions_of(SettingReader& s, const NamedText& file, RunSettings& run) {
  const char* const key = "parallelism.pipeline_parallel_schedule_csv";
  const std::vector<Actions> orders = read_orders(file.text, file.path);
  const int pp = run.grid.pp;
  if (static_cast<int>(orders.size()) != pp)
    s.refuse(key,
             "has " + counted(static_cast<std::int64_t>(orders.size()), "row", "rows") + " for " +
                 counted(pp, "rank", "ranks") + " of a pipeline",
             "one row for each pipeline rank");
  int stages = 0;
  bool last_on_first = false, pairs = false;  // the last stage on the first rank: V-shaped
  for (std::size_t rank = 0; rank < orders.size(); ++rank)
    for (const Action& action : orders[rank]) {
      stages = std::max(stages, action.stage + 1);
      pairs = pairs || action.overlapped;
      last_on_first = last_on_first || (rank == 0 && action.stage == 2 * pp - 1);
    }
  run.grid.vpp = (stages + pp - 1) / pp;
  run.schedule = run.grid.vpp == 1                    ? ScheduleKind::one_f_one_b
                 : run.grid.vpp > 2 || !last_on_first ? ScheduleKind::interleaved
                 : pairs                              ? ScheduleKind::dualpipe_v
                                                      : ScheduleKind::zero_bubble_v;
  for (const Actions& actions : orders) run.actions.push_back(to_text(actions));
  s.used(key, "actions");
}

void read_schedule(SettingReader& s, RunSettings& run, const std::optional<NamedText>& file) {
  const std::string schedule = s.text("parallelism.pipeline_parallel_schedule", "schedule");
  if (run.grid.pp == 1)
    return s.ignored("parallelism.pipeline_parallel_schedule_csv", "there is no pipeline");
  if (file) return read_actions_of(s, *file, run);
  int virtual_stages = 1;
  const auto is = [&](ScheduleKind kind, int stages) {
    run.schedule = kind;
    virtual_stages = stages;
  };
  if (schedule.empty() || schedule == "1F1B") {
    is(ScheduleKind::one_f_one_b, 1);
  } else if (schedule == "GPipe") {
    is(ScheduleKind::gpipe, 1);
  } else if (schedule == "Interleaved1F1B") {
    is(ScheduleKind::interleaved, 2);
  } else if (schedule == "ZBVZeroBubble") {
    is(ScheduleKind::zero_bubble_v, 2);
  } else if (schedule == "DualPipeV") {
    is(ScheduleKind::dualpipe_v, 2);
  } else if (schedule == "PipelineScheduleMulti" || schedule == "PipelineScheduleSingle" ||
             schedule == "_PipelineScheduleRuntime") {
    is(ScheduleKind::one_f_one_b, 1);
    s.approximated("parallelism.pipeline_parallel_schedule_csv",
                   "the file of actions is not here: 1F1B");
  } else if (schedule == "InterleavedZeroBubble") {
    is(ScheduleKind::interleaved_zero_bubble, 2);
  } else if (schedule == "LoopedBFS") {
    is(ScheduleKind::gpipe, 2);
    s.approximated("parallelism.pipeline_parallel_schedule",
                   "GPipe over virtual stages: its backwards take the microbatches in order, "
                   "LoopedBFS takes the last one first");
  } else {
    s.refuse("parallelism.pipeline_parallel_schedule", "is a schedule that is not known",
             "1F1B, GPipe, LoopedBFS, Interleaved1F1B, InterleavedZeroBubble, ZBVZeroBubble, "
             "DualPipeV");
  }
  run.grid.vpp = virtual_stages;
  if (s.has("parallelism.pipeline_parallel_schedule_csv"))
    s.ignored_all("parallelism.pipeline_parallel_schedule_csv", "the file of actions is not here");
}

// Blocks of each stage of "tok_embeddings,layers.0,layers.1|layers.2,norm,output".
std::vector<int> blocks_of(const std::string& parts) {
  std::vector<int> blocks(1, 0);
  for (std::size_t at = 0; at < parts.size(); ++at) {
    if (parts[at] == '|') blocks.push_back(0);
    if (parts.compare(at, 7, "layers.") == 0) ++blocks.back();
  }
  return blocks;
}

// Returns blocks of each stage as torchtitan divides them: embedding and head count as `first` and
// `last` blocks, and the first stages get what is left over
// (distributed/pipeline_parallel.py, _generate_llm_fqn_per_model_part). Empty: a stage has none.
std::vector<int> counted_blocks(int layers, int stages, std::int64_t first, std::int64_t last) {
  if (layers <= 0 || stages <= 1 || first < 0 || last < 0 || first > layers || last > layers)
    return {};
  const std::int64_t all = layers + first + last;
  std::vector<int> blocks;
  for (int stage = 0; stage < stages; ++stage) {
    std::int64_t own = all / stages + (stage < all % stages ? 1 : 0);
    if (stage == 0) own -= first;
    if (stage + 1 == stages) own -= last;
    if (own < 1) return {};
    blocks.push_back(static_cast<int>(own));
  }
  return blocks;
}

}  // namespace

RunSettings read_torchtitan(SettingReader& s, int layers,
                            const std::optional<NamedText>& schedule) {
  RunSettings run;
  ModuleLayout& grid = run.grid;
  const auto name_of = [&](const char* family, const char* size) {
    const std::string first = s.text(family, "the model"), second = s.text(size, "the model");
    return first.empty() ? second : second.empty() ? first : first + " " + second;
  };
  run.model_name = name_of("model.name", "model.flavor");
  if (run.model_name.empty()) run.model_name = s.text("config", "the model");
  s.used("module", "the model");

  grid.tp = degree(s, "parallelism.tensor_parallel_degree", "tp");
  grid.pp = degree(s, "parallelism.pipeline_parallel_degree", "pp");
  grid.cp = degree(s, "parallelism.context_parallel_degree", "cp");
  grid.ep = degree(s, "parallelism.expert_parallel_degree", "ep");
  const auto expert_tp = s.integer("parallelism.expert_tensor_parallel_degree", "expert_tp");
  grid.expert_tp =
      grid.ep > 1 && grid.tp > 1
          ? static_cast<int>(std::clamp<std::int64_t>(expert_tp.value_or(1), 1, 100000))
          : 0;
  if (grid.expert_tp == grid.tp) grid.expert_tp = 0;
  grid.sp = s.flag("parallelism.enable_sequence_parallel", true, "sp") && grid.tp > 1;
  if (s.has("parallelism.disable_loss_parallel"))
    s.ignored("parallelism.disable_loss_parallel", "the loss is a small part");
  const int replicas = degree(s, "parallelism.data_parallel_replicate_degree", "shard_ranks");
  const int shards = degree(s, "parallelism.data_parallel_shard_degree", "shard full");
  // Context-parallel ranks belong to the shards (ParallelDims).
  grid.shard = shards == 1 && grid.cp == 1 ? Shard::none : Shard::full;
  if (replicas > 1 && grid.shard == Shard::full) run.shard_groups = replicas;
  const std::string reshard = s.text("parallelism.fsdp_reshard_after_forward", "shard full");
  if (grid.shard == Shard::full &&
      (reshard == "never" || ((reshard.empty() || reshard == "default") && grid.pp > 1))) {
    grid.shard = Shard::gradients;
    if (reshard.empty())
      s.assumed(
          "parameters stay gathered after the forward pass: torchtitan's default with pipelines "
          "(here: ZeRO-2, whose parameters are whole all the time)");
    else
      s.approximated("parallelism.fsdp_reshard_after_forward",
                     "ZeRO-2, whose parameters are whole all the time");
  }
  read_schedule(s, run, schedule);
  const auto balancer = s.text("parallelism.context_parallel_load_balancer", "tokens");
  if (grid.cp > 1) {
    grid.tokens = s.is_none("parallelism.context_parallel_load_balancer")
                      ? TokenAssignment::contiguous
                  : balancer == "ptrr" ? TokenAssignment::balanced
                                       : TokenAssignment::zigzag;
    const std::string rotate = s.text("parallelism.context_parallel_rotate_method", "cp_attention");
    grid.cp_attention =
        rotate == "alltoall" ? ContextAttention::ring : ContextAttention::all_gather;
  }
  run.even = false;
  if (const std::string parts = s.text("parallelism.module_fqns_per_model_part", "blocks");
      !parts.empty() && grid.pp > 1) {
    run.blocks = blocks_of(parts);
    if (run.blocks.size() % static_cast<std::size_t>(grid.pp) != 0)
      s.refuse("parallelism.module_fqns_per_model_part",
               "has " + count_text(static_cast<std::int64_t>(run.blocks.size())) +
                   " stages, which the pipeline's ranks do not divide",
               "torchtitan refuses this, too");
    const int stages = static_cast<int>(run.blocks.size());
    if (!run.actions.empty() && stages != grid.pp * grid.vpp)
      s.refuse("parallelism.module_fqns_per_model_part",
               "has " + count_text(stages) + " stages, the actions of " + schedule->path +
                   " are of " + count_text(grid.pp * grid.vpp),
               "give the file of this run");
    grid.vpp = stages / grid.pp;
  }
  // Embedding and head count as layers of the first and the last stage.
  const auto first = s.integer("parallelism.pipeline_parallel_first_stage_less_layers", "blocks");
  const auto last = s.integer("parallelism.pipeline_parallel_last_stage_less_layers", "blocks");
  if (grid.pp > 1 && run.blocks.empty()) {
    if (const auto each = s.count("parallelism.pipeline_parallel_layers_per_stage", "blocks");
        each && layers > 0 && run.actions.empty()) {
      const std::int64_t stages =
          (layers + first.value_or(1) + last.value_or(1) + *each - 1) / *each;
      grid.vpp =
          static_cast<int>(std::clamp<std::int64_t>((stages + grid.pp - 1) / grid.pp, 1, 1000));
    }
    run.blocks = counted_blocks(layers, grid.pp * grid.vpp, first.value_or(1), last.value_or(1));
    if (run.blocks.empty())
      s.assumed(
          "blocks are split by their times: torchtitan's own split leaves a stage without any, or "
          "the model is not known");
  }

  run.sequence = s.count("training.seq_len", "data.sequence");
  if (!run.sequence) run.sequence = s.count("training.max_context_length", "data.sequence");
  const auto local = s.count("training.local_batch_size", "samples of a rank");
  const auto older = s.count("training.batch_size", "samples of a rank");
  const auto tokens =
      s.count("training.num_tokens_per_microbatch_per_dp_rank", "samples of a microbatch");
  const auto step_tokens = s.integer("training.num_tokens_per_train_step", "data.global_batch");
  const auto global = s.integer("training.global_batch_size", "data.global_batch");
  const auto microbatch =
      s.count("parallelism.pipeline_parallel_microbatch_size", "samples of a microbatch");
  const auto microbatches = s.count("parallelism.num_pp_microbatches", "microbatches");
  const std::int64_t sequence = run.sequence.value_or(2048);
  if (!run.sequence) {
    run.sequence = sequence;
    s.assumed("sequences of 2,048 tokens: torchtitan's default");
  }
  std::optional<std::int64_t> own = local ? local : older;
  if (tokens) own = std::max<std::int64_t>(1, *tokens / sequence);
  if (!own) {
    own = 1;
    s.assumed("1 sample a rank");
  }
  if (global && *global > 0) run.global_batch = global;
  if (step_tokens && *step_tokens > 0)
    run.global_batch = std::max<std::int64_t>(1, *step_tokens / sequence);
  // With pipelines a rank's samples are cut into microbatches; without, each is one.
  if (grid.pp > 1) {
    run.microbatch = microbatch     ? *microbatch
                     : microbatches ? std::max<std::int64_t>(1, *own / *microbatches)
                                    : 1;
    if (!run.global_batch) run.microbatches = std::max<std::int64_t>(1, *own / *run.microbatch);
  } else {
    run.microbatch = own;
    if (!run.global_batch) run.microbatches = 1;
  }

  std::string mode = s.text("activation_checkpoint.mode", "recompute");
  if (mode.empty()) mode = s.text("activation_checkpoint._type", "recompute");
  const std::string option = s.text("activation_checkpoint.selective_ac_option", "recompute");
  if (s.is_none("activation_checkpoint.mode") || s.is_none("activation_checkpoint")) {
    grid.recompute = Recompute::none;
  } else if (mode == "full" || mode == "FullAC") {
    grid.recompute = Recompute::full;
  } else if (mode == "selective" || mode == "SelectiveAC" || mode.empty()) {
    if (mode.empty()) s.assumed("selective recomputation: torchtitan's default");
    grid.recompute = Recompute::selective;
    const bool by_number =
        !option.empty() && option.find_first_not_of("0123456789") == std::string::npos;
    if (by_number) {
      grid.recompute = Recompute::full;
      s.approximated("activation_checkpoint.selective_ac_option",
                     "every block is recomputed, not every " + option);
    }
  } else if (mode != "false") {
    s.approximated("activation_checkpoint.mode", "selective recomputation");
    grid.recompute = Recompute::selective;
  }
  const bool compiled =
      s.flag("compile.enable", s.flag("training.compile", false, "stack fsdp2-compiled"),
             "stack fsdp2-compiled");
  run.stack = compiled ? "fsdp2-compiled" : "fsdp2";
  run.precision = "bf16";
  if (s.text("training.mixed_precision_param", "training.precision") == "float32")
    run.precision = "fp32";
  if (s.flag("training.enable_cpu_offload", false, "parameters stay on the device"))
    s.not_modeled("training.enable_cpu_offload", "parameters on the host");
  for (const char* key : {"float8.recipe_name", "quantize.linear.float8.recipe_name"})
    if (const std::string recipe = s.text(key, "training.fp8"); !recipe.empty())
      run.fp8 = recipe.find("row") != std::string::npos ? "rowwise" : "tensorwise";
  if (const Setting* converters = s.find("model.converters");
      converters && converters->value.find("float8") != std::string::npos) {
    if (run.fp8.empty()) run.fp8 = "tensorwise";
    s.used("model.converters", "training.fp8");
  }
  read_training_number(s, "optimizer.lr", "learning_rate", run);
  read_training_number(s, "optimizer.weight_decay", "weight_decay", run);
  read_training_number(s, "optimizer.beta1", "beta1", run);
  read_training_number(s, "optimizer.beta2", "beta2", run);
  read_training_number(s, "optimizer.eps", "epsilon", run);
  read_training_number(s, "training.max_norm", "clip_norm", run);
  read_training_steps(s, "training.steps", "steps", run);
  read_training_steps(s, "lr_scheduler.warmup_steps", "warmup_steps", run);
  if (const std::string decay = s.text("lr_scheduler.decay_type", "training.decay");
      decay == "linear" || decay == "cosine")
    run.training["decay"] = decay;
  return run;
}

std::vector<std::vector<KnownSetting>> torchtitan_known() {
  static const std::vector<KnownSetting> kKnown{
      {kNotModeled, "parallelism.enable_async_tensor_parallel compile.enable_async_tensor_parallel",
       "tensor-parallel collectives cut into pieces (\"tp_pieces\" is nearest)"},
      {kNotModeled, "parallelism.enable_fsdp_symm_mem parallelism.enable_compiled_autograd",
       "collectives over symmetric memory"},
      {kNotModeled, "model.quantize.* quantize.* mx.*",
       "another format of the experts or of the scales"},
      {kNotModeled, "training.mixed_precision_reduce", "the format in which gradients are reduced",
       "float32"},
      {kNotModeled, "optimizer.name", "another optimizer than AdamW", "AdamW Adam"},
      {kIgnored, "parallelism.spmd_backend", "another way to the same collectives"},
      {kNotModeled,
       "parallelism.pipeline_parallel_expert_parallel_overlap "
       "parallelism.expert_parallel_comm_backend",
       "overlap of expert dispatch"},
      {kIgnored, "job.* metrics.* profiling.* profiler.* debug.* experimental.* dump_folder",
       "logging and profiling"},
      {kIgnored, "checkpoint.*", "checkpoints, which a step's prediction does not contain"},
      {kIgnored,
       "training.dataset* training.data* tokenizer.* dataloader.* validation.* validator.* "
       "hf_assets_path model.hf_assets_path model.tokenizer_path",
       "where the data are"},
      {kIgnored,
       "optimizer.* lr_scheduler.* training.seed training.deterministic training.gc_freq "
       "training.* model_spec* loss.*",
       "numbers of the optimization, not its cost"},
      {kIgnored,
       "comm.* fault_tolerance.* memory_estimation.* parallelism.init_timeout_* override_*",
       "how processes are watched"},
      {kIgnored,
       "activation_checkpoint.* compile.* float8.* model.* parallelism.enable_loss_parallel "
       "parallelism.pipeline_parallel_split_points "
       "parallelism.pipeline_parallel_degree_*",
       "details of what the stack fsdp2 is fitted to"}};
  return {kKnown};
}

}  // namespace polyphony::sim
