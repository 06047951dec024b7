#include "shared/hardware/measured_layers_json.h"

#include <nlohmann/json.hpp>

#include "shared/model/limits.h"

namespace polyphony {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct TermKey {
  const char* key;
  Seconds MeasuredTime::* member;
  const char* about;
};
constexpr TermKey kTerms[] = {
    {"constant", &MeasuredTime::constant, "time for a microbatch of any size"},
    {"per_token", &MeasuredTime::per_token, "time multiplied by its tokens"},
    {"per_token_squared", &MeasuredTime::per_token_squared,
     "time multiplied by the square of its tokens"}};

struct LayerTimeKey {
  const char* key;
  MeasuredTime MeasuredLayers::* member;
  const char* about;
  bool required;
};
constexpr LayerTimeKey kLayerTimes[] = {
    {"forward", &MeasuredLayers::forward, "forward", true},
    {"backward_input", &MeasuredLayers::backward_input,
     "gradient of the input, if a layer upstream is trained; 0s when absent", false},
    {"backward_weight", &MeasuredLayers::backward_weight,
     "gradient of the weights, if they are trained; 0s when absent", false}};

// More than an hour for a layer is a typing error.
Form term_form() { return quantity_form(UnitKind::time, "2.5ms", "0s", "1h"); }

const ObjectForm& polynomial_form() {
  static const ObjectForm form = [] {
    ObjectForm made{
        "layer_time", "A time that grows with the tokens of a microbatch on one rank", {}, {}};
    for (const TermKey& term : kTerms) made.fields.push_back({term.key, term_form(), term.about});
    return made;
  }();
  return form;
}

const ObjectForm& entry_form() {
  static const ObjectForm form = [] {
    const Form range = list_form(integer_form(0, kMostLayers), 2, 2);
    ObjectForm made{
        "layer_times",
        "Measured times of layers, including the collectives inside them",
        {{"layers", any_form({choice_form(enum_names<MeasuredPart>()), range}),
          "the layers that take this time each: every block (each), the blocks [first, last + 1], "
          "the layer before the blocks (input) or after them (output); each when absent"},
         {"stage", range,
          "first and last + 1 of the blocks that take this time together, including the layer "
          "before the first block and the layer after the last block if the range reaches them"},
         {"tp", integer_form(1, kMostRanks), "tp that the times are valid for; any when absent"},
         {"cp", integer_form(1, kMostRanks), "cp that the times are valid for; any when absent"}},
        {}};
    for (const LayerTimeKey& time : kLayerTimes)
      made.fields.push_back({time.key, any_form({term_form(), object_form(polynomial_form())}),
                             time.about, time.required});
    return made;
  }();
  return form;
}

MeasuredTime read_time(const JsonValue& holder, const char* key) {
  MeasuredTime time;
  if (!holder.has(key)) return time;
  const JsonValue value = holder.at(key);
  if (value.is_text()) {
    holder.read(key, time.constant);
    return time;
  }
  for (const TermKey& term : kTerms) value.read(term.key, time.*term.member);
  return time;
}

MeasuredLayers read_entry(const JsonValue& value) {
  MeasuredLayers entry;
  entry.stage = value.has("stage");
  if (entry.stage && value.has("layers"))
    value.refuse_at("stage", "\"stage\" and \"layers\" are both given",
                    "keep \"layers\" for times of each layer, \"stage\" for times of all together");
  const char* key = entry.stage ? "stage" : "layers";
  if (value.has(key)) {
    const JsonValue layers = value.at(key);
    if (layers.is_text()) {
      entry.part = enum_named<MeasuredPart>(layers.text());
    } else {
      entry.first = static_cast<int>(layers.at(std::size_t{0}).integer());
      entry.last = static_cast<int>(layers.at(std::size_t{1}).integer());
      if (entry.first >= entry.last)
        layers.refuse("the range is empty", "write [first, last + 1], such as [0, 12]");
    }
  }
  value.read("tp", entry.tp);
  value.read("cp", entry.cp);
  for (const LayerTimeKey& time : kLayerTimes) entry.*time.member = read_time(value, time.key);
  return entry;
}

OrderedJson time_json(const MeasuredTime& time) {
  if (time == MeasuredTime{.constant = time.constant}) return to_text(time.constant);
  OrderedJson json;
  for (const TermKey& term : kTerms) json[term.key] = to_text(time.*term.member);
  return json;
}

}  // namespace

Form measured_layers_form() {
  const Form entry = object_form(entry_form());
  return any_form({entry, list_form(entry, 1, kMostLayers)});
}

std::vector<MeasuredLayers> read_measured_layers(const JsonValue& value) {
  if (!value.is_list()) return {read_entry(value)};
  std::vector<MeasuredLayers> entries;
  for (std::size_t i = 0; i < value.size(); ++i) entries.push_back(read_entry(value.at(i)));
  return entries;
}

OrderedJson json_value(const std::vector<MeasuredLayers>& entries) {
  OrderedJson list = OrderedJson::array();
  for (const MeasuredLayers& entry : entries) {
    OrderedJson json;
    if (entry.last >= 0)
      json[entry.stage ? "stage" : "layers"] = {entry.first, entry.last};
    else
      json["layers"] = name(entry.part);
    if (entry.tp > 0) json["tp"] = entry.tp;
    if (entry.cp > 0) json["cp"] = entry.cp;
    for (const LayerTimeKey& time : kLayerTimes) json[time.key] = time_json(entry.*time.member);
    list.push_back(json);
  }
  return list;
}

}  // namespace polyphony
