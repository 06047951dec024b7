#include "exec/data/token_dataset.h"

namespace polyphony::exec {

TokenDataset::TokenDataset(const Scenario& scenario)
    : data_(scenario.data),
      vocabulary_(scenario.model.modules[language_module(scenario.model).value].vocab) {
  const auto& source = std::get<TokenData>(data_.source);
  training_.emplace(source.path, data_.pointer + "/tokens in " + scenario.file);
  data_.samples = training_->samples(data_.sequence);
  if (source.held_out.empty()) return;
  held_out_.emplace(source.held_out, data_.pointer + "/held_out in " + scenario.file);
  const SampleList listed = held_out_->samples(data_.sequence);
  for (std::uint64_t i = 0; i < listed.size(); ++i) {
    held_out_samples_.push_back(listed[i]);
    held_out_samples_.back().id += static_cast<std::uint32_t>(data_.samples.size());
  }
}

SampleContent TokenDataset::content(const Sample& sample, ContentParts parts) const {
  SampleContent content;
  if (!parts.text) return content;
  const std::uint64_t trained = data_.samples.size();
  const TokenFile& file = sample.id < trained ? *training_ : *held_out_;
  const std::uint64_t position = sample.id < trained ? sample.id : sample.id - trained;
  content.token_ids = file.read(static_cast<std::int64_t>(position) * data_.sequence,
                                sample.items.front().tokens + 1, vocabulary_);
  content.labels.assign(content.token_ids.begin() + 1, content.token_ids.end());
  content.token_ids.pop_back();
  return content;
}

}  // namespace polyphony::exec
