#include "shared/form/schema_json.h"

#include <nlohmann/json.hpp>

#include "shared/form/scenario_form.h"

namespace polyphony {
namespace {

using OrderedJson = nlohmann::ordered_json;

// What a definition applies to: complete files, or changes of one (files with "extends", phases).
enum class Use : std::uint8_t { whole, change };

class SchemaWriter {
 public:
  // Returns a reference to the definition of `object`. The first call for an object writes the
  // definition, and those of all objects in it.
  OrderedJson reference(const ObjectForm& object, Use use) {
    const std::string key = object.name + (use == Use::change ? " (change)" : "");
    if (!definitions.contains(key)) {
      definitions[key] =
          OrderedJson::object();  // marks it as begun, in case a form contains itself
      definitions[key] = definition(object, use);
    }
    return {{"$ref", "#/$defs/" + key}};
  }

  OrderedJson definitions = OrderedJson::object();

 private:
  OrderedJson definition(const ObjectForm& object, Use use) {
    OrderedJson json = {{"type", "object"}, {"description", object.about}};
    json["properties"] = OrderedJson::object();
    OrderedJson required = OrderedJson::array();
    for (const Field& field : object.fields) {
      OrderedJson property = of(field.form, use);
      if (use == Use::change) property = {{"anyOf", {property, {{"type", "null"}}}}};
      property["description"] = field.about;
      json["properties"][field.key] = property;
      if (field.required && use == Use::whole) required.push_back(field.key);
    }
    if (!required.empty()) json["required"] = required;
    json["additionalProperties"] = false;
    if (!object.others.empty()) {
      json["additionalProperties"] = of(object.others.front(), use);
      if (use == Use::change)
        json["additionalProperties"] = {
            {"anyOf", {json["additionalProperties"], {{"type", "null"}}}}};
    }
    return json;
  }

  OrderedJson of(const Form& form, Use use) {
    switch (form.kind) {
      case Form::Kind::integer:
        return {{"type", "integer"}, {"minimum", form.least}, {"maximum", form.most}};
      case Form::Kind::number:
        return {{"type", "number"}, {"minimum", form.low}, {"maximum", form.high}};
      case Form::Kind::boolean:
        return {{"type", "boolean"}};
      case Form::Kind::text:
        return {{"type", "string"}, {"examples", {form.example}}};
      case Form::Kind::quantity:
        return quantity(form);
      case Form::Kind::choice:
        return {{"enum", form.choices}};
      case Form::Kind::list:
        return {{"type", "array"},
                {"items", of(form.of.front(), Use::whole)},
                {"minItems", form.least},
                {"maxItems", form.most}};
      case Form::Kind::object:
        return reference(*form.object, form.change ? Use::change : use);
      case Form::Kind::any_of:
        break;
    }
    OrderedJson alternatives = OrderedJson::array();
    for (const Form& one : form.of) alternatives.push_back(of(one, use));
    return {{"anyOf", alternatives}};
  }

  // JSON Schema has no ranges for strings, so the range of a quantity is stated in a comment.
  static OrderedJson quantity(const Form& form) {
    OrderedJson json = {
        {"type", "string"}, {"pattern", quantity_pattern(form.unit)}, {"examples", {form.example}}};
    if (!form.from.empty() || !form.to.empty())
      json["$comment"] = "from " + (form.from.empty() ? "0" : form.from) + " to " + form.to;
    return json;
  }

  static std::string quantity_pattern(UnitKind unit) {
    std::string units;
    for (const std::string& unit_name : unit_names(unit))
      units += (units.empty() ? "" : "|") + unit_name;
    return "^[0-9]+(\\.[0-9]*)?([eE][+-]?[0-9]+)? ?(" + units + ")$";
  }
};

OrderedJson head(const std::string& title) {
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
}

}  // namespace

std::string schema_text(const ObjectForm& form, const std::string& title) {
  SchemaWriter writer;
  OrderedJson schema = head(title);
  schema.update(writer.reference(form, Use::whole));
  schema["$defs"] = writer.definitions;
  return schema.dump(2) + "\n";
}

OrderedJson scenario_schema_value() {
  SchemaWriter writer;
  OrderedJson schema = head("Polyphony scenario, form 1");
  schema["if"] = {{"required", {"extends"}}};
  schema["then"] = writer.reference(scenario_form(), Use::change);
  schema["else"] = writer.reference(scenario_form(), Use::whole);
  schema["$defs"] = writer.definitions;
  return schema;
}

std::string scenario_schema() { return scenario_schema_value().dump(2) + "\n"; }

}  // namespace polyphony
