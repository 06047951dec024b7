#include "sim/shown_runs/profile_tables_text.h"

#include <cmath>

#include "shared/hardware/parameter.h"
#include "shared/statistics.h"
#include "sim/console/console.h"
#include "sim/evidence/profile_tables.h"
#include "sim/evidence/step_fit.h"
#include "sim/shown/profile_text.h"
#include "sim/shown_runs/calibration_text.h"

namespace polyphony::sim {
namespace {

std::string deviation_text(const std::optional<double>& deviation) {
  return deviation ? "±" + percent_text(*deviation) : "not stated";
}

}  // namespace

std::string shown_text(const HardwareProfile& profile) {
  std::string text =
      describe(profile) + ", device " + profile.device.name + "\nnumbers: " + profile.source + "\n";
  if (!profile.certainty.source.empty()) text += "errors: " + profile.certainty.source + "\n";
  if (const std::string footing = footing_text(profile); !footing.empty()) text += footing + "\n";
  Table table({"parameter", "value", "+-"});
  for (const ShownParameter& p : parameters_of(profile))
    table.add({p.key, parameter_text(p.key, p.value), deviation_text(p.deviation)});
  text += "\n" + table.text(screen_columns()) +
          "error that no parameter explains: " + deviation_text(profile.certainty.residual) +
          "; 90 % interval of a step: ±" + percent_text(profile.step_error) + "; jitter " +
          (profile.certainty.jitter ? "known" : "not known") + "\n";
  for (const KnownMiss& miss : profile.certainty.misses)
    text += "measured: " + miss.source + ", " + signed_percent_text(std::expm1(miss.miss)) +
            " from what these parameters predict; corrects this layout and, less, similar ones\n";
  for (const std::string& line : implausible(profile)) text += "implausible: " + line + "\n";
  return text;
}

std::string difference_text(const HardwareProfile& first, const HardwareProfile& second) {
  std::string text;
  for (const HardwareProfile* one : {&first, &second})
    text += describe(*one) + ", device " + one->device.name + "\n";
  Table table({"parameter", "first", "second", "change", "standard deviations apart"});
  for (const ParameterDifference& d : differences_of(first, second))
    table.add({d.key, parameter_text(d.key, d.first), parameter_text(d.key, d.second),
               d.first > 0 ? signed_percent_text(d.second / d.first - 1) : "",
               d.deviations ? number_text(std::abs(*d.deviations), 1) : "?"});
  return text + table.text();
}

std::string merged_text(const HardwareProfile& first, const HardwareProfile& second,
                        const HardwareProfile& merged) {
  const auto a = parameter_deviations(first.certainty), b = parameter_deviations(second.certainty);
  const auto text = [](const auto& deviations, const std::string& key) {
    const auto found = deviations.find(key);
    return found == deviations.end() ? std::string("not stated")
                                     : "±" + percent_text(found->second);
  };
  Table table({"parameter", "first", "+-", "second", "+-", "merged", "+-"});
  for (const ShownParameter& p : parameters_of(merged))
    if (p.deviation)
      table.add({p.key, parameter_text(p.key, parameter(first, p.key)), text(a, p.key),
                 parameter_text(p.key, parameter(second, p.key)), text(b, p.key),
                 parameter_text(p.key, p.value), deviation_text(p.deviation)});
  return table.text();
}

std::string check_text(const HardwareProfile& profile, const ProfileCheck& check) {
  std::string text = describe(profile) + "\n";
  Table table({"evidence", "predicted", "90 % interval", "measured", "error", ""});
  for (const CheckedStep& step : check.steps)
    table.add({step.source, seconds_text(step.predicted),
               seconds_text(step.low) + " to " + seconds_text(step.high),
               seconds_text(step.measured), signed_percent_text(step.predicted / step.measured - 1),
               step.inside ? "inside" : (step.beyond ? "FAR OUTSIDE" : "outside")});
  if (!check.steps.empty()) text += table.text();
  for (const CheckedMemory& one : check.memory)
    text += one.source + ": memory " + bytes_text(one.measured) +
            (one.reserved ? " reserved" : "") + ", predicted " + bytes_text(one.predicted) +
            " allocated\n";
  for (const std::string& line : check.implausible) text += "implausible: " + line + "\n";
  if (check.implausible.empty()) text += "every number is near those of shipped profiles\n";
  return text;
}

}  // namespace polyphony::sim
