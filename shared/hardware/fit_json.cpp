#include "shared/hardware/fit_json.h"

#include "shared/hardware/certainty_json.h"

namespace polyphony {
namespace {

// One table serves the form and the reader. The ranges are those of a hardware profile.
struct FitNumber {
  const char* key;
  double Fit::* member;
  double low, high;
  const char* about;
};
constexpr double kLeastEfficiency = 1e-6;
constexpr FitNumber kNumbers[] = {
    {"gemm_efficiency", &Fit::gemm_efficiency, kLeastEfficiency, 1,
     "share of the peak that large GEMMs reach"},
    {"gemm_half_size", &Fit::gemm_half_size, 0, 1e6,
     "(m·n·k)^(1/3) of a GEMM that reaches half of gemm_efficiency; 0: all sizes reach the same"},
    {"grouped_efficiency", &Fit::grouped_efficiency, kLeastEfficiency, 1,
     "factor on gemm_efficiency for grouped GEMMs of experts"},
    {"attention_efficiency", &Fit::attention_efficiency, kLeastEfficiency, 1,
     "share of the peak that attention reaches forward, counting attending pairs only"},
    {"early_attention_efficiency", &Fit::early_attention_efficiency, kLeastEfficiency, 1,
     "the same for attention kernels of the previous generation"},
    {"attention_backward", &Fit::attention_backward, kLeastEfficiency, 2,
     "factor on attention's forward efficiency in the backward pass"},
    {"attention_half_keys", &Fit::attention_half_keys, 0, 1e6,
     "keys per query at which attention reaches half of attention_efficiency"},
    {"memory_efficiency", &Fit::memory_efficiency, kLeastEfficiency, 1,
     "share of the memory rate that memory-bound kernels reach"},
    {"optimizer_bytes_efficiency", &Fit::optimizer_bytes_efficiency, kLeastEfficiency, 1,
     "share of the memory rate that the optimizer reaches"},
};

const ObjectForm& errors_form() {
  static const ObjectForm form{
      "fit_errors",
      "Standard deviations of the two efficiencies that differ most between devices",
      {{"gemm_efficiency", number_form(0, 1), "relative error of gemm_efficiency", true},
       {"attention_efficiency", number_form(0, 1), "relative error of attention_efficiency", true}},
      {}};
  return form;
}

}  // namespace

ObjectForm source_groups(const std::string& name, const std::vector<std::string>& groups) {
  const Form sentences = any_form({text_form("data sheet"), list_form(text_form("data sheet"), 1)});
  ObjectForm form{name, "Where the figures come from, by group", {}, {}};
  for (const std::string& group : groups)
    form.fields.push_back({group, sentences, "a sentence, or a list of them"});
  return form;
}

Form source_form(const ObjectForm& groups) {
  return any_form({text_form("data sheet"), object_form(groups)});
}

const ObjectForm& fit_form() {
  static const ObjectForm groups = source_groups(
      "fit_source", {"rows", "kernels", "attention", "experts", "memory", "errors", "fitted"});
  static const ObjectForm form = [] {
    ObjectForm made{"fit", "Which shares of a device's peaks its kernels reach", {}, {}};
    made.fields = {{"device", text_form("H100"),
                    "the shipped device whose measurements were fitted; the file's own device when "
                    "absent"},
                   {"rows", text_form("12 steps of our cluster"),
                    "the measurements that it is fitted to, in words", true},
                   {"calibrated", boolean_form(),
                    "false: it rests on kernel times or on too few steps, and its error is stated "
                    "like that of a fit of another device; true when absent"}};
    for (const FitNumber& number : kNumbers)
      made.fields.push_back({number.key, number_form(number.low, number.high), number.about, true});
    made.fields.push_back({"errors", object_form(errors_form()),
                           "one standard deviation of the error of these efficiencies", true});
    made.fields.push_back({"fitted", object_form(fitted_ranges_form()),
                           "ranges of sizes that it was fitted on; not stated when absent"});
    made.fields.push_back({"source", source_form(groups), "where its numbers come from"});
    return made;
  }();
  return form;
}

Fit read_fit(const JsonValue& json, const std::string& name) {
  Fit fit;
  fit.name = name;
  json.read("device", fit.device);
  json.read("rows", fit.rows);
  json.read("calibrated", fit.calibrated);
  for (const FitNumber& number : kNumbers) json.read(number.key, fit.*number.member);
  json.at("errors").read("gemm_efficiency", fit.gemm_error);
  json.at("errors").read("attention_efficiency", fit.attention_error);
  if (json.has("fitted")) fit.fitted = read_fitted_ranges(json.at("fitted"));
  return fit;
}

}  // namespace polyphony
