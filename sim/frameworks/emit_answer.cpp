#include "sim/frameworks/emit_answer.h"

#include "shared/text/figure_text.h"

namespace polyphony::sim {

std::string emit_page(const EmitAnswer& answer) {
  const Emitted& emitted = answer.emitted;
  std::string text = "# " + target_text(emitted.target) + ": " + answer.layout + "\n\n";
  text += answer.model + " on " + answer.cluster + ", " + answer.data +
          ". Written by `polyphony emit` from `" + answer.scenario + "`.\n\n";
  if (!emitted.start.empty()) text += "Start: `" + emitted.start + "`\n\n";
  text += "## What to expect\n\n| figure | predicted |\n|---|---|\n";
  text += "| step | " + seconds_text(answer.step) + " (90 % interval " + seconds_text(answer.low) +
          " to " + seconds_text(answer.high) + ") |\n";
  text += "| tokens per second and GPU | " +
          count_text(static_cast<std::int64_t>(answer.tokens_per_second)) + " |\n";
  text += "| memory of the fullest GPU | " + bytes_text(answer.memory) +
          (answer.room.value > 0 ? " of " + bytes_text(answer.room) : "") + " |\n";
  if (emitted.target != Target::torchtitan && answer.megatron.value > 0)
    text += "| `throughput per GPU (TFLOP/s/GPU)` in its log | " +
            number_text(answer.megatron.value / 1e12, 1) + " |\n";
  if (emitted.target == Target::torchtitan && answer.torchtitan_mfu > 0)
    text += "| `mfu` in its log | " + percent_text(answer.torchtitan_mfu) + " |\n";
  text +=
      "\n`polyphony watch` compares a running job with the prediction; `polyphony calibrate LOG "
      "--scenario " +
      answer.scenario + "` learns from its log.\n";
  if (!emitted.notes.empty()) {
    text += "\n## Differs from the prediction\n\n";
    for (const std::string& note : emitted.notes) text += "* " + note + "\n";
  }
  text += "\n## Files\n\n";
  for (const NamedText& file : emitted.files) text += "* `" + file.path + "`\n";
  return text;
}

}  // namespace polyphony::sim
