#include "sim/shown/headline.h"

#include <cmath>

#include "shared/chunk/parameters.h"
#include "shared/program/work.h"
#include "shared/scenario/typical_batch.h"
#include "shared/text/figure_text.h"
#include "sim/console/console.h"
#include "sim/shown/profile_text.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

// A mean that differs from the sequence length by less goes unsaid.
constexpr double kWorthSaying = 0.01;

std::string model_text(const Model& model) {
  std::string text;
  for (const Module& module : model.modules) {
    const auto count = module.abstract.is ? static_cast<double>(module.abstract.parameters)
                                          : static_cast<double>(parameter_count(module));
    text += (text.empty() ? "" : " + ") + module.name;
    if (count > 0) text += " " + parameters_text(count);
  }
  return text;
}

std::string cluster_text(const Cluster& cluster) {
  const std::string each = count_text(cluster.ranks_per_node) + " " +
                           (cluster.device.name != "cpu-core" ? cluster.device.name
                            : cluster.ranks_per_node == 1     ? "CPU rank"
                                                              : "CPU ranks");
  return cluster.nodes > 1 ? counted(cluster.nodes, "node", "nodes") + " × " + each : each;
}

double mean_tokens(const Scenario& scenario) {
  const Batch batch = typical_batch(scenario);
  double sum = 0;
  for (const Sample& sample : batch.samples)
    sum += static_cast<double>(language_rows(scenario.model, sample));
  return batch.samples.empty() ? 0 : sum / static_cast<double>(batch.samples.size());
}

std::string data_text(const Scenario& scenario, double tokens) {
  std::string text = "global batch " + count_text(scenario.data.global_batch);
  const double sequence = scenario.data.sequence;
  if (sequence > 0) text += ", sequence " + count_text(scenario.data.sequence);
  if (tokens <= 0) tokens = mean_tokens(scenario);
  if (tokens > 0 && (sequence <= 0 || std::abs(tokens / sequence - 1) > kWorthSaying))
    text += (sequence > 0 ? " (mean " : ", ") +
            count_text(static_cast<std::int64_t>(std::lround(tokens))) +
            (sequence > 0 ? " tokens)" : " tokens a sample");
  return text;
}

}  // namespace

std::string parameters_text(double count) {
  constexpr double kBillion = 1e9, kMillion = 1e6, kThousand = 1e3;
  if (count >= kBillion) return number_text(count / kBillion, 1) + "B";
  if (count >= kMillion) return number_text(count / kMillion, 0) + "M";
  if (count >= kThousand) return number_text(count / kThousand, 0) + "k";
  return number_text(count, 0);
}

QuestionWords question_words(const Scenario& scenario, const HardwareProfile& profile,
                             double tokens_per_sample) {
  return {model_text(scenario.model), cluster_text(scenario.cluster),
          data_text(scenario, tokens_per_sample),
          std::string(name(scenario.training.precision)) + ", stack " + profile.stack.name,
          footing_text(profile)};
}

std::string headline(const Scenario& scenario, const HardwareProfile& profile,
                     double tokens_per_sample) {
  return headline(question_words(scenario, profile, tokens_per_sample));
}

std::string headline(const QuestionWords& words) {
  const std::size_t columns = screen_columns();
  const std::string kBetween = " | ";
  std::string lines, line;
  for (const std::string& part : {words.model, words.cluster, words.data, words.software}) {
    if (part.empty()) continue;
    if (line.empty() || width_of(line) + kBetween.size() + width_of(part) <= columns) {
      line += (line.empty() ? "" : kBetween) + part;
      continue;
    }
    lines += wrapped(line, columns, 2) + "\n";
    line = part;
  }
  return lines + wrapped(line, columns, 2) + "\n";
}

}  // namespace polyphony::sim
