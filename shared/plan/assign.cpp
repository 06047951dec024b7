#include "shared/plan/assign.h"

#include <algorithm>
#include <map>

#include "shared/error.h"
#include "shared/model/rows.h"
#include "shared/plan/tokens.h"

namespace polyphony {
namespace {

// Start of part `index` when `count` things are cut into `parts` contiguous runs whose sizes differ
// by at most one.
std::size_t cut(std::size_t count, std::size_t parts, std::size_t index) {
  return count * index / parts;
}

Modality modality_of(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::vision:
      return Modality::image;
    case ModuleKind::audio:
      return Modality::audio;
    case ModuleKind::diffusion:
      return Modality::latent;
    case ModuleKind::language:
    case ModuleKind::projector:
      break;
  }
  return Modality::text;
}

// Query-key pairs that cost as much as one token's linear layers: 2 FLOPs per weight and token
// against 4·A·D per pair.
double linear_pairs(const Module& m) {
  const double width = static_cast<double>(m.heads) * m.head_dim;
  const double weights =
      m.hidden * (2 * width + 2.0 * m.kv_heads * m.head_dim) + 3.0 * m.hidden * m.ffn;
  return weights / (2 * width);
}

// Deals `items` to the parts, the largest first to the part with the least; each part in order.
std::vector<std::vector<WorkItem>> deal_items(const Batch& batch,
                                              const std::vector<WorkItem>& items,
                                              std::size_t parts) {
  const auto tokens = [&](const WorkItem& item) {
    return batch.samples[item.sample].items[item.item].tokens;
  };
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tokens(items[a]) > tokens(items[b]);
  });
  std::vector<std::int64_t> load(parts, 0);
  std::vector<std::vector<std::size_t>> dealt(parts);
  for (const std::size_t i : order) {
    const auto least =
        static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[least] += tokens(items[i]);
    dealt[least].push_back(i);
  }
  std::vector<std::vector<WorkItem>> result(parts);
  for (std::size_t p = 0; p < parts; ++p) {
    std::sort(dealt[p].begin(), dealt[p].end());
    for (const std::size_t i : dealt[p]) result[p].push_back(items[i]);
  }
  return result;
}

class Assignment {
 public:
  Assignment(const Model& model, const Plan& plan, const Batch& batch)
      : model_(model), plan_(plan), batch_(batch) {}

  WorkTable run() {
    for (std::size_t b = 0; b < plan_.branches.size(); ++b) add_branch(b);
    return std::move(table_);
  }

 private:
  void add_branch(std::size_t b) {
    const Branch& branch = plan_.branches[b];
    modules_.clear();
    for (const Stage& stage : branch.stages)
      for (const Chunk& chunk : stage.chunks) modules_.push_back(chunk.module);
    const bool everything = b == plan_.language;  // other branches skip samples without items
    const auto microbatches = static_cast<std::size_t>(plan_.branches[plan_.language].microbatches);
    const auto indices = static_cast<std::size_t>(branch.microbatches);
    const std::size_t fed = microbatches / indices;  // microbatches that one work item feeds
    table_.first_work.push_back(static_cast<std::uint32_t>(table_.works.size()));
    for (std::size_t index = 0; index < indices; ++index) {
      std::vector<std::uint32_t> members;
      const std::size_t begin = cut(batch_.samples.size(), microbatches, index * fed);
      const std::size_t end = cut(batch_.samples.size(), microbatches, (index + 1) * fed);
      for (std::size_t s = begin; s < end; ++s)
        if (everything || has_any(batch_.samples[s]))
          members.push_back(static_cast<std::uint32_t>(s));
      const Work work{.branch = static_cast<std::uint16_t>(b),
                      .index = static_cast<std::uint16_t>(index)};
      if (!everything && branch.grid.spread == Spread::images)
        spread_items(work, branch.grid, members);
      else
        spread_samples(work, branch, members, everything);
    }
  }

  bool has_any(const Sample& sample) const {
    return std::any_of(modules_.begin(), modules_.end(),
                       [&](ModuleId m) { return has_items(model_, m, sample); });
  }
  std::vector<WorkItem> items_of(const std::vector<std::uint32_t>& samples) const {
    std::vector<WorkItem> items;
    for (const std::uint32_t s : samples)
      for (std::uint32_t i = 0; i < batch_.samples[s].items.size(); ++i)
        if (std::any_of(modules_.begin(), modules_.end(), [&](ModuleId m) {
              return takes(model_, m, batch_.samples[s].items[i].modality);
            }))
          items.push_back({s, i});
    return items;
  }

