#include "shared/text/other_words.h"

#include <algorithm>
#include <cctype>

namespace polyphony {
namespace {

struct OtherWord {
  const char* word;   // "*.json": any word that ends so
  const char* known;  // the key or value that has to be allowed in its place
  const char* hint;   // null: did you mean the known one?
};

constexpr const char* kReplicas =
    "data parallelism is not written: dp follows from ranks / (tp * cp * pp)";
constexpr const char* kZero =
    "write \"shard\": \"optimizer\" for ZeRO-1, \"gradients\" for ZeRO-2, "
    "\"full\" for ZeRO-3 and FSDP";
constexpr const char* kGpus =
    "write the node and how many: \"node\": \"hgx-h100\", \"nodes\": 8 are 64 GPUs";
constexpr const char* kMicrobatches =
    "a layout counts microbatches: microbatches = global_batch / (dp * micro_batch_size), "
    "where dp = ranks / (tp * cp * pp)";
constexpr const char* kHuggingFace =
    "this looks like a Hugging Face config.json; a scenario names it: "
    "\"model\": {\"language\": {\"hf\": \"config.json\"}}";

constexpr const char* kEpochs =
    "a run counts steps: steps = epochs * samples / global_batch (polyphony scan counts samples)";
constexpr const char* kAdamw =
    "the optimizer is AdamW; its keys are learning_rate, weight_decay, beta1, beta2 and epsilon";
constexpr const char* kDataset =
    "a file is written as an object: {\"dataset\": \"train.jsonl\", \"tokenizer\": "
    "\"tokenizer.json\"}, or with \"text\" or \"tokens\" in place of \"dataset\"";

constexpr OtherWord kWords[] = {
    {"dp", "tp", kReplicas},
    {"data_parallel", "tp", kReplicas},
    {"data_parallel_size", "tp", kReplicas},
    {"tensor_parallel", "tp", nullptr},
    {"tensor_model_parallel_size", "tp", nullptr},
    {"pipeline_parallel", "pp", nullptr},
    {"pipeline_model_parallel_size", "pp", nullptr},
    {"virtual_pipeline_model_parallel_size", "vpp", nullptr},
    {"context_parallel", "cp", nullptr},
    {"context_parallel_size", "cp", nullptr},
    {"expert_parallel", "ep", nullptr},
    {"expert_model_parallel_size", "ep", nullptr},
    {"sequence_parallel", "sp", nullptr},
    {"recompute_granularity", "recompute", nullptr},
    {"activation_checkpointing", "recompute", nullptr},
    {"gradient_checkpointing", "recompute", nullptr},
    {"zero", "shard", kZero},
    {"zero_stage", "shard", kZero},
    {"zero1", "shard", kZero},
    {"zero2", "shard", kZero},
    {"zero3", "shard", kZero},
    {"fsdp", "shard", kZero},
    {"use_distributed_optimizer", "shard", kZero},
    {"zero0", "none", nullptr},
    {"ddp", "none", nullptr},
    {"zero1", "optimizer", nullptr},
    {"zero-1", "optimizer", nullptr},
    {"distributed_optimizer", "optimizer", nullptr},
    {"zero2", "gradients", nullptr},
    {"zero-2", "gradients", nullptr},
    {"zero3", "full", nullptr},
    {"zero-3", "full", nullptr},
    {"fsdp", "full", nullptr},
    {"gpus", "nodes", kGpus},
    {"gpu", "nodes", kGpus},
    {"num_gpus", "nodes", kGpus},
    {"gpus_per_node", "nodes", kGpus},
    {"world_size", "nodes", kGpus},
    {"num_nodes", "nodes", nullptr},
    {"lr", "learning_rate", nullptr},
    {"adam_beta1", "beta1", nullptr},
    {"adam_beta2", "beta2", nullptr},
    {"clip_grad", "clip_norm", nullptr},
    {"grad_clip", "clip_norm", nullptr},
    {"max_grad_norm", "clip_norm", nullptr},
    {"gradient_clip_val", "clip_norm", nullptr},
    {"eps", "epsilon", nullptr},
    {"adam_eps", "epsilon", nullptr},
    {"adam_epsilon", "epsilon", nullptr},
    {"wd", "weight_decay", nullptr},
    {"warmup", "warmup_steps", nullptr},
    {"lr_warmup_iters", "warmup_steps", nullptr},
    {"lr_scheduler_type", "decay", nullptr},
    {"lr_decay_style", "decay", nullptr},
    {"optimizer", "learning_rate", kAdamw},
    {"optim", "learning_rate", kAdamw},
    {"epochs", "steps", kEpochs},
    {"num_epochs", "steps", kEpochs},
    {"num_train_epochs", "steps", kEpochs},
    {"*.json", "easy-vqa", kDataset},
    {"*.jsonl", "easy-vqa", kDataset},
    {"*.tar", "easy-vqa", kDataset},
    {"*.txt", "easy-vqa", kDataset},
    {"*.parquet", "easy-vqa", kDataset},
    {"train_iters", "steps", nullptr},
    {"max_steps", "steps", nullptr},
    {"bf16", "precision", "write \"precision\": \"bf16\""},
    {"fp16", "precision", "write \"precision\": \"fp16\""},
    {"dtype", "precision", nullptr},
    {"torch_dtype", "precision", nullptr},
    {"bfloat16", "bf16", nullptr},
    {"float16", "fp16", nullptr},
    {"float32", "fp32", nullptr},
    {"micro_batch_size", "microbatch", nullptr},  // of a search: samples a microbatch
    {"micro_batch_size", "microbatches", kMicrobatches},
    {"micro_batch", "microbatches", kMicrobatches},
    {"mbs", "microbatches", kMicrobatches},
    {"gradient_accumulation_steps", "microbatches", nullptr},
    {"global_batch_size", "global_batch", nullptr},
    {"gbs", "global_batch", nullptr},
    {"batch_size", "global_batch", nullptr},
    {"seq_length", "sequence", nullptr},
    {"seq_len", "sequence", nullptr},
    {"max_length", "sequence", nullptr},
    {"architectures", "polyphony", kHuggingFace},
    {"model_type", "polyphony", kHuggingFace},
    {"megatron", "megatron-core", nullptr},
    {"megatron-lm", "megatron-core", nullptr},
    {"deepspeed", "megatron-deepspeed", nullptr},
    {"huggingface", "hf-eager", nullptr},
    {"torchtitan", "fsdp2-compiled", nullptr},
};

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_word(const std::string& given, const std::string& word) {
  return word.front() == '*' ? given.ends_with(word.substr(1)) : given == word;
}

}  // namespace

std::string hint_for_other_word(const std::string& word, const std::vector<std::string>& known) {
  std::string given = lower_case(word);
  for (const OtherWord& other : kWords)
    if (is_word(given, other.word) &&
        std::find(known.begin(), known.end(), other.known) != known.end())
      return other.hint ? other.hint : "did you mean \"" + std::string(other.known) + "\"?";
  return "";
}

}  // namespace polyphony
