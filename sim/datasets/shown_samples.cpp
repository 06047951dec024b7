#include "sim/datasets/shown_samples.h"

#include <algorithm>

#include "shared/datasets/conversation_samples.h"
#include "shared/program/work.h"
#include "shared/scenario_io/data_set.h"

namespace polyphony::sim {
namespace {

// Returns the scenario with each of its data sets of conversations as its only source.
std::vector<Scenario> with_conversations(const Scenario& scenario) {
  std::vector<Scenario> found;
  if (std::holds_alternative<ConversationData>(scenario.data.source)) found.push_back(scenario);
  if (const auto* mixture = std::get_if<MixtureData>(&scenario.data.source))
    for (std::size_t part = 0; part < mixture->parts.size(); ++part)
      if (std::holds_alternative<ConversationData>(mixture->parts[part].source))
        found.push_back(part_scenario(scenario, part));
  return found;
}

// Cuts the ids of a sample where training on them begins and ends. The last `loss_tokens` positions
// of a text predict the ids that follow, so that the first id of the text behind them is the last
// label, and is shown as that.
class Cutter {
 public:
  Cutter(const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
         std::span<const std::int32_t> labels, ShownSample& out)
      : tokenizer_(tokenizer), ids_(ids), labels_(labels), out_(out) {}

  void add(const Item& item) {
    if (item.modality != Modality::text) {
      shown_ = false;
      out_.parts.push_back({.modality = item.modality, .tokens = item.tokens});
      return;
    }
    const auto all = take(ids_, item.tokens);
    const std::int64_t read = item.tokens - std::max(0, item.loss_tokens - 1);
    const auto before = all.first(static_cast<std::size_t>(read));
    text(shown_ ? before.subspan(1) : before, false);
    text(take(labels_, item.loss_tokens), true);
    shown_ = item.loss_tokens > 0;
  }

 private:
  static std::span<const std::int32_t> take(std::span<const std::int32_t>& from,
                                            std::int64_t count) {
    const auto taken = from.first(static_cast<std::size_t>(count));
    from = from.subspan(taken.size());
    return taken;
  }
  void text(std::span<const std::int32_t> ids, bool trained) {
    if (ids.empty()) return;
    out_.parts.push_back({.text = tokenizer_.decode({ids.begin(), ids.end()}),
                          .trained = trained,
                          .tokens = static_cast<std::int64_t>(ids.size())});
  }

  const Tokenizer& tokenizer_;
  std::span<const std::int32_t> ids_, labels_;
  ShownSample& out_;
  bool shown_ = false;  // the next id is the last label, which was shown
};

}  // namespace

std::int64_t ShownSample::trained() const {
  std::int64_t sum = 0;
  for (const ShownPart& part : parts) sum += part.trained ? part.tokens : 0;
  return sum;
}

ShownSamples shown_samples(const Scenario& scenario, std::size_t count,
                           const std::string& downloads) {
  const std::vector<Scenario> found = with_conversations(scenario);
  if (found.empty())
    throw InputError(scenario.file, "/data/source", "has no conversations to show",
                     "a source with \"dataset\", \"tokenizer\" and \"template\"");
  ShownSamples shown;
  for (const Scenario& alone : found) {
    const auto& source = std::get<ConversationData>(alone.data.source);
    const ConversationSamples all = read_conversations(alone, source.path, index_folder(downloads));
    const Tokenizer tokenizer = Tokenizer::load(source.tokenizer);
    if (!all.remarks().empty()) shown.remarks.push_back(source.path + ": " + all.remarks());
    for (std::size_t i = 0; i < std::min(count, all.samples().size()); ++i) {
      const Sample& sample = all.samples()[i];
      ShownSample& one = shown.samples.emplace_back(
          ShownSample{source.path, i, language_rows(scenario.model, sample), {}});
      Cutter cutter(tokenizer, all.ids(i), all.labels(i), one);
      for (const Item& item : sample.items) cutter.add(item);
    }
  }
  return shown;
}

nlohmann::ordered_json to_json(const ShownSamples& shown) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ShownSample& sample : shown.samples) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (const ShownPart& part : sample.parts)
      if (part.modality == Modality::text)
        parts.push_back({{"text", part.text}, {"trained", part.trained}, {"tokens", part.tokens}});
      else
        parts.push_back({{name(part.modality), part.tokens}});
    list.push_back({{"data_set", sample.data_set},
                    {"sample", sample.number},
                    {"language_tokens", sample.rows},
                    {"trained_tokens", sample.trained()},
                    {"parts", parts}});
  }
  return {{"samples", list}, {"remarks", shown.remarks}};
}

}  // namespace polyphony::sim