  void spread_samples(Work work, const Branch& branch, const std::vector<std::uint32_t>& members,
                      bool with_tokens) {
    const ModuleLayout& grid = branch.grid;
    const auto lanes = static_cast<std::size_t>(branch.lanes());
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto first =
          members.begin() + static_cast<std::ptrdiff_t>(cut(members.size(), lanes, lane));
      const auto last =
          members.begin() + static_cast<std::ptrdiff_t>(cut(members.size(), lanes, lane + 1));
      const std::vector<std::uint32_t> samples(first, last);
      const auto contexts = static_cast<std::size_t>(grid.cp);
      std::vector<std::vector<WorkItem>> items{items_of(samples)};
      if (contexts > 1) items = deal_items(batch_, items.front(), contexts);
      std::vector<std::vector<Interval>> rows(contexts);
      if (with_tokens) rows = deal_rows(grid, samples);
      work.lane = static_cast<std::uint16_t>(lane);
      work.samples = append(table_.work_samples, samples);
      for (std::size_t c = 0; c < contexts; ++c) {
        work.context = static_cast<std::uint16_t>(c);
        work.items = append(table_.work_items, items[c]);
        work.rows = append(table_.work_rows, rows[c]);
        table_.works.push_back(work);
      }
    }
  }

  void spread_items(Work work, const ModuleLayout& grid,
                    const std::vector<std::uint32_t>& members) {
    const auto parts = static_cast<std::size_t>(grid.dp() * grid.cp);
    const auto dealt = deal_items(batch_, items_of(members), parts);
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<std::uint32_t> samples;
      for (const WorkItem& item : dealt[part])
        if (samples.empty() || samples.back() != item.sample) samples.push_back(item.sample);
      work.lane = static_cast<std::uint16_t>(part / static_cast<std::size_t>(grid.cp));
      work.context = static_cast<std::uint16_t>(part % static_cast<std::size_t>(grid.cp));
      work.samples = append(table_.work_samples, samples);
      work.items = append(table_.work_items, dealt[part]);
      work.rows = append(table_.work_rows, std::vector<Interval>{});
      table_.works.push_back(work);
    }
  }

  std::vector<std::vector<Interval>> deal_rows(const ModuleLayout& grid,
                                               const std::vector<std::uint32_t>& samples) const {
    std::vector<std::int64_t> lengths;
    for (const std::uint32_t s : samples)
      lengths.push_back(language_rows(model_, batch_.samples[s]));
    return deal_tokens(grid.cp == 1 ? TokenAssignment::contiguous : grid.tokens, lengths, grid.cp,
                       linear_pairs(model_.modules[language_module(model_).value]));
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
  WorkTable table_;
  std::vector<ModuleId> modules_;  // of the branch
};

// Every row of an item attends to every other, and across to all language rows of its sample. Own
// count.
void add_item(const Model& model, ModuleId module, const Sample& sample, const Item& item,
              WorkSize& size) {
  const std::int64_t rows = item_rows(model, module, item);
  size.tokens += rows;
  size.gathered += rows;
  size.pairs += rows * rows;
  size.window_pairs += window_pairs(model.modules[module.value], rows);
  ++size.sequences;
  if (model.modules[module.value].kind == ModuleKind::diffusion) {
    size.condition += language_rows(model, sample);
    size.cross_pairs += rows * language_rows(model, sample);
  }
}

// The tokens of one sample that lie in `rows`, a list of intervals of the packed axis; `first` is
// where the sample begins on it. A row attends to itself and all before it in its sample: rows
// [from, to) to to(to + 1)/2 − from(from + 1)/2. Own count.
void add_tokens(const Model& model, const Sample& sample, std::int64_t first, const Interval* rows,
                std::size_t count, WorkSize& size) {
  const auto inside = [&](std::int64_t begin, std::int64_t end, auto visit) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t from = std::max(begin, rows[i].begin), to = std::min(end, rows[i].end);
      if (from < to) visit(from - first, to - first);
    }
  };
  const std::int64_t length = language_rows(model, sample);
  const std::int64_t before = size.tokens;
  inside(first, first + length, [&](std::int64_t from, std::int64_t to) {
    size.tokens += to - from;
    size.pairs += to * (to + 1) / 2 - from * (from + 1) / 2;
  });
  if (size.tokens > before) ++size.sequences;
  std::int64_t at = first;
  for (const Item& item : sample.items) {
    const std::int64_t end = at + language_rows(model, item);
    if (item.modality == Modality::text) {
      inside(at, end, [&](std::int64_t from, std::int64_t to) { size.text_tokens += to - from; });
      inside(end - item.loss_tokens, end,
             [&](std::int64_t from, std::int64_t to) { size.loss_tokens += to - from; });
    }
    at = end;
  }
}

}  // namespace

bool takes(const Model& model, ModuleId module, Modality modality) {
  const ModuleKind kind = model.modules[grid_owner(model, module).value].kind;
  if (kind == ModuleKind::language || modality == Modality::text) return false;
  return modality_of(kind) == (modality == Modality::video ? Modality::image : modality);
}

