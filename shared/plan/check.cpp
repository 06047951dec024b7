// check_layout and check_runnable: every rule a layout must obey, each refusal with the nearest
// legal values.
#include <algorithm>
#include <numeric>

#include "shared/plan/plan.h"

namespace polyphony {
namespace {

using Verdict = std::optional<Infeasible>;

// The divisors of `value` nearest to `asked` from below and above: "4 or 8".
std::string nearest_divisors(std::int64_t value, std::int64_t asked) {
  std::int64_t below = 1, above = 0;
  for (std::int64_t d = 1; d <= value; ++d) {
    if (value % d != 0) continue;
    if (d <= asked) below = d;
    if (d > asked && above == 0) above = d;
  }
  return std::to_string(below) + (above ? " or " + std::to_string(above) : "");
}

Verdict refuse(std::string reason) { return Infeasible{std::move(reason)}; }

Verdict check_chain(const Model& model) {
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const Module& module = model.modules[m];
    if (module.kind == ModuleKind::audio || module.kind == ModuleKind::diffusion)
      return refuse(module.name + ": " + name(module.kind) + " modules are not supported yet");
    if (module.trainable == Trainable::lora)
      return refuse(module.name + ": lora is not supported yet");
    if (module.experts > 0)
      return refuse(module.name + ": mixture of experts is not supported yet");
    if (module.tied) return refuse(module.name + ": tied embeddings are not supported yet");
    const bool last = m + 1 == model.modules.size();
    if (last != (module.kind == ModuleKind::language))
      return refuse("the model must be a chain that ends in its one language module; " +
                    module.name + " does not fit (several encoders are not supported yet)");
    int inputs = 0;
    for (const Edge& edge : model.edges) {
      if (edge.to != ModuleId(m)) continue;
      ++inputs;
      if (edge.to_layer != 0 || edge.from.value + 1 != m)
        return refuse(
            module.name +
            ": only an edge from the module before it into its first layer is supported yet");
    }
    if (m > 0 && inputs != 1)
      return refuse(module.name + " has " + std::to_string(inputs) + " inputs, 1 is supported");
  }
  return {};
}

Verdict check_unsupported(const Module& module, const ModuleLayout& layout) {
  const std::string where = module.name + ": ";
  if (layout.cp > 1)
    return refuse(where + "context parallelism (cp) is not supported yet; use cp 1");
  if (layout.ep > 1)
    return refuse(where + "expert parallelism (ep) is not supported yet; use ep 1");
  if (layout.vpp > 1)
    return refuse(where + "interleaved stages (vpp) are not supported yet; use vpp 1");
  if (layout.sp)
    return refuse(where + "sequence parallelism (sp) is not supported yet; use sp false");
  if (layout.shard == Shard::gradients || layout.shard == Shard::full)
    return refuse(where + "shard " + name(layout.shard) +
                  " is not supported yet; use none or optimizer");
  if (layout.shard_ranks != 0)
    return refuse(where + "shard_ranks is not supported yet; leave it out");
  if (layout.recompute == Recompute::selective)
    return refuse(where + "recompute selective is not supported yet; use none or full");
  return {};
}

Verdict check_tensor_parallel(const Module& module, int tp) {
  struct Dimension {
    const char* name;
    int size;
  };
  std::vector<Dimension> dimensions;
  if (module.kind == ModuleKind::projector) {
    dimensions = {{"projector hidden size", module.projector_hidden}};
  } else {
    dimensions = {{"attention heads", module.heads},
                  {"key/value heads", module.kv_heads},
                  {"ffn size", module.ffn}};
    if (module.kind == ModuleKind::language) dimensions.push_back({"vocabulary", module.vocab});
  }
  for (const Dimension& d : dimensions) {
    if (d.size % tp != 0)
      return refuse(module.name + ": tp " + std::to_string(tp) + " does not divide its " +
                    std::to_string(d.size) + " " + d.name +
                    "; nearest legal tp: " + nearest_divisors(d.size, tp));
  }
  return {};
}

Verdict check_grid(const Module& module, const ModuleLayout& layout) {
  if (layout.tp < 1 || layout.pp < 1 || layout.ranks < 1 || layout.first_rank < 0)
    return refuse(module.name + ": tp, pp and ranks must be at least 1");
  const int cell = layout.tp * layout.cp * layout.pp;
  if (layout.ranks % cell != 0)
    return refuse(module.name + ": " + std::to_string(layout.ranks) +
                  " ranks are not a multiple of tp·pp = " + std::to_string(cell) +
                  "; nearest legal counts: " + std::to_string(layout.ranks / cell * cell) + " or " +
                  std::to_string((layout.ranks / cell + 1) * cell));
  return {};
}

Verdict check_blocks(const std::string& who, int blocks, const ModuleLayout& layout) {
  if (layout.pp > blocks)
    return refuse(who + ": pp " + std::to_string(layout.pp) +
                  " needs at least as many blocks, there are " + std::to_string(blocks) +
                  "; largest legal pp: " + std::to_string(blocks));
  if (layout.blocks.empty()) return {};
  if (static_cast<int>(layout.blocks.size()) != layout.pp)
    return refuse(who + ": blocks lists " + std::to_string(layout.blocks.size()) +
                  " stages but pp is " + std::to_string(layout.pp));
  if (*std::min_element(layout.blocks.begin(), layout.blocks.end()) < 1)
    return refuse(who + ": every stage needs at least one block");
  const int sum = std::accumulate(layout.blocks.begin(), layout.blocks.end(), 0);
  if (sum != blocks)
    return refuse(who + ": blocks sum to " + std::to_string(sum) + " but there are " +
                  std::to_string(blocks));
  return {};
}

// The spans of the modules' grids: equal, or disjoint, and together [0, world).
Verdict check_placement(const Model& model, const Layout& layout, int cluster_ranks) {
  const ModuleLayout& language = layout.modules.back();
  const int world = world_size(layout);
  if (world > cluster_ranks)
    return refuse("the layout needs " + std::to_string(world) + " ranks, the cluster has " +
                  std::to_string(cluster_ranks));
  std::vector<int> owners(static_cast<std::size_t>(world), 0);
  const auto claim = [&](const ModuleLayout& grid) {
    for (int r = grid.first_rank; r < grid.first_rank + grid.ranks; ++r)
      ++owners[static_cast<std::size_t>(r)];
  };
  const bool disjoint = layout.placement == Placement::non_colocated;
  claim(language);
  if (disjoint && model.modules.size() > 1) claim(layout.modules.front());
  for (int r = 0; r < world; ++r) {
    const int count = owners[static_cast<std::size_t>(r)];
    if (count == 0)
      return refuse("rank " + std::to_string(r) +
                    " belongs to no module; the grids must tile [0, " + std::to_string(world) +
                    ")");
    if (count > 1)
      return refuse("rank " + std::to_string(r) + " belongs to both " + model.modules.front().name +
                    " and " + model.modules.back().name + "; non-colocated grids must be disjoint");
  }
  for (std::size_t m = 0; m + 1 < layout.modules.size(); ++m) {
    const ModuleLayout& grid = layout.modules[m];
    const std::string& who = model.modules[m].name;
    if (layout.placement == Placement::colocated &&
        (grid.first_rank != language.first_rank || grid.ranks != language.ranks))
      return refuse(who + ": colocated grids must cover the same ranks as " +
                    model.modules.back().name);
    if (layout.placement == Placement::homogeneous &&
        (grid.tp != language.tp || grid.pp != language.pp || grid.ranks != language.ranks))
      return refuse(who + ": a homogeneous layout has one grid, that of " +
                    model.modules.back().name);
    const ModuleLayout& first = layout.modules.front();
    if (grid.tp != first.tp || grid.pp != first.pp || grid.first_rank != first.first_rank ||
        grid.ranks != first.ranks)
      return refuse(who + ": a projector shares the grid of " + model.modules.front().name);
  }
  return {};
}

Verdict check_work(const Scenario& scenario, const Layout& layout) {
  const ModuleLayout& language = layout.modules.back();
  if (layout.microbatches < 1) return refuse("microbatches must be at least 1");
  const std::int64_t works = std::int64_t{layout.microbatches} * language.dp();
  if (scenario.data.global_batch < works)
    return refuse(
        "a global batch of " + std::to_string(scenario.data.global_batch) +
        " samples cannot fill " + std::to_string(layout.microbatches) + " microbatches on " +
        std::to_string(language.dp()) + " data-parallel lanes; at most " +
        std::to_string(std::max(1, scenario.data.global_batch / language.dp())) + " microbatches");
  if (layout.encoder_microbatches < 0) return refuse("encoder_microbatches must not be negative");
  if (layout.encoder_microbatches > 0) {
    if (layout.placement != Placement::colocated)
      return refuse("encoder_microbatches applies to colocated layouts only; leave it out");
    if (layout.microbatches % layout.encoder_microbatches != 0)
      return refuse("encoder_microbatches " + std::to_string(layout.encoder_microbatches) +
                    " does not divide " + std::to_string(layout.microbatches) +
                    " microbatches; nearest legal: " +
                    nearest_divisors(layout.microbatches, layout.encoder_microbatches));
  }
  if (layout.placement == Placement::colocated && layout.modules.front().pp > 1)
    return refuse(scenario.model.modules.front().name +
                  ": a colocated encoder runs whole on every rank; use pp 1 (its pipeline would "
                  "stagger the ranks)");
  if (layout.schedule == ScheduleKind::interleaved || layout.schedule == ScheduleKind::zero_bubble)
    return refuse(std::string("schedule ") + name(layout.schedule) +
                  " is not supported yet; use gpipe or 1f1b");
  return {};
}

}  // namespace

