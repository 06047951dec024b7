# Fine-tunes a vision-language model on one node: vision tower and projector stay frozen.
PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \
MAX_PIXELS=1003520 \
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
NPROC_PER_NODE=8 \
megatron sft \
    --model /models/llava-1.5-7b-hf \
    --save_safetensors true \
    --dataset 'AI-ModelScope/LaTeX_OCR:human_handwrite#5000' \
    --tuner_type full \
    --freeze_llm false \
    --freeze_vit true \
    --freeze_aligner true \
    --tensor_model_parallel_size 2 \
    --sequence_parallel true \
    --pipeline_model_parallel_size 2 \
    --packing true \
    --micro_batch_size 1 \
    --global_batch_size 16 \
    --recompute_granularity none \
    --vit_gradient_checkpointing false \
    --finetune true \
    --cross_entropy_loss_fusion true \
    --lr 1e-5 \
    --lr_warmup_fraction 0.05 \
    --min_lr 1e-6 \
    --num_train_epochs 1 \
    --output_dir output/llava \
    --save_steps 200 \
    --eval_steps 200 \
    --max_length 4096 \
    --dataloader_num_workers 4 \
    --dataset_num_proc 8 \
    --no_save_optim true \
    --no_save_rng true
