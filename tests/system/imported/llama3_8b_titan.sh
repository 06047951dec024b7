#!/usr/bin/bash
# Starts one node by torchtitan's recipe, with options on top of it.
set -ex
NGPU=${NGPU:-"8"}
LOG_RANK=${LOG_RANK:-0}
MODULE=${MODULE:-"llama3"}
CONFIG=${CONFIG:-"llama3_8b"}
COMM_MODE=${COMM_MODE:-""}

if [ -n "$COMM_MODE" ]; then
  echo "A dry run with the mode $COMM_MODE"
  exit 0
fi
PYTORCH_ALLOC_CONF="expandable_segments:True" \
torchrun --nproc_per_node=${NGPU} --rdzv_backend c10d --rdzv_endpoint="localhost:0" \
  --local-ranks-filter ${LOG_RANK} --role rank --tee 3 \
  -m torchtitan.train --module ${MODULE} --config ${CONFIG} \
  --parallelism.tensor_parallel_degree 2 --parallelism.data_parallel_shard_degree 4 \
  --training.local_batch_size 2 --training.global_batch_size 32 --training.seq_len 4096 \
  --training.steps 50 --activation_checkpoint.mode none --compile.enable "$@"
