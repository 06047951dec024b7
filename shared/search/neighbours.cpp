#include "shared/search/neighbours.h"

#include <algorithm>
#include <numeric>

#include "shared/check/check.h"
#include "shared/search/mend_grid.h"

namespace polyphony {
namespace {

constexpr int kPrimes[] = {2, 3, 5, 7};

class Steps {
 public:
  Steps(const Scenario& scenario, const Layout& from)
      : scenario_(scenario),
        model_(scenario.model),
        from_(from),
        language_(language_module(model_).value),
        homogeneous_(from.placement == Placement::homogeneous) {
    const int lanes = of_language(from).dp();
    samples_ = std::max(1, scenario.data.global_batch / (lanes * from.microbatches));
  }

  std::vector<Layout> run() {
    for (std::size_t m = 0; m < model_.modules.size(); ++m) {
      if (model_.modules[m].kind == ModuleKind::projector) continue;
      change_recompute(m);
      if (homogeneous_ && m != language_) continue;
      change_shape(m);
      change_experts(m);
      change_state(m);
      change_rows(m);
      change_blocks(m);
      change_ahead(m);
    }
    change_schedule();
    change_works();
    if (!homogeneous_) change_encoder_order();
    change_ranks();
    return std::move(found_);
  }

 private:
  ModuleLayout& of_language(Layout& layout) const { return layout.modules[language_]; }
  const ModuleLayout& of_language(const Layout& layout) const { return layout.modules[language_]; }

  // Applies `change` to the grid of module `m` in a copy of the layout.
  template <class Change>
  void step(std::size_t m, Change change) {
    Layout layout = from_;
    change(layout.modules[m]);
    keep(std::move(layout), m);
  }

  void change_shape(std::size_t m) {
    const ModuleLayout& grid = from_.modules[m];
    for (const int p : kPrimes) {
      for (int ModuleLayout::* size : {&ModuleLayout::tp, &ModuleLayout::cp, &ModuleLayout::pp}) {
        step(m, [&](ModuleLayout& to) { to.*size *= p; });
        if (grid.*size % p != 0) continue;
        step(m, [&](ModuleLayout& to) { to.*size /= p; });
        for (int ModuleLayout::* other : {&ModuleLayout::tp, &ModuleLayout::cp, &ModuleLayout::pp})
          if (other != size) step(m, [&](ModuleLayout& to) { to.*size /= p, to.*other *= p; });
        if (size == &ModuleLayout::pp) step(m, [&](ModuleLayout& to) { to.pp /= p, to.vpp *= p; });
      }
      if (grid.vpp % p == 0) step(m, [&](ModuleLayout& to) { to.vpp /= p, to.pp *= p; });
    }
    if (m != language_) return;
    for (const int more : {-1, 1}) step(m, [&](ModuleLayout& to) { to.vpp += more; });
    for (const int p : {2, 3}) {
      step(m, [&](ModuleLayout& to) { to.vpp *= p; });
      if (grid.vpp % p == 0) step(m, [&](ModuleLayout& to) { to.vpp /= p; });
    }
  }

  void change_experts(std::size_t m) {
    if (model_.modules[m].experts == 0) return;
    const ModuleLayout& grid = from_.modules[m];
    for (const int p : kPrimes) {
      step(m, [&](ModuleLayout& to) { to.ep *= p; });
      if (grid.ep % p == 0) step(m, [&](ModuleLayout& to) { to.ep /= p; });
    }
    for (const int tp : {0, 1}) step(m, [&](ModuleLayout& to) { to.expert_tp = tp; });
  }

  void change_state(std::size_t m) {
    const ModuleLayout& grid = from_.modules[m];
    for (int shard = 0; shard <= static_cast<int>(last_of(Shard{})); ++shard)
      step(m, [&](ModuleLayout& to) { to.shard = static_cast<Shard>(shard); });
    if (grid.shard == Shard::none) return;
    const int copies = grid.dp() * grid.cp;
    const int now = grid.shard_ranks == 0 ? copies : grid.shard_ranks;
    step(m, [&](ModuleLayout& to) { to.shard_ranks = 0; });
    for (const int p : kPrimes) {
      if (now * p < copies) step(m, [&](ModuleLayout& to) { to.shard_ranks = now * p; });
      if (now % p == 0) step(m, [&](ModuleLayout& to) { to.shard_ranks = now / p; });
    }
    const int node = scenario_.cluster.ranks_per_node / std::max(1, grid.tp);
    if (node > 1) step(m, [&](ModuleLayout& to) { to.shard_ranks = std::min(node, copies); });
  }

