#!/bin/bash
# transformers' Trainer under DeepSpeed's launcher, on two nodes.
MODEL="mistralai/Mistral-7B-v0.1"
OUT="/ckpt/mistral-sft"
mkdir -p $OUT

deepspeed --hostfile hosts --num_nodes 2 --num_gpus 8 --master_port 29600 \
  finetune.py \
  --deepspeed zero2.json \
  --model_name_or_path $MODEL \
  --train_file data/train.jsonl --validation_file data/valid.jsonl \
  --output_dir $OUT \
  --num_train_epochs 3 \
  --per_device_train_batch_size 4 \
  --per_device_eval_batch_size 4 \
  --gradient_accumulation_steps 2 \
  --gradient_checkpointing True \
  --model_max_length 2048 \
  --learning_rate 2e-5 --weight_decay 0. --warmup_ratio 0.03 --lr_scheduler_type cosine \
  --bf16 True --tf32 True \
  --evaluation_strategy no --save_strategy steps --save_steps 200 --save_total_limit 2 \
  --logging_steps 1 --report_to tensorboard \
  --dataloader_num_workers 4 --lazy_preprocess True &> $OUT/train.log
