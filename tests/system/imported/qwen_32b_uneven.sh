#!/bin/bash
# 64 blocks on 4 stages, of which the first and the last have fewer: they hold the embedding and the
# head. The first 3 blocks of every stage are recomputed.
: "${NNODES:=8}"
readonly GPUS_PER_NODE=8

function launch() {
  torchrun --nnodes "$NNODES" --nproc-per-node "$GPUS_PER_NODE" --node-rank "${RANK:-0}" \
    --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${MASTER_PORT:-29500}" "$@"
}

args=(--num-layers 64 --hidden-size 5120 --ffn-hidden-size 27648 --num-attention-heads 40)
args+=(--group-query-attention --num-query-groups 8 --add-qkv-bias --disable-bias-linear)
args+=(--swiglu --normalization RMSNorm --norm-epsilon 1e-6 --untie-embeddings-and-output-weights)
args+=(--position-embedding-type rope --rotary-base 1000000 --max-position-embeddings 8192)
args+=(--vocab-size 151936 --make-vocab-size-divisible-by 128)   # 152,064 for tensor parallelism 4
args+=(--attention-dropout 0.0 --hidden-dropout 0.0)

args+=(--tensor-model-parallel-size 4 --sequence-parallel)
args+=(--pipeline-model-parallel-size 4)
args+=(--decoder-first-pipeline-num-layers 14 --decoder-last-pipeline-num-layers 14)
args+=(--use-distributed-optimizer --num-distributed-optimizer-instances 2)
args+=(--recompute-granularity full --recompute-method block --recompute-num-layers 3)

args+=(--seq-length 8192 --micro-batch-size 1 --global-batch-size 256 --bf16)
args+=(--train-iters 20000 --lr 2e-5 --lr-decay-style WSD --lr-wsd-decay-iters 2000 --min-lr 2e-6)
args+=(--mock-data --tokenizer-type NullTokenizer --eval-iters 0)
args+=(--transformer-impl transformer_engine --log-interval 1)

launch pretrain_gpt.py "${args[@]}"
