#!/usr/bin/env bash
# GRPO of Qwen3-30B-A3B on two machines: verl with Megatron-core.
set -euo pipefail

NNODES=${NNODES:-2}
MODEL=${MODEL:-Qwen/Qwen3-30B-A3B}
prompt_len=$((1024 * 2))
answer_len=$((1024 * 6))
prompts=64
answers=8
offload=True

ACTOR="actor_rollout_ref.actor"
python3 -m verl.trainer.main_ppo --config-path=config --config-name='ppo_megatron_trainer.yaml' \
    algorithm.adv_estimator=grpo \
    data.train_files="$HOME/data/math/train.parquet" \
    data.train_batch_size=256 \
    data.max_prompt_length=${prompt_len} \
    data.max_response_length=${answer_len} \
    data.truncation=left \
    actor_rollout_ref.model.path="${MODEL}" \
    actor_rollout_ref.model.use_fused_kernels=True \
    ${ACTOR}.ppo_mini_batch_size=${prompts} \
    ${ACTOR}.use_dynamic_bsz=True \
    ${ACTOR}.ppo_max_token_len_per_gpu=$((2 * (prompt_len + answer_len))) \
    ${ACTOR}.optim.lr=1e-6 \
    ${ACTOR}.optim.clip_grad=1.0 \
    ${ACTOR}.optim.lr_warmup_steps=10 \
    ${ACTOR}.use_kl_loss=False \
    ${ACTOR}.clip_ratio_high=0.28 \
    ${ACTOR}.megatron.tensor_model_parallel_size=2 \
    ${ACTOR}.megatron.pipeline_model_parallel_size=2 \
    ${ACTOR}.megatron.expert_model_parallel_size=4 \
    ${ACTOR}.megatron.expert_tensor_parallel_size=1 \
    ${ACTOR}.megatron.param_offload=${offload} \
    ${ACTOR}.megatron.optimizer_offload=${offload} \
    +${ACTOR}.megatron.override_transformer_config.recompute_granularity=full \
    +${ACTOR}.megatron.override_transformer_config.recompute_method=uniform \
    +${ACTOR}.megatron.override_transformer_config.recompute_num_layers=1 \
    +${ACTOR}.megatron.override_transformer_config.moe_permute_fusion=True \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=${answers} \
    actor_rollout_ref.rollout.tensor_model_parallel_size=4 \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.7 \
    actor_rollout_ref.ref.megatron.tensor_model_parallel_size=2 \
    reward_model.reward_manager=dapo \
    trainer.logger='["console","tensorboard"]' \
    trainer.n_gpus_per_node=8 \
    trainer.nnodes="${NNODES}" \
    trainer.save_freq=50
