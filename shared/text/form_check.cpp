#include "shared/text/form_check.h"

#include <algorithm>

#include "shared/text/other_words.h"

namespace polyphony {

namespace {

// Returns whether a key whose value is not an object is meant as a known key, and not as a name of
// its own (a module in a layout).
bool is_misspelt(const std::string& key, const std::vector<std::string>& known, const Form& other) {
  return !hint_for_other_word(key, known).empty() ||
         (other.kind == Form::Kind::object && !nearest(key, known).empty());
}

}  // namespace

void check_object(const JsonValue& value, const ObjectForm& form) {
  std::vector<std::string> known;
  for (const Field& field : form.fields) known.push_back(field.key);
  for (const std::string& key : value.keys()) {
    const auto field = std::find(known.begin(), known.end(), key);
    if (field != known.end()) {
      value.at(key).check(form.fields[static_cast<std::size_t>(field - known.begin())].form);
    } else if (!form.others.empty() &&
               (value.at(key).is_object() || !is_misspelt(key, known, form.others.front()))) {
      value.at(key).check(form.others.front());
    } else {
      value.refuse_at(key, "unknown key \"" + key + "\"", suggest(key, known));
    }
  }
  for (const Field& field : form.fields)
    if (field.required && !value.has(field.key))
      value.refuse("key \"" + field.key + "\" is missing", field.about + ": " + wanted(field.form));
}

void check_quantity(const JsonValue& value, const Form& form) {
  double number = 0;
  try {
    number = parse_quantity(form.unit, value.text());
  } catch (const InputError& error) {
    value.refuse(error.what_is_wrong, error.hint);
  }
  const std::string is_out = "\"" + value.text() + "\" is out of range";
  if (!form.from.empty() && number < parse_quantity(form.unit, form.from))
    value.refuse(is_out, "at least " + form.from);
  if (!form.to.empty() && number > parse_quantity(form.unit, form.to))
    value.refuse(is_out, "at most " + form.to);
}

}  // namespace polyphony
