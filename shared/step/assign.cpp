#include "shared/step/assign.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "shared/chunk/expand_layer.h"
#include "shared/error.h"
#include "shared/planner/segment_counts.h"
#include "shared/program/sample_mask.h"

namespace polyphony {
namespace {

// Returns the start of part `index` when `count` things are cut into `parts` contiguous runs whose
// sizes differ by at most one.
std::size_t cut(std::size_t count, std::size_t parts, std::size_t index) {
  return count * index / parts;
}

// Assigns `items` to the parts, the largest first, each to the part with the least; parts stay in
// order.
std::vector<std::vector<ItemOfWork>> assign_items(const Batch& batch,
                                                  const std::vector<ItemOfWork>& items,
                                                  std::size_t parts) {
  const auto tokens = [&](const ItemOfWork& item) {
    return batch.samples[item.sample].items[item.item].tokens;
  };
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tokens(items[a]) > tokens(items[b]);
  });
  using Load = std::pair<std::int64_t, std::size_t>;  // of a part; ties go to the first
  std::vector<Load> loads(parts);
  for (std::size_t p = 0; p < parts; ++p) loads[p] = {0, p};
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least({}, std::move(loads));
  std::vector<std::vector<std::size_t>> parts_of_items(parts);
  for (const std::size_t i : order) {
    Load to = least.top();
    least.pop();
    parts_of_items[to.second].push_back(i);
    to.first += tokens(items[i]);
    least.push(to);
  }
  std::vector<std::vector<ItemOfWork>> result(parts);
  for (std::size_t p = 0; p < parts; ++p) {
    std::sort(parts_of_items[p].begin(), parts_of_items[p].end());
    for (const std::size_t i : parts_of_items[p]) result[p].push_back(items[i]);
  }
  return result;
}

// One of the sub-microbatches of a microbatch.
struct Part {
  std::size_t index = 0, of = 1;
};

class Assignment {
 public:
  Assignment(const Model& model, const Plan& plan, const Batch& batch,
             const SampleAssignment* given)
      : model_(model), plan_(plan), batch_(batch), given_(given) {}

  WorkTable run() {
    for (std::size_t b = 0; b < plan_.branches.size(); ++b) add_branch(b);
    return std::move(table_);
  }

 private:
  void add_branch(std::size_t b) {
    const Branch& branch = plan_.branches[b];
    taken_ = {};
    for (const Stage& stage : branch.stages)
      for (const Chunk& chunk : stage.chunks)
        for (std::size_t k = 0; k < taken_.size(); ++k)
          taken_[k] = taken_[k] || takes(model_, chunk.module, static_cast<Modality>(k));
    const bool everything = b == plan_.language;
    table_.first_work.push_back(static_cast<std::uint32_t>(table_.works.size()));
    const int parts =
        given_ ? 1 : std::max(1, branch.microbatches / plan_.branches[plan_.language].microbatches);
    for (int index = 0; index < branch.microbatches; ++index) {
      std::vector<Members> lanes =
          given_ ? (*given_)(b, index) : in_order(branch, index / parts, everything);
      part_ = {static_cast<std::size_t>(index % parts), static_cast<std::size_t>(parts)};
      const Work work{.branch = static_cast<std::uint32_t>(b),
                      .index = static_cast<std::uint32_t>(index)};
      if (!everything)
        for (Members& members : lanes)
          std::erase_if(members, [&](std::uint32_t s) { return !has_any(batch_.samples[s]); });
      if (!everything && branch.grid.spread == Spread::images)
        spread_items(work, branch.grid, joined(lanes));
      else
        spread_samples(work, branch.grid, lanes, everything);
    }
  }

  // Equal runs of the batch, ± one sample: over microbatches, then over lanes. Samples without
  // items for the branch are skipped.
  std::vector<Members> in_order(const Branch& branch, int index, bool everything) const {
    const auto microbatches = static_cast<std::size_t>(plan_.branches[plan_.language].microbatches);
    const auto at = static_cast<std::size_t>(index);
    // Microbatches that one work feeds.
    const std::size_t fed =
        std::max<std::size_t>(1, microbatches / static_cast<std::size_t>(branch.microbatches));
    const std::size_t begin = cut(batch_.samples.size(), microbatches, at * fed);
    const std::size_t end = cut(batch_.samples.size(), microbatches, (at + 1) * fed);
    Members members;
    for (std::size_t s = begin; s < end; ++s)
      if (everything || has_any(batch_.samples[s]))
        members.push_back(static_cast<std::uint32_t>(s));
    const auto lanes = static_cast<std::size_t>(branch.lanes());
    std::vector<Members> by_lane;
    for (std::size_t lane = 0; lane < lanes; ++lane)
      by_lane.emplace_back(
          members.begin() + static_cast<std::ptrdiff_t>(cut(members.size(), lanes, lane)),
          members.begin() + static_cast<std::ptrdiff_t>(cut(members.size(), lanes, lane + 1)));
    return by_lane;
  }
  static Members joined(const std::vector<Members>& lanes) {
    Members all;
    for (const Members& members : lanes) all.insert(all.end(), members.begin(), members.end());
    std::sort(all.begin(), all.end());
    return all;
  }

