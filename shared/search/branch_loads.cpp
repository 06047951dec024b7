#include "shared/search/branch_loads.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "shared/layers/parameters.h"
#include "shared/plan/assign.h"

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
WorkSize plus(const WorkSize& a, const WorkSize& b) {
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return x + y; });
}
WorkSize minus(const WorkSize& a, const WorkSize& b) {
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return x - y; });
}

// Start of part `index` when `count` things are cut into `parts` contiguous runs
// (shared/plan/assign.cpp).
std::size_t cut_at(std::size_t count, std::size_t parts, std::size_t index) {
  return count * index / parts;
}

constexpr std::size_t kDistinct = 24;  // kinds of works

}  // namespace

BranchLoads::BranchLoads(const Model& model, const Batch& batch) : model_(model), batch_(batch) {
  for (const Module& module : model.modules)
    weights_.push_back(static_cast<double>(parameter_count(module)));
  samples_alike_ = std::all_of(
      batch.samples.begin(), batch.samples.end(),
      [&](const Sample& sample) { return sample.items == batch.samples.front().items; });
}

bool BranchLoads::has_language(const std::vector<ModuleId>& modules) const {
  return std::find(modules.begin(), modules.end(), language_module(model_)) != modules.end();
}

bool BranchLoads::everywhere(const std::vector<ModuleId>& modules) const {
  return std::all_of(batch_.samples.begin(), batch_.samples.end(), [&](const Sample& sample) {
    return std::any_of(modules.begin(), modules.end(),
                       [&](ModuleId m) { return has_items(model_, m, sample); });
  });
}

const BranchLoads::Samples& BranchLoads::samples_of(const std::vector<ModuleId>& modules) {
  Key key;
  for (const ModuleId id : modules) key.push_back(static_cast<std::int32_t>(id.value));
  return samples_.get(key, [&] {
    const bool everything = has_language(modules);
    Samples samples;
    samples.before.push_back(0);
    samples.prefix.resize(modules.size(), {WorkSize{}});
    for (std::uint32_t s = 0; s < batch_.samples.size(); ++s) {
      const bool member =
          everything || std::any_of(modules.begin(), modules.end(), [&](ModuleId m) {
            return has_items(model_, m, batch_.samples[s]);
          });
      samples.before.push_back(samples.before.back() + (member ? 1 : 0));
      if (!member) continue;
      for (std::size_t m = 0; m < modules.size(); ++m) {
        std::vector<WorkSize>& prefix = samples.prefix[m];
        prefix.push_back(plus(prefix.back(), work_size(model_, modules[m], batch_, &s, 1)));
      }
    }
    return samples;
  });
}

BranchLoads::Table BranchLoads::cut(const std::vector<ModuleId>& modules, const ModuleLayout& grid,
                                    int works, int microbatches) {
  const Samples& samples = samples_of(modules);
  const auto lanes = static_cast<std::size_t>(grid.dp()), count = static_cast<std::size_t>(works),
             parts = static_cast<std::size_t>(microbatches), fed = parts / count,
             batch = batch_.samples.size();
  Table table(modules.size());
  for (std::vector<WorkSize>& sizes : table) sizes.reserve(count * lanes);
  for (std::size_t index = 0; index < count; ++index) {
    const std::size_t begin = samples.before[cut_at(batch, parts, index * fed)],
                      end = samples.before[cut_at(batch, parts, (index + 1) * fed)];
    for (std::size_t lane = 0; lane < lanes; ++lane)
      for (std::size_t m = 0; m < modules.size(); ++m) {
        const std::vector<WorkSize>& prefix = samples.prefix[m];
        table[m].push_back(minus(prefix[begin + cut_at(end - begin, lanes, lane + 1)],
                                 prefix[begin + cut_at(end - begin, lanes, lane)]));
      }
  }
  return table;
}

