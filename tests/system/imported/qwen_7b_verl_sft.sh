#!/usr/bin/env bash
# Fine-tuning with verl's engine of PyTorch's FSDP and sequence parallelism of Ulysses.
backend=fsdp
ENGINE="engine=${backend} optim=${backend} optim.lr=2e-5 optim.betas=[0.9,0.95] engine.strategy=fsdp2 engine.fsdp_size=-1 engine.ulysses_sequence_parallel_size=2"

torchrun --standalone --nnodes=1 --nproc-per-node=8 -m verl.trainer.sft_trainer \
    data.train_files=$HOME/data/train.parquet \
    data.train_batch_size=96 \
    data.max_length=2048 \
    data.max_token_len_per_gpu=8192 \
    model.path=Qwen/Qwen2.5-7B-Instruct \
    $ENGINE \
    trainer.total_epochs=2 trainer.save_freq=-1
