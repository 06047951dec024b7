#include "exec/data/text_dataset.h"

#include "shared/files/whole.h"

namespace polyphony::exec {

TextDataset::TextDataset(const Scenario& scenario)
    : data_(scenario.data),
      text_(text_samples(scenario, [](const std::string& path) { return read_records(path); })) {}

Batch TextDataset::batch(std::uint64_t step) const {
  return take_batch(text_.samples, data_, step);
}

SampleContent TextDataset::content(const Sample& sample, ContentParts parts) const {
  SampleContent content;
  if (!parts.text) return content;
  const auto first = text_.ids.begin() + std::int64_t{sample.id} * data_.sequence;
  const std::int64_t tokens = sample.items.front().tokens;
  content.token_ids.assign(first, first + tokens);
  content.labels.assign(first + 1, first + 1 + tokens);
  return content;
}

}  // namespace polyphony::exec
