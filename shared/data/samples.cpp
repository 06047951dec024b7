#include "shared/data/samples.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony {

Item image_item(PatchGrid grid) {
  return {Modality::image, static_cast<std::int32_t>(grid.patches()), 0,
          grid.rows == grid.columns ? 0 : grid.columns};
}

PatchGrid grid_of(const Item& image) {
  if (image.columns == 0) return square_grid(image.tokens);
  POLYPHONY_CHECK(image.tokens % image.columns == 0,
                  image.tokens << " patches in rows of " << image.columns);
  return {image.tokens / image.columns, image.columns};
}

BatchTotals totals_of(const Batch& batch) {
  BatchTotals totals;
  totals.samples = static_cast<std::int64_t>(batch.samples.size());
  for (const Sample& sample : batch.samples)
    for (const Item& item : sample.items) {
      totals.loss_tokens += item.loss_tokens;
      if (item.modality == Modality::latent) totals.latent_tokens += item.tokens;
    }
  return totals;
}

SampleList::SampleList(const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) push_back(sample);
}

Sample SampleList::operator[](std::uint64_t position) const {
  POLYPHONY_CHECK(position < size_, "sample " << position << " of " << size_);
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), position,
                       [](std::uint64_t wanted, const Run& run) { return wanted < run.first; });
  return {static_cast<std::uint32_t>(position), std::prev(after)->items};
}

std::vector<SampleList::Part> SampleList::parts() const {
  return parts_.empty() ? std::vector<Part>{{0, size_, 1}} : parts_;
}

void SampleList::append(const std::vector<Item>& items, std::uint64_t count) {
  if (count == 0) return;
  if (!runs_.empty() && runs_.back().items == items)
    runs_.back().count += count;
  else
    runs_.push_back({size_, count, items});
  size_ += count;
}

void SampleList::append_part(const SampleList& part, std::uint64_t weight) {
  parts_.push_back({size_, part.size(), weight});
  for (const Run& run : part.runs()) append(run.items, run.count);
}

}  // namespace polyphony
