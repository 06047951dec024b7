#include "shared/hardware/certainty_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace polyphony {
namespace {

using nlohmann::ordered_json;

struct RangeKey {
  const char* key;
  std::optional<FittedRange> FittedRanges::* member;
  bool bytes;
  const char* about;
};
constexpr RangeKey kRanges[] = {
    {"gemm_size", &FittedRanges::gemm_size, false, "(m·n·k)^(1/3) of GEMMs"},
    {"message_bytes", &FittedRanges::message_bytes, true, "bytes of a message"},
    {"collective_bytes", &FittedRanges::collective_bytes, true,
     "bytes of a collective's whole array"},
    {"ranks", &FittedRanges::ranks, false, "ranks in a collective's group"},
};

struct DeviationKey {
  const char* key;
  std::optional<double> Certainty::* member;
};
constexpr DeviationKey kDeviations[] = {{"residual", &Certainty::residual},
                                        {"layout_error", &Certainty::layout_error},
                                        {"tensor_error", &Certainty::tensor_error}};

constexpr double kMost = 100;  // a larger relative deviation is a typing error
Form deviation_form() { return number_form(0, kMost); }

ObjectForm range_form(const char* name, const Form& bound) {
  return {name,
          "lowest and highest fitted value",
          {{"low", bound, "", true}, {"high", bound, "", true}},
          {}};
}

FittedRange read_range(const JsonValue& json, bool bytes) {
  FittedRange range;
  if (bytes) {
    Bytes low, high;
    json.read("low", low);
    json.read("high", high);
    range = {static_cast<double>(low.value), static_cast<double>(high.value)};
  } else {
    range = {json.at("low").number(), json.at("high").number()};
  }
  if (range.low > range.high)
    json.refuse_at("low", "\"low\" is above \"high\"", "exchange the two values");
  return range;
}

ordered_json write_range(const FittedRange& range, bool bytes) {
  const auto text = [](double value) {
    return to_text(Bytes(static_cast<std::int64_t>(std::llround(value))));
  };
  if (bytes) return {{"low", text(range.low)}, {"high", text(range.high)}};
  return {{"low", range.low}, {"high", range.high}};
}

ObjectForm jitter_form(const ObjectForm& spreading) {
  ObjectForm form{"jitter", "how much the time of repeated ops varies", {}, {}};
  form.fields.push_back({"steps", integer_form(2), "number of measured steps", true});
  for (const std::string& kind : enum_names<ActivityKind>())
    form.fields.push_back({kind, object_form(spreading), "variation of ops of this kind"});
  return form;
}

Jitter read_jitter(const JsonValue& json) {
  Jitter jitter;
  json.read("steps", jitter.steps);
  for (const std::string& kind : enum_names<ActivityKind>()) {
    if (!json.has(kind)) continue;
    Spreading& spreading = jitter.of[static_cast<std::size_t>(enum_named<ActivityKind>(kind))];
    json.at(kind).read("step", spreading.step);
    json.at(kind).read("op", spreading.op);
  }
  return jitter;
}

}  // namespace

const ObjectForm& fitted_ranges_form() {
  static const ObjectForm number_range = range_form("fitted_numbers", number_form(0, 1e12));
  static const ObjectForm byte_range =
      range_form("fitted_bytes", quantity_form(UnitKind::bytes, "4KiB"));
  static const ObjectForm fitted = [] {
    ObjectForm form{"fitted", "ranges of sizes in the fitted measurements", {}, {}};
    for (const RangeKey& range : kRanges)
      form.fields.push_back(
          {range.key, object_form(range.bytes ? byte_range : number_range), range.about});
    return form;
  }();
  return fitted;
}

FittedRanges read_fitted_ranges(const JsonValue& json) {
  FittedRanges fitted;
  for (const RangeKey& range : kRanges)
    if (json.has(range.key)) fitted.*range.member = read_range(json.at(range.key), range.bytes);
  return fitted;
}

