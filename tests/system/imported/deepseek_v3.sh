#!/bin/bash
# DeepSeek-V3's shape on 32 nodes: latent attention, three dense blocks, one block of multi-token
# prediction in the last stage. The job is written here and handed to sbatch.
WORKSPACE=${WORKSPACE:-/workspace}
PP=8
VPP_LAYOUT=${VPP_LAYOUT:-"Et*3|(t*4|)*14t*2mL"}
MBS=1
GBS=${GBS:-512}
DISPATCHER=${DISPATCHER:-alltoall}

ARGS=(
  --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128
  --kv-channels 128 --qk-layernorm
  --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512
  --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128
  --rotary-scaling-factor 40 --mscale 1.0 --mscale-all-dim 1.0
  --position-embedding-type rope --rotary-base 10000 --max-position-embeddings 4096
  --normalization RMSNorm --norm-epsilon 1e-6 --swiglu --disable-bias-linear
  --untie-embeddings-and-output-weights
  --make-vocab-size-divisible-by 3232 --vocab-size 129280
  --attention-dropout 0.0 --hidden-dropout 0.0

  --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048
  --moe-shared-expert-intermediate-size 2048
  --moe-layer-freq [0]*3+[1]*58
  --moe-router-num-groups 8 --moe-router-group-topk 4
  --moe-router-score-function sigmoid --moe-router-topk-scaling-factor 2.5
  --moe-router-pre-softmax --moe-router-enable-expert-bias --moe-router-bias-update-rate 1e-3
  --moe-router-load-balancing-type seq_aux_loss --moe-aux-loss-coeff 1e-4
  --moe-router-dtype fp32 --moe-grouped-gemm --moe-permute-fusion
  --moe-token-dispatcher-type ${DISPATCHER}
  --mtp-num-layers 1 --mtp-loss-scaling-factor 0.1

  --tensor-model-parallel-size 1
  --pipeline-model-parallel-size ${PP}
  --pipeline-model-parallel-layout "'${VPP_LAYOUT}'"
  --expert-model-parallel-size 32
  --expert-tensor-parallel-size 1
  --context-parallel-size 1
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
  --recompute-granularity selective
  --recompute-modules mla_up_proj mlp moe_act

  --seq-length 4096 --micro-batch-size ${MBS} --global-batch-size ${GBS}
  --train-samples 100000000 --bf16
  --lr 3.9e-6 --min-lr 3.9e-7 --lr-decay-style cosine --clip-grad 1.0 --weight-decay 0.1
  --tokenizer-type HuggingFaceTokenizer --tokenizer-model deepseek-ai/DeepSeek-V3
  --data-path ${WORKSPACE}/data/tokens --split 99,1,0
  --save ${WORKSPACE}/ckpt --load ${WORKSPACE}/ckpt --save-interval 200 --dist-ckpt-strictness log_all
  --log-interval 1 --log-throughput --eval-iters 8 --eval-interval 500
)
if [ "${FP8:-0}" = 1 ]; then
  ARGS=("${ARGS[@]}" --fp8-format e4m3 --fp8-recipe blockwise)
fi

COMMAND="cd ${WORKSPACE}/Megatron-LM && python pretrain_gpt.py ${ARGS[@]}"

sbatch <<JOB
#!/bin/bash
#SBATCH --job-name=ds-v3
#SBATCH --nodes=32
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
srun --container-image=/images/megatron.sqsh --no-container-mount-home \
  bash -c "${COMMAND}"
JOB
