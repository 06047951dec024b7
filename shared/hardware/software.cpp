#include "shared/hardware/software.h"

namespace polyphony {
namespace {

// Workspaces of cuBLAS on Hopper and later: PyTorch's (aten/src/ATen/cuda/CublasHandlePool.cpp) and
// Transformer Engine's (pytorch/cpp_extensions/gemm.py), 32 MiB each.
constexpr Bytes kLibraryWorkspace{std::int64_t{32} << 20};

std::vector<SoftwareStack> make_stacks() {
  // This project's executor on GPUs (exec/autograd/linear.cpp). On a CPU one core computes and
  // adds, one after the other.
  SoftwareStack own;
  own.tensor_overlap = 1;
  std::vector<SoftwareStack> stacks{own};
  // Numbers are the results of scripts/fit_profiles (2026-11). Launches, host times that the
  // measurements cannot separate, and overlaps are assumed.
  // Megatron-LM of 2020 to 2022 and forks: unfused attention, fp16 gradients reduced at the end.
  SoftwareStack early;
  early.name = "megatron-2021";
  early.traffic = 0.937;
  early.launches = 0.6;
  early.host = Seconds(8e-6);
  early.eager_attention = true;
  early.gradient_bytes = 2;
  early.scattered_messages = true;
  early.memory = {.keeping = Keeping::megatron, .dropout = true};
  stacks.push_back(early);
  // From 2022 on, sums of input gradients are overlapped with the weight gradients (arXiv
  // 2205.05198, §4.2.2).
  SoftwareStack sequence = early;
  sequence.name = "megatron-2022";
  sequence.tensor_overlap = 1;
  stacks.push_back(sequence);
  SoftwareStack deepspeed = early;
  deepspeed.name = "megatron-deepspeed";
  deepspeed.traffic = 0.463;
  deepspeed.host = Seconds(93.5e-6);
  stacks.push_back(deepspeed);
  // Megatron Core with Transformer Engine: fused norms, rotary embeddings and activations.
  SoftwareStack core;
  core.name = "megatron-core";
  core.traffic = 0.5;
  core.launches = 0.5;
  core.host = Seconds(6e-6);
  core.routing = Seconds(3.48e-3);
  core.tensor_overlap = 1;
  core.gradient_bytes = 4;
  core.scattered_messages = true;
  core.memory = {.keeping = Keeping::transformer_engine,
                 .fused_gradient_sums = true,
                 .workspaces = 2 * kLibraryWorkspace};
  stacks.push_back(core);
  // Megatron Core with its library defaults, as the authors of its MIMO models measured it
  // (yashaswikarnati/Megatron-LM, benchmarks/mimo_throughput/training.py): dropout of 0.1,
  // gradients in bf16, not accumulated inside GEMMs, a fused loss; biases, activations and dropout
  // unfused, so memory passes are those of plain kernels.
  SoftwareStack mimo = core;
  mimo.name = "megatron-mimo";
  mimo.gradient_bytes = 2;
  mimo.traffic = mimo.launches = 1;
  mimo.unfused = true;
  mimo.memory.dropout = mimo.memory.fused_loss = true;
  mimo.memory.fused_gradient_sums = false;
  mimo.memory.gradient = Bytes(2);
  stacks.push_back(mimo);
  SoftwareStack bridge = core;
  bridge.name = "megatron-bridge";
  bridge.gradient_bytes = 2;
  // Megatron-Bridge's performance recipes (perf_recipes/_common.py): grad_reduce_in_fp32 is false,
  // the loss is fused.
  bridge.memory.gradient = Bytes(2);
  bridge.memory.fused_loss = true;
  bridge.overlap = 0.8;
  // DeepEP on Hopper, HybridEP on NVLink domains (Megatron-Bridge, MoE Dispatcher Selection Guide).
  bridge.one_copy = true;
  bridge.pipelined = 0.33;
  bridge.traffic = 0.418;
  bridge.host = Seconds(5e-6);
  stacks.push_back(bridge);
  // PyTorch FSDP under autocast: llm-foundry.
  SoftwareStack fsdp;
  fsdp.name = "fsdp";
  fsdp.traffic = 1.22;
  fsdp.taken_inside = 0.49;
  fsdp.taken_between = 0.751;
  fsdp.launches = 0.7;
  fsdp.host = Seconds(8e-6);
  fsdp.gradient_bytes = 4;
  fsdp.memory = {.keeping = Keeping::fsdp, .workspaces = kLibraryWorkspace};
  stacks.push_back(fsdp);
  // torchtitan and NeMo AutoModel, without autocast: eager kernels, one per arithmetic operation,
  // like this project's plain form; not fitted.
  SoftwareStack fsdp2 = fsdp;
  fsdp2.name = "fsdp2";
  fsdp2.traffic = 1;
  fsdp2.launches = 1;
  stacks.push_back(fsdp2);
  // torch.compile, memory passes of a Llama-8B block: norms with the residual sum before them 8 h
  // instead of 10 h, rotary embeddings 2 (q + k) instead of 9 (q + k), SwiGLU 3 f instead of 5 f:
  // 86 instead of 159 thousand. Own count.
  SoftwareStack compiled = fsdp2;
  compiled.name = "fsdp2-compiled";
  compiled.traffic = 0.54;
  compiled.launches = 0.25;
  compiled.memory.compiled = true;
  stacks.push_back(compiled);
  // Hugging Face's own modules, unchanged: the images of a microbatch are one sequence under one
  // mask (models/qwen2_vl/modeling_qwen2_vl.py, VisionSdpaAttention).
  SoftwareStack hugging = fsdp2;
  hugging.name = "hf-eager";
  hugging.masked_images = true;
  stacks.push_back(hugging);
  // The same under ColossalAI's pipeline, with bitfield attention masks of modalities in the
  // language model. Its attention backward: arXiv 2503.11367v4, table 2, four samples of 3.7
  // thousand tokens on 4 A40s. A layer takes 65 ms with 32 heads of width 64 and 378 ms with 32
  // heads of width 128. Of this, everything else takes 32 and 76 ms by our count; attention has
  // 1.14e11 and 2.29e11 FLOPs per device. 40 heads of width 128 take 493 ms, and 502 ms by these
  // numbers.
  SoftwareStack fields = hugging;
  fields.name = "cornstarch";
  fields.narrow_attention_backward = 0.0231;
  fields.wide_attention_backward = 0.00506;
  fields.key_heads_a_launch = 1;    // arXiv 2503.11367v4, §4.3: keys are gathered head by head
  fields.blocking_messages = true;  // cornstarch/plugin/.../multimodal_1f1b.py waits for every send
  stacks.push_back(fields);
  return stacks;
}

}  // namespace

const std::vector<SoftwareStack>& shipped_stacks() {
  static const std::vector<SoftwareStack> stacks = make_stacks();
  return stacks;
}

const SoftwareStack* find_stack(const std::string& name) {
  for (const SoftwareStack& stack : shipped_stacks())
    if (stack.name == name) return &stack;
  return nullptr;
}

std::vector<std::string> stack_names() {
  std::vector<std::string> names;
  for (const SoftwareStack& stack : shipped_stacks()) names.push_back(stack.name);
  return names;
}

}  // namespace polyphony
