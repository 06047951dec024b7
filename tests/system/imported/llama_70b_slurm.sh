#!/bin/bash
#SBATCH --job-name=llama-70b
#SBATCH --partition=batch
#SBATCH --nodes=16
#SBATCH --gres=gpu:8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=96
#SBATCH --time=2-00:00:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --exclusive

# Pretrains a dense model of 70 billion parameters with sequences of 16k on 16 nodes.
set -euo pipefail
module load cuda/12.8

export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_DEBUG=WARN
export TORCH_NCCL_AVOID_RECORD_STREAMS=1

MEGATRON=${MEGATRON:-$HOME/Megatron-LM}
HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
PORT=29511
RUN=/scratch/runs/$SLURM_JOB_ID

LAUNCHER=(
  --nnodes 16
  --nproc_per_node 8
  --rdzv_backend c10d
  --rdzv_endpoint "$HEAD:$PORT"
  --rdzv_id "$SLURM_JOB_ID"
  --max_restarts 0
)

MODEL=(
  --num-layers 80
  --hidden-size 8192
  --ffn-hidden-size 28672
  --num-attention-heads 64
  --group-query-attention
  --num-query-groups 8
  --kv-channels 128
  --max-position-embeddings 16384
  --position-embedding-type rope
  --rotary-base 500000
  --use-rope-scaling
  --swiglu
  --normalization RMSNorm
  --norm-epsilon 1e-5
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --attention-dropout 0.0
  --hidden-dropout 0.0
  --init-method-std 0.006
  --attention-backend flash
)

# 128 GPUs: tensor 8 x context 2 x pipeline 4 leave 2 replicas.
PARALLEL=(
  --tensor-model-parallel-size 8
  --context-parallel-size 2
  --cp-comm-type p2p
  --pipeline-model-parallel-size 4
  --sequence-parallel
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
)

TRAIN=(
  --seq-length 16384
  --micro-batch-size 1
  --global-batch-size 128
  --train-iters 60000
  --lr 1.5e-4 --min-lr 1.5e-5
  --lr-decay-style cosine
  --lr-warmup-iters 2000
  --lr-decay-iters 60000
  --weight-decay 0.1
  --adam-beta1 0.9 --adam-beta2 0.95
  --clip-grad 1.0
  --bf16
  --no-gradient-accumulation-fusion
  --manual-gc --manual-gc-interval 50
)

DATA=(
  --data-path /data/mix_text_document
  --split 998,1,1
  --tokenizer-type HuggingFaceTokenizer
  --tokenizer-model meta-llama/Llama-3.1-70B
  --vocab-size 128256
  --num-workers 4
  --no-mmap-bin-files
)

OUTPUT=(
  --save "$RUN/checkpoints" --load "$RUN/checkpoints"
  --save-interval 500
  --ckpt-format torch_dist
  --async-save
  --log-interval 10
  --log-throughput
  --eval-interval 1000 --eval-iters 20
  --tensorboard-dir "$RUN/tensorboard"
  --distributed-timeout-minutes 30
)

mkdir -p "$RUN"
srun --kill-on-bad-exit=1 --label \
  torchrun "${LAUNCHER[@]}" "$MEGATRON/pretrain_gpt.py" \
    "${MODEL[@]}" "${PARALLEL[@]}" "${TRAIN[@]}" "${DATA[@]}" "${OUTPUT[@]}" 2>&1 | tee "$RUN/train.log"
