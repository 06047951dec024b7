// Settings of the Megatron family that no scenario has, and why. Names: destinations of
// megatron/training/arguments.py and fields of its configuration classes (Megatron-LM d98e8a64,
// 2026-08-22), sections of Megatron-Bridge's ConfigContainer, fields of ms-swift's
// MegatronArguments.
#include "sim/frameworks/translate.h"

namespace polyphony::sim {
namespace {

constexpr const char* kLogging = "logging and profiling";
constexpr const char* kCheckpoints = "checkpoints, which a step's prediction does not contain";
constexpr const char* kData = "where the data are; their sizes decide";
constexpr const char* kOptimization = "numbers of the optimization, not its cost";
constexpr const char* kProcesses = "how processes are started, watched and stopped";
constexpr const char* kOther = "for inference or another training program";
constexpr const char* kNumerics = "numerics, at the same cost";
constexpr const char* kStack = "part of the software stack's fitted costs";

const std::vector<KnownSetting> kMegatron{
    // First those of which a default says nothing.
    {kNotModeled, "exp_avg_dtype exp_avg_sq_dtype main_grads_dtype main_params_dtype",
     "optimizer states and gradients in other formats than fp32: less memory",
     "torch.float32 float32 fp32"},
    {kNotModeled, "softmax_type", "another softmax", "vanilla"},
    {kNotModeled, "outer_dp_sharding_strategy", "sharding on two levels", "no_shard"},
    {kNotModeled, "cuda_graph_impl", "CUDA graphs save launches", "none"},
    {kIgnored,
     "cuda_graph_warmup_steps cuda_graph_modules cuda_graph_scope* cuda_graph_use_* "
     "cuda_graph_retain_*",
     "counts with CUDA graphs only, which --cuda-graph-impl tells"},
    {kIgnored,
     "mamba_* use_mamba_* gdp_* linear_conv_kernel_dim linear_key_head_dim linear_value_head_dim "
     "linear_num_key_heads linear_num_value_heads",
     "of hybrid models, which are refused where they are"},
    {kIgnored, "muon_* soap_* lion_* adaptive_muon_*",
     "of another optimizer, which --optimizer tells"},
    {kIgnored, "mtp_loss_scaling_factor", "a weight of the loss"},
    {kIgnored, "num_layers_at_start_in_bf16 num_layers_at_end_in_bf16",
     "counts with --first-last-layers-bf16 only"},
    {kIgnored, "optimizer_offload_fraction", "counts with --optimizer-cpu-offload only"},
    {kIgnored, "tp_comm_bulk_* tp_comm_split_* tp_comm_atomic_* tp_comm_overlap_*",
     "counts with --tp-comm-overlap only"},
    {kIgnored,
     "*_func timers config_yaml hidden_act scatter_embedding_sequence_parallel parallel_output "
     "model_author model_name gradient_checkpointing_kwargs runtime_time_unit "
     "dump_param_to_param_group_map "
     "distrib_optim_* pipeline_model_parallel_comm_backend _args_ _partial_ *._args_ *._partial_",
     "a detail of how the program is put together"},
    {kNotModeled,
     "reduce_scatter_with_fp32_accumulation expert_gtp_weight_remat_size mlp_chunks_for_training "
     "delay_offload_until_cuda_graph moe_enable_routing_replay moe_upcycling_granularity "
     "attention_output_gate "
     "qk_l2_norm freeze_all_layers heterogeneous_block_specs moe_router_quantile_balancing_ema "
     "moe_pad_experts_for_cuda_graph_inference",
     "changes the model or its cost", "layer 1 none"},
    {kNotModeled, "recompute_modules moe_layer_recompute",
     "modules other than core_attn are not recomputed by themselves"},
    {kNotModeled, "distribute_saved_activations",
     "inputs of recomputed blocks are not cut over tensor-parallel ranks"},
    {kNotModeled, "tp_comm_overlap tp_comm_split_* tp_comm_atomic_* tp_comm_bulk_*",
     "user buffers that overlap tensor-parallel collectives and GEMMs (\"tp_pieces\" is nearest)"},
    {kNotModeled,
     "overlap_moe_expert_parallel_comm delay_wgrad_compute moe_shared_expert_overlap "
     "overlap_dispatch_backward_with_experts_wgrad ep_overlap_early_attn_memory_release",
     "overlap of expert dispatch with compute"},
    {kNotModeled, "cuda_graph_* enable_cuda_graph external_cuda_graph optimizer_cuda_graph",
     "CUDA graphs save launches"},
    {kNotModeled,
     "optimizer_cpu_offload optimizer_offload_fraction overlap_cpu_optimizer_d2h_h2d "
     "use_torch_optimizer_for_cpu_offload pin_cpu_*",
     "the optimizer on the host"},
    {kNotModeled, "cpu_offloading cpu_offloading_*", "layers whose activations wait on the host"},
    {kNotModeled,
     "use_precision_aware_optimizer main_params_dtype main_grads_dtype exp_avg_dtype "
     "exp_avg_sq_dtype store_param_remainders megatron_fsdp_main_grads_dtype "
     "megatron_fsdp_main_params_dtype megatron_fsdp_use_decoupled_grad",
     "optimizer states and gradients in other formats than fp32: less memory"},
    {kNotModeled,
     "grad_reduce_in_bf16 megatron_fsdp_grad_comm_dtype ddp_reduce_scatter_with_fp32_accumulation",
     "gradients are reduced in bf16: half the bytes"},
    {kNotModeled, "microbatch_group_size_per_vp_stage",
     "microbatches that a virtual stage takes in a row; here as many as pipeline ranks"},
    {kNotModeled, "mtp_num_layers mtp_*", "multi-token prediction: its blocks and its loss"},
    {kNotModeled, "rampup_batch_size step_batch_size_schedule decrease_batch_size_if_needed",
     "a batch that grows: the final one is predicted"},
    {kNotModeled,
     "moe_expert_capacity_factor moe_pad_expert_input_to_capacity "
     "moe_expert_rank_capacity_factor moe_paged_stash* moe_token_dropping",
     "experts with a capacity: dropped or padded tokens"},
    {kNotModeled, "moe_latent_size moe_router_topk_limited_devices moe_use_upcycling",
     "a routing of its own"},
    {kNotModeled,
     "hybrid_context_parallel max_seqlen_per_dp_cp_rank dynamic_context_parallel "
     "sequence_packing_scheduler min_hybrid_context_parallel_size",
     "context parallelism by sample"},
    {kNotModeled, "use_tp_pp_dp_mapping", "pipeline neighbors before data-parallel ones"},
    {kNotModeled,
     "fp8_param_gather fp8_param fp4_param_gather fp4_param keep_fp8_transpose_cache "
     "fp8_multi_head_attention fp8_dot_product_attention fp8_output_proj",
     "more in FP8 than the GEMMs with weights"},
    {kNotModeled, "first_last_layers_bf16 num_layers_at_start_in_bf16 num_layers_at_end_in_bf16",
     "blocks that stay in bf16"},
    {kNotModeled, "fp4 fp4_format fp4_recipe", "FP4"},
    {kNotModeled, "optimizer muon_* soap_* lion_* adaptive_muon_*", "another optimizer than Adam"},
    {kNotModeled,
     "use_nccl_ub nccl_ub use_sharp sharp_enabled_group symmetric_ar_type "
     "tp_comm_overlap_cfg gtp_* tensor_parallel_num_weight_shards "
     "expert_tensor_parallel_num_weight_shards",
     "collectives with user buffers, in the switch, or of re-materialized weights"},
    {kNotModeled,
     "squared_relu quick_geglu openai_gelu bias_activation use_fused_weighted_squared_relu",
     "another activation function"},
    {kNotModeled,
     "experimental_attention_variant dsa_* enable_mhc_connections mhc_* qk_clip* "
     "heterogeneous_layers_config_* softmax_type no_rope_freq mamba_* spec_variant",
     "layers that no module has"},
    {kNotModeled, "enable_gpt_oss",
     "dimensions of GPT-OSS that replace others (--model gpt-oss-20b states them)"},
    {kNotModeled,
     "defer_embedding_wgrad_compute wgrad_deferral_limit overlap_p2p_comm_warmup_flush "
     "overlap_param_gather_with_optimizer_step",
     "a schedule's details"},
    {kNotModeled, "hidden_dropout attention_dropout", "dropout: its masks and kernels"},
    {kNotModeled, "fp32_residual_connection fp16_lm_cross_entropy", "another format of a part"},
    {kNotModeled,
     "fine_grained_activation_offloading offload_modules activation_offload_fraction "
     "min_offloaded_tensor_size fine_grained_offloading_* delta_offload_*",
     "activations of some modules wait on the host (\"offload_activations\" is all or nothing)"},
    {kNotModeled,
     "num_distributed_optimizer_instances_outer outer_dp_sharding_strategy "
     "enable_full_sharding_in_hsdp",
     "sharding on two levels"},
    {kNotModeled, "vit_gradient_checkpointing recompute_vision",
     "recomputation of the encoder by itself"},
    {kNotModeled, "num_microbatches_with_partial_activation_checkpoints",
     "recomputation of some microbatches"},
    {kNotModeled, "moe_router_force_load_balancing moe_router_force_biased",
     "predictions have even loads anyway: real routing is slower"},
    {kNotModeled,
     "use_torch_fsdp2_cpu_offload use_vlm_dp_balance use_vit_dp_balance custom_pipeline_* "
     "enable_encoder_hetero_dp enable_full_hetero_dp full_hetero_dp_*",
     "another program's balance"},

    {kIgnored,
     "log_* logging_* *tensorboard* wandb_* timing_log_* one_logger_* enable_one_logger app_tag_* "
     "otel_* barrier_with_L1_time record_memory_history memory_snapshot_path profile profile_* "
     "use_nsys_profiler use_pytorch_profiler nvtx_ranges pytorch_profiler_* record_shapes "
     "moe_per_layer_logging "
     "report_to swanlab* trackio* set_level_for_all_loggers filter_warnings modules_to_filter "
     "throughput_window_size "
     "save_config_filepath inference_logging_step_interval memory_keys "
     "run_workload_inspector_server "
     "moe_routing_trace_* config_logger_dir report_* verbose print_* skip_train log_level* debug",
     kLogging},
    {kIgnored,
     "save save_* load load_* ckpt_* *ckpt* checkpoint checkpoint_dir pretrained_checkpoint "
     "use_checkpoint_args use_checkpoint_opt_param_scheduler auto_detect_ckpt_format no_load_* "
     "no_save_* "
     "async_save async_strategy finetune non_persistent_* exit_on_missing_checkpoint "
     "use_mp_args_from_checkpoint_args "
     "use_tokenizer_model_from_checkpoint_args replication* fully_parallel_* "
     "strict_fsdp_dtensor_load "
     "verify_integrity most_recent_k use_persistent_ckpt_worker allow_missing_* dataloader_save "
     "result_rejected_tracker_filename metadata_path safe_serialization save_safetensors "
     "mcore_model "
     "mcore_adapter merge_lora to_hf to_mcore add_version overwrite_output_dir "
     "resume_from_checkpoint "
     "resume output_dir bert_load ict_load",
     kCheckpoints},
    {kIgnored,
     "data_path data_args_path data_cache_path data_sharding *_data_path split dataloader_* "
     "num_workers "
     "tokenizer_* vocab_file merge_file vocab_extra_ids mock_data reset_* eod_mask_loss "
     "create_attention_mask_in_dataloader mmap_bin_files num_dataset_builder_threads "
     "mid_level_dataset_surplus fim_* object_storage_cache_path per_split_data_args_path "
     "tiktoken_* special_tokens "
     "null_tokenizer_* trust_remote_code allow_ambiguous_pad_tokens blend* prompt_path dataset* "
     "multiple_validation_sets full_validation validation_set_names per_dataset_sequences_path "
     "chat_template "
     "sft sft_* make_vocab_size_divisible_by padded_vocab_size vocab_size pad_vocab_size "
     "image_tag_type use_tile_tags "
     "image_token_id special_token_ids use_gigatoken model_type template system columns shuffle* "
     "val_dataset* "
     "split_dataset_ratio streaming lazy_tokenize strict cached_* load_from_cache_file use_hf "
     "hub_* truncation_strategy "
     "max_length_truncation interleave_prob stopping_strategy loss_scale_rule enable_msc "
     "disable_msc* trim_*"
     " phase_transition_iterations agent_template task_type remove_unused_columns data_seed "
     "custom_register_path "
     "external_plugins model_revision local_repo_path",
     kData},
    {kIgnored,
     "lr lr_* min_lr decoupled_* weight_decay weight_decay_* start_weight_decay end_weight_decay "
     "wd_incr_steps "
     "adam_* clip_grad train_iters train_samples eval_* override_opt_param_scheduler seed "
     "init_method* "
     "embedding_init_method* output_layer_init_method initial_loss_scale min_loss_scale loss_scale "
     "loss_scale_* hysteresis "
     "rerun_mode error_injection_* check_for_* check_weight_hash_* calculate_per_token_loss "
     "moe_z_loss_coeff "
     "apply_wd_to_qk_layernorm grad_norm_skip_threshold iterations_to_skip "
     "data_parallel_random_init sgd_momentum "
     "start_eval_at_iter train_sync_interval no_weight_decay_cond_type perform_initialization "
     "use_cpu_initialization init_model_with_meta_device use_mup mup_* te_rng_tracker "
     "use_te_rng_tracker inference_rng_tracker "
     "moe_router_bias_update_rate moe_router_load_balancing_type moe_input_jitter_eps "
     "exit_interval max_epochs "
     "num_train_epochs vit_lr aligner_lr beta1 beta2 warmup* wsd_* optimizer_state_dtype "
     "qk_clip_alpha "
     "test_mode skip_* no_initialization lr_scheduler* use_rslora lora_alpha lora_dropout "
     "lora_bias target_modules init_weights "
     "tuner_type train_type modules_to_save rlhf_* beta kl_* ref_* moe_expert_bias_update_rate",
     kOptimization},
    {kIgnored,
     "rank local_rank master_* node_rank rdzv_* distributed_backend distributed_timeout_* "
     "use_gloo_process_groups disable_gloo_process_groups spec nccl_communicator_config_path "
     "high_priority_* lazy_mpu_init adlr_* ft_* enable_ft_package "
     "calc_ft_timeouts inprocess_* straggler_* disable_straggler_on_startup manual_gc* "
     "empty_unused_memory_level "
     "deterministic_mode batch_invariant_* exit_* flight_recorder_* use_mcore_models "
     "deprecated_use_mcore_models use_legacy_models enable_experimental yaml_cfg "
     "fake_process_group gpu_sniff_test_interval "
     "use_ring_exchange_p2p create_all_gather_group local_world_size use_dist_ckpt* account_* "
     "suggested_communication_unit_size "
     "ddp_timeout ddp_backend tp_comm_bootstrap_backend _target_ _call_ *._target_ *._call_ "
     "refit_method external_config",
     kProcesses},
    {kIgnored,
     "inference_* rl_* grpo_* langrl_* bert_* biencoder_* ict_* retriever_* block_data_path "
     "embedding_path "
     "query_in_block_prob use_one_sent_docs indexer_* img_h img_w num_classes num_channels "
     "patch_dim "
     "classes_fraction data_per_class_fraction head_lr_mult iter_per_epoch dino_* swin_* "
     "mask_factor mask_prob mask_type "
     "sample_rate short_seq_prob retro_* logits_* kd_* export_* modelopt_* teacher_* flash_decode "
     "max_tokens_to_oom "
     "num_speculative_tokens decode_only_cuda_graphs enable_chunked_prefill mlp_chunks_for_prefill "
     "nccl_all_reduce_for_prefill output_bert_embeddings perform_rl_step return_log_probs "
     "skip_prompt_log_probs "
     "use_legacy_static_engine use_inference_optimized_layers vision_backbone_type "
     "vision_pretraining* "
     "encoder_num_layers encoder_seq_length decoder_num_layers decoder_seq_length "
     "max_position_embeddings relative_attention_* "
     "ict_head_size offset_sampling_seed_by_dp_rank use_same_sampling_seed_across_dp_ranks "
     "cache_mla_latents "
     "hf_* vllm_* sglang_* max_completion_length num_generations temperature top_k top_p",
     kOther},
    {kIgnored,
     "attention_softmax_in_fp32 apply_query_key_layer_scaling softmax_scale "
     "apply_layernorm_1p layernorm_zero_centered_gamma rotary_interleaved rotary_percent "
     "rotary_base rotary_* rope_* "
     "use_rope_scaling mscale mscale_all_dim beta_fast beta_slow yarn_* "
     "original_max_position_embeddings "
     "position_embedding_type use_rotary_position_embeddings add_position_embedding "
     "position_embedding mrope_section logit_dtype "
     "autocast_dtype enable_autocast params_dtype pipeline_dtype moe_router_dtype "
     "moe_router_pre_softmax "
     "disable_bf16_reduced_precision_matmul memory_efficient_layer_norm persist_layer_norm "
     "no_persist_layer_norm "
     "apply_residual_connection_post_layernorm glu_linear_offset activation_func_clamp_value "
     "norm_epsilon "
     "fp8_margin fp8_interval fp8_amax_* fp8_wgrad fp8_recipe fp8_quantizer_factory "
     "fp4_quantizer_factory "
     "reduce_amax first_last_* tp_only_amax_red moe_apply_probs_on_input moe_router_padding_for_* "
     "moe_mlp_glu_interleave_size moe_shared_expert_glu_interleave_size onnx_safe image_size "
     "torch_dtype attn_impl "
     "bias_update max_pixels fps",
     kNumerics},
    {kIgnored,
     "overlap_grad_reduce overlap_param_gather overlap_p2p_comm overlap_p2p_communication "
     "batch_p2p_* *_fusion "
     "fused_* attention_backend use_flash_attn flash_attention_version transformer_impl use_te "
     "moe_grouped_gemm moe_use_grouped_tensor moe_single_grouped_* cross_entropy_fusion_impl "
     "accumulate_allreduce_grads_in_fp32 "
     "grad_reduce_in_fp32 align_* ddp_* bucket_size num_buckets pad_buckets_for_high_nccl_busbw "
     "average_in_collective "
     "use_transformer_engine_op_fuser use_te_activation_func gradient_reduce_div_fusion "
     "use_grouped_gemm_* "
     "disable_jit_fuser jit_fuser moe_deepep_num_sms moe_hybridep_* moe_flex_dispatcher_num_sms "
     "moe_ncclep_* "
     "moe_enable_deepep moe_permute_fusion_into_hybridep moe_token_drop_policy "
     "fsdp_double_buffer fsdp_* megatron_fsdp_* suggested_* reuse_grad_buf_for_mxfp8_param_ag "
     "deallocate_pipeline_outputs "
     "variable_seq_lengths clone_scatter_output_in_embedding use_layer_wise_* barrier* "
     "use_kitchen* kitchen_* "
     "te_precision_config_file quant_recipe use_flashinfer_fused_rope "
     "disable_parameter_transpose_cache "
     "disable_symmetric_registration param_name_patterns_* dist_ckpt* torch_compile* "
     "activation_func_fp8_input_store disable_vision_class_token pixel_shuffle use_tiling "
     "max_num_tiles use_thumbnail "
     "use_image_break_token moe_combine_bwd_dtype moe_dispatch_fwd_dtype padding_free packing "
     "no_padding_free "
     "linear_attention_freq is_hybrid_model micro_batch_size_per_rank window_attn_skip_freq "
     "patience",
     kStack}};

// Sections of Megatron-Bridge's configuration that have nothing to do with a step.
const std::vector<KnownSetting> kBridge{
    {kIgnored, "logger.* profiling.* tensor_inspect.*", kLogging},
    {kIgnored, "checkpoint.*", kCheckpoints},
    {kIgnored, "dataset.* tokenizer.* validation.*", kData},
    {kIgnored, "scheduler.* rng.* rerun_state_machine.* optimizer_config_override_provider.*",
     kOptimization},
    {kIgnored, "dist.* ft.* straggler.* nvrx_straggler.* inprocess_restart.* env_vars.*",
     kProcesses},
    {kIgnored,
     "recipe mode dryrun nodes gpus_per_node num_nodes num_gpus_per_node partition account "
     "time_limit container_image "
     "gpu compute_dtype task domain model_family_name model_recipe_name hf_token custom_mounts",
     kProcesses},
    {kNotModeled, "comm_overlap.*", "user buffers and overlaps (comm_overlap)"},
    {kIgnored,
     "vision_config.* vision_config text_config.* language_transformer_config.* hf_config* "
     "generation_config* *_token_id "
     "vision_start_token_id language_max_sequence_length use_hf_vision_model temporal_patch_size "
     "spatial_merge_size in_channels patch_size deepstack_visual_indexes num_position_embeddings "
     "out_hidden_size "
     "bias_activation_fusion_ generate_* vision_*",
     "dimensions of the encoder, which --model gives"}};

}  // namespace

std::vector<std::vector<KnownSetting>> megatron_known(Framework framework) {
  if (framework == Framework::megatron_bridge) return {kBridge, kMegatron};
  return {kMegatron};
}

}  // namespace polyphony::sim
