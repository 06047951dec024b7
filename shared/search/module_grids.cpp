#include "shared/search/module_grids.h"

#include <bit>

#include "shared/check/checks.h"
#include "shared/search/choices.h"

namespace polyphony {
namespace {

constexpr int kDeepestPipeline =
    64;  // deeper ones are mostly bubble at usual batch sizes; a list may request them
constexpr int kMostContexts = 64, kMostVirtual = 16;

bool is_power_of_two(int value) { return std::has_single_bit(static_cast<unsigned>(value)); }

std::vector<int> pipeline_depths(int ranks) {
  std::vector<int> depths;
  for (int depth = 1; depth <= std::min(ranks, kDeepestPipeline); ++depth) {
    if (ranks % depth == 0 && (is_power_of_two(depth) || is_power_of_two(ranks / depth)))
      depths.push_back(depth);
  }
  return depths;
}

}  // namespace

std::vector<int> piece_choices(const ModuleSearch& search, const ModuleLayout& grid) {
  return grid.tp > 1 ? choice(search.tp_pieces, {1}) : std::vector<int>{1};
}

ModuleGrids::ModuleGrids(const Scenario& scenario, const Module& module, int blocks,
                         const ModuleSearch& search, Placement placement, bool virtual_stages,
                         bool pipelined, Rejections& rejections)
    : cluster_(scenario.cluster),
      module_(module),
      blocks_(blocks),
      search_(search),
      placement_(placement),
      virtual_stages_(virtual_stages),
      pipelined_(pipelined),
      // Zigzag is even only for the triangle of pairs of a causal mask.
      even_tokens_(scenario.model.modules[language_module(scenario.model).value].mask ==
                           Mask::causal
                       ? TokenAssignment::zigzag
                       : TokenAssignment::balanced),
      rejections_(rejections) {}

std::vector<ModuleLayout> ModuleGrids::on(const RankRange& ranks) {
  ModuleLayout grid;
  grid.first_rank = ranks.first;
  grid.ranks = ranks.count;
  const int domain = cluster_.domain_size();
  std::vector<int> sizes = powers_of_two(1, domain);
  std::erase_if(sizes, [&](int size) { return domain % size != 0; });
  for (const int tp : choice(search_.tp, sizes)) {
    grid.tp = tp;
    if (tp < 1 || domain % tp != 0) {
      refuse("tp " + std::to_string(tp) + " does not divide a " +
             (cluster_.domain > 0 ? "domain" : "node") + "'s " + std::to_string(domain) + " ranks");
      continue;
    }
    const int left = std::max(1, ranks.count / tp);
    for (const int cp : choice(search_.cp, powers_of_two(1, std::min(left, kMostContexts)))) {
      grid.cp = cp;
      pipelines(grid);
    }
  }
  return std::move(found_);
}

void ModuleGrids::pipelines(ModuleLayout grid) {
  const int left = std::max(1, grid.ranks / (grid.tp * grid.cp));
  const std::vector<int> depths = pipelined_ ? pipeline_depths(left) : std::vector<int>{1};
  for (const int pp : choice(search_.pp, depths)) {
    grid.pp = pp;
    if (pp < 1 || grid.ranks % (grid.tp * grid.cp * pp) != 0) {
      refuse("tp·cp·pp = " + std::to_string(grid.tp * grid.cp * pp) + " does not divide its " +
             std::to_string(grid.ranks) + " ranks");
      continue;
    }
    if (!search_.dp.empty() &&
        std::find(search_.dp.begin(), search_.dp.end(), grid.dp()) == search_.dp.end()) {
      refuse("dp " + std::to_string(grid.dp()) + " is not in the search's list");
      continue;
    }
    std::vector<int> stages{1};
    if (virtual_stages_ && pp > 1) {
      stages = powers_of_two(1, kMostVirtual);
      for (const int odd : {3, 5, 6, 10, 12}) stages.push_back(odd);
      std::sort(stages.begin(), stages.end());
    }
    for (const int vpp : pp > 1 ? choice(search_.vpp, stages) : only(search_.vpp, 1)) {
      grid.vpp = vpp;
      experts(grid);
    }
  }
}

void ModuleGrids::experts(ModuleLayout grid) {
  std::vector<int> parts = powers_of_two(1, module_.experts);
  if (module_.experts > 0) parts.push_back(module_.experts);
  for (const int ep :
       module_.experts > 0 ? choice(search_.ep, without_repeats(parts)) : only(search_.ep, 1)) {
    grid.ep = ep;
    for (const bool sp :
         grid.tp > 1 ? choice(search_.sp, {false, true}) : only(search_.sp, false)) {
      grid.sp = sp;
      const bool whole = module_.experts > 0 && grid.tp > 1 && sp;
      for (const int expert_tp :
           whole ? choice(search_.expert_tp, {0, 1}) : only(search_.expert_tp, 0)) {
        grid.expert_tp = expert_tp;
        for (const int pieces : piece_choices(search_, grid)) {
          grid.tp_pieces = pieces;
          shards(grid);
        }
      }
    }
  }
}

void ModuleGrids::shards(ModuleLayout grid) {
  const int copies = grid.dp() * grid.cp;
  for (const Shard shard :
       copies > 1 ? choice(search_.shard, all_of<Shard>()) : only(search_.shard, Shard::none)) {
    grid.shard = shard;
    for (const int over :
         shard == Shard::none ? std::vector<int>{0} : choice(search_.shard_ranks, {0})) {
      grid.shard_ranks = over == copies ? 0 : over;
      for (const Recompute recompute : choice(search_.recompute, all_of<Recompute>())) {
        grid.recompute = recompute;
        context_parallelism(grid);
      }
    }
  }
}

// Chooses what context-parallel ranks divide, and how.
void ModuleGrids::context_parallelism(ModuleLayout grid) {
  const bool divides = grid.cp > 1, attends = divides && module_.kind == ModuleKind::language;
  for (const TokenAssignment tokens : divides ? choice(search_.tokens, {even_tokens_})
                                              : only(search_.tokens, TokenAssignment::contiguous)) {
    grid.tokens = tokens;
    for (const ContextAttention attention :
         attends ? choice(search_.cp_attention, all_of<ContextAttention>())
                 : only(search_.cp_attention, ContextAttention::all_gather)) {
      grid.cp_attention = attention;
      for (const Spread spread : choice(search_.spread, {Spread::samples})) {
        grid.spread = spread;
        keep(grid);
      }
    }
  }
}

void ModuleGrids::keep(const ModuleLayout& grid) {
  auto why = checks::check_grid(module_, grid);
  if (!why) why = checks::check_blocks(module_.name, blocks_, grid, false);
  if (why) return rejections_.add(placement_, why->reason);
  found_.push_back(grid);
}

void ModuleGrids::refuse(const std::string& why) {
  rejections_.add(placement_, module_.name + ": " + why);
}

}  // namespace polyphony