std::optional<Infeasible> check_layout(const Scenario& scenario, const Layout& layout) {
  const Model& model = scenario.model;
  if (layout.modules.size() != model.modules.size())
    return refuse("the layout names " + std::to_string(layout.modules.size()) +
                  " modules, the model has " + std::to_string(model.modules.size()));
  if (Verdict verdict = check_chain(model)) return verdict;
  int chain_blocks = 0;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const Module& module = model.modules[m];
    const ModuleLayout& grid = layout.modules[m];
    if (Verdict verdict = check_unsupported(module, grid)) return verdict;
    if (Verdict verdict = check_grid(module, grid)) return verdict;
    if (Verdict verdict = check_tensor_parallel(module, grid.tp)) return verdict;
    chain_blocks += module.layers;
    if (layout.placement != Placement::homogeneous && module.kind != ModuleKind::projector)
      if (Verdict verdict = check_blocks(module.name, module.layers, grid)) return verdict;
  }
  if (layout.placement == Placement::homogeneous)
    if (Verdict verdict = check_blocks("the chain of modules", chain_blocks, layout.modules.back()))
      return verdict;
  if (Verdict verdict = check_placement(model, layout, scenario.cluster.ranks())) return verdict;
  return check_work(scenario, layout);
}

std::optional<Infeasible> check_runnable(const Scenario& scenario, const Layout& layout) {
  const NumberFormat precision = scenario.training.precision;
  if (precision != NumberFormat::fp32 && precision != NumberFormat::fp64)
    return refuse(std::string("precision ") + name(precision) +
                  " is simulation only; the executor runs fp32 and fp64");
  for (std::size_t m = 0; m < layout.modules.size(); ++m)
    if (layout.modules[m].shard != Shard::none)
      return refuse(scenario.model.modules[m].name + ": shard " + name(layout.modules[m].shard) +
                    " is simulation only; the executor runs shard none");
  return {};
}

}  // namespace polyphony
