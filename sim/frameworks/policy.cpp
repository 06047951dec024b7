// verl and NeMo-RL: the update of the policy, with Megatron-core or with PyTorch's FSDP beneath, or
// a fine-tuning run. What generates, judges and compares is not a part of it.
#include <algorithm>

#include "sim/frameworks/translate.h"

namespace polyphony::sim {
namespace {

// PyTorch's FSDP around transformers' models.
RunSettings read_fsdp(SettingReader& s, Framework framework) {
  RunSettings run;
  run.stack = "hf-eager";
  run.model_name = s.text("model", "the model");
  ModuleLayout& grid = run.grid;
  grid.shard = s.flag("fsdp.reshard_after_forward", true, "shard") ? Shard::full : Shard::gradients;
  if (const auto ranks = s.integer("fsdp.fsdp_size", "shard_ranks"); ranks && *ranks > 1)
    grid.shard_ranks = static_cast<int>(std::min<std::int64_t>(*ranks, 1000000));
  if (const int copies = parallel_degree(s, "fsdp.dp_replicate_size", "shard_ranks"); copies > 1)
    run.shard_groups = copies;
  grid.tp = parallel_degree(s, "fsdp.tensor_parallel_size", "tp");
  grid.sp = s.flag("fsdp.sequence_parallel", false, "sp") && grid.tp > 1;
  grid.cp = parallel_degree(s, "fsdp.context_parallel_size", "cp");
  if (grid.cp > 1) grid.tokens = TokenAssignment::zigzag;
  if (const int ranks = parallel_degree(s, "fsdp.ulysses_sequence_parallel_size", "cp");
      ranks > 1) {
    grid.cp = ranks;
    grid.cp_attention = ContextAttention::ulysses;
  }
  grid.ep = parallel_degree(s, "fsdp.expert_parallel_size", "ep");
  const bool recompute = framework == Framework::verl
                             ? s.flag("model.enable_gradient_checkpointing", true, "recompute full")
                             : s.flag("fsdp.activation_checkpointing", false, "recompute full");
  grid.recompute = recompute ? Recompute::full : Recompute::none;
  run.microbatch = s.count("micro_batch_size", "samples of a microbatch");
  run.global_batch = s.count("global_batch_size", "data.global_batch");
  run.sequence = s.count("seq_length", "data.sequence");
  run.precision = "bf16";
  s.used("torch_dtype", "training.precision");
  if (s.text("tuner_type", "language.train") == "lora")
    train_by_lora(s.integer("lora_rank", "language.lora_rank"), run);
  if (s.flag("freeze_vision_model", false, "vision.train frozen"))
    run.train.emplace_back("vision", "frozen");
  read_optimization(s, run);
  return run;
}

}  // namespace

RunSettings read_policy(SettingReader& s, Framework framework, int layers) {
  RunSettings run = s.text("policy_engine", "the trainer") == "megatron"
                        ? read_megatron(s, framework, layers)
                        : read_fsdp(s, framework);
  run.microbatch_tokens = s.count("microbatch_tokens", "tokens of a microbatch");
  run.microbatches = s.count("microbatches", "microbatches");
  if (run.microbatch_tokens) run.microbatch.reset();
  s.assumed(
      "one update of the policy, all of whose samples have the greatest length; generating, "
      "rewards and other models take their own time");
  return run;
}

std::vector<std::vector<KnownSetting>> policy_known() {
  static const std::vector<KnownSetting> kKnown{
      {kIgnored,
       "param_offload grad_offload optimizer_offload fsdp.param_offload "
       "fsdp.optimizer_offload offload",
       "states are on the host between two updates, not during one"},
      {kNotModeled, "fsdp.offload_policy fsdp.cpu_offload model.enable_activation_offload",
       "states or activations on the host"},
      {kNotModeled,
       "model.use_liger model.use_fused_kernels model.fused_kernel_options.* model.tiled_mlp.* "
       "fsdp.use_torch_compile actor.use_torch_compile actor.use_fused_kernels defer_fp32_logits "
       "use_fused_linear_logprobs",
       "kernels other than the stack's"},
      {kNotModeled, "model.mtp.* use_linear_ce_fusion_loss* *mtp_*",
       "multi-token prediction: its blocks and its loss"},
      {kIgnored,
       "actor_rollout_ref.rollout.* actor_rollout_ref.hybrid_engine policy.generation.* "
       "policy.generation_batch_size policy.logprob_batch_size policy.refit_* "
       "generation.* env.* environment.* rollout.*",
       "generating, which an update does not contain"},
      {kIgnored,
       "actor_rollout_ref.ref.* critic.* reward_model.* reward.* reward_manager* "
       "custom_reward_function.* algorithm.* grpo.* dpo.* ppo.* rm.* sft.* distillation.* "
       "loss_fn.* "
       "teacher.* teachers value_loss_fn.* reward_penalties.* async_rl.* data_plane.* value.* "
       "on_policy_distillation.* eval.* "
       "async_training.* transfer_queue.* ray_* ray_init.* ray_kwargs.*",
       "of other models and of the algorithm around the update"},
      {kIgnored,
       "actor.clip_ratio* actor.tau_* actor.entropy_* actor.kl_* actor.use_kl_loss "
       "actor.loss_* actor.policy_loss.* actor.ppo_epochs actor.shuffle actor.data_loader_seed "
       "actor.calculate_* actor.rollout_n actor.clip_* actor.sum_pi_* actor.router_replay.* "
       "actor.use_prefix_grouper actor.load_weight actor.use_rollout_log_probs "
       "do_not_average_loss cp_normalize scale_loss_by_*",
       "numbers of the loss, not its cost"},
      {kIgnored,
       "actor.ppo_* actor.use_dynamic_bsz actor.log_prob_* actor.use_remove_padding "
       "data.train_batch_size data.gen_batch_size data.micro_batch_size* data.max_* "
       "data.use_dynamic_bsz "
       "policy.sequence_packing.* policy.dynamic_batching.* policy.make_sequence_length_* "
       "model.use_remove_padding use_remove_padding variable_seq_lengths",
       "how samples come into microbatches, which is told above"},
      {kIgnored,
       "trainer.* checkpoint.* checkpointing.* logger.* global_profiler.* actor.profiler.* "
       "actor.checkpoint.* profiler.* checkpoint_* fault_tolerance.* telemetry.*",
       "logging, checkpoints and the order of phases"},
      {kIgnored, "data.* policy.tokenizer.* policy.hf_config_overrides* tokenizer.*",
       "where the data are, and how they are read"},
      {kIgnored,
       "use_mbridge vanilla_mbridge use_dist_checkpointing dist_checkpointing_* forward_only "
       "load_weight force_reconvert_from_hf empty_unused_memory_level converter_type env_vars.* "
       "dtype enabled policy.megatron_cfg.* policy.dtensor_cfg.* policy.optimizer* "
       "policy.scheduler* policy.max_grad_norm "
       "policy.reward_model_cfg* policy.offload_optimizer* policy.draft.* policy.pretrained_* "
       "policy.worker_* policy.quant_* policy.logprob_* policy.router_replay.* "
       "policy.disable_modelopt* policy.is_vlm policy.dequantize_* policy.activation_* "
       "clear_memory_* radio_* freeze_sound_* activation_checkpointing track_* "
       "layernorm_epsilon train_iters nsys_*",
       "details of the processes, or of the engine that is off"},
      {kIgnored,
       "model.trust_remote_code model.custom_chat_template model.external_lib "
       "model.override_config* model.hf_config_path model.tokenizer_path model.use_shm "
       "model.target_modules model.exclude_modules model.lora* model.load_* model.strategy "
       "model.rope_scaling* model.attn_implementation fsdp.wrap_policy.* fsdp.forward_prefetch "
       "fsdp.model_dtype fsdp.use_orig_params "
       "fsdp.seed fsdp.full_determinism fsdp.entropy_* fsdp.forward_only fsdp.strategy fsdp.dtype "
       "fsdp.mixed_precision.* fsdp._v2 fsdp.enabled fsdp.env_vars.* fsdp.custom_parallel_plan "
       "fsdp.clear_cache_* fsdp.automodel_kwargs* fsdp.fsdp_size actor.strategy "
       "fsdp.wrap_* fsdp.skip_* fsdp.defer_* fsdp.model_type fsdp.ema* fsdp.moe_parallelizer.* "
       "model.torch_dtype",
       "details of the model's processes"},
      {kIgnored, "peft.* lora_* fp8_cfg.*", "details of the updates' form"},
      {kIgnored,
       "lr_* min_lr* weight_decay* num_cycles warmup* clip_grad adam_* betas *_warmup* foreach "
       "fused name optim optimizer_impl override_optimizer_config momentum total_training_steps",
       "numbers of the optimization, not its cost"},
      {kIgnored,
       "config_path config_name config_yaml config defaults hydra.* *@* engine model_engine "
       "_target_ *._target_ optim critic cluster.* nccl_timeout actor_rollout_ref.nccl_timeout "
       "freeze_moe_router pipeline_dtype *bucket* use_kl_in_reward seed",
       "how the configuration is put together"},
  };
  return {kKnown};
}

}  // namespace polyphony::sim
