#include "shared/program/work.h"

#include <algorithm>
#include <tuple>

#include "shared/error.h"
#include "shared/program/sample_mask.h"
#include "shared/work/rows.h"

namespace polyphony {
namespace {

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

// Adds an item. Each of its rows attends to all rows of the item and, by cross-attention, to the
// rows that condition it. Own count.
void add_item(const Model& model, ModuleId module, const Sample& sample, std::uint32_t place,
              WorkSize& size) {
  const std::int64_t rows = item_rows(model, module, sample.items[place]);
  size.tokens += rows;
  size.gathered += rows;
  size.pairs += rows * rows;
  if (model.modules[module.value].window > 0)
    size.window_pairs += window_pairs(model.modules[module.value], grid_of(sample.items[place]));
  ++size.sequences;
  if (model.modules[module.value].kind == ModuleKind::diffusion) {
    const std::int64_t read = condition_rows(model, sample, place).size();
    size.condition += read;
    size.cross_pairs += rows * read;
  }
}

// Adds the tokens of one sample that lie in `rows`, a list of intervals of the packed token axis.
// The sample starts at `first` on this axis.
void add_tokens(const Model& model, const Sample& sample, std::int64_t first, const Interval* rows,
                std::size_t count, WorkSize& size) {
  const auto inside = [&](std::int64_t begin, std::int64_t end, auto visit) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t from = std::max(begin, rows[i].begin), to = std::min(end, rows[i].end);
      if (from < to) visit(from - first, to - first);
    }
  };
  const std::int64_t length = language_rows(model, sample);
  const std::int64_t window = model.modules[language_module(model).value].sliding_window;
  TokenMask mask;
  add_sample(mask, model, sample);
  const std::vector<Rectangle> all = rectangles(mask);
  const std::vector<Rectangle> near =
      window > 0 ? rectangles(mask, window) : std::vector<Rectangle>{};
  size.gathered_pairs += pairs(all, {0, length});
  size.gathered_window_pairs += pairs(near, {0, length});
  const std::int64_t before = size.tokens;
  inside(first, first + length, [&](std::int64_t from, std::int64_t to) {
    size.tokens += to - from;
    size.pairs += pairs(all, {from, to});
    size.window_pairs += pairs(near, {from, to});
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

Range WorkTable::of_branch(std::size_t branch) const {
  return {first_work[branch], branch + 1 < first_work.size()
                                  ? first_work[branch + 1]
                                  : static_cast<std::uint32_t>(works.size())};
}

std::uint32_t WorkTable::place_of(std::size_t branch, std::uint32_t index, std::uint32_t lane,
                                  std::uint32_t context) const {
  const Range range = of_branch(branch);
  if (!part && range.size() > 0) {  // no entries are missing
    const Work& last = works[range.end - 1];
    const std::uint32_t place = (index * (last.lane + 1) + lane) * (last.context + 1) + context;
    POLYPHONY_CHECK(place < range.size(), "work " << index << " of lane " << lane << ", context "
                                                  << context << " of branch " << branch);
    return place;
  }
  const auto key = [](const Work& work) { return std::tie(work.index, work.lane, work.context); };
  const auto begin = works.begin() + range.begin, end = works.begin() + range.end;
  const auto wanted = std::tie(index, lane, context);
  const auto found = std::lower_bound(
      begin, end, wanted, [&](const Work& work, const auto& k) { return key(work) < k; });
  POLYPHONY_CHECK(found != end && key(*found) == wanted, "no work " << index << " of lane " << lane
                                                                    << ", context " << context
                                                                    << " of branch " << branch);
  return static_cast<std::uint32_t>(found - begin);
}

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
  for (const Edge& edge : model.edges)
    if (edge.to_layer == 0 && model.modules[edge.to.value].kind == ModuleKind::language &&
        takes(model, edge.from, item.modality))
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

WorkSize work_size(const Model& model, ModuleId module, const Batch& batch, const WorkTable& table,
                   const Work& work) {
  WorkSize size;
  if (model.modules[module.value].kind != ModuleKind::language) {
    for (std::uint32_t i = work.items.begin; i < work.items.end; ++i) {
      const ItemOfWork& place = table.items_of_works[i];
      const Sample& sample = batch.samples[place.sample];
      if (takes(model, module, sample.items[place.item].modality))
        add_item(model, module, sample, place.item, size);
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
    for (std::uint32_t k = 0; k < sample.items.size(); ++k)
      if (takes(model, module, sample.items[k].modality)) add_item(model, module, sample, k, size);
  }
  return size;
}

}  // namespace polyphony
