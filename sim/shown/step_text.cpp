#include "sim/shown/step_text.h"

#include <algorithm>
#include <cmath>

#include "shared/text/json_form.h"
#include "sim/console/console.h"
#include "sim/prediction/effects.h"
#include "sim/shown/headline.h"
#include "sim/shown/part_notes.h"
#include "sim/shown/profile_text.h"
#include "sim/shown/sweep_text.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kLines = 3;  // of errors and extrapolations; JSON has all
// Less of a step than this is not worth a line.
constexpr double kWorthALine = 0.005;
// Figures that differ by less are printed once.
constexpr double kSame = 0.005;

std::string memory_text(const StepAnswer& answer, const Scenario& scenario) {
  const Figures& figures = answer.figures;
  const Bytes capacity = figures.device_memory;
  Table table({"stage", "peak of tensors", "reached at", "parameters", "gradients", "optimizer",
               "activations", "stage inputs"});
  for (const auto& [stage, rank] : worst_by_stage(answer.prediction)) {
    const RankMemory& memory = answer.prediction.memory[rank.value];
    const auto at = [&](BufferKind kind) { return memory.at_peak[static_cast<std::size_t>(kind)]; };
    table.add({stage, bytes_text(memory.peak), seconds_text(memory.when),
               bytes_text(at(BufferKind::parameter)), bytes_text(at(BufferKind::gradient)),
               bytes_text(at(BufferKind::optimizer)),
               bytes_text(at(BufferKind::tape) + at(BufferKind::workspace)),
               bytes_text(at(BufferKind::boundary) + at(BufferKind::boundary_gradient))});
  }
  std::string all = table.text(screen_columns());
  Bytes host{};
  for (const RankMemory& rank : answer.prediction.memory) host = std::max(host, rank.host);
  if (host > Bytes(0))
    all +=
        paragraph("Activations offloaded to the host: at most " + bytes_text(host) + " of a rank.");
  std::string text =
      "Memory at the moment of each stage's peak. Stage inputs: activations received or to be "
      "sent, and their gradients. Tensors are freed when " +
      std::string(name(answer.profile.stack.memory.keeping)) +
      " frees them; another framework may differ (--stack).";
  if (capacity.value > 0 && figures.fits()) {
    const bool over = figures.needed_memory() > scenario.memory_limit();
    const std::string margin = percent_text(scenario.memory_margin(), 0);
    const std::string left_out = not_modeled(figures.library_memory) + ".";
    text += over ? " Less than " + margin +
                       " of the device's memory stay free: it may run out, because " + left_out
                 : " A search leaves " + margin + " free: " + left_out;
    if (figures.library_memory > Bytes(0))
      text += " Libraries (CUDA context, NCCL's buffers, cuBLAS) take " +
              bytes_text(figures.library_memory) + " of the fullest GPU besides.";
  }
  return all + paragraph(text);
}

// What a step and a million tokens cost, where power or price are known.
std::string spent_text(const Figures& f) {
  std::string text;
  if (f.energy)
    text += "energy " + number_text(f.kilowatt_hours(), 3) + " kWh a step, " +
            number_text(f.kilowatt_hours_per_million_tokens(), 3) +
            " kWh a million tokens (devices)";
  if (f.dollars_per_step > 0)
    text += (text.empty() ? "" : "; ") + std::string("price ") +
            number_text(f.dollars_per_step, 4) + " USD a step, " +
            number_text(f.dollars_per_million_tokens, 4) + " USD a million tokens";
  return text;
}

std::string jitter_text(const StepAnswer& answer) {
  if (!answer.jittered)
    return answer.profile.certainty.jitter ? ""
                                           : "Variance from step to step: not in this profile "
                                             "(polyphony calibrate measures it).";
  const JitteredSteps& drawn = *answer.jittered;
  return "jitter: " + quantiles_text(drawn.steps, {0.5, 0.95, 0.99}) + "   (" +
         counted(static_cast<std::int64_t>(drawn.steps.size()), "step", "steps") +
         (drawn.simulated ? " simulated)" : " estimated)");
}

