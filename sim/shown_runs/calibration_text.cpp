#include "sim/shown_runs/calibration_text.h"

#include <cctype>
#include <cmath>
#include <sstream>

#include "shared/statistics.h"
#include "sim/console/console.h"
#include "sim/shown_runs/trace_text.h"

namespace polyphony::sim {
namespace {

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

bool is_time(const std::string& key) {
  return key == "dispatch" || key == "op_overhead" || key == "message_latency" ||
         key == "collective_latency" || key == "optimizer_overhead" || key == "stack.host";
}

std::string memory_line(const StepRow& row) {
  const Bytes measured = row.memory ? *row.memory : *row.reserved;
  const double error =
      static_cast<double>(row.predicted_memory.value) / static_cast<double>(measured.value) - 1;
  return row.source + ": memory " + bytes_text(measured) + (row.memory ? "" : " reserved") +
         ", predicted " + bytes_text(row.predicted_memory) + " allocated (" +
         signed_percent_text(error) + "); memory is not fitted\n";
}

constexpr double kSlowForItsKind = 1.3;
constexpr double kMostly = 0.5;  // share of a group's time above which a kernel is named

std::string capital(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string attention_too(const KernelFitRow& row) {
  return row.kernels.find("attention") == std::string::npos
             ? "?"
             : ", and are sequences as long as in the scenario?";
}

// How the groups of kernels compare, and those that are far from the prior.
std::string kernels_text(const StepCalibration& fitted) {
  if (fitted.kernels.empty()) return "";
  Table table({"kernels", "number,\na step", "measured,\na step", "error\nbefore", "error\nafter",
               "longest of them"});
  std::string slow, source;
  bool outliers = false;
  for (const KernelFitRow& row : fitted.kernels) {
    if (row.source != source && fitted.kernels.front().source != fitted.kernels.back().source)
      table.add({row.source + ":", "", "", "", "", ""});
    source = row.source;
    outliers |= row.outlier;
    table.add({row.kernels + (row.outlier ? " (OUTLIER)" : ""), count_text(row.count),
               seconds_text(row.measured), signed_percent_text(row.before / row.measured - 1),
               signed_percent_text(row.after / row.measured - 1),
               percent_text(row.longest_share, 0) + " " + short_kernel_name(row.longest)});
    const double ratio = row.measured / row.before;
    if (ratio < kSlowForItsKind && ratio > 1 / kSlowForItsKind) continue;
    slow += paragraph(capital(row.kernels) + " took " + number_text(ratio, 2) + " times what " +
                      fitted.prior + " predicts" +
                      (row.longest_share > kMostly
                           ? ". Is " + short_kernel_name(row.longest) +
                                 " the kernel that should run" + attention_too(row)
                           : "."));
  }
  if (outliers)
    slow +=
        "OUTLIER: further off than the profile's errors explain, and not fitted: check that the "
        "profile is of this scenario.\n";
  return "\n" + table.text(screen_columns()) +
         "Errors are of the prediction: (predicted - measured) / measured. Parameters that kernels "
         "measure\ndirectly were free to move: their deviation before the fit is 50 %.\n" +
         slow;
}

}  // namespace

std::string parameter_text(const std::string& key, double value) {
  return is_time(key) ? seconds_text(Seconds(value)) : short_number(value);
}

std::string calibration_text(const traces::Calibration& fitted, const std::vector<double>& unseen,
                             const std::vector<std::string>& layouts) {
  std::ostringstream out;
  Table table({"parameter", "prior", "fitted", "±", "measured ops"});
  for (const traces::FittedParameter& p : fitted.parameters)
    if (p.informed)
      table.add({p.name, short_number(p.prior), short_number(p.value),
                 short_number(p.standard_error), count_text(static_cast<std::int64_t>(p.rows))});
  out << table.text(screen_columns()) << "\n";
  Table runs({"run", "measured", "error\nbefore", "error\nafter", "held-out\nerror",
              "repeatability", "repeatability\nexpected from jitter"});
  for (std::size_t i = 0; i < fitted.runs.size(); ++i) {
    const traces::RunError& r = fitted.runs[i];
    runs.add({std::to_string(i + 1), seconds_text(r.measured), percent_text(r.before),
              percent_text(r.after), i < unseen.size() ? percent_text(unseen[i]) : "-",
              "±" + percent_text(r.repeatability),
              r.jitter_repeatability ? "±" + percent_text(*r.jitter_repeatability) : "-"});
  }
  out << runs.text_with("layout", layouts, screen_columns());
  out << (unseen.empty() ? "Held-out error: not known of a single run; give a second one.\n"
                         : "Held-out error: by a fit to the other runs.\n");
  for (std::size_t i = 0; i < fitted.runs.size(); ++i)
    if (const auto& shared = fitted.runs[i].shared_cores; !shared.empty())
      out << paragraph("Shared cores in run " + std::to_string(i + 1) + ": " +
                       traces::describe(shared) +
                       ". Its ops are fitted by their processor time, its step time is as "
                       "measured: measure it again on an idle machine.");
  if (const auto& jitter = fitted.profile.certainty.jitter) {
    out << "\njitter, fitted to " << counted(jitter->steps, "step", "steps")
        << " (standard deviation)\n";
    Table kinds({"kind of op", "common to a step", "of each op"});
    for (std::size_t kind = 0; kind < kActivityKinds; ++kind)
      kinds.add({name(static_cast<ActivityKind>(kind)), "±" + percent_text(jitter->of[kind].step),
                 "±" + percent_text(jitter->of[kind].op)});
    out << kinds.text(screen_columns());
  } else {
    out << "\njitter: not known, it needs a run of four steps or more\n";
  }
  return out.str();
}

std::string calibration_text(const StepCalibration& fitted) {
  std::ostringstream out;
  std::string kept;
  Table table({"parameter", "prior", "±", "fitted", "±"});
  for (const ParameterMove& p : fitted.parameters) {
    if (p.moved)
      table.add({p.key, parameter_text(p.key, p.prior), percent_text(p.prior_deviation),
                 parameter_text(p.key, p.value), percent_text(p.deviation)});
    else
      kept += (kept.empty() ? "" : ", ") + p.key + " ±" + percent_text(p.prior_deviation, 0);
  }
  if (!fitted.parameters.empty()) out << table.text(screen_columns());
  if (!kept.empty())
    out << paragraph(
        "Parameters that these measurements hardly depend on keep their prior and its "
        "uncertainty: " +
        kept);
  Table rows(
      {"evidence", "measured", "error before", "error after", "held-out error", "expected (90 %)"});
  const double reach = central(0.9, fitted.freedom);
  bool timed = false;
  for (const StepRow& row : fitted.rows) {
    if (!(row.measured > Seconds(0))) continue;
    timed = true;
    rows.add({row.source + (row.outlier ? " (OUTLIER)" : ""), seconds_text(row.measured),
              signed_percent_text(row.before / row.measured - 1),
              signed_percent_text(row.after / row.measured - 1),
              signed_percent_text(std::expm1(-row.unseen)),
              "±" + percent_text(std::expm1(reach * row.unseen_deviation))});
  }
  if (timed)
    out << "\n"
        << rows.text(screen_columns())
        << paragraph(
               "Errors are of the prediction. Held-out error: by a fit to the other evidence (by "
               "the prior, if there is no other). Expected: 90 % of held-out errors are smaller, "
               "by "
               "what the profile states. What the parameters do not explain of a step corrects "
               "predictions of its layout and, the less the more they differ, of other layouts of "
               "the same model.");
  out << kernels_text(fitted);
  for (const StepRow& row : fitted.rows)
    if (row.outlier)
      out << "OUTLIER: " << row.source << " took " << number_text(std::exp(row.unseen), 2)
          << " times what is predicted without it, further off than the profile's errors explain ("
          << number_text(std::abs(row.unseen) / row.unseen_deviation, 1)
          << " standard deviations). It is not fitted: check that it is of this layout, batch, "
             "precision and GPU, and of one optimizer step.\n";
  for (const StepRow& row : fitted.rows)
    if (row.memory || row.reserved) out << memory_line(row);
  return out.str();
}

}  // namespace polyphony::sim
