#!/bin/bash
# A recipe of Megatron-Bridge with another layout, and FP8 by block.
set -e
cd /opt/Megatron-Bridge
RECIPE=llama31_70b_pretrain_config

uv run python -m torch.distributed.run --nnodes=8 --nproc_per_node=8 \
  --rdzv_backend=c10d --rdzv_endpoint="${HEAD_NODE}:29400" \
  scripts/training/run_recipe.py \
  --recipe "$RECIPE" \
  --dataset llm-pretrain-mock \
  train.train_iters=200 train.micro_batch_size=1 train.global_batch_size=128 \
  model.seq_length=8192 dataset.seq_length=8192 \
  model.tensor_model_parallel_size=4 model.sequence_parallel=true \
  model.pipeline_model_parallel_size=4 model.virtual_pipeline_model_parallel_size=5 \
  model.context_parallel_size=1 \
  ++model.recompute_granularity=full ++model.recompute_method=uniform ++model.recompute_num_layers=1 \
  ddp.use_distributed_optimizer=true ddp.overlap_grad_reduce=true ddp.overlap_param_gather=true \
  mixed_precision=bf16_with_fp8_current_scaling_mixed \
  optimizer.lr=1.0e-4 scheduler.lr_warmup_iters=20 \
  logger.log_interval=1 ~logger.wandb_project \
  checkpoint.save=/ckpt/llama70b checkpoint.save_interval=100