const ObjectForm& certainty_form(const std::vector<std::string>& parameters) {
  static const ObjectForm spreading{"spreading",
                                    "standard deviations of the logarithm of the time",
                                    {{"step", deviation_form(), "common to all ops of a step"},
                                     {"op", deviation_form(), "independent for each op"}},
                                    {}};
  static const ObjectForm jitter = jitter_form(spreading);
  static const ObjectForm errors = [&] {
    ObjectForm form{"parameter_error", "one standard deviation of an independent error", {}, {}};
    for (const std::string& key : parameters)
      form.fields.push_back({key, number_form(-kMost, kMost), "relative change of this parameter"});
    return form;
  }();
  static const ObjectForm form{
      "certainty",
      "how far the predictions of the profile can be trusted",
      {{"source", text_form("traces of runs/a"), "where these numbers come from"},
       {"errors", list_form(object_form(errors)), "independent errors of parameters"},
       {"residual", deviation_form(), "relative error that no parameter explains"},
       {"layout_error", deviation_form(),
        "relative error between two layouts, for each factor of two between them"},
       {"tensor_error", deviation_form(),
        "the same for each factor of two in tensor parallelism; layout_error when absent"},
       {"freedom", integer_form(0, 1000),
        "degrees of freedom of Student's t distribution; 0: normal distribution"},
       {"footing", choice_form(enum_names<Footing>()),
        "calibration basis. stated: given by the profile; known: calibrated stack and device; "
        "foreign: uncalibrated stack; borrowed: fit borrowed from another device, or of too few "
        "measurements; foreign_borrowed: both of these"},
       {"fitted", object_form(fitted_ranges_form()), "ranges of sizes that it was fitted on"},
       {"jitter", object_form(jitter), "how much the time of repeated ops varies"}},
      {}};
  return form;
}

Certainty read_certainty(const JsonValue& json) {
  Certainty certainty;
  json.read("source", certainty.source);
  if (json.has("errors")) {
    const JsonValue errors = json.at("errors");
    for (std::size_t i = 0; i < errors.size(); ++i) {
      ParameterError& error = certainty.errors.emplace_back();
      for (const std::string& key : errors.at(i).keys()) error[key] = errors.at(i).at(key).number();
    }
  }
  for (const DeviationKey& deviation : kDeviations)
    if (json.has(deviation.key)) certainty.*deviation.member = json.at(deviation.key).number();
  json.read("freedom", certainty.freedom);
  if (json.has("footing")) certainty.footing = enum_named<Footing>(json.at("footing").text());
  if (json.has("fitted")) certainty.fitted = read_fitted_ranges(json.at("fitted"));
  if (json.has("jitter")) certainty.jitter = read_jitter(json.at("jitter"));
  return certainty;
}

ordered_json json_value(const Certainty& certainty) {
  ordered_json json = ordered_json::object();
  if (!certainty.source.empty()) json["source"] = certainty.source;
  for (const DeviationKey& deviation : kDeviations)
    if (const auto& known = certainty.*deviation.member) json[deviation.key] = *known;
  if (certainty.freedom > 0) json["freedom"] = certainty.freedom;
  if (certainty.footing != Footing::stated) json["footing"] = name(certainty.footing);
  for (const ParameterError& error : certainty.errors) json["errors"].push_back(error);
  for (const RangeKey& range : kRanges)
    if (const auto& seen = certainty.fitted.*range.member)
      json["fitted"][range.key] = write_range(*seen, range.bytes);
  if (certainty.jitter) {
    json["jitter"]["steps"] = certainty.jitter->steps;
    for (std::size_t kind = 0; kind < kActivityKinds; ++kind) {
      const Spreading& spreading = certainty.jitter->of[kind];
      json["jitter"][name(static_cast<ActivityKind>(kind))] = {{"step", spreading.step},
                                                               {"op", spreading.op}};
    }
  }
  return json;
}

}  // namespace polyphony
