#include "shared/screen/branch_loads.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "shared/chunk/parameters.h"
#include "shared/screen/work_kinds.h"
#include "shared/step/assign.h"

namespace polyphony {
namespace {

// Returns the start of part `index` when `count` things are cut into `parts` contiguous runs
// (shared/step/assign.cpp).
std::size_t cut_at(std::size_t count, std::size_t parts, std::size_t index) {
  return count * index / parts;
}

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

// Computes the table by the plan's own assignment; for a branch without the language module, next
// to a branch that has it.
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

// `members`: number of samples of each work, over all lanes.
BranchLoads::Table BranchLoads::repeat(const std::vector<ModuleId>& modules,
                                       const ModuleLayout& grid, std::size_t lanes,
                                       const std::vector<std::size_t>& members) {
  const bool by_item = grid.spread == Spread::images;  // over all lanes at once
  ModuleLayout one = grid;
  one.ranks = by_item ? grid.tp * grid.cp * grid.dp() : grid.tp * grid.cp;
  one.pp = 1;
  if (const Item* item = item_alike(modules)) {
    const auto parts = static_cast<std::size_t>(one.dp() * one.cp);
    const auto items = static_cast<std::size_t>(std::count(
        batch_.samples.front().items.begin(), batch_.samples.front().items.end(), *item));
    Table table(modules.size());
    for (const std::size_t of_all : members)
      for (std::size_t lane = 0; lane < (by_item ? 1 : lanes); ++lane) {
        const std::size_t samples =
            by_item ? of_all : cut_at(of_all, lanes, lane + 1) - cut_at(of_all, lanes, lane);
        // Items are assigned one after another.
        for (std::size_t part = 0; part < parts; ++part) {
          const std::size_t count =
              one.copies_items()
                  ? samples * items
                  : samples * items / parts + (part < samples * items % parts ? 1 : 0);
          for (std::size_t m = 0; m < modules.size(); ++m)
            table[m].push_back(items_of(modules[m], *item, count));
        }
      }
    return table;
  }
  Key key{0, one.dp(), grid.cp, static_cast<int>(grid.tokens), static_cast<int>(grid.spread)};
  for (const ModuleId id : modules) key.push_back(static_cast<std::int32_t>(id.value));
  const Table* last = nullptr;
  const auto sizes_of = [&](std::size_t samples) -> const Table& {
    if (last && key.front() == static_cast<std::int32_t>(samples)) return *last;
    key.front() = static_cast<std::int32_t>(samples);
    return *(last = &repeated_.get(key, [&] {
      const Batch few{
          {batch_.samples.begin(), batch_.samples.begin() + static_cast<std::ptrdiff_t>(samples)}};
      return assign(modules, one, 1, 1, few);
    }));
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

// Returns the item of an encoder whose items are the same in every sample; null otherwise.
const Item* BranchLoads::item_alike(const std::vector<ModuleId>& modules) const {
  const Item* found = nullptr;
  for (const ModuleId id : modules) {
    const ModuleKind kind = model_.modules[id.value].kind;
    if (kind == ModuleKind::language || kind == ModuleKind::diffusion) return nullptr;
    for (const Item& item : batch_.samples.front().items) {
      if (!takes(model_, id, item.modality)) continue;
      if (found != nullptr && *found != item) return nullptr;
      found = &item;
    }
  }
  return found;
}

WorkSize BranchLoads::items_of(ModuleId module, const Item& item, std::size_t count) {
  Key key{static_cast<std::int32_t>(module.value), static_cast<std::int32_t>(count)};
  return items_.get(key, [&] {
    const Batch batch{{Sample{0, std::vector<Item>(count, item)}}};
    const std::uint32_t first = 0;
    return work_size(model_, module, batch, &first, 1);
  });
}

const BranchLoad& BranchLoads::load(const std::vector<ModuleId>& modules, const ModuleLayout& grid,
                                    int works, int microbatches) {
  const bool assigned = grid.cp > 1 || grid.spread == Spread::images;
  key_ = {works,
          microbatches,
          grid.dp(),
          grid.cp,
          assigned ? static_cast<int>(grid.tokens) : 0,
          static_cast<int>(grid.spread)};
  for (const ModuleId id : modules) key_.push_back(static_cast<std::int32_t>(id.value));
  return known_.get(key_, [&] {
    const bool member = has_language(modules) || everywhere(modules);
    int lanes = grid.dp();  // one for all, where they are alike
    Table table;
    Rows rows;
    if (samples_alike_ && member) {
      rows = rows_of(works, microbatches);
      const bool even = rows.samples.size() == 1 && grid.spread != Spread::images &&
                        rows.samples.front() % static_cast<std::size_t>(lanes) == 0;
      if (even) {
        rows.samples.front() /= static_cast<std::size_t>(lanes);
        lanes = 1;
      }
      table = repeat(modules, grid, static_cast<std::size_t>(lanes), rows.samples);
    } else {
      rows.of.resize(static_cast<std::size_t>(works));
      std::iota(rows.of.begin(), rows.of.end(), std::uint32_t{0});
      table = assigned ? assign(modules, grid, works, microbatches, batch_)
                       : cut(modules, grid, works, microbatches);
    }
    BranchLoad load = sum_up(modules, table, rows.of, static_cast<std::size_t>(lanes * grid.cp));
    load.id = loads_++;
    return load;
  });
}

BranchLoads::Rows BranchLoads::rows_of(int works, int microbatches) const {
  const auto parts = static_cast<std::size_t>(microbatches),
             fed = parts / static_cast<std::size_t>(works), batch = batch_.samples.size();
  Rows rows;
  for (std::size_t work = 0; work < static_cast<std::size_t>(works); ++work) {
    const std::size_t samples =
        cut_at(batch, parts, (work + 1) * fed) - cut_at(batch, parts, work * fed);
    const auto known = std::find(rows.samples.begin(), rows.samples.end(), samples);
    rows.of.push_back(static_cast<std::uint32_t>(known - rows.samples.begin()));
    if (known == rows.samples.end()) rows.samples.push_back(samples);
  }
  return rows;
}

BranchLoad BranchLoads::sum_up(const std::vector<ModuleId>& modules, const Table& table,
                               const std::vector<std::uint32_t>& row_of,
                               std::size_t columns) const {
  std::vector<std::pair<double, double>> weight(columns);        // tokens, pairs
  std::vector<double> works(table.front().size() / columns, 0);  // by row
  for (const std::uint32_t row : row_of) ++works[row];
  BranchLoad load;
  load.works = static_cast<int>(row_of.size());
  load.modules.resize(weights_.size());
  load.alike = true;
  for (std::size_t m = 0; m < modules.size(); ++m) {
    ModuleLoad& of = load.modules[modules[m].value];
    const std::vector<WorkSize>& sizes = table[m];
    of.smallest = sizes.front();
    bool any_full = false;
    for (std::size_t w = 0; w < sizes.size(); ++w) {
      const WorkSize& size = sizes[w];
      const double times = works[w / columns];
      weight[w % columns].first +=
          times * weights_[modules[m].value] * static_cast<double>(size.tokens);
      weight[w % columns].second += times * static_cast<double>(size.pairs);
      load.alike = load.alike && size == sizes.front();
      of.smallest = least(of.smallest, size);
      if (size.tokens == 0) continue;
      of.smallest_full = any_full ? least(of.smallest_full, size) : size;
      any_full = true;
    }
  }
  const auto busiest =
      static_cast<std::size_t>(std::max_element(weight.begin(), weight.end()) - weight.begin());
  std::vector<Sizes> column(works.size());
  for (std::size_t w = 0; w < column.size(); ++w)
    for (std::size_t m = 0; m < modules.size(); ++m)
      column[w].push_back(table[m][w * columns + busiest]);
  WorkKinds kinds = find_kinds(column);
  load.counts.assign(kinds.sizes.size(), 0);
  for (const std::uint32_t row : row_of) {
    load.kind_of.push_back(kinds.kind_of[row]);
    ++load.counts[kinds.kind_of[row]];
  }
  for (const Sizes& sizes : kinds.sizes)
    for (std::size_t m = 0; m < modules.size(); ++m)
      load.modules[modules[m].value].sizes.push_back(sizes[m]);
  return load;
}

}  // namespace polyphony
