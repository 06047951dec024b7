#include "shared/search/search.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <optional>

#include "shared/plan/plan.h"

namespace polyphony {
namespace {

constexpr int kDeepestPipeline =
    64;  // deeper ones are bubble at any batch people use; a list may ask for them

std::vector<int> powers_of_two(int least, int most) {
  std::vector<int> values;
  for (int value = 1; value <= most; value *= 2) {
    if (value >= least) values.push_back(value);
  }
  return values;
}

bool is_power_of_two(int value) { return std::has_single_bit(static_cast<unsigned>(value)); }

std::vector<int> pipeline_depths(int ranks) {
  std::vector<int> depths;
  for (int depth = 1; depth <= std::min(ranks, kDeepestPipeline); ++depth) {
    if (ranks % depth == 0 && (is_power_of_two(depth) || is_power_of_two(ranks / depth)))
      depths.push_back(depth);
  }
  return depths;
}

template <class T>
std::vector<T> choice(const std::vector<T>& given, std::vector<T> otherwise) {
  return given.empty() ? otherwise : given;
}

std::string without_digits(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c))) result += c;
  }
  return result;
}

// What may vary besides the grids.
struct Variant {
  Recompute recompute;
  Shard shard;
};
std::vector<Variant> variants(const ModuleSearch& search) {
  std::vector<Variant> result;
  for (const Recompute recompute : choice(search.recompute, {Recompute::none, Recompute::full})) {
    for (const Shard shard : choice(search.shard, {Shard::none, Shard::optimizer}))
      result.push_back({recompute, shard});
  }
  return result;
}

class Enumeration {
 public:
  Enumeration(const Scenario& scenario, std::vector<Rejection>* rejected)
      : scenario_(scenario), rejected_(rejected), modules_(scenario.model.modules.size()) {
    if (scenario.search) search_ = *scenario.search;
    search_.modules.resize(modules_);
  }

  std::vector<Layout> run() {
    const bool alone = modules_ == 1;
    const std::vector<Placement> all = {Placement::homogeneous, Placement::colocated,
                                        Placement::non_colocated};
    for (const Placement placement : choice(search_.placement, all)) {
      if (alone && placement != Placement::homogeneous) continue;
      placement_ = placement;
      switch (placement) {
        case Placement::homogeneous:
          language_grids(0, {});
          break;
        case Placement::colocated:
          colocated();
          break;
        case Placement::mixed:
        case Placement::non_colocated:
          non_colocated();
          break;
      }
    }
    return std::move(found_);
  }

 private:
  const ModuleSearch& language() const { return search_.modules.back(); }
  const ModuleSearch& encoder() const { return search_.modules.front(); }
  int ranks() const { return scenario_.cluster.ranks(); }
  std::vector<int> tensor_sizes(const ModuleSearch& search) const {
    const int node = scenario_.cluster.domain_size();
    std::vector<int> sizes;
    for (const int size : powers_of_two(1, node)) {
      if (node % size == 0) sizes.push_back(size);
    }
    return choice(search.tp, sizes);
  }

  void colocated() {
    for (const int tp : tensor_sizes(encoder())) {
      for (const int pp : choice(encoder().pp, {1})) add_encoder(0, ranks(), tp, pp);
    }
  }

  void non_colocated() {
    const Cluster& cluster = scenario_.cluster;
    const int least = cluster.nodes > 1 ? cluster.ranks_per_node : 1;
    for (const int owned : choice(encoder().ranks, powers_of_two(least, ranks() / 2))) {
      if (owned >= ranks()) {
        reject("the encoder's " + std::to_string(owned) + " ranks leave none of " +
               std::to_string(ranks()) + " for the language module");
        continue;
      }
      for (const int tp : tensor_sizes(encoder())) {
        for (const int pp : choice(encoder().pp, {1})) add_encoder(owned, owned, tp, pp);
      }
    }
  }

  // An encoder grid, then every language grid from rank `language_first` on.
  void add_encoder(int language_first, int owned, int tp, int pp) {
    const std::string who = scenario_.model.modules.front().name;
    ModuleLayout grid;
    grid.tp = tp;
    grid.pp = pp;
    grid.ranks = owned;
    if (const auto reason = refuse_grid(who, grid, encoder().dp)) return reject(*reason);
    language_grids(language_first, grid);
  }

