#include "shared/program/sample_mask.h"

#include <algorithm>

namespace polyphony {
namespace {

// Videos count as images (takes() in shared/program/work.h).
bool are_clips(const Item& item) { return item.modality == Modality::audio; }

// Text is the first group; every item, or every modality, has a group of its own.
void add_items(TokenMask& mask, const Model& model, const Sample& sample, Mask kind) {
  const int text = mask.groups;
  const auto items = static_cast<int>(
      std::count_if(sample.items.begin(), sample.items.end(),
                    [](const Item& item) { return item.modality != Modality::text; }));
  const Interval everything{text, text + 1 + (kind == Mask::modality ? 2 : items)};
  int next = text;
  for (const Item& item : sample.items) {
    const std::int64_t rows = language_rows(model, item);
    if (item.modality == Modality::text) {
      mask.add(rows, text, true, everything);
      continue;
    }
    const int group = kind == Mask::modality ? text + (are_clips(item) ? 2 : 1) : ++next;
    mask.add(rows, group, false, kind == Mask::embedded ? everything : Interval{group, group + 1});
  }
}

void add_documents(TokenMask& mask, const Model& model, const Sample& sample) {
  int group = mask.groups;
  for (const Item& item : sample.items) {
    mask.add(language_rows(model, item), group, true, {group, group + 1});
    if (item.modality == Modality::text) group = mask.groups;
  }
}

// Returns the number of rows before the first one that predicts a label.
std::int64_t prefix_rows(const Model& model, const Sample& sample) {
  std::int64_t rows = 0;
  for (const Item& item : sample.items) {
    rows += language_rows(model, item);
    if (item.loss_tokens > 0) return rows - item.loss_tokens;
  }
  return rows;
}

}  // namespace

void add_sample(TokenMask& mask, const Model& model, const Sample& sample) {
  const Mask kind = model.modules[language_module(model).value].mask;
  const int first = mask.groups;
  const std::int64_t rows = language_rows(model, sample);
  switch (kind) {
    case Mask::causal:
      return mask.add(rows, first, true, {first, first + 1});
    case Mask::isolated:
    case Mask::modality:
    case Mask::embedded:
      return add_items(mask, model, sample, kind);
    case Mask::prefix: {
      const std::int64_t prefix = prefix_rows(model, sample);
      mask.add(prefix, first, false, {first, first + 1});
      return mask.add(rows - prefix, first + 1, true, {first, first + 2});
    }
    case Mask::documents:
      return add_documents(mask, model, sample);
  }
}

Interval condition_rows(const Model& model, const Sample& sample, std::uint32_t item) {
  Interval read;
  std::int64_t rows = 0;
  for (std::uint32_t k = 0; k < sample.items.size(); ++k) {
    const bool latent = sample.items[k].modality == Modality::latent;
    if (latent && k > item) return read;
    if (latent && k < item) read.begin = rows;
    if (k == item) read.end = rows;
    rows += language_rows(model, sample.items[k]);
  }
  read.end = rows;
  return read;
}

}  // namespace polyphony