  bool has_any(const Sample& sample) const {
    return std::any_of(sample.items.begin(), sample.items.end(),
                       [&](const Item& item) { return takes_item(item); });
  }
  bool takes_item(const Item& item) const {
    return taken_[static_cast<std::size_t>(item.modality)];
  }
  // Returns those of the current part.
  std::vector<ItemOfWork> items_of(const ModuleLayout& grid, const Members& samples) const {
    std::vector<ItemOfWork> items;
    for (const std::uint32_t s : samples)
      for (std::uint32_t i = 0; i < batch_.samples[s].items.size(); ++i)
        if (takes_item(batch_.samples[s].items[i])) items.push_back({s, i});
    if (part_.of == 1) return items;
    const std::size_t parts = std::min(
        part_.of, sub_microbatches(static_cast<int>(items.size()), grid.sub_microbatch).size());
    if (part_.index >= parts) return {};
    return assign_items(batch_, items, parts)[part_.index];
  }
  static Members samples_of(const std::vector<ItemOfWork>& items) {
    Members samples;
    for (const ItemOfWork& item : items)
      if (samples.empty() || samples.back() != item.sample) samples.push_back(item.sample);
    return samples;
  }

  void spread_samples(Work work, const ModuleLayout& grid, const std::vector<Members>& lanes,
                      bool with_tokens) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const auto contexts = static_cast<std::size_t>(grid.cp);
      std::vector<std::vector<ItemOfWork>> items{items_of(grid, lanes[lane])};
      const Members samples = part_.of == 1 ? lanes[lane] : samples_of(items.front());
      if (grid.copies_items())
        items.resize(contexts, items.front());
      else if (contexts > 1)
        items = assign_items(batch_, items.front(), contexts);
      std::vector<std::vector<Interval>> rows(contexts);
      if (with_tokens) rows = assign_rows(grid, samples);
      work.lane = static_cast<std::uint32_t>(lane);
      work.samples = append(table_.work_samples, samples);
      for (std::size_t c = 0; c < contexts; ++c) {
        work.context = static_cast<std::uint32_t>(c);
        work.items = append(table_.items_of_works, items[c]);
        work.rows = append(table_.work_rows, rows[c]);
        table_.works.push_back(work);
      }
    }
  }

  void spread_items(Work work, const ModuleLayout& grid, const Members& members) {
    const auto parts = static_cast<std::size_t>(grid.dp() * grid.cp);
    const auto parts_of_items = assign_items(batch_, items_of(grid, members), parts);
    for (std::size_t part = 0; part < parts; ++part) {
      const Members samples = samples_of(parts_of_items[part]);
      work.lane = static_cast<std::uint32_t>(part / static_cast<std::size_t>(grid.cp));
      work.context = static_cast<std::uint32_t>(part % static_cast<std::size_t>(grid.cp));
      work.samples = append(table_.work_samples, samples);
      work.items = append(table_.items_of_works, parts_of_items[part]);
      work.rows = append(table_.work_rows, std::vector<Interval>{});
      table_.works.push_back(work);
    }
  }

  std::vector<std::vector<Interval>> assign_rows(const ModuleLayout& grid, const Members& samples) {
    const Module& language = model_.modules[language_module(model_).value];
    const auto policy = grid.cp == 1 ? TokenAssignment::contiguous : grid.tokens;
    if (policy == TokenAssignment::balanced && !costs_) costs_ = token_costs(language);
    TokenMask mask;
    for (const std::uint32_t s : samples) add_sample(mask, model_, batch_.samples[s]);
    return divide_tokens(policy, mask, language.sliding_window, grid.cp,
                         costs_.value_or(TokenCosts{}));
  }

  template <class T>
  static Range append(std::vector<T>& list, const std::vector<T>& more) {
    const auto begin = static_cast<std::uint32_t>(list.size());
    list.insert(list.end(), more.begin(), more.end());
    return {begin, static_cast<std::uint32_t>(list.size())};
  }

  const Model& model_;
  const Plan& plan_;
  const Batch& batch_;
  const SampleAssignment* given_;  // null: in the order of the batch
  WorkTable table_;
  std::optional<TokenCosts> costs_;
  Part part_;                                                                 // of the current item
  std::array<bool, static_cast<std::size_t>(Modality::latent) + 1> taken_{};  // by the branch
};

}  // namespace

TokenCosts token_costs(const Module& module) {
  if (module.abstract.is)
    return {.pair = 0, .token = 1};        // its layer times do not separate the two
  constexpr std::int64_t kMany = 1 << 16;  // tokens: no share of an expert is rounded away
  const WorkSize tokens{.tokens = kMany, .sequences = 1, .samples = 1, .gathered = kMany};
  WorkSize pairs = tokens, window_pairs = tokens;
  pairs.pairs = window_pairs.window_pairs = kMany;
  const std::vector<LayerKind> stack = layers(module);
  const LayerRange all{0, static_cast<std::uint16_t>(stack.size())};
  TokenCosts costs{0, 0, 0};
  for (int layer = 0; layer < all.end;) {
    const int next = end_of_alike(module, all, layer, pairs, {});
    if (stack[static_cast<std::size_t>(layer)] == LayerKind::decoder_block) {
      const auto flops = [&](const WorkSize& size) {
        return total_flops(expand_layer(module, all, layer, Phase::forward, size, {})).value *
               (next - layer) / kMany;
      };
      const double rest = flops(tokens);
      costs.token += rest;
      costs.pair += flops(pairs) - rest;
      costs.window_pair += flops(window_pairs) - rest;
    }
    layer = next;
  }
  return costs;
}

WorkTable assign_work(const Model& model, const Plan& plan, const Batch& batch) {
  return Assignment(model, plan, batch, nullptr).run();
}
WorkTable assign_work(const Model& model, const Plan& plan, const Batch& batch,
                      const SampleAssignment& given) {
  return Assignment(model, plan, batch, &given).run();
}

}  // namespace polyphony