// What Megatron-LM and torchtitan would print for this step.
std::string frameworks_text(const StepAnswer& answer) {
  const double full = answer.megatron_full.value / 1e12, half = answer.megatron_half.value / 1e12;
  std::string text = "Megatron-LM would print " + number_text(full, 1) + " TFLOP/s/GPU";
  if (std::abs(half / full - 1) > kSame)
    text += " before core 0.12 (all of the attention matrix), " + number_text(half, 1) +
            " from core 0.12 on (half of causal attention)";
  return text + "; torchtitan an MFU of " + percent_text(answer.torchtitan_mfu) +
         ". Both count the language module alone, on whole sequences, all of it trained.";
}

std::string certainty_text(const StepAnswer& answer) {
  const Belief& belief = answer.belief;
  std::string text = "Interval: by " + describe(answer.profile) + ".";
  if (const std::string basis = footing_text(answer.profile); !basis.empty()) text += " " + basis;
  if (const std::vector<std::string> largest = largest_effects(belief, answer.profile, kLines);
      !largest.empty())
    text += " Half of it: " + percent_text(belief.parameters()) +
            " from the profile's parameters (" + joined(largest) + "), " +
            percent_text(belief.residual) + " from what the model leaves out.";
  std::string all = paragraph(text);
  if (const std::string jitter = jitter_text(answer); !jitter.empty()) all += paragraph(jitter);
  std::size_t lines = 0;
  for (const Extrapolation& found : answer.extrapolated) {
    if (found.share < kWorthALine) continue;
    if (lines++ == kLines) break;
    all += paragraph("Beyond the profile's measurements: " + found.what + " (" +
                     percent_text(found.share, 0) + " of that work).");
  }
  return all;
}

// Tokens a second, MFU and memory, on two lines where one would be too long.
std::string rate_text(const Figures& figures, const Cluster& cluster) {
  const std::string rate =
      count_text(static_cast<std::int64_t>(figures.tokens_per_second_per_rank)) + " tokens/s/" +
      rank_word(cluster) + "   MFU " +
      (figures.model_flops_utilization > 0 ? percent_text(figures.model_flops_utilization)
                                           : std::string("not known"));
  const std::string memory = "memory " +
                             memory_of_device(figures.needed_memory(), figures.device_memory) +
                             " on " + figures.worst_stage;
  const bool one_line = width_of(rate) + 3 + width_of(memory) <= screen_columns();
  return rate + (one_line ? "   " : "\n") + memory;
}

}  // namespace

std::string step_text(const StepAnswer& answer, const Scenario& scenario, const Layout& layout) {
  const Figures& figures = answer.figures;
  const SecondsInterval bounds = interval(answer.belief);
  std::string text = headline(scenario, answer.profile) +
                     paragraph(layout_words(scenario.model, layout, scenario.cluster)) + "\nstep " +
                     seconds_text(figures.step) + "   90 % interval " + seconds_text(bounds.low) +
                     " to " + seconds_text(bounds.high) + "\n" +
                     rate_text(figures, scenario.cluster) + "\n";
  if (const std::string spent = spent_text(figures); !spent.empty()) text += paragraph(spent);
  if (answer.megatron_mfu > 0 && rank_word(scenario.cluster) == std::string("GPU"))
    text += paragraph(frameworks_text(answer));
  text += certainty_text(answer) + "\n";
  Table table({"part", "critical rank: " + std::to_string(answer.busiest.value), "share of step",
               "mean of ranks"});
  const traces::PartTimes& average = answer.mean_parts;
  const traces::PartTimes& busiest = answer.parts[answer.busiest.value];
  for (const traces::Part part : traces::parts_shown(answer.parts)) {
    const auto p = static_cast<std::size_t>(part);
    const bool twofold = part == traces::Part::backward && answer.recomputes;
    table.add({traces::table_name(part) + std::string(twofold ? " and recomputation" : ""),
               seconds_text(busiest[p]), percent_text(busiest[p] / figures.step),
               seconds_text(average[p])});
  }
  return text + table.text(screen_columns()) + paragraph(kIdleNote) + paragraph(kOverlapNote) +
         "\n" + memory_text(answer, scenario);
}

}  // namespace polyphony::sim
