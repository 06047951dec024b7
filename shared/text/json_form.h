// Describes which JSON values are allowed, as data: the reader (shared/text/strict_json.h) rejects
// all others, and the JSON Schema (shared/form/schema_json.h) is printed from the same description.
// Ranges of integers are inclusive; quantities are texts with a unit (shared/text/quantity_text.h),
// optionally in a range; an object lists its keys.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/error.h"
#include "shared/text/quantity_text.h"

namespace polyphony {

struct ObjectForm;

// The values that are allowed at one place.
struct Form {
  enum class Kind : std::uint8_t {
    integer,
    number,
    boolean,
    text,
    quantity,
    choice,
    list,
    object,
    any_of
  };
  Kind kind = Kind::text;
  std::int64_t least = 0, most = 0;    // integer, inclusive; list: number of elements
  double low = 0, high = 0;            // number, inclusive
  UnitKind unit = UnitKind::time;      // quantity
  std::string from{}, to{};            // quantity, inclusive; empty: from 0, without upper limit
  std::vector<std::string> choices{};  // choice
  std::vector<Form> of{};  // list: the form of its elements; any_of: alternatives, of which the
                           // first whose JSON type fits the value is checked
  const ObjectForm* object = nullptr;  // object
  // object: a change of such an object by RFC 7396, in which no key is required and null removes
  // one. Checked when it has been merged.
  bool change = false;
  std::string example{};  // shown in error messages
};

Form integer_form(std::int64_t least, std::int64_t most = std::numeric_limits<std::int32_t>::max());
Form number_form(double low, double high);
Form boolean_form();
Form text_form(std::string example);
Form quantity_form(UnitKind unit, std::string example, std::string from = {}, std::string to = {});
Form choice_form(std::vector<std::string> choices);
Form list_form(Form element, std::int64_t least = 0, std::int64_t most = 1 << 20);
Form object_form(const ObjectForm& object);
Form change_form(const ObjectForm& object);
Form any_form(std::vector<Form> alternatives);

struct Field {
  std::string key;
  Form form;
  std::string about;
  bool required = false;
};

struct ObjectForm {
  std::string name;  // name of the definition in the schema
  std::string about;
  std::vector<Field> fields;
  std::vector<Form>
      others;  // one form: other keys are allowed and have this form; empty: they are rejected
};

// Returns what the form accepts, in words: "a whole number from 1 to 64".
std::string wanted(const Form& form);

// Returns "a, b, c".
std::string joined(const std::vector<std::string>& words);
// Returns the candidate nearest to `word` (edit distance at most a third of its length, upper and
// lower case are equal), or empty.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);
// Returns a hint: "did you mean "x"?", what to write instead of another program's word
// (shared/text/other_words.h), or "one of: a, b, c".
std::string suggest(const std::string& word, const std::vector<std::string>& candidates);

// Return the names of all enumerators up to `last`, and the enumerator of a given name
// (shared/enum_names.h).
template <class Enum>
std::vector<std::string> enum_names(Enum last = last_of(Enum{})) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.emplace_back(name(static_cast<Enum>(i)));
  return names;
}
template <class Enum>
Enum enum_named(const std::string& text, Enum last = last_of(Enum{})) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (text == name(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  POLYPHONY_CHECK(false, "no enumerator is called " << text);
}

}  // namespace polyphony
