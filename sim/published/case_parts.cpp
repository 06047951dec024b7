#include "sim/published/case_parts.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "shared/hardware/devices.h"
#include "shared/text/json_form.h"

namespace polyphony::sim {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}
}  // namespace

void skip(const std::string& reason) { throw Skip{reason}; }

bool has(const std::string& text, const std::string& part) {
  return lower_case(text).find(part) != std::string::npos;
}

int need(const std::optional<int>& value, const char* column) {
  if (!value || *value <= 0) skip(std::string(column) + " is not stated");
  return *value;
}

namespace {

Device read_device(const PublishedRow& row, const ShippedDevice*& shipped) {
  const std::string text = lower_case(row.gpu_type);
  if (text.empty()) skip("gpu_type is not stated");
  const std::string part = text.substr(0, text.find_first_of("- ("));
  // "RTX 4090", "H100-80GB-SXM".
  const std::string name = find_device(text) != nullptr ? text
                           : part != "a100"             ? part
                           : has(text, "40gb")          ? "a100-40"
                                                        : "a100-80";
  shipped = find_device(name);
  if (shipped == nullptr)
    skip("device \"" + row.gpu_type + "\" has no profile (there are profiles of " +
         joined(device_names()) + ")");
  Device device = shipped->device;
  // The H100 with 96 GB has HBM2e memory: 2.4 TB/s (data sheet of that variant).
  if (name == "h100" && has(text, "96gb")) {
    device.memory = Bytes(std::int64_t{96} << 30);
    device.memory_rate = BytesPerSecond(2.4e12);
  }
  return device;
}

// Returns the rate per rank of a node's NICs, such as "8x200Gbps" (NICs and their rate) or
// "1x1600Gbps" (the total of the node).
BytesPerSecond fabric_rate(const PublishedRow& row, int ranks_per_node) {
  int nics = 0;
  double gigabits = 0;
  if (std::sscanf(row.inter_node.c_str(), "%dx%lfGbps", &nics, &gigabits) != 2 || nics < 1 ||
      gigabits <= 0)
    skip("inter_node \"" + row.inter_node + "\" is not of the form 8x200Gbps");
  return BytesPerSecond(nics * gigabits * 1e9 / 8 / ranks_per_node);
}

}  // namespace

Cluster read_cluster(const PublishedRow& row) {
  const ShippedDevice* shipped = nullptr;
  Cluster cluster;
  cluster.device = read_device(row, shipped);
  cluster.node_link = shipped->node_link;
  cluster.peer_link = shipped->peer_link;
  cluster.fabric_link = shipped->fabric_link;
  const int gpus = *row.gpus;
  int node = 8;
  if (row.intra_node == "nvlink5-72") node = gpus <= 72 ? gpus : gpus % 72 == 0 ? 72 : 64;
  cluster.ranks_per_node = std::min(node, gpus);
  cluster.nodes = (gpus + cluster.ranks_per_node - 1) / cluster.ranks_per_node;
  if (cluster.nodes > 1 && !row.inter_node.empty())
    cluster.fabric_link.rate = fabric_rate(row, cluster.ranks_per_node);
  cluster.profile = default_profile(shipped->device.name);
  return cluster;
}

namespace {

bool is_hopper(const Device& device) {
  const ShippedDevice* shipped = find_device(device.name);
  return shipped != nullptr && shipped->fit && shipped->fit->name == "h100";
}

}  // namespace

void take_attention(const std::string& kernels, const Device& device, HardwareProfile& profile) {
  // FlashAttention-2, which PyTorch used until 2025, and this project's executor until it used
  // cuDNN's kernels (scenarios/measured/README.md).
  constexpr double kFlash2OnHopper = 0.34;
  if (is_hopper(device) && (kernels == "flash" || kernels == "sdpa" || kernels == "flex"))
    profile.attention_efficiency = kFlash2OnHopper;
}

