#include <algorithm>
#include <numeric>
#include <vector>

#include "shared/check/checks.h"
#include "shared/layers/block.h"
#include "shared/text/number_text.h"

namespace polyphony::checks {
namespace {

// Checks that an abstract module (one with measured layer_times alone) runs only as it was
// measured.
Verdict check_measured(const Module& module, const ModuleLayout& layout) {
  if (layout.recompute == Recompute::selective)
    return refuse(module.name +
                  ": selective recomputation needs the module's dimensions, but it has layer_times "
                  "alone; use full or none");
  const std::vector<MeasuredGrid>& grids = module.abstract.grids;
  std::string known;
  for (const MeasuredGrid& grid : grids) {
    if ((grid.tp == 0 || grid.tp == layout.tp) && (grid.cp == 0 || grid.cp == layout.cp)) return {};
    const auto degree = [](int of) { return of > 0 ? number(of) : std::string("any"); };
    known += (known.empty() ? "" : "; ") + ("tp " + degree(grid.tp)) + ", cp " + degree(grid.cp);
  }
  if (grids.empty()) return {};
  return refuse(module.name + " has no layer_times for tp " + number(layout.tp) + ", cp " +
                number(layout.cp) + "; it has them for " + known);
}

Verdict check_tensor_parallel(const Module& module, int tp) {
  struct Dimension {
    const char* name;
    int size;
  };
  std::vector<Dimension> dimensions;
  if (module.kind == ModuleKind::projector) {
    if (module.projector_hidden > 0)
      dimensions = {{"projector hidden size", module.projector_hidden}};
  } else {
    dimensions = {{"attention heads", module.heads}, {"ffn size", module.ffn}};
    if (module.kind == ModuleKind::language && module.vocab < tp)
      return refuse(module.name + ": tp must be at most the size of the vocabulary, " +
                    number(module.vocab) + " (got " + number(tp) + ")");
    if (tp > module.kv_heads && tp % module.kv_heads != 0)
      return refuse(module.name + ": tp " + number(tp) + " is not a multiple of its " +
                    number(module.kv_heads) + " key/value heads; nearest legal tp: " +
                    number(tp / module.kv_heads * module.kv_heads) + " or " +
                    number((tp / module.kv_heads + 1) * module.kv_heads));
    if (tp <= module.kv_heads) dimensions.push_back({"key/value heads", module.kv_heads});
  }
  for (const Dimension& d : dimensions) {
    if (d.size % tp != 0)
      return refuse(module.name + ": tp " + number(tp) + " does not divide its " + number(d.size) +
                    " " + d.name + "; nearest legal tp: " + nearest_divisors(d.size, tp));
  }
  return {};
}

Verdict check_expert_parallel(const Module& module, const ModuleLayout& layout) {
  const std::string subject = module.name + ": ";
  const int tp = layout.tp, ep = layout.ep, expert_tp = layout.experts_tp();
  if (module.experts == 0) {
    if (ep > 1)
      return refuse(subject + "ep must be 1 for a module without experts (got " + number(ep) + ")");
    if (layout.expert_tp > 0)
      return refuse(subject + "expert_tp is set, but the module has no experts; leave it out");
    return {};
  }
  if (module.experts % ep != 0)
    return refuse(subject + "ep " + number(ep) + " does not divide its " + number(module.experts) +
                  " experts; nearest legal ep: " + nearest_divisors(module.experts, ep));
  if (expert_tp != tp && expert_tp != 1)
    return refuse(subject + "expert_tp must be 1 or equal to tp, " + number(tp) + " (got " +
                  number(expert_tp) + ")");
  if (expert_tp == 1 && tp > 1 && !layout.sp)
    return refuse(subject + "expert_tp 1 with tp " + number(tp) +
                  " needs sequence parallelism (otherwise the tensor-parallel ranks would send the "
                  "same tokens twice); set sp true, or expert_tp " +
                  number(tp));
  if (module.expert_ffn % expert_tp != 0)
    return refuse(subject + "expert_tp " + number(expert_tp) +
                  " does not divide the experts' ffn of " + number(module.expert_ffn) +
                  "; nearest legal: " + nearest_divisors(module.expert_ffn, expert_tp));
  if (module.shared_ffn % tp != 0)
    return refuse(subject + "tp " + number(tp) + " does not divide the shared expert's ffn of " +
                  number(module.shared_ffn));
  // inner: ranks that share a sequence. all: ranks over which experts can be divided.
  const int inner = expert_tp == tp ? layout.cp : tp * layout.cp;
  const int all = expert_tp == tp ? layout.cp * layout.dp() : tp * layout.cp * layout.dp();
  if (all % ep != 0)
    return refuse(subject + "ep " + number(ep) + " does not divide the " + number(all) +
                  " ranks that share its experts; nearest legal ep: " +
                  nearest_divisors(std::gcd(all, module.experts), ep));
  if (inner % ep != 0 && ep % inner != 0)
    return refuse(subject + "ep must divide the " + number(inner) +
                  " ranks of one sequence, or be a multiple of them (got " + number(ep) + ")");
  return {};
}

Verdict check_sharding(const Module& module, const ModuleLayout& layout) {
  const std::string subject = module.name + ": ";
  const int copies = layout.dp() * layout.cp;
  if (layout.shard_ranks < 0)
    return refuse(subject + "shard_ranks must not be negative (got " + number(layout.shard_ranks) +
                  ")");
  if (layout.shard_ranks > 0 && layout.shard == Shard::none)
    return refuse(subject + "shard_ranks " + number(layout.shard_ranks) +
                  " is set, but shard is none; leave it out, or set shard");
  if (layout.shard_ranks > 0 && copies % layout.shard_ranks != 0)
    return refuse(subject + "shard_ranks " + number(layout.shard_ranks) + " does not divide its " +
                  number(copies) + " data-parallel copies; nearest legal: " +
                  nearest_divisors(copies, layout.shard_ranks));
  if (module.tied && layout.shard >= Shard::gradients)
    return refuse(subject + "tied embeddings with shard " + name(layout.shard) +
                  " are not supported; use none or optimizer");
  return {};
}

Verdict check_recompute(const Module& module, const ModuleLayout& layout) {
  const std::vector<int>& range = layout.recompute_blocks;
  if (range.empty()) return {};
  if (layout.recompute == Recompute::none)
    return refuse(
        module.name +
        ": recompute_blocks is set, but recompute is none; leave it out, or set recompute");
  if (range.size() != 2 || range[0] < 0 || range[0] >= range[1] || range[1] > module.layers)
    return refuse(module.name + ": recompute_blocks must be [first, last + 1] inside [0, " +
                  number(module.layers) + "]");
  return {};
}

Verdict check_pieces(const Module& module, const ModuleLayout& layout) {
  if (layout.tp_pieces == 1) return {};
  if (layout.tp_pieces < 1)
    return refuse(module.name + ": tp_pieces must be at least 1 (got " + number(layout.tp_pieces) +
                  ")");
  const std::string what = module.name + ": tp_pieces " + number(layout.tp_pieces);
  if (layout.tp == 1)
    return refuse(what + " splits the GEMMs of tensor-parallel ranks, but tp is 1; leave it out");
  if (module.abstract.is)
    return refuse(what +
                  " splits GEMMs, but layer_times were measured with whole ones; leave it out");
  return {};
}

// Checks cp_heads. Only language modules use it: in the common grid of a homogeneous layout, the
// other modules ignore it.
Verdict check_head_groups(const Module& module, const ModuleLayout& layout) {
  if (layout.cp_heads == 0 || module.kind != ModuleKind::language) return {};
  const std::string what = module.name + ": cp_heads " + number(layout.cp_heads);
  if (!layout.gathers_keys())
    return refuse(what +
                  " applies only where context-parallel ranks gather keys (cp 2 or more and "
                  "cp_attention all-gather); leave it out");
  const int heads = std::max(1, module.kv_heads / layout.tp);
  if (heads % layout.cp_heads == 0) return {};
  return refuse(what + " does not divide the " + number(heads) +
                " key/value heads of a tensor-parallel rank; nearest legal: " +
                nearest_divisors(heads, layout.cp_heads));
}

}  // namespace

Verdict check_language_alone(const Module& module, const ModuleLayout& layout) {
  if (module.kind == ModuleKind::language) return {};
  if (layout.row_split != 0)
    return refuse(module.name + ": row_split " + number(layout.row_split) +
                  " applies to language modules only; leave it out");
  if (layout.cp_heads != 0)
    return refuse(module.name + ": cp_heads " + number(layout.cp_heads) +
                  " applies to language modules only; leave it out");
  return {};
}

Verdict check_grid(const Module& module, const ModuleLayout& layout) {
  if (layout.tp < 1 || layout.cp < 1 || layout.pp < 1 || layout.vpp < 1 || layout.ep < 1 ||
      layout.ranks < 1 || layout.first_rank < 0)
    return refuse(module.name +
                  ": tp, cp, pp, vpp, ep and ranks must be at least 1, and first_rank at least 0");
  const int cell = layout.tp * layout.cp * layout.pp;
  if (layout.ranks % cell != 0)
    return refuse(module.name + ": " + number(layout.ranks) +
                  " ranks are not a multiple of tp·cp·pp = " + number(cell) +
                  "; nearest legal counts: " +
                  (layout.ranks > cell ? number(layout.ranks / cell * cell) + " or " : "") +
                  number((layout.ranks / cell + 1) * cell));
  if (Verdict verdict = module.abstract.is ? check_measured(module, layout)
                                           : check_tensor_parallel(module, layout.tp))
    return verdict;
  if (module.kind == ModuleKind::projector) return {};  // the rest is its source's
  for (int block = 0; block < (module.abstract.is ? 0 : module.layers); ++block) {
    const BlockKind kind = block_at(module, block);
    if (block > 0 && kind == block_at(module, block - 1)) continue;
    for (const BlockPart* part : {&block_part(kind.attention), &block_part(kind.feed_forward)})
      if (const std::string why = part->refused(module, layout); !why.empty())
        return refuse(module.name + ": " + why);
  }
  if (layout.row_split < 0 || layout.cp_heads < 0)
    return refuse(module.name + ": row_split and cp_heads must be at least 0");
  if (Verdict verdict = check_head_groups(module, layout)) return verdict;
  if (Verdict verdict = check_pieces(module, layout)) return verdict;
  if (Verdict verdict = check_expert_parallel(module, layout)) return verdict;
  if (Verdict verdict = check_sharding(module, layout)) return verdict;
  return check_recompute(module, layout);
}

}  // namespace polyphony::checks