// By the plan's own assignment; of a branch without the language module beside one that has it.
BranchLoads::Table BranchLoads::assign(const std::vector<ModuleId>& modules,
                                       const ModuleLayout& grid, int works, int microbatches,
                                       const Batch& batch) const {
  const auto branch = [](const ModuleLayout& of, int count, const std::vector<ModuleId>& list) {
    Branch made{of, {Stage{}}, count};
    for (const ModuleId id : list) made.stages.front().chunks.push_back({id, {0, 1}});
    return made;
  };
  Plan plan;
  plan.branches.push_back(branch(grid, works, modules));
  if (!has_language(modules)) {
    plan.branches.push_back(branch({}, microbatches, {language_module(model_)}));
    plan.language = 1;
  }
  const WorkTable table = assign_work(model_, plan, batch);
  Table sizes(modules.size());
  const Range range = table.of_branch(0);
  for (std::size_t m = 0; m < modules.size(); ++m)
    for (std::size_t w = range.begin; w < range.end; ++w)
      sizes[m].push_back(work_size(model_, modules[m], batch, table, table.works[w]));
  return sizes;
}

// `members`: samples of each work, over all lanes.
BranchLoads::Table BranchLoads::repeat(const std::vector<ModuleId>& modules,
                                       const ModuleLayout& grid, std::size_t lanes,
                                       const std::vector<std::size_t>& members) const {
  const bool by_item = grid.spread == Spread::images;  // over all lanes at once
  ModuleLayout one = grid;
  one.ranks = by_item ? grid.tp * grid.cp * grid.dp() : grid.tp * grid.cp;
  one.pp = 1;
  std::vector<std::pair<std::size_t, Table>> known;  // by samples of a work and lane: two or three
  const auto sizes_of = [&](std::size_t samples) -> const Table& {
    for (const auto& [count, sizes] : known)
      if (count == samples) return sizes;
    const Batch few{
        {batch_.samples.begin(), batch_.samples.begin() + static_cast<std::ptrdiff_t>(samples)}};
    known.emplace_back(samples, assign(modules, one, 1, 1, few));
    return known.back().second;
  };
  Table table(modules.size());
  for (const std::size_t of_all : members)
    for (std::size_t lane = 0; lane < (by_item ? 1 : lanes); ++lane) {
      const std::size_t samples =
          by_item ? of_all : cut_at(of_all, lanes, lane + 1) - cut_at(of_all, lanes, lane);
      const Table& sizes = sizes_of(samples);
      for (std::size_t m = 0; m < modules.size(); ++m)
        table[m].insert(table[m].end(), sizes[m].begin(), sizes[m].end());
    }
  return table;
}

const BranchLoad& BranchLoads::load(const std::vector<ModuleId>& modules, const ModuleLayout& grid,
                                    int works, int microbatches) {
  // Lanes that run in step have the first one's pace.
  const int lanes_in_step = std::max(1, cell_ranks(grid) / (grid.tp * grid.cp));
  const bool dealt = grid.cp > 1 || grid.spread == Spread::images;
  key_ = {works,
          microbatches,
          grid.dp(),
          grid.cp,
          dealt ? static_cast<int>(grid.tokens) : 0,
          static_cast<int>(grid.spread),
          lanes_in_step};
  for (const ModuleId id : modules) key_.push_back(static_cast<std::int32_t>(id.value));
  return known_.get(key_, [&] {
    const auto contexts = static_cast<std::size_t>(grid.cp);
    const std::size_t batch = batch_.samples.size();
    const bool member = has_language(modules) || everywhere(modules);
    int different = works, lanes = grid.dp();  // works; lanes: one for all, where they are alike
    Table table;
    if (samples_alike_ && member) {
      const auto parts = static_cast<std::size_t>(microbatches),
                 fed = parts / static_cast<std::size_t>(works);
      std::vector<std::size_t> members;
      if (batch % parts == 0) different = 1;
      for (std::size_t index = 0; index < static_cast<std::size_t>(different); ++index)
        members.push_back(cut_at(batch, parts, (index + 1) * fed) -
                          cut_at(batch, parts, index * fed));
      const bool even = different == 1 && grid.spread == Spread::samples &&
                        members.front() % static_cast<std::size_t>(lanes) == 0;
      if (even) {
        members.front() /= static_cast<std::size_t>(lanes);
        lanes = 1;
      }
      table = repeat(modules, grid, static_cast<std::size_t>(lanes), members);
    } else if (dealt) {
      table = assign(modules, grid, works, microbatches, batch_);
    } else {
      table = cut(modules, grid, works, microbatches);
    }
    std::vector<std::size_t> leaders;
    for (int lane = 0; lane < lanes; lane += lanes_in_step)
      leaders.push_back(static_cast<std::size_t>(lane) * contexts);
    BranchLoad load =
        sum_up(modules, table, different, static_cast<std::size_t>(lanes) * contexts, leaders);
    if (different != works) {
      load.works = works;
      load.counts = {works};
      load.kind_of.assign(static_cast<std::size_t>(works), 0);
    }
    load.id = loads_++;
    return load;
  });
}

