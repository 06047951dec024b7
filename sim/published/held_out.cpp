#include "sim/published/held_out.h"

#include "shared/fnv.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/text/strict_json.h"

namespace polyphony::sim {
namespace {

ObjectForm errors_form() {
  const Form share = number_form(-1e3, 1e3);
  return {"errors",
          "of some rows",
          {{"rows", integer_form(1), "how many", true},
           {"mean", share, "of the sizes", true},
           {"median", share, "of the sizes", true},
           {"worst", share, "with its sign", true},
           {"bias", share, "mean with signs", true}},
          {}};
}

std::optional<Errors> read_errors(const JsonValue& block, const std::string& key) {
  if (!block.has(key)) return std::nullopt;
  const JsonValue json = block.at(key);
  return Errors{static_cast<std::size_t>(json.at("rows").integer()), json.at("mean").number(),
                json.at("median").number(), json.at("worst").number(), json.at("bias").number()};
}

}  // namespace

bool is_held_out(const std::string& text, const std::string& file) {
  const JsonValue root = JsonValue::parse(text, file);
  return root.is_object() && root.has("held_out");
}

HeldOut read_held_out(const std::string& text, const std::string& file) {
  const ObjectForm errors = errors_form();
  const ObjectForm block{"held_out_block",
                         "of one block of rows",
                         {{"fit", object_form(errors), "rows that the fit saw"},
                          {"family_out", object_form(errors), "families left out one by one"},
                          {"scale_out", object_form(errors), "largest scale of families left out"}},
                         {}};
  const ObjectForm blocks{"held_out_blocks", "by block", {}, {object_form(block)}};
  const Form value = any_form({number_form(-1e12, 1e12)});
  const ObjectForm parameters{"parameters", "what was fitted", {}, {value}};
  const ObjectForm stage{"stage",
                         "of one fit",
                         {{"rows", integer_form(1), "how many it saw", true},
                          {"parameters", object_form(parameters), "what it found", true}},
                         {}};
  const ObjectForm stages{"stages", "by name", {}, {object_form(stage)}};
  const ObjectForm form{"held_out",
                        "errors of rows that the fit did not see",
                        {{"held_out", integer_form(1, 1), "version of the format", true},
                         {"profiles", text_form("0123456789abcdef"), "digest", true},
                         {"stages", object_form(stages), "of the fit"},
                         {"blocks", object_form(blocks), "of rows", true}},
                        {}};
  const JsonValue root = JsonValue::parse(text, file);
  root.check(object_form(form));
  HeldOut result{root.at("profiles").text(), {}};
  const JsonValue list = root.at("blocks");
  for (const std::string& name : list.keys()) {
    const JsonValue json = list.at(name);
    result.blocks[name] = {read_errors(json, "fit"), read_errors(json, "family_out"),
                           read_errors(json, "scale_out")};
  }
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
    if (find_device(profile.device.name)->fitted != FittedOn::nothing) add(profile);
  HardwareProfile with_stack;
  for (const SoftwareStack& stack : shipped_stacks()) {
    with_stack.stack = stack;
    add(with_stack);
  }
  return digest.digits();
}

}  // namespace polyphony::sim