  void language_grids(int first_rank, const std::optional<ModuleLayout>& encoder_grid) {
    for (const int tp : tensor_sizes(language())) {
      ModuleLayout grid;
      grid.tp = tp;
      grid.first_rank = first_rank;
      grid.ranks = ranks() - first_rank;
      for (const int pp : choice(language().pp, pipeline_depths(std::max(1, grid.ranks / tp)))) {
        grid.pp = pp;
        if (const auto reason =
                refuse_grid(scenario_.model.modules.back().name, grid, language().dp)) {
          reject(*reason);
          continue;
        }
        details(grid, encoder_grid);
      }
    }
  }

  void details(const ModuleLayout& language_grid, const std::optional<ModuleLayout>& encoder_grid) {
    const int share = std::max(1, scenario_.data.global_batch / language_grid.dp());
    for (const Variant& of_language : variants(language())) {
      for (const Variant& of_encoder : encoder_variants(of_language)) {
        for (const ScheduleKind schedule : choice(search_.schedule, {ScheduleKind::one_f_one_b})) {
          for (const int microbatch : choice(search_.microbatch, powers_of_two(1, share))) {
            Layout layout;
            layout.placement = placement_;
            layout.schedule = schedule;
            layout.microbatches = share / microbatch;
            layout.modules.assign(modules_, encoder_grid.value_or(language_grid));
            for (ModuleLayout& module : layout.modules) apply(of_encoder, module);
            layout.modules.back() = language_grid;
            apply(of_language, layout.modules.back());
            if (layout.microbatches == 0) {
              reject("a microbatch of " + std::to_string(microbatch) +
                     " samples is more than a lane's share of " + std::to_string(share));
              continue;
            }
            for (const int encoder_works : encoder_works(layout)) {
              layout.encoder_microbatches = encoder_works;
              keep(layout);
            }
          }
        }
      }
    }
  }

  // Colocated in front of a pipeline: the encoder's tapes of a whole step often do not fit, so that
  // it runs in up to 8 parts, each of which drains the pipeline.
  std::vector<int> encoder_works(const Layout& layout) const {
    if (placement_ != Placement::colocated || layout.modules.back().pp == 1) return {0};
    std::vector<int> parts;
    for (const int part : {1, 2, 4, 8}) {
      if (layout.microbatches % part == 0) parts.push_back(part);
    }
    return parts;
  }

  // The encoder's own choices where it has lists; otherwise the language module's.
  std::vector<Variant> encoder_variants(const Variant& of_language) const {
    if (modules_ == 1) return {of_language};
    ModuleSearch search = encoder();
    if (search.recompute.empty()) search.recompute = {of_language.recompute};
    if (search.shard.empty()) search.shard = {of_language.shard};
    return variants(search);
  }

  static void apply(const Variant& variant, ModuleLayout& layout) {
    layout.recompute = variant.recompute;
    layout.shard = variant.shard;
  }

  std::optional<std::string> refuse_grid(const std::string& who, const ModuleLayout& grid,
                                         const std::vector<int>& wanted_dp) const {
    const int node = scenario_.cluster.domain_size();
    if (grid.tp < 1 || node % grid.tp != 0) {
      return who + ": tp " + std::to_string(grid.tp) + " does not divide a " +
             (scenario_.cluster.domain > 0 ? "domain" : "node") + "'s " + std::to_string(node) +
             " ranks";
    }
    if (grid.pp < 1 || grid.ranks % (grid.tp * grid.pp) != 0) {
      return who + ": tp·pp = " + std::to_string(grid.tp * grid.pp) + " does not divide its " +
             std::to_string(grid.ranks) + " ranks";
    }
    if (!wanted_dp.empty() &&
        std::find(wanted_dp.begin(), wanted_dp.end(), grid.dp()) == wanted_dp.end()) {
      return who + ": dp " + std::to_string(grid.dp()) + " is not in its list";
    }
    return std::nullopt;
  }

  void keep(const Layout& layout) {
    if (const auto reason = check_layout(scenario_, layout)) return reject(reason->reason);
    found_.push_back(layout);
  }

  void reject(const std::string& reason) {
    if (rejected_ == nullptr) return;
    const auto [known, added] =
        reasons_.try_emplace({placement_, without_digits(reason)}, rejected_->size());
    if (added) rejected_->push_back({placement_, reason, 0});
    ++(*rejected_)[known->second].count;
  }

  const Scenario& scenario_;
  std::vector<Rejection>* rejected_;
  std::size_t modules_;
  Search search_;
  Placement placement_ = Placement::homogeneous;
  std::vector<Layout> found_;
  std::map<std::pair<Placement, std::string>, std::size_t> reasons_;
};

}  // namespace

std::vector<Layout> candidates(const Scenario& scenario, std::vector<Rejection>* rejected) {
  return Enumeration(scenario, rejected).run();
}

}  // namespace polyphony