HardwareProfile read_profile(const PublishedRow& row, const Cluster& cluster) {
  HardwareProfile profile = *shipped_profile(cluster);
  const bool hopper = is_hopper(cluster.device);
  take_attention(row.attention, cluster.device, profile);
  // The 96 GB variant is limited to 500 W of 700 W. Of these, 150 W do not depend on the clock
  // (assumed), and the rest grows with its cube (voltage follows frequency).
  if (hopper && has(row.gpu_type, "96gb")) {
    const double clock = std::cbrt((500.0 - 150) / (700 - 150));
    profile.gemm_efficiency *= clock;
    profile.attention_efficiency *= clock;
    profile.early_attention_efficiency *= clock;
  }
  return profile;
}

namespace {

void read_latent(const PublishedRow& row, Module& module) {
  if (!row.key_value_rank || !row.rotary_dim)
    skip("the ranks of the latent attention of " + row.model + " are not stated");
  module.key_value_rank = *row.key_value_rank;
  module.query_rank = row.query_rank.value_or(0);
  module.rotary_dim = *row.rotary_dim;
}

int head_width(const PublishedRow& row) {
  const int hidden = *row.hidden, heads = *row.heads;
  if (row.head_dim) return *row.head_dim;
  if (hidden % heads != 0)
    skip("hidden " + number(hidden) + " is not a multiple of heads " + number(heads) +
         ", and the width of a head is not stated");
  return hidden / heads;
}

}  // namespace

namespace {

// Parses the attention masks of consecutive blocks, such as "window+full", which repeat.
void read_mixers(const PublishedRow& row, Module& module) {
  for (std::size_t begin = 0; begin < row.mixers.size();) {
    const std::size_t end = std::min(row.mixers.find('+', begin), row.mixers.size());
    const Mixer mixer = enum_named<Mixer>(row.mixers.substr(begin, end - begin));
    if (mixer == Mixer::window) module.sliding_window = need(row.sliding_window, "sliding_window");
    if (mixer != Mixer::window && mixer != Mixer::full)
      skip("mixers " + row.mixers + ": the dimensions of its blocks are not stated");
    module.mixers.push_back(mixer);
    begin = end + 1;
  }
}

}  // namespace

Module read_model(const PublishedRow& row) {
  const bool latent = row.attention_kind == "mla";
  if (row.attention_kind != "mha" && row.attention_kind != "gqa" && !latent)
    skip(row.attention_kind.empty() ? "attention_kind is not stated"
                                    : "attention_kind " + row.attention_kind +
                                          ": the dimensions of its blocks are not stated");
  Module module;
  module.name = "language";
  module.kind = ModuleKind::language;
  module.layers = need(row.layers, "layers");
  module.hidden = need(row.hidden, "hidden");
  module.heads = need(row.heads, "heads");
  module.kv_heads = row.kv_heads.value_or(module.heads);
  if (latent) read_latent(row, module);
  read_mixers(row, module);
  module.head_dim = head_width(row);
  module.vocab = need(row.vocab, "vocab");
  module.tied = row.tied_embeddings.value_or(false);
  if (row.mlp != "gated" && row.mlp != "plain") skip("mlp is not stated");
  module.gated = row.mlp == "gated";
  module.norm = module.gated ? Norm::rms : Norm::layer;
  if (!module.gated) module.rope_theta = 0;  // GPT and MPT: learned positions, ALiBi
  module.qk_norm = row.qk_norm.value_or(false);
  if (!row.experts) skip("experts is not stated");
  if (*row.experts == 0) {
    module.ffn = need(row.ffn, "ffn");
  } else {
    module.experts = *row.experts;
    module.experts_per_token = need(row.topk, "topk");
    module.expert_ffn = need(row.moe_ffn, "moe_ffn");
    module.shared_ffn = row.shared_experts.value_or(0) * module.expert_ffn;
    module.dense_blocks = row.dense_layers.value_or(0);
    if (module.dense_blocks > 0) module.ffn = need(row.dense_ffn, "dense_ffn");
    module.gated = true;
  }
  if (row.trainable == "lora") {
    module.trainable = Trainable::lora;
    module.lora_rank = 16;
    module.lora_alpha = 16;
  } else if (row.trainable != "full") {
    skip(row.trainable.empty()
             ? "trainable is not stated"
             : "trainable " + row.trainable + ": the encoder and its tokens are not stated");
  }
  return module;
}