namespace {

// One work, of all modules of a branch.
using Sizes = std::vector<WorkSize>;

void find_kinds(const std::vector<Sizes>& works, const std::vector<ModuleId>& modules,
                BranchLoad& load) {
  std::vector<std::size_t> order(works.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto tokens = [&](std::size_t w) {
    std::int64_t sum = 0;
    for (const WorkSize& size : works[w]) sum += size.tokens;
    return sum;
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(tokens(a), works[a]) < std::pair(tokens(b), works[b]);
  });
  std::size_t distinct = 1;
  for (std::size_t i = 1; i < order.size(); ++i) distinct += works[order[i]] != works[order[i - 1]];
  const std::size_t group = distinct <= kDistinct ? 1 : (works.size() + kDistinct - 1) / kDistinct;
  load.kind_of.resize(works.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Sizes& work = works[order[i]];
    const bool opens = group == 1 ? i == 0 || work != works[order[i - 1]] : i % group == 0;
    if (opens) load.counts.push_back(0);
    ++load.counts.back();
    load.kind_of[order[i]] = static_cast<std::uint16_t>(load.counts.size() - 1);
    for (std::size_t m = 0; m < modules.size(); ++m) {
      std::vector<WorkSize>& sizes = load.modules[modules[m].value].sizes;
      if (opens)
        sizes.push_back(work[m]);
      else
        sizes.back() = least(sizes.back(), work[m]);
    }
  }
}

}  // namespace

BranchLoad BranchLoads::sum_up(const std::vector<ModuleId>& modules, const Table& table, int works,
                               std::size_t columns, const std::vector<std::size_t>& leaders) const {
  std::vector<double> weight(columns, 0.0);
  BranchLoad load;
  load.works = works;
  load.modules.resize(weights_.size());
  load.alike = true;
  for (std::size_t m = 0; m < modules.size(); ++m) {
    ModuleLoad& of = load.modules[modules[m].value];
    const std::vector<WorkSize>& sizes = table[m];
    of.smallest = sizes.front();
    bool any_full = false;
    for (std::size_t w = 0; w < sizes.size(); ++w) {
      const WorkSize& size = sizes[w];
      weight[w % columns] += weights_[modules[m].value] * static_cast<double>(size.tokens);
      load.alike = load.alike && size == sizes.front();
      of.smallest = least(of.smallest, size);
      if (size.tokens == 0) continue;
      of.smallest_full = any_full ? least(of.smallest_full, size) : size;
      any_full = true;
    }
  }
  std::size_t busiest = leaders.front();
  for (const std::size_t leader : leaders)
    if (weight[leader] > weight[busiest]) busiest = leader;
  std::vector<Sizes> column(static_cast<std::size_t>(works));
  for (std::size_t w = 0; w < column.size(); ++w)
    for (std::size_t m = 0; m < modules.size(); ++m)
      column[w].push_back(table[m][w * columns + busiest]);
  find_kinds(column, modules, load);
  return load;
}

}  // namespace polyphony
