#include "shared/search/lane_load.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "shared/layers/parameters.h"

namespace polyphony {
namespace {

template <class Function>
WorkSize combine(const WorkSize& a, const WorkSize& b, Function function) {
  return {function(a.tokens, b.tokens),
          function(a.pairs, b.pairs),
          function(a.text_tokens, b.text_tokens),
          function(a.loss_tokens, b.loss_tokens),
          static_cast<std::int32_t>(function(a.sequences, b.sequences)),
          static_cast<std::int32_t>(function(a.samples, b.samples)),
          function(a.gathered, b.gathered),
          function(a.condition, b.condition),
          function(a.cross_pairs, b.cross_pairs),
          function(a.window_pairs, b.window_pairs)};
}
WorkSize least(const WorkSize& a, const WorkSize& b) {
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
}
WorkSize most(const WorkSize& a, const WorkSize& b) {
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return std::max(x, y); });
}
WorkSize plus(const WorkSize& a, const WorkSize& b) {
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return x + y; });
}
WorkSize minus(const WorkSize& a, const WorkSize& b) {
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return x - y; });
}

// Start of part `index` when `count` things are cut into `parts` contiguous runs
// (shared/plan/assign.cpp).
std::size_t cut(std::size_t count, std::size_t parts, std::size_t index) {
  return count * index / parts;
}

constexpr std::size_t kDistinct = 24;  // sizes kept apart by representatives()

}  // namespace

LaneLoads::LaneLoads(const Model& model, const Batch& batch) : batch_size_(batch.samples.size()) {
  for (const Module& module : model.modules)
    weights_.push_back(static_cast<double>(parameter_count(module)));
  all_ = add_up(model, batch, false);
  with_images_ = add_up(model, batch, true);
}

LaneLoads::Samples LaneLoads::add_up(const Model& model, const Batch& batch,
                                     bool with_images_only) const {
  Samples samples;
  samples.before.push_back(0);
  samples.prefix.resize(model.modules.size(), {WorkSize{}});
  for (std::uint32_t s = 0; s < batch.samples.size(); ++s) {
    const bool member = !with_images_only || image_patches(batch.samples[s]) > 0;
    samples.before.push_back(samples.before.back() + (member ? 1 : 0));
    if (!member) continue;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
      std::vector<WorkSize>& prefix = samples.prefix[m];
      prefix.push_back(plus(prefix.back(), work_size(model, ModuleId(m), batch, &s, 1)));
    }
  }
  return samples;
}

BranchLoads LaneLoads::sum(const Plan& plan) const {
  const std::size_t modules = weights_.size();
  const int microbatches = plan.branches.back().microbatches;
  if (plan.branches.size() == 1)
    return {sum_branch(plan.branches[0], 1, microbatches, all_, 0, modules)};
  const int fed = microbatches / plan.branches[0].microbatches;
  return {sum_branch(plan.branches[0], fed, microbatches, with_images_, 0, modules - 1),
          sum_branch(plan.branches[1], 1, microbatches, all_, modules - 1, modules)};
}

std::vector<ModuleLoad> LaneLoads::sum_branch(const Branch& branch, int fed, int microbatches,
                                              const Samples& samples, std::size_t first_module,
                                              std::size_t end_module) const {
  const auto lanes = static_cast<std::size_t>(branch.grid.dp());
  const auto indices = static_cast<std::size_t>(branch.microbatches),
             parts = static_cast<std::size_t>(microbatches);
  // [index·lanes + lane]: the members of a work item.
  std::vector<std::pair<std::size_t, std::size_t>> works;
  works.reserve(indices * lanes);
  for (std::size_t index = 0; index < indices; ++index) {
    const std::size_t begin =
        samples.before[cut(batch_size_, parts, index * static_cast<std::size_t>(fed))];
    const std::size_t end =
        samples.before[cut(batch_size_, parts, (index + 1) * static_cast<std::size_t>(fed))];
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      works.emplace_back(begin + cut(end - begin, lanes, lane),
                         begin + cut(end - begin, lanes, lane + 1));
    }
  }
  std::vector<double> weight(lanes, 0.0);
  std::vector<ModuleLoad> loads(weights_.size());
  for (std::size_t m = first_module; m < end_module; ++m) {
    ModuleLoad& load = loads[m];
    bool any = false, any_full = false;
    for (std::size_t w = 0; w < works.size(); ++w) {
      const WorkSize size =
          minus(samples.prefix[m][works[w].second], samples.prefix[m][works[w].first]);
      weight[w % lanes] += weights_[m] * static_cast<double>(size.tokens);
      load.smallest = any ? least(load.smallest, size) : size;
      load.largest = any ? most(load.largest, size) : size;
      any = true;
      if (size.tokens == 0) continue;
      load.smallest_full = any_full ? least(load.smallest_full, size) : size;
      any_full = true;
    }
  }
  const auto busiest =
      static_cast<std::size_t>(std::max_element(weight.begin(), weight.end()) - weight.begin());
  for (std::size_t m = first_module; m < end_module; ++m) {
    for (std::size_t w = busiest; w < works.size(); w += lanes) {
      loads[m].lane.push_back(
          minus(samples.prefix[m][works[w].second], samples.prefix[m][works[w].first]));
      loads[m].total = plus(loads[m].total, loads[m].lane.back());
    }
    loads[m].works = static_cast<int>(indices);
  }
  return loads;
}

std::vector<std::pair<WorkSize, int>> representatives(std::vector<WorkSize> works) {
  const auto fields = [](const WorkSize& size) {
    return std::tie(size.tokens, size.pairs, size.text_tokens, size.loss_tokens, size.sequences,
                    size.samples, size.gathered, size.condition, size.cross_pairs);
  };
  std::sort(works.begin(), works.end(),
            [&](const WorkSize& a, const WorkSize& b) { return fields(a) < fields(b); });
  const auto distinct = static_cast<std::size_t>(
      1 + std::inner_product(works.begin(), works.end() - 1, works.begin() + 1, std::ptrdiff_t{0},
                             std::plus<>(), std::not_equal_to<>()));
  const std::size_t group = distinct <= kDistinct ? 1 : (works.size() + kDistinct - 1) / kDistinct;
  std::vector<std::pair<WorkSize, int>> result;
  for (std::size_t i = 0; i < works.size(); ++i) {
    const bool same =
        !result.empty() && (group == 1 ? result.back().first == works[i] : i % group != 0);
    if (!same) {
      result.emplace_back(works[i], 1);
      continue;
    }
    WorkSize& least = result.back().first;
    least.pairs = std::min(least.pairs, works[i].pairs);
    least.text_tokens = std::min(least.text_tokens, works[i].text_tokens);
    least.loss_tokens = std::min(least.loss_tokens, works[i].loss_tokens);
    least.sequences = std::min(least.sequences, works[i].sequences);
    least.samples = std::min(least.samples, works[i].samples);
    least.gathered = std::min(least.gathered, works[i].gathered);
    least.condition = std::min(least.condition, works[i].condition);
    least.cross_pairs = std::min(least.cross_pairs, works[i].cross_pairs);
    least.window_pairs = std::min(least.window_pairs, works[i].window_pairs);
    ++result.back().second;
  }
  return result;
}

}  // namespace polyphony
