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

// Of a layout, what misses compare (compared_parts(), shared/chance/misses.h).
struct CountKey {
  const char* key;
  int ModuleLayout::* member;
  int least;  // and default
};
constexpr CountKey kCounts[] = {{"tp", &ModuleLayout::tp, 1},
                                {"cp", &ModuleLayout::cp, 1},
                                {"pp", &ModuleLayout::pp, 1},
                                {"vpp", &ModuleLayout::vpp, 1},
                                {"ep", &ModuleLayout::ep, 1},
                                {"tp_pieces", &ModuleLayout::tp_pieces, 1},
                                {"ranks", &ModuleLayout::ranks, 1},
                                {"expert_tp", &ModuleLayout::expert_tp, 0},
                                {"shard_ranks", &ModuleLayout::shard_ranks, 0},
                                {"cp_heads", &ModuleLayout::cp_heads, 0},
                                {"row_split", &ModuleLayout::row_split, 0}};
constexpr int kMostCount = 1 << 24;

// Calls `each` with the key and the member of every choice of a module.
template <class Each>
void for_choices(Each each) {
  each("shard", &ModuleLayout::shard);
  each("recompute", &ModuleLayout::recompute);
  each("tokens", &ModuleLayout::tokens);
  each("cp_attention", &ModuleLayout::cp_attention);
  each("spread", &ModuleLayout::spread);
}

ObjectForm module_form() {
  ObjectForm form{"missed_module", "the layout of one module", {}, {}};
  for (const CountKey& count : kCounts)
    form.fields.push_back({count.key, integer_form(count.least, kMostCount),
                           "as in a layout; " + std::to_string(count.least) + " when absent"});
  for (const char* key : {"sp", "offload_activations"})
    form.fields.push_back({key, boolean_form(), "as in a layout; false when absent"});
  for_choices([&]<class Choice>(const char* key, Choice ModuleLayout::*) {
    form.fields.push_back({key, choice_form(enum_names<Choice>()), "as in a layout"});
  });
  return form;
}
ObjectForm layout_form(const ObjectForm& module) {
  return {"missed_layout",
          "what of the layout is compared with others",
          {{"placement", choice_form(enum_names<Placement>()), "", true},
           {"schedule", choice_form(enum_names(kLastSchedule)), "", true},
           {"microbatches", integer_form(1), "", true},
           {"encoder_microbatches", integer_form(0), "0 when absent"},
           {"encoder_order", choice_form(enum_names<EncoderOrder>()), "in-turn when absent"},
           {"bridge", choice_form(enum_names<Bridge>()), "sharded when absent"},
           {"planner", choice_form(enum_names<Planning>()), "none when absent"},
           {"modules", list_form(object_form(module), 1), "by module", true}},
          {}};
}
ObjectForm miss_form(const ObjectForm& layout) {
  return {"miss",
          "a measured step that the parameters do not explain",
          {{"source", text_form("slurm-123.out"), "of the measurement"},
           {"model", text_form("language 7241732096 full; 32 samples, text 131072; bf16; …"),
            "model, data, precision and cluster that were measured", true},
           {"layout", object_form(layout), "the layout that was measured", true},
           {"miss", number_form(-kMost, kMost), "ln(measured / predicted)", true},
           {"noise", deviation_form(), "relative deviation of the measurement"},
           {"effects", list_form(number_form(-kMost, kMost)),
            "of each of the errors on the logarithm of this step"}},
          {}};
}