  void change_recompute(std::size_t m) {
    const ModuleLayout& grid = from_.modules[m];
    for (int kind = 0; kind <= static_cast<int>(last_of(Recompute{})); ++kind)
      step(m, [&](ModuleLayout& to) { to.recompute = static_cast<Recompute>(kind); });
    if (grid.recompute == Recompute::none) return;
    const int blocks = model_.modules[m].layers;
    std::vector<int> range = grid.recompute_blocks;
    if (range.empty()) range = {0, blocks};
    step(m, [&](ModuleLayout& to) { to.recompute_blocks.clear(); });
    const int length = range[1] - range[0];
    for (const int by : {1, std::max(2, blocks / 8), std::max(3, length / 2)})
      for (const std::size_t end : {0, 1})
        for (const int sign : {-1, 1}) {
          std::vector<int> moved = range;
          moved[end] = std::clamp(moved[end] + sign * by, 0, blocks);
          step(m, [&](ModuleLayout& to) { to.recompute_blocks = moved; });
        }
  }

  void change_rows(std::size_t m) {
    const ModuleLayout& grid = from_.modules[m];
    step(m, [&](ModuleLayout& to) { to.sp = !to.sp; });
    for (const int pieces : {1, 2 * grid.tp_pieces, grid.tp_pieces / 2})
      step(m, [&](ModuleLayout& to) { to.tp_pieces = pieces; });
    if (grid.cp > 1)
      for (const TokenAssignment tokens :
           {TokenAssignment::contiguous, TokenAssignment::zigzag, TokenAssignment::balanced})
        step(m, [&](ModuleLayout& to) { to.tokens = tokens; });
    for (int way = 0; grid.cp > 1 && way <= static_cast<int>(last_of(ContextAttention{})); ++way)
      step(m, [&](ModuleLayout& to) { to.cp_attention = static_cast<ContextAttention>(way); });
    for (const Spread spread : {Spread::samples, Spread::images})  // copies are never faster
      step(m, [&](ModuleLayout& to) { to.spread = spread; });
  }

  // Moves one block from a stage to its neighbor, from the first stage to any other, and back.
  void change_blocks(std::size_t m) {
    const std::size_t holder = homogeneous_ ? model_.modules.size() - 1 : m;
    const int stages = static_cast<int>(from_.modules[holder].blocks.size());
    for (int a = 0; a < stages; ++a)
      for (int b = 0; b < stages; ++b) {
        if (a == b || (std::abs(a - b) > 1 && a > 0 && b > 0)) continue;
        step(holder, [&](ModuleLayout& to) {
          --to.blocks[static_cast<std::size_t>(a)];
          ++to.blocks[static_cast<std::size_t>(b)];
        });
      }
  }

  void change_schedule() {
    for (const Schedule& row : kSchedules) {
      Layout layout = from_;
      layout.schedule = row.kind;
      ModuleLayout& grid = of_language(layout);
      grid.vpp = std::clamp(grid.vpp, row.min_virtual_stages, row.max_virtual_stages);
      keep(std::move(layout), language_);
    }
  }

  void change_works() {
    const auto keep_with = [&](auto member, auto value) {
      Layout layout = from_;
      layout.*member = value;
      keep_works(std::move(layout));
    };
    const int microbatches = from_.microbatches, own = std::max(1, from_.encoder_microbatches);
    for (const int p : kPrimes)
      for (const bool more : {false, true}) {
        keep_with(&Layout::microbatches, more ? microbatches * p : microbatches / p);
        if (more || own % p == 0)
          keep_with(&Layout::encoder_microbatches, more ? own * p : own / p);
      }
    for (const int works : {0, 1, microbatches}) keep_with(&Layout::encoder_microbatches, works);
    for (const Bridge bridge : {Bridge::sharded, Bridge::leader})
      keep_with(&Layout::bridge, bridge);
  }

  // Encoders on the language module's ranks: another order; whole on every rank, or along its
  // pipeline.
  void change_encoder_order() {
    for (int order = 0; order <= static_cast<int>(last_of(EncoderOrder{})); ++order)
      for (const bool pipelined : {false, true}) {
        Layout layout = from_;
        layout.encoder_order = static_cast<EncoderOrder>(order);
        for (ModuleLayout& grid : layout.modules) {
          if (&grid == &of_language(layout) || !same_ranks(grid, of_language(from_))) continue;
          grid.pp = pipelined ? of_language(from_).pp : 1;
          grid.vpp = 1;
          if (!mend(grid)) return;
        }
        follow_lanes(layout);
        keep_works(std::move(layout));
      }
  }

