// transformers' Trainer, alone or with DeepSpeed or Accelerate, and LLaMA-Factory's use of it.
// Names: transformers TrainingArguments, DeepSpeed's JSON (runtime/zero/config.py, 1b88ac36),
// Accelerate's YAML (16cb6eb8), LLaMA-Factory's YAML (ff6d4d12).
#include <algorithm>

#include "shared/error.h"
#include "sim/frameworks/translate.h"

namespace polyphony::sim {
namespace {

void read_sharding(SettingReader& s, RunSettings& run) {
  ModuleLayout& grid = run.grid;
  grid.shard = Shard::none;
  const Setting* stage = s.find("deepspeed.zero_optimization.stage");
  if (stage) {
    const std::int64_t level = s.integer("deepspeed.zero_optimization.stage", "shard").value_or(0);
    if (level < 0 || level > 3)
      s.refuse("deepspeed.zero_optimization.stage", "must be 0 to 3", "correct the file");
    grid.shard = static_cast<Shard>(level);
  } else if (const Setting* file = s.find("deepspeed"); file && !is_off(file->value)) {
    // Files that people name after the stage: ds_z3_config.json, zero2.json.
    for (const auto& [word, shard] :
         {std::pair{"3", Shard::full}, {"2", Shard::gradients}, {"1", Shard::optimizer}})
      if (const std::size_t at = file->value.find(word);
          at != std::string::npos && at > 0 &&
          (file->value[at - 1] == 'z' || file->value[at - 1] == 'o')) {
        grid.shard = shard;
        s.approximated("deepspeed",
                       "ZeRO-" + std::string(word) + " by the file's name: the file was not found");
      }
  }
  for (const char* key : {"deepspeed.zero_optimization.zero_hpz_partition_size",
                          "deepspeed.zero_optimization.mics_shard_size"})
    if (const auto ranks = s.integer(key, "shard_ranks"); ranks && *ranks > 1)
      grid.shard_ranks = static_cast<int>(std::min<std::int64_t>(*ranks, 1000000));
  const auto fsdp = [&](const char* key) {
    const std::string words = s.text(key, "shard");
    const auto has = [&](const char* word) { return words.find(word) != std::string::npos; };
    if (words.empty() || is_off(words)) return;
    if (has("FULL_SHARD") || has("full_shard") || has("HYBRID_SHARD") || words == "1")
      grid.shard = Shard::full;
    if (has("SHARD_GRAD_OP") || has("shard_grad_op") || words == "2") grid.shard = Shard::gradients;
    if (has("NO_SHARD") || has("no_shard") || words == "3") grid.shard = Shard::none;
    if (has("offload")) s.not_modeled(key, "parameters on the host");
    if (has("HYBRID") || has("hybrid"))
      s.approximated(key, "sharded over all ranks, not inside a node");
  };
  fsdp("fsdp");
  fsdp("accelerate.fsdp_config.fsdp_sharding_strategy");
  if (s.text("accelerate.distributed_type", "shard") == "FSDP") {
    const bool reshard = s.flag("accelerate.fsdp_config.fsdp_reshard_after_forward", true, "shard");
    if (!s.has("accelerate.fsdp_config.fsdp_sharding_strategy"))
      grid.shard = reshard ? Shard::full : Shard::gradients;
  }
  if (const auto level = s.integer("accelerate.deepspeed_config.zero_stage", "shard");
      level && *level >= 0 && *level <= 3)
    grid.shard = static_cast<Shard>(*level);
  const auto part = [&](const char* key, const char* what) {
    return parallel_degree(s, key, what);
  };
  grid.tp = std::max(part("accelerate.parallelism_config.parallelism_config_tp_size", "tp"),
                     part("deepspeed.tensor_parallel.autotp_size", "tp"));
  grid.cp = std::max(part("accelerate.parallelism_config.parallelism_config_cp_size", "cp"),
                     part("accelerate.parallelism_config.parallelism_config_sp_size", "cp"));
  if (grid.cp > 1) {
    grid.tokens = TokenAssignment::zigzag;
    if (s.has("accelerate.parallelism_config.parallelism_config_sp_size"))
      grid.cp_attention = ContextAttention::ulysses;
  }
  if (const int groups =
          part("accelerate.parallelism_config.parallelism_config_dp_replicate_size", "shard_ranks");
      groups > 1)
    run.shard_groups = groups;
  s.used("accelerate.parallelism_config.parallelism_config_dp_shard_size", "shard");
}

void read_recomputation(SettingReader& s, RunSettings& run, bool factory) {
  bool full = s.flag("gradient_checkpointing", false, "recompute full");
  for (const char* key : {"accelerate.fsdp_config.fsdp_activation_checkpointing",
                          "fsdp_config.activation_checkpointing"})
    full = s.flag(key, false, "recompute full") || full;
  if (factory && !s.has("gradient_checkpointing") &&
      !s.flag("disable_gradient_checkpointing", false, "recompute none")) {
    full = true;
    s.assumed("blocks are recomputed: LLaMA-Factory's default");
  }
  run.grid.recompute = full ? Recompute::full : Recompute::none;
}

}  // namespace

RunSettings read_trainer(SettingReader& s, Framework framework) {
  RunSettings run;
  const bool factory = framework == Framework::llama_factory;
  run.stack = "hf-eager";
  run.model_name = s.text("model_name_or_path", "the model");
  if (run.model_name.empty()) run.model_name = s.text("model", "the model");
  read_sharding(s, run);
  read_recomputation(s, run, factory);
  run.microbatch = s.count("per_device_train_batch_size", "samples of a microbatch");
  if (!run.microbatch)
    if (const Setting* stated = s.find("deepspeed.train_micro_batch_size_per_gpu");
        stated && stated->value != "auto")
      run.microbatch =
          s.count("deepspeed.train_micro_batch_size_per_gpu", "samples of a microbatch");
  if (!run.microbatch) {
    run.microbatch = factory ? 1 : 8;
    s.assumed(std::string(factory ? "1 sample" : "8 samples") + " a microbatch: the default");
  }
  std::optional<std::int64_t> steps = s.count("gradient_accumulation_steps", "microbatches");
  if (const Setting* stated = s.find("deepspeed.gradient_accumulation_steps");
      !steps && stated && stated->value != "auto")
    steps = s.count("deepspeed.gradient_accumulation_steps", "microbatches");
  run.microbatches = steps.value_or(1);
  for (const char* key :
       {"cutoff_len", "max_seq_length", "max_length", "model_max_length", "block_size"})
    if (const auto value = s.count(key, "data.sequence"); value && !run.sequence)
      run.sequence = value;
  if (!run.sequence && factory) {
    run.sequence = 2048;
    s.assumed("sequences of 2,048 tokens: LLaMA-Factory's default cutoff_len");
  }
  run.precision = "fp32";
  for (const char* key : {"bf16", "deepspeed.bf16.enabled", "pure_bf16"})
    if (const Setting* setting = s.find(key);
        setting && setting->value != "auto" && s.flag(key, false, "training.precision"))
      run.precision = "bf16";
  const char* fp16 = nullptr;
  for (const char* key : {"fp16", "deepspeed.fp16.enabled"})
    if (const Setting* setting = s.find(key);
        setting && setting->value != "auto" && s.flag(key, false, "training.precision"))
      fp16 = key;
  if (const std::string mixed = s.text("accelerate.mixed_precision", "training.precision");
      mixed == "bf16" || mixed == "fp16")
    run.precision = "bf16";
  if (fp16) {
    run.precision = "bf16";
    s.approximated(fp16, "bf16, whose kernels are as fast; without a scale of the loss");
  }
  if (s.has("pure_bf16"))
    s.approximated("pure_bf16", "masters stay fp32 here: memory is overestimated");
  std::string tuner = s.text("finetuning_type", "train");
  if (tuner.empty() && s.flag("use_peft", false, "train")) tuner = "lora";
  if (tuner.empty() && s.has("lora_r")) tuner = "lora";
  if (tuner.empty() && factory) tuner = "lora";
  if (tuner == "lora") {
    auto rank = s.integer("lora_rank", "language.lora_rank");
    if (!rank) rank = s.integer("lora_r", "language.lora_rank");
    train_by_lora(rank, run);
  }
  for (const auto& [key, module, frozen] :
       {std::tuple{"freeze_vision_tower", "vision", factory || tuner == "lora"},
        {"freeze_multi_modal_projector", "projector", factory || tuner == "lora"},
        {"freeze_language_model", "language", false}})
    if (s.flag(key, frozen, std::string(module) + ".train frozen"))
      run.train.emplace_back(module, "frozen");
  read_training_number(s, "learning_rate", "learning_rate", run);
  read_training_number(s, "weight_decay", "weight_decay", run);
  read_training_number(s, "adam_beta1", "beta1", run);
  read_training_number(s, "adam_beta2", "beta2", run);
  read_training_number(s, "max_grad_norm", "clip_norm", run);
  read_training_steps(s, "max_steps", "steps", run);
  read_training_steps(s, "warmup_steps", "warmup_steps", run);
  if (const std::string decay = s.text("lr_scheduler_type", "training.decay");
      decay == "cosine" || decay == "linear" || decay == "constant")
    run.training["decay"] = decay;
  const auto machines = s.integer("accelerate.num_machines", "cluster.nodes");
  const auto processes = s.integer("accelerate.num_processes", "ranks");
  if (processes && *processes > 0)
    run.ranks = static_cast<int>(std::min<std::int64_t>(*processes, 10000000));
  if (machines && *machines > 0)
    run.nodes = static_cast<int>(std::min<std::int64_t>(*machines, 10000000));
  return run;
}

std::optional<std::vector<Setting>> megatron_names_of_factory(const FrameworkSettings& read) {
  const bool megatron =
      std::any_of(read.settings.begin(), read.settings.end(), [](const Setting& setting) {
        return setting.key == "use_mca" || setting.key.ends_with("model_parallel_size");
      });
  if (!megatron) return std::nullopt;
  // Of the Trainer's settings, those that the Megatron family has, too.
  static const std::pair<const char*, const char*> kSame[]{
      {"model_name_or_path", "model"},
      {"cutoff_len", "seq_length"},
      {"per_device_train_batch_size", "micro_batch_size"},
      {"finetuning_type", "tuner_type"},
      {"freeze_vision_tower", "freeze_vision_model"},
      {"freeze_multi_modal_projector", "freeze_vision_projection"},
      {"learning_rate", "lr"},
      {"lr_scheduler_type", "lr_decay_style"},
      {"warmup_steps", "lr_warmup_iters"},
      {"max_steps", "train_iters"},
      {"max_grad_norm", "clip_grad"}};
  std::vector<Setting> settings = megatron_names(read);
  for (Setting& setting : settings)
    for (const auto& [trainers, megatrons] : kSame)
      if (setting.key == trainers) setting.key = megatrons;
  return settings;
}

std::vector<std::vector<KnownSetting>> trainer_known() {
  static const std::vector<KnownSetting> kKnown{
      {kNotModeled,
       "deepspeed.zero_optimization.offload_* accelerate.deepspeed_config.offload_* "
       "accelerate.fsdp_config.fsdp_offload_params deepspeed_offload",
       "states or parameters on the host"},
      {kNotModeled,
       "deepspeed.zero_optimization.zero_quantized_* use_galore use_badam use_apollo "
       "quantization_bit "
       "quantization_method load_in_4bit load_in_8bit bnb_* use_dora activation_offloading",
       "another optimizer, or quantized weights"},
      {kNotModeled, "optim", "another optimizer than AdamW",
       "adamw_torch adamw_torch_fused adamw_hf adamw_apex_fused adamw_bnb_fused"},
      {kNotModeled,
       "use_liger_kernel enable_liger_kernel use_unsloth use_unsloth_gc torch_compile* flash_attn "
       "neat_packing mixture_of_depths",
       "kernels other than the stack's"},
      {kNotModeled, "expert_parallel* moe_* use_hyper_parallel hyper_parallel_*",
       "expert parallelism of the Trainer"},
      {kIgnored,
       "deepspeed.zero_optimization.*bucket* deepspeed.zero_optimization.overlap_comm "
       "deepspeed.zero_optimization.contiguous_gradients "
       "deepspeed.zero_optimization.*prefetch* deepspeed.zero_optimization.*threshold* "
       "deepspeed.zero_optimization.*max_* deepspeed.zero_optimization.* "
       "deepspeed.gradient_clipping deepspeed.steps_per_print deepspeed.wall_clock_breakdown "
       "deepspeed.*_batch_size* deepspeed.gradient_accumulation_steps "
       "deepspeed.zero_allow_untested_optimizer deepspeed.* accelerate.* fsdp_config* deepspeed "
       "fsdp fsdp_transformer_layer_cls_to_wrap",
       "details of the sharding, or of how processes are started"},
      {kIgnored,
       "logging_* log_* report_to run_name plot_loss wandb* swanlab* disable_tqdm include_* "
       "tensorboard* print_*",
       "logging"},
      {kIgnored,
       "output_dir overwrite_output_dir save_* resume_* load_best* push_to_hub hub_* "
       "adapter_name_or_path create_new_adapter export_* overwrite_cache ",
       "checkpoints"},
      {kIgnored,
       "dataset* data_* *_file *_dir template image_* video_* audio_* media_dir preprocessing_* "
       "dataloader_* max_samples tokenized_path cutoff_len "
       "packing streaming mix_strategy interleave_probs val_size eval_* per_device_eval_batch_size "
       "do_* train_on_prompt mask_history group_by_length "
       "remove_unused_columns lazy_preprocess is_multimodal trust_remote_code use_fast_tokenizer "
       "tokenizer_* token cache_dir text_column* streaming_* "
       "vision_tower mm_* version conv_* pretrain_mm_* tune_* default_system enable_thinking "
       "tool_format rope_scaling preprocessing_num_workers group_by_modality_length",
       "where the data are, and how they are read"},
      {kIgnored,
       "evaluation_strategy prediction_loss_only skip_memory_metrics ignore_data_skip "
       "assistant_only_loss use_flash_attention_2 "
       "learning_rate lr_* num_train_epochs max_steps warmup_* weight_decay adam_* max_grad_norm "
       "seed label_smoothing* lora_alpha lora_dropout lora_target* "
       "lora_* pref_* stage neftune* use_rslora additional_target freeze_* loss_* pissa_* "
       "loraplus_* average_tokens_across_devices projector_lr vision_lr",
       "numbers of the optimization, not its cost"},
      {kIgnored,
       "ddp_* local_rank tf32 fp16_* bf16_* half_precision_backend upcast_* use_cache "
       "attn_implementation torch_dtype low_cpu_mem_usage "
       "dispatch_batches split_batches model_revision infer_* compute_accuracy "
       "gradient_checkpointing_kwargs* use_cpu full_determinism use_reentrant_gc "
       "disable_gradient_checkpointing "
       "config_yaml accelerate_config_file",
       "details of the processes"}};
  return {kKnown};
}

}  // namespace polyphony::sim