Layout read_missed_layout(const JsonValue& json) {
  Layout layout;
  layout.placement = enum_named<Placement>(json.at("placement").text());
  layout.schedule = enum_named(json.at("schedule").text(), kLastSchedule);
  json.read("microbatches", layout.microbatches);
  json.read("encoder_microbatches", layout.encoder_microbatches);
  if (json.has("encoder_order"))
    layout.encoder_order = enum_named<EncoderOrder>(json.at("encoder_order").text());
  if (json.has("bridge")) layout.bridge = enum_named<Bridge>(json.at("bridge").text());
  if (json.has("planner")) layout.planner = enum_named<Planning>(json.at("planner").text());
  const JsonValue modules = json.at("modules");
  for (std::size_t m = 0; m < modules.size(); ++m) {
    const JsonValue of = modules.at(m);
    ModuleLayout& module = layout.modules.emplace_back();
    for (const CountKey& count : kCounts) of.read(count.key, module.*count.member);
    of.read("sp", module.sp);
    of.read("offload_activations", module.offload_activations);
    for_choices([&]<class Choice>(const char* key, Choice ModuleLayout::* member) {
      if (of.has(key)) module.*member = enum_named<Choice>(of.at(key).text());
    });
    const double grid = static_cast<double>(module.tp) * module.cp * module.pp;
    if (grid > module.ranks || module.ranks % static_cast<int>(grid) != 0)
      of.refuse_at("ranks", "must be a multiple of tp · cp · pp",
                   "calibrate again, or remove this entry of \"misses\"");
  }
  return layout;
}

KnownMiss read_miss(const JsonValue& json) {
  KnownMiss miss;
  json.read("source", miss.source);
  json.read("model", miss.model);
  miss.layout = read_missed_layout(json.at("layout"));
  json.read("miss", miss.miss);
  json.read("noise", miss.noise);
  if (json.has("effects"))
    for (std::size_t k = 0; k < json.at("effects").size(); ++k)
      miss.effects.push_back(json.at("effects").at(k).number());
  return miss;
}

ordered_json write_layout(const Layout& layout) {
  const Layout usual;
  ordered_json json{{"placement", name(layout.placement)},
                    {"schedule", name(layout.schedule)},
                    {"microbatches", layout.microbatches}};
  if (layout.encoder_microbatches != usual.encoder_microbatches)
    json["encoder_microbatches"] = layout.encoder_microbatches;
  if (layout.encoder_order != usual.encoder_order)
    json["encoder_order"] = name(layout.encoder_order);
  if (layout.bridge != usual.bridge) json["bridge"] = name(layout.bridge);
  if (layout.planner != usual.planner) json["planner"] = name(layout.planner);
  for (const ModuleLayout& module : layout.modules) {
    ordered_json of = ordered_json::object();
    for (const CountKey& count : kCounts)
      if (module.*count.member != count.least) of[count.key] = module.*count.member;
    if (module.sp) of["sp"] = true;
    if (module.offload_activations) of["offload_activations"] = true;
    for_choices([&](const char* key, auto member) {
      if (module.*member != ModuleLayout{}.*member) of[key] = name(module.*member);
    });
    json["modules"].push_back(of);
  }
  return json;
}

ordered_json write_miss(const KnownMiss& miss) {
  ordered_json json{{"source", miss.source},
                    {"model", miss.model},
                    {"layout", write_layout(miss.layout)},
                    {"miss", miss.miss},
                    {"noise", miss.noise}};
  for (const double effect : miss.effects) json["effects"].push_back(effect);
  return json;
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
  static const ObjectForm module = module_form(), layout = layout_form(module),
                          miss = miss_form(layout);
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
       {"misses", list_form(object_form(miss)),
        "measured steps that the parameters do not explain: they correct predictions of the same "
        "layout, and, the less the more it differs, of others of the same model"},
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
  if (json.has("misses"))
    for (std::size_t i = 0; i < json.at("misses").size(); ++i) {
      certainty.misses.push_back(read_miss(json.at("misses").at(i)));
      if (const std::size_t effects = certainty.misses.back().effects.size();
          effects != 0 && effects != certainty.errors.size())
        json.at("misses").at(i).refuse_at("effects",
                                          "must have one number for each of the " +
                                              std::to_string(certainty.errors.size()) +
                                              " errors (got " + std::to_string(effects) + ")",
                                          "calibrate again, or remove the key");
    }
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
  for (const KnownMiss& miss : certainty.misses) json["misses"].push_back(write_miss(miss));
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