  void change_ahead(std::size_t m) {
    const int now = from_.modules[m].ahead;
    for (const int ahead : {0, now - 1, now + 1, now / 2, now * 2})
      if (m < language_ && ahead >= 0) step(m, [&](ModuleLayout& to) { to.ahead = ahead; });
  }

  // More or fewer ranks for each group of modules except the language module's, which has the rest.
  void change_ranks() {
    const ModuleLayout rest = of_language(from_);
    for (std::size_t m = 0; m < model_.modules.size(); ++m) {
      const ModuleLayout& grid = from_.modules[m];
      if (m == language_ || model_.modules[m].kind == ModuleKind::projector) continue;
      if (same_ranks(grid, rest)) continue;
      const int node = scenario_.cluster.ranks_per_node;
      for (const int ranks : {grid.ranks * 2, grid.ranks / 2, grid.ranks + node, grid.ranks - node,
                              grid.ranks + 1, grid.ranks - 1})
        resize(grid.first_rank, grid.ranks, ranks);
    }
  }

  void resize(int first, int ranks, int to) {
    const ModuleLayout rest = of_language(from_);
    const int more = to - ranks;
    if (to < 1 || rest.ranks - more < 1) return;
    Layout layout = from_;
    for (ModuleLayout& grid : layout.modules) {
      const bool resized = grid.first_rank == first, language = same_ranks(grid, rest);
      // Modules between the two move along.
      if (grid.first_rank > first && grid.first_rank <= rest.first_rank)
        grid.first_rank += more;
      else if (grid.first_rank <= first && grid.first_rank > rest.first_rank)
        grid.first_rank -= more;
      if (resized) grid.ranks = to;
      if (language) grid.ranks -= more;
      grid.pp = divisor_below(std::max(1, grid.ranks / (grid.tp * grid.cp)), grid.pp);
      if (grid.ranks % (grid.tp * grid.cp * grid.pp) != 0) return;
    }
    keep(std::move(layout), language_);
  }

  // Adds the layout after a change of module `m`'s grid, with all dependent fields adjusted.
  void keep(Layout layout, std::size_t m) {
    const ModuleLayout changed = layout.modules[m];
    for (std::size_t other = 0; other < layout.modules.size(); ++other) {
      ModuleLayout& grid = layout.modules[other];
      if (other != m && (homogeneous_ || grid_owner_of(other) == m)) copy_grid(changed, grid);
    }
    for (ModuleLayout& grid : layout.modules)
      if (!mend(grid)) return;
    follow_lanes(layout);
    keep_works(std::move(layout));
  }

  std::size_t grid_owner_of(std::size_t m) const { return grid_owner(model_, ModuleId(m)).value; }

  // Keeps the samples per microbatch, and uses the nearest schedule that the shape can run.
  void follow_lanes(Layout& layout) const {
    const ModuleLayout& grid = of_language(layout);
    if (grid.dp() != of_language(from_).dp())
      layout.microbatches = std::max(1, scenario_.data.global_batch / (grid.dp() * samples_));
    if (!schedule(layout.schedule).refusal(shape(layout)).empty())
      layout.schedule = default_schedule(grid.pp > 1 ? grid.vpp : 1);
    if (schedule(layout.schedule).groups_of_ranks)
      layout.microbatches = std::max(grid.pp, layout.microbatches / grid.pp * grid.pp);
    if (layout.encoder_microbatches > 0)
      layout.encoder_microbatches = divisor_below(layout.microbatches, layout.encoder_microbatches);
  }
  Pipeline shape(const Layout& layout) const {
    const ModuleLayout& grid = of_language(layout);
    // With this multiple of everything, only the shape decides whether a schedule is legal.
    return {grid.pp, grid.vpp, 2 * grid.pp, 0};
  }

  void keep_works(Layout layout) {
    if (layout.microbatches < 1 || layout == from_) return;
    if (check_layout(scenario_, layout)) return;
    if (std::find(found_.begin(), found_.end(), layout) == found_.end())
      found_.push_back(std::move(layout));
  }

  const Scenario& scenario_;
  const Model& model_;
  const Layout& from_;
  const std::size_t language_;
  const bool homogeneous_;
  int samples_ = 1;  // of a microbatch
  std::vector<Layout> found_;
};

}  // namespace

std::vector<Layout> neighbours(const Scenario& scenario, const Layout& layout) {
  return Steps(scenario, layout).run();
}

}  // namespace polyphony
