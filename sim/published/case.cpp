#include "sim/published/case.h"

#include <algorithm>

#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/shipped_certainty.h"
#include "sim/published/case_parts.h"

namespace polyphony::sim {
namespace {

// Throws Skip if values contradict each other; the reason gives the values.
void check_agreement(const PublishedRow& row) {
  const int gpus = need(row.gpus, "gpus"), tp = need(row.tp, "tp"), pp = need(row.pp, "pp"),
            dp = need(row.dp, "dp"), cp = row.cp.value_or(1);
  if (gpus != tp * cp * pp * dp)
    skip("contradiction: gpus " + number(gpus) + ", tp·cp·pp·dp = " + number(tp) + "·" +
         number(cp) + "·" + number(pp) + "·" + number(dp) + " = " + number(tp * cp * pp * dp));
  const int microbatch = need(row.microbatch, "microbatch"),
            global_batch = need(row.global_batch, "global_batch");
  if (global_batch % (microbatch * dp) != 0)
    skip("contradiction: microbatch·dp = " + number(microbatch) + "·" + number(dp) +
         " does not divide global_batch " + number(global_batch));
  if (row.shard_ranks && *row.shard_ranks > 0 && (dp * cp) % *row.shard_ranks != 0)
    skip("contradiction: shard_ranks " + number(*row.shard_ranks) +
         " does not divide dp·cp = " + number(dp * cp));
  if (row.heads && row.kv_heads && *row.kv_heads > 0 && *row.heads % *row.kv_heads != 0)
    skip("contradiction: kv_heads " + number(*row.kv_heads) + " does not divide heads " +
         number(*row.heads));
  if (row.duplicate_of == row.id) skip("contradiction: duplicate_of names the row itself");
}

// Returns the number in a text such as "full(5 block layers)", or 0.
int counted_layers(const std::string& text) {
  const auto open = text.find('(');
  if (open == std::string::npos || text.find("block layer") == std::string::npos) return 0;
  return std::atoi(text.c_str() + open + 1);
}

// Returns whether recomputation is selected by operator, as in torchtitan.
bool by_operator(const PublishedRow& row) {
  return row.recompute == "selective" || row.recompute.starts_with("selective(op") ||
         row.recompute.starts_with("selective(per-op");
}

void read_recompute(const PublishedRow& row, const Module& module, const SoftwareStack& stack,
                    ModuleLayout& grid, std::optional<double>& share) {
  const std::string& text = row.recompute;
  if (text.empty()) skip("recompute is not stated");
  if (text == "none" || text == "any") return;
  if (is_memory(row.metric) && stack.memory.keeping == Keeping::fsdp &&
      text.starts_with("selective")) {
    if (!by_operator(row))
      skip("memory under recompute " + text +
           " of PyTorch modules is not modeled (only by operator, or full)");
    grid.recompute = Recompute::selective;
    return;
  }
  // The number of layers is per pipeline stage, not per chunk of it (Megatron-LM, arguments.py:
  // "within each pipeline stage").
  if (const int count = counted_layers(text); count > 0) {
    grid.recompute = Recompute::full;
    if (count * grid.pp >= *row.layers) return;
    if (grid.pp == 1)
      grid.recompute_blocks = {0, count};
    else
      share = static_cast<double>(count * grid.pp) / *row.layers;
    return;
  }
  if (text.starts_with("full")) {
    grid.recompute = Recompute::full;
  } else if (text == "selective(attn)" || text == "selective(core_attn)") {
    grid.recompute = Recompute::selective;
  } else if (text.starts_with("selective(") && (share = selected_share(row, module))) {
    grid.recompute = Recompute::full;
  } else if (!text.starts_with("selective(")) {
    skip("recompute \"" + text + "\" is not known");
  }  // otherwise norms and activation functions: memory-bound kernels, a few percent of a block
}

void read_shard(const PublishedRow& row, ModuleLayout& grid) {
  const std::string& text = row.shard;
  if (text == "optimizer") grid.shard = Shard::optimizer;
  if (text == "gradients") grid.shard = Shard::gradients;
  if (text == "full" || text == "hybrid") grid.shard = Shard::full;
  if (text.empty() && is_memory(row.metric)) skip("shard is not stated");
  if (!text.empty() && text != "none" && grid.shard == Shard::none)
    skip("shard \"" + text + "\" is not known");
  if (grid.dp() * grid.cp == 1) grid.shard = Shard::none;
  if (text == "hybrid") {
    grid.shard_ranks = need(row.shard_ranks, "shard_ranks");
  } else if (row.shard_ranks && grid.shard != Shard::none &&
             *row.shard_ranks < grid.dp() * grid.cp) {
    grid.shard_ranks = *row.shard_ranks;
  }
}

// Returns the blocks of each stage as Megatron divides them: evenly, counting embedding and loss as
// a layer each if that makes the division even. Empty: to be balanced by cost.
std::vector<int> even_blocks(int layers, int stages) {
  if (layers % stages == 0)
    return std::vector<int>(static_cast<std::size_t>(stages), layers / stages);
  if ((layers + 2) % stages != 0) return {};
  std::vector<int> blocks(static_cast<std::size_t>(stages), (layers + 2) / stages);
  --blocks.front();
  --blocks.back();
  if (blocks.front() < 1 || blocks.back() < 1) return {};
  return blocks;
}

Layout read_layout(const PublishedRow& row, const Module& module, const SoftwareStack& stack,
                   std::optional<double>& share) {
  ModuleLayout grid;
  grid.tp = *row.tp;
  grid.cp = row.cp.value_or(1);
  grid.pp = *row.pp;
  grid.vpp = grid.pp > 1 ? std::max(1, row.vpp.value_or(1)) : 1;
  grid.ep = module.experts > 0 ? row.ep.value_or(1) : 1;
  grid.ranks = *row.gpus;
  if (grid.cp > 1) grid.tokens = TokenAssignment::zigzag;
  if (grid.tp > 1) {
    if (!row.sequence_parallel) skip("sequence_parallel is not stated");
    grid.sp = *row.sequence_parallel;
  }
  if (module.experts > 0 && grid.tp > 1 && grid.sp) grid.expert_tp = 1;
  read_recompute(row, module, stack, grid, share);
  if (share && is_memory(row.metric))
    skip("memory under recompute " + row.recompute + " is not modeled");
  read_shard(row, grid);
  if (has(row.offload, "activations") || has(row.offload, "optimizer"))
    skip("offload " + row.offload + " is not modeled");
  const int microbatches = *row.global_batch / (*row.microbatch * *row.dp);
  if (grid.pp * grid.vpp > module.layers + 2)
    skip("contradiction: pp·vpp = " + number(grid.pp * grid.vpp) + " stages, layers " +
         number(module.layers));
  // Stages that contain only the embedding or the loss are not modeled. Fewer virtual stages are
  // used instead; if that makes the bubble longer by more than 1 % of the step, the row is skipped.
  const int asked = grid.vpp;
  while (grid.pp * grid.vpp > module.layers && grid.vpp % 2 == 0) grid.vpp /= 2;
  const double longer = (grid.pp - 1.0) / microbatches * (1.0 / grid.vpp - 1.0 / asked);
  if (grid.pp * grid.vpp > module.layers || longer > 0.01)
    skip("stages without a layer (pp·vpp " + number(grid.pp * asked) + ", layers " +
         number(module.layers) + ") are not modeled");
  const int stages = grid.pp * grid.vpp;
  grid.blocks = even_blocks(module.layers, stages);
  Layout layout{.placement = Placement::homogeneous, .modules = {grid}};
  layout.microbatches = microbatches;
  layout.schedule = default_schedule(grid.vpp);
  return layout;
}

void read_precision(const PublishedRow& row, Scenario& scenario, HardwareProfile& profile) {
  const std::string text =
      row.precision.starts_with("amp_") ? row.precision.substr(4) : row.precision;
  Training& training = scenario.training;
  training.precision = NumberFormat::bf16;
  if (text.empty()) skip("precision is not stated");
  if (text == "fp16") {
    training.precision = NumberFormat::fp16;
  } else if (has(text, "fp8")) {
    profile.stack.matrix = NumberFormat::fp8;
  } else if (text == "nvfp4") {
    profile.stack.matrix = NumberFormat::nvfp4;
  } else if (text != "bf16") {
    skip("precision " + text + " is not modeled");
  }
  if (profile.stack.matrix && peak(profile.device, *profile.stack.matrix).value <= 0)
    skip(profile.device.name + " does not support precision " + text);
}

// Sets how the row's software saves tensors, as far as the row states it.
void read_memory(const PublishedRow& row, StackMemory& memory) {
  if (has(row.variant, "ce-fusion")) memory.fused_loss = true;
  if (has(row.stack_traits, "fused-loss")) memory.fused_loss = true;
  if (has(row.variant, "cp-a2a") || has(row.stack_traits, "heads-exchanged"))
    memory.head_exchange = true;
  memory.by_operator = memory.keeping == Keeping::fsdp && by_operator(row);
}

PublishedCase build(const PublishedRow& row) {
  check_agreement(row);
  PublishedCase result;
  Scenario& scenario = result.scenario;
  scenario.file = row.file;
  scenario.about = row.source;
  scenario.cluster = read_cluster(row);
  const Module module = read_model(row);
  scenario.model.modules = {module};
  const auto always = [](double value) {
    return Distribution{.kind = Distribution::Kind::constant, .a = value};
  };
  const int seq = need(row.seq, "seq");
  scenario.data.source = SyntheticData{always(0), always(seq), always(seq)};
  scenario.data.global_batch = *row.global_batch;
  result.profile = read_profile(row, scenario.cluster);
  result.profile.stack = read_stack(row);
  if (row.stack.empty())
    result.note = "stack " + result.profile.stack.name + ", guessed from \"" + row.software +
                  "\": a column stack names another";
  if (row.overlap == "none") result.profile.stack.overlap = result.profile.stack.tensor_overlap = 0;
  if (has(row.overlap, "dp")) result.profile.stack.overlap = 0.8;
  if (has(row.overlap, "tp"))
    result.profile.stack.pipelined = find_stack("megatron-bridge")->pipelined;
  if (row.variant == "mp-pure") result.profile.stack.gradient_bytes = 2;
  if (has(row.variant, "token-drop")) result.profile.stack.one_copy = false;
  if (has(row.variant, "deepep") || has(row.variant, "hybridep"))
    result.profile.stack.one_copy = true;
  if (has(row.stack_traits, "fused-experts")) result.profile.stack.fused_experts = true;
  if (row.attention == "triton") result.profile.stack.early_attention = true;
  read_memory(row, result.profile.stack.memory);
  read_precision(row, scenario, result.profile);
  state_certainty(result.profile);
  result.layout = read_layout(row, module, result.profile.stack, result.recomputed);
  if (module.tied && check_layout(scenario, result.layout)) {
    scenario.model.modules.front().tied = false;
    result.note += std::string(result.note.empty() ? "" : "; ") +
                   "embeddings predicted untied: this layout cannot tie them";
  }
  if (const auto no = check_layout(scenario, result.layout)) skip(no->reason);
  return result;
}

}  // namespace

std::variant<PublishedCase, Skipped> make_case(const PublishedRow& row) {
  try {
    return build(row);
  } catch (const Skip& skipped) {
    return Skipped{skipped.reason};
  }
}

}  // namespace polyphony::sim
