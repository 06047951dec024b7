#include "sim/shown_runs/trained_text.h"

#include <cmath>

#include "shared/text/figure_text.h"

namespace polyphony::sim {

std::string recorded_text(const Scenario& scenario) {
  const auto* recorded = std::get_if<RecordedData>(&scenario.data.source);
  return recorded == nullptr ? ""
                             : "the shapes of the samples in " + recorded->path +
                                   " with random pixels and random tokens: its losses mean nothing";
}

std::string trained_text(const Scenario& scenario, const nlohmann::json& summary,
                         const std::optional<Seconds>& predicted) {
  std::string text = counted(summary["steps"].get<std::int64_t>(), "step", "steps");
  text += " of " + counted(scenario.data.global_batch, "sample", "samples");
  const Seconds step(summary["median_step_seconds"].get<double>());
  if (summary.contains("loss"))
    text += ", loss " + (summary["loss"].is_number() ? number_text(summary["loss"].get<double>(), 4)
                                                     : std::string("not a number"));
  const bool ended = !summary.value("interrupted", false) && !summary.contains("stopped");
  if (ended && summary["steps"] > 0 && step.count() == 0)
    text += ", all done before: nothing was left to train (more training.steps continue the run)";
  if (step.count() > 0)
    text += ", median step " + seconds_text(step) + " (" +
            (predicted ? "predicted " + seconds_text(*predicted) + "; " : "") +
            number_text(scenario.data.global_batch / step.count(), 0) + " samples/s)";
  if (summary.contains("accuracy") && summary["accuracy"].is_number())
    text += ", " + percent_text(summary["accuracy"].get<double>()) + " of held-out samples right";
  if (summary.contains("held_out_loss") && summary["held_out_loss"].is_number())
    text += ", held-out loss " + number_text(summary["held_out_loss"].get<double>(), 4) +
            " (perplexity " + number_text(std::exp(summary["held_out_loss"].get<double>()), 2) +
            ")";
  if (const std::string device = summary.value("device", "cpu"); device != "cpu")
    text += ", on " + device;
  if (summary.contains("plans"))
    text += "; steps were planned while it trained, " +
            std::to_string(summary["plans"]["late"].get<std::int64_t>()) + " of " +
            std::to_string(summary["plans"]["steps"].get<std::int64_t>()) + " plans came too late";
  for (const char* key : {"bad_steps", "stopped"})
    if (summary.contains(key))
      text += (key == std::string("stopped") ? "; stopped at " : "; ") +
              summary[key].get<std::string>();
  if (const std::string recorded = recorded_text(scenario); !recorded.empty())
    text += "; trained on " + recorded;
  return text + (summary["interrupted"].get<bool>() ? "; interrupted, --resume continues" : "");
}

}  // namespace polyphony::sim
