#include "exec/data/mixture_dataset.h"

#include <algorithm>

#include "shared/scenario_io/data_set.h"

namespace polyphony::exec {

MixtureDataset::MixtureDataset(const Scenario& scenario, const std::string& default_path)
    : data_(scenario.data) {
  data_.samples = {};
  const auto& source = std::get<MixtureData>(data_.source);
  for (std::size_t i = 0; i < source.parts.size(); ++i) {
    const Scenario own = part_scenario(scenario, i);
    Part part{open_dataset(own, default_path), own.data.pointer, 0, data_.samples.size(),
              held_out_.size()};
    const SampleList training = part.dataset->training();
    part.trained = training.size();
    data_.samples.append_part(training, mixture_weight(source.parts[i]));
    for (const Sample& sample : part.dataset->held_out()) held_out_.push_back(sample);
    parts_.push_back(std::move(part));
  }
  check_listed(scenario, data_.samples.size());
  check_listed(scenario, held_out_.size());
  for (std::size_t i = 0; i < held_out_.size(); ++i)
    held_out_[i].id = static_cast<std::uint32_t>(data_.samples.size() + i);
}

std::pair<const MixtureDataset::Part&, Sample> MixtureDataset::found(const Sample& sample) const {
  const std::uint64_t all = data_.samples.size();
  const bool trained = sample.id < all;
  const std::uint64_t position = trained ? sample.id : sample.id - all;
  const auto first = [&](const Part& part) { return trained ? part.first : part.first_held_out; };
  // The last part that begins at or before the position has it: parts without held-out samples
  // begin where the next one does.
  const auto after = std::upper_bound(
      parts_.begin(), parts_.end(), position,
      [&](std::uint64_t wanted, const Part& part) { return wanted < first(part); });
  const Part& part = *std::prev(after);
  Sample own = sample;
  own.id = static_cast<std::uint32_t>(position - first(part) + (trained ? 0 : part.trained));
  return {part, own};
}

SampleContent MixtureDataset::content(const Sample& sample, ContentParts parts) const {
  const auto [part, own] = found(sample);
  return part.dataset->content(own, parts);
}

std::optional<std::string> MixtureDataset::text(const Sample& sample,
                                                const std::vector<std::int64_t>& ids) const {
  const auto [part, own] = found(sample);
  return part.dataset->text(own, ids);
}

std::string MixtureDataset::remarks() const {
  std::string all;
  for (const Part& part : parts_) all = with_remarks(all, part.pointer, part.dataset->remarks());
  return all;
}

}  // namespace polyphony::exec
