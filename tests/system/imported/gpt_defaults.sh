#!/usr/bin/env bash
# A GPT of 24 blocks. Sizes come from the environment, or from the defaults here:
#   TP=4 PP=2 bash gpt_defaults.sh
TP=${TP:-2}
PP=${PP:-4}
NNODES=${SLURM_NNODES:-2}
GPUS=${GPUS_PER_NODE:-8}
MBS=${MBS:-2}
ACCUMULATE=${ACCUMULATE:-16}
RECOMPUTE=${RECOMPUTE:-selective}
CHUNKS=${CHUNKS:-3}   # virtual stages of a pipeline rank
PROFILE=${PROFILE:-0}

LAYERS=24
WORLD=$((NNODES * GPUS))
DP=$((WORLD / (TP * PP)))
GBS=$((MBS * DP * ACCUMULATE))

OPTIONS="--num-layers $LAYERS --hidden-size 2048 --num-attention-heads 16 \
  --seq-length 2048 --max-position-embeddings 2048 \
  --tokenizer-type GPT2BPETokenizer --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt"

PARALLEL="--tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP"
if [[ $TP -gt 1 ]]; then
  PARALLEL="$PARALLEL --sequence-parallel"
fi
if [[ $PP -gt 1 && $CHUNKS -gt 1 ]]; then
  PARALLEL+=" --num-layers-per-virtual-pipeline-stage $((LAYERS / PP / CHUNKS))"
fi

if [[ "$RECOMPUTE" == full ]]; then
  MEMORY="--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
elif [[ "$RECOMPUTE" == selective ]]; then
  MEMORY="--recompute-activations"
else
  MEMORY=""
fi

if [ "$PROFILE" -eq 1 ]; then
  PROFILING="--profile --profile-step-start 5 --profile-step-end 7 --profile-ranks 0"
fi

export CUDA_DEVICE_MAX_CONNECTIONS=1
python -m torch.distributed.run --nproc_per_node $GPUS --nnodes $NNODES \
  --node_rank ${SLURM_NODEID:-0} --master_addr ${MASTER_ADDR:-localhost} --master_port 6000 \
  pretrain_gpt.py \
  $OPTIONS $PARALLEL $MEMORY $PROFILING \
  --micro-batch-size $MBS --global-batch-size $GBS \
  --train-iters 1000 --lr 3e-4 --lr-decay-style linear --lr-warmup-fraction .01 \
  --bf16 --use-distributed-optimizer --use-flash-attn \
  --data-path "${DATA:?the data set}" --save ckpt --save-interval 1000 --eval-iters 0