std::int64_t item_rows(const Model& model, ModuleId module, const Item& item) {
  const Module& m = model.modules[module.value];
  return m.kind == ModuleKind::projector ? item.tokens / merged_rows(m) : item.tokens;
}

std::int64_t language_rows(const Model& model, const Item& item) {
  if (item.modality == Modality::text) return item.tokens;
  if (item.modality == Modality::latent) return 0;
  const ModuleId language = language_module(model);
  for (const Edge& edge : model.edges)
    if (edge.to == language && edge.to_layer == 0 && takes(model, edge.from, item.modality))
      return item_rows(model, edge.from, item);
  return item.tokens;
}

std::int64_t language_rows(const Model& model, const Sample& sample) {
  std::int64_t rows = 0;
  for (const Item& item : sample.items) rows += language_rows(model, item);
  return rows;
}

bool has_items(const Model& model, ModuleId module, const Sample& sample) {
  return std::any_of(sample.items.begin(), sample.items.end(),
                     [&](const Item& item) { return takes(model, module, item.modality); });
}

std::int64_t image_patches(const Sample& sample) {
  std::int64_t patches = 0;
  for (const Item& item : sample.items)
    if (item.modality == Modality::image) patches += item.tokens;
  return patches;
}

std::int64_t image_rows(const Model& model, const Sample& sample) {
  std::int64_t rows = 0;
  for (const Item& item : sample.items)
    if (item.modality == Modality::image) rows += language_rows(model, item);
  return rows;
}

WorkTable assign_work(const Model& model, const Plan& plan, const Batch& batch) {
  return Assignment(model, plan, batch).run();
}

WorkSize work_size(const Model& model, ModuleId module, const Batch& batch, const WorkTable& table,
                   const Work& work) {
  WorkSize size;
  if (model.modules[module.value].kind != ModuleKind::language) {
    for (std::uint32_t i = work.items.begin; i < work.items.end; ++i) {
      const WorkItem& place = table.work_items[i];
      const Sample& sample = batch.samples[place.sample];
      const Item& item = sample.items[place.item];
      if (takes(model, module, item.modality)) add_item(model, module, sample, item, size);
    }
    return size;
  }
  std::int64_t first = 0;
  for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i) {
    const Sample& sample = batch.samples[table.work_samples[i]];
    add_tokens(model, sample, first, table.work_rows.data() + work.rows.begin, work.rows.size(),
               size);
    first += language_rows(model, sample);
  }
  size.gathered = first;
  size.samples = static_cast<std::int32_t>(work.samples.size());
  return size;
}

WorkSize work_size(const Model& model, ModuleId module, const Batch& batch,
                   const std::uint32_t* samples, std::size_t count) {
  WorkSize size;
  const bool language = model.modules[module.value].kind == ModuleKind::language;
  for (std::size_t i = 0; i < count; ++i) {
    const Sample& sample = batch.samples[samples[i]];
    if (language) {
      const Interval all{size.gathered, size.gathered + language_rows(model, sample)};
      add_tokens(model, sample, all.begin, &all, 1, size);
      size.gathered = all.end;
      ++size.samples;
      continue;
    }
    for (const Item& item : sample.items)
      if (takes(model, module, item.modality)) add_item(model, module, sample, item, size);
  }
  return size;
}

Batch typical_batch(const Scenario& scenario) {
  std::int32_t patches = 0, clip = 0, latent = 0;
  for (const Module& module : scenario.model.modules) {
    if (module.kind == ModuleKind::vision)
      patches = (module.image_size / module.patch) * (module.image_size / module.patch);
    if (module.kind == ModuleKind::audio) clip = module.audio_tokens;
    if (module.kind == ModuleKind::diffusion) latent = module.latent_tokens;
  }
  if (const auto* synthetic = std::get_if<SyntheticData>(&scenario.data.source))
    return draw_batch(*synthetic, scenario.data.global_batch, patches, scenario.data.seed, 0);
  Batch batch;
  Sample sample;
  if (patches > 0) sample.items.push_back({Modality::image, patches, 0});
  if (clip > 0) sample.items.push_back({Modality::audio, clip, 0});
  // easy-vqa questions have 4 to 9 words and one label (shared/scenario/data.h); recorded samples
  // are taken at full length.
  const bool easy = std::holds_alternative<EasyVqaData>(scenario.data.source);
  const std::int32_t text = easy || scenario.data.sequence == 0 ? 8 : scenario.data.sequence;
  sample.items.push_back({Modality::text, text, easy ? 1 : text});
  if (latent > 0) sample.items.push_back({Modality::latent, latent, 0});
  batch.samples.assign(static_cast<std::size_t>(scenario.data.global_batch), sample);
  for (std::size_t i = 0; i < batch.samples.size(); ++i)
    batch.samples[i].id = static_cast<std::uint32_t>(i);
  return batch;
}

}  // namespace polyphony
