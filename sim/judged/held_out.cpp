#include "sim/judged/held_out.h"

#include "shared/fnv.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/text/strict_json.h"

namespace polyphony::sim {
namespace {

ObjectForm errors_form() {
  const Form share = number_form(-1e3, 1e3);
  return {"errors",
          "errors of some rows",
          {{"rows", integer_form(1), "number of rows", true},
           {"mean", share, "mean absolute error", true},
           {"median", share, "median absolute error", true},
           {"worst", share, "error with the largest absolute value, with its sign", true},
           {"bias", share, "mean error, with signs", true}},
          {}};
}

std::optional<Errors> read_errors(const JsonValue& block, const std::string& key) {
  if (!block.has(key)) return std::nullopt;
  const JsonValue json = block.at(key);
  return Errors{static_cast<std::size_t>(json.at("rows").integer()), json.at("mean").number(),
                json.at("median").number(), json.at("worst").number(), json.at("bias").number()};
}

struct WidthKey {
  const char* key;
  double Widths::* member;
};
constexpr WidthKey kWidths[] = {
    {"known", &Widths::known},     {"foreign", &Widths::foreign}, {"borrowed", &Widths::borrowed},
    {"experts", &Widths::experts}, {"layout", &Widths::layout},   {"tensor", &Widths::tensor},
    {"one", &Widths::one}};

ObjectForm widths_form() {
  ObjectForm form{"widths", "relative standard deviations", {}, {}};
  for (const WidthKey& width : kWidths)
    form.fields.push_back({width.key, number_form(0, 1e3), "", true});
  return form;
}

Widths read_widths(const JsonValue& json) {
  Widths widths;
  for (const WidthKey& width : kWidths) widths.*width.member = json.at(width.key).number();
  return widths;
}

std::map<std::string, Widths> read_widths_by(const JsonValue& root, const std::string& key) {
  std::map<std::string, Widths> result;
  if (!root.has(key)) return result;
  const JsonValue list = root.at(key);
  for (const std::string& name : list.keys()) result[name] = read_widths(list.at(name));
  return result;
}

}  // namespace

bool is_held_out(const std::string& text, const std::string& file) {
  const JsonValue root = JsonValue::parse(text, file);
  return root.is_object() && root.has("held_out");
}

HeldOut read_held_out(const std::string& text, const std::string& file) {
  const ObjectForm errors = errors_form();
  const ObjectForm block{"held_out_block",
                         "errors of one block of rows",
                         {{"fit", object_form(errors), "rows used in the fit"},
                          {"family_out", object_form(errors), "families left out one by one"},
                          {"scale_out", object_form(errors), "largest scale of families left out"}},
                         {}};
  const ObjectForm blocks{"held_out_blocks", "errors by block", {}, {object_form(block)}};
  const Form value = any_form({number_form(-1e12, 1e12)});
  const ObjectForm parameters{"parameters", "fitted parameters", {}, {value}};
  const ObjectForm stage{"stage",
                         "one stage of the fit",
                         {{"rows", integer_form(1), "number of rows used", true},
                          {"parameters", object_form(parameters), "fitted values", true},
                          {"stacks", list_form(text_form("fsdp")), "software stacks of the rows"}},
                         {}};
  const ObjectForm stages{"stages", "stages of the fit, by name", {}, {object_form(stage)}};
  const ObjectForm widths = widths_form();
  const ObjectForm widths_by{"widths_by", "widths by block or family", {}, {object_form(widths)}};
  const ObjectForm of_rows{"unseen_rows", "errors by row", {}, {number_form(-100, 100)}};
  const ObjectForm unseen{"unseen", "errors by fold", {}, {object_form(of_rows)}};
  const ObjectForm form{
      "held_out",
      "cross-validation errors: errors on rows that were excluded from the fit",
      {{"held_out", integer_form(1, 1), "version of the format", true},
       {"profiles", text_form("0123456789abcdef"), "digest of the profiles", true},
       {"stages", object_form(stages), "stages of the fit"},
       {"blocks", object_form(blocks), "errors by block of rows", true},
       {"unseen", object_form(unseen), "ln(predicted / measured) by fold and row"},
       {"widths", object_form(widths), "widths of intervals"},
       {"without_block", object_form(widths_by), "widths fitted without the block"},
       {"without_family", object_form(widths_by), "widths fitted without the pairs of the family"}},
      {}};
  const JsonValue root = JsonValue::parse(text, file);
  root.check(object_form(form));
  HeldOut result;
  result.profiles = root.at("profiles").text();
  const JsonValue list = root.at("blocks");
  for (const std::string& name : list.keys()) {
    const JsonValue json = list.at(name);
    result.blocks[name] = {read_errors(json, "fit"), read_errors(json, "family_out"),
                           read_errors(json, "scale_out")};
  }
  if (root.has("stages")) {
    const JsonValue stages_json = root.at("stages");
    for (const std::string& name : stages_json.keys())
      if (stages_json.at(name).has("stacks")) {
        const JsonValue stacks = stages_json.at(name).at("stacks");
        for (std::size_t i = 0; i < stacks.size(); ++i) result.stacks.insert(stacks.at(i).text());
      }
  }
  if (root.has("unseen")) {
    const JsonValue folds = root.at("unseen");
    for (const std::string& fold : folds.keys()) {
      const JsonValue rows = folds.at(fold);
      for (const std::string& id : rows.keys()) result.unseen[fold][id] = rows.at(id).number();
    }
  }
  if (root.has("widths")) result.widths = read_widths(root.at("widths"));
  result.without_block = read_widths_by(root, "without_block");
  result.without_family = read_widths_by(root, "without_family");
  return result;
}

std::string profiles_digest() {
  Fnv digest;
  const auto add = [&](HardwareProfile profile) {
    profile.software = profile.source = "";
    profile.step_error = 0;
    profile.certainty = {};
    digest.add(to_json(profile));
  };
  for (const HardwareProfile& profile : shipped_profiles())
    if (find_device(profile.device.name)->fit) add(profile);
  HardwareProfile with_stack;
  for (const SoftwareStack& stack : shipped_stacks()) {
    with_stack.stack = stack;
    add(with_stack);
  }
  return digest.digits();
}

}  // namespace polyphony::sim
