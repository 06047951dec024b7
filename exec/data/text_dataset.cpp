#include "exec/data/text_dataset.h"

#include "shared/files/whole.h"

namespace polyphony::exec {

TextDataset::TextDataset(const Scenario& scenario)
    : data_(scenario.data), texts_(std::get<TextData>(scenario.data.source).tokenizer) {
  const auto& source = std::get<TextData>(scenario.data.source);
  const LoadText load = [](const std::string& path) { return read_records(path); };
  text_ = text_samples(scenario, load, source.path);
  data_.samples = text_.samples;
  if (source.held_out.empty()) return;
  held_out_ = text_samples(scenario, load, source.held_out);
  for (Sample& sample : held_out_.samples)
    sample.id += static_cast<std::uint32_t>(text_.samples.size());
}

Batch TextDataset::batch(std::uint64_t step) const { return take_batch(data_, step); }

SampleContent TextDataset::content(const Sample& sample, ContentParts parts) const {
  SampleContent content;
  if (!parts.text) return content;
  const bool trained = sample.id < text_.samples.size();
  const std::int64_t position = trained ? sample.id : sample.id - text_.samples.size();
  const std::vector<std::int32_t>& ids = trained ? text_.ids : held_out_.ids;
  const auto first = ids.begin() + position * data_.sequence;
  const std::int64_t tokens = sample.items.front().tokens;
  content.token_ids.assign(first, first + tokens);
  content.labels.assign(first + 1, first + 1 + tokens);
  return content;
}

}  // namespace polyphony::exec
