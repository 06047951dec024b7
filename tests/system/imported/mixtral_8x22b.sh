#!/bin/bash
# 8 experts of which 2 take a token, on 16 nodes of 8.
export CUDA_DEVICE_MAX_CONNECTIONS=1
export NVTE_FUSED_ATTN=1
N_NODES=16
N_GPUS=8

torchrun --nnodes=$N_NODES --nproc_per_node=$N_GPUS --node_rank=$SLURM_PROCID \
  --master_addr=$MASTER_ADDR --master_port=12355 \
  /opt/megatron/pretrain_gpt.py \
  --use-mcore-models \
  --num-layers 56 --hidden-size 6144 --ffn-hidden-size 16384 \
  --num-attention-heads 48 --group-query-attention --num-query-groups 8 \
  --seq-length 4096 --max-position-embeddings 65536 \
  --position-embedding-type rope --rotary-base 1000000 \
  --normalization RMSNorm --swiglu --disable-bias-linear \
  --untie-embeddings-and-output-weights \
  --attention-dropout 0 --hidden-dropout 0 \
  --num-experts 8 --moe-router-topk 2 \
  --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 0.02 \
  --moe-token-dispatcher-type alltoall --moe-grouped-gemm --moe-permute-fusion \
  --moe-router-dtype fp32 \
  --tensor-model-parallel-size 2 --sequence-parallel \
  --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 7 \
  --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 \
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
  --recompute-granularity selective --recompute-modules core_attn moe_act layernorm \
  --micro-batch-size 1 --global-batch-size 256 \
  --train-samples 5000000 --lr-decay-samples 4900000 --lr-warmup-samples 20000 \
  --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --weight-decay 0.1 --clip-grad 1.0 \
  --bf16 \
  --tokenizer-type Llama2Tokenizer --tokenizer-model /models/mixtral/tokenizer.model \
  --data-path /data/pile_text_document --split 99,1,0 \
  --log-interval 1 --save /ckpt/mixtral --save-interval 2000 --eval-interval 1000 --eval-iters 5 \
  --no-load-optim --no-load-rng --log-throughput