namespace {

// Multiply-adds of one token in the forward pass of one block, by part: weights used, and attention
// scores.
struct BlockWork {
  double projections, scores, feed_forward, up_projections;
  double whole() const { return projections + scores + feed_forward; }
};
BlockWork block_work(const PublishedRow& row, const Module& m) {
  const double h = m.hidden, width = static_cast<double>(m.heads) * m.head_dim,
               keys = static_cast<double>(m.kv_heads) * m.head_dim;
  const double feed =
      m.experts > 0
          ? 3 * h * (static_cast<double>(m.experts_per_token) * m.expert_ffn + m.shared_ffn)
          : (m.gated ? 3 : 2) * h * m.ffn;
  if (m.key_value_rank == 0) return {2 * h * (width + keys), *row.seq * width, feed, 0};
  const double wide = static_cast<double>(m.heads) * (m.head_dim + m.rotary_dim),
               queries = m.query_rank > 0 ? m.query_rank : h;
  const double up = queries * wide + 2.0 * m.key_value_rank * width,
               down = h * (m.query_rank + m.key_value_rank + m.rotary_dim);
  return {up + down + h * width, *row.seq * (wide + width) / 2, feed, up};
}

}  // namespace

std::optional<double> selected_share(const PublishedRow& row, const Module& module) {
  const BlockWork work = block_work(row, module);
  const std::string& text = row.recompute;
  if (has(text, "(op") || has(text, "(per-op"))
    return 0.5 * (work.projections + work.feed_forward) / work.whole();
  double again = 0;
  if (has(text, "attn")) again += work.scores;
  if (has(text, "mla_up_proj")) again += work.up_projections;
  // "mlp" means dense layers (Megatron-LM, --recompute-modules); a model with experts has few.
  const bool feeds =
      module.experts > 0 ? has(text, "(moe)") || has(text, ",moe)") : has(text, "mlp");
  if (feeds) again += work.feed_forward;
  if (again == 0) return std::nullopt;
  return again / work.whole();
}

SoftwareStack read_stack(const PublishedRow& row) {
  if (const SoftwareStack* named = find_stack(row.stack)) return *named;
  const std::string which = "write one in the column stack: " + joined(stack_names());
  if (!row.stack.empty()) skip("stack \"" + row.stack + "\" is unknown; " + which);
  // Of words in `software`, the first that is found.
  constexpr std::pair<const char*, const char*> kStacks[] = {
      {"megatron-deepspeed", "megatron-deepspeed"},
      {"megatron-bridge", "megatron-bridge"},
      {"nemo", "megatron-bridge"},
      {"megatron", "megatron-core"},
      {"primus", "megatron-core"},
      {"torchtitan", "fsdp2-compiled"},
      {"fsdp2", "fsdp2"},
      {"fsdp", "fsdp"},
      {"llm-foundry", "fsdp"},
      {"transformers", "hf-eager"},
      {"cornstarch", "cornstarch"},
      {"polyphony", "polyphony"}};
  for (const auto& [word, stack] : kStacks) {
    if (!has(row.software, word)) continue;
    const std::string year = row.measured_on.substr(0, 4);
    const bool core = stack == std::string("megatron-core") && year.size() == 4;
    const char* const dated = core && year <= "2021"   ? "megatron-2021"
                              : core && year == "2022" ? "megatron-2022"
                                                       : stack;
    return *find_stack(dated);
  }
  skip("software \"" + row.software + "\" names no stack that is known; " + which);
}

}  // namespace polyphony::sim
