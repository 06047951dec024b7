#!/bin/bash
# Full fine-tuning on one node: the configuration, with a few values replaced on the command line.
export NCCL_P2P_DISABLE=0
FORCE_TORCHRUN=1 NNODES=1 NPROC_PER_NODE=8 llamafactory-cli train \
  --stage sft --do_train true --finetuning_type full \
  --model_name_or_path meta-llama/Llama-3.1-8B-Instruct --template llama3 \
  --dataset alpaca_en_demo --cutoff_len 2048 --packing true \
  --deepspeed zero3.json \
  --per_device_train_batch_size 1 --gradient_accumulation_steps 8 \
  --learning_rate 1e-5 --lr_scheduler_type cosine --warmup_ratio 0.03 --num_train_epochs 2 \
  --bf16 true --disable_gradient_checkpointing false --flash_attn fa2 \
  --output_dir saves/llama3 --logging_steps 5 --save_steps 500
