#!/bin/bash
# Fully sharded by Accelerate, on four nodes.
accelerate launch \
  --config_file fsdp2.yaml \
  --machine_rank ${SLURM_PROCID:-0} \
  --main_process_ip ${HEAD:-localhost} \
  --main_process_port 29500 \
  train.py \
  --model_name_or_path Qwen/Qwen2.5-32B \
  --dataset_name HuggingFaceH4/ultrachat_200k \
  --max_length 8192 \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 2 \
  --bf16 \
  --learning_rate 1e-5 --lr_scheduler_type linear --warmup_steps 50 --max_steps 2000 \
  --adam_beta2 0.95 --max_grad_norm 1.0 --seed 7 \
  --output_dir out --logging_steps 10 --save_strategy no
