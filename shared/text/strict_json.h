// Strict reading of JSON. A Form describes the values that are allowed; check() rejects all others
// with an InputError that names the file and the JSON pointer. The JSON Schema
// (shared/form/schema_json.h) is printed from the same Forms, so reader and schema always agree.
//   Rejected: unknown keys ("did you mean"), duplicate keys, missing required keys, wrong types,
//   numbers out of range, numbers without a unit where a quantity is required, more than 64 levels
//   of nesting, null. `//` and `/* */` comments are accepted.
//
// Use: JsonValue root = JsonValue::parse(text, file); root.check(object_form(kForm)); then read()
// the keys that are present. Each file format defines its ObjectForm next to its reader. Only
// *_json.cpp files include the JSON library.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shared/text/json_form.h"
#include "shared/units.h"

namespace polyphony {

// A value of a parsed document and its JSON pointer. Cheap to copy; keeps the document alive.
class JsonValue {
 public:
  static JsonValue parse(const std::string& text, const std::string& file);
  // Merges by RFC 7396: keys of `patch` replace those of `base`, object by object; null removes a
  // key.
  static JsonValue merge(const JsonValue& base, const JsonValue& patch);

  void check(const Form& form) const;
  // Throw InputError at this value (or at one of its keys), for rules that a Form cannot express.
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const;
  [[noreturn]] void refuse_at(const std::string& key, const std::string& what,
                              const std::string& hint) const;

  const std::string& file() const { return file_; }
  const std::string& pointer() const { return pointer_; }
  bool is_object() const;
  bool is_list() const;
  bool is_text() const;
  bool is_number() const;  // integers included
  bool is_boolean() const;

  // Accessors of a checked value: a wrong type is a bug in this program.
  bool has(const std::string& key) const;  // true if the key is present and not null
  std::vector<std::string> keys() const;   // sorted
  JsonValue at(const std::string& key) const;
  std::size_t size() const;
  JsonValue at(std::size_t position) const;
  std::int64_t integer() const;
  double number() const;
  bool boolean() const;
  std::string text() const;
  bool points_to_something(const std::string& pointer) const;  // relative to the document's root
  std::string dump() const;                                    // as indented JSON text

  // Reads a key of an object into `out` if it is present; otherwise returns false and keeps `out`.
  bool read(const std::string& key, int& out) const;
  bool read(const std::string& key, std::int64_t& out) const;
  bool read(const std::string& key, std::uint64_t& out) const;
  bool read(const std::string& key, double& out) const;
  bool read(const std::string& key, bool& out) const;
  bool read(const std::string& key, std::string& out) const;
  bool read(const std::string& key, Seconds& out) const;
  bool read(const std::string& key, Bytes& out) const;
  bool read(const std::string& key, BytesPerSecond& out) const;
  bool read(const std::string& key, FlopsPerSecond& out) const;
  bool read(const std::string& key, std::vector<int>& out) const;  // a list, or a single number

 private:
  JsonValue(std::shared_ptr<const void> node, std::string file, std::string pointer)
      : node_(std::move(node)), file_(std::move(file)), pointer_(std::move(pointer)) {}
  friend struct JsonAccess;

  std::shared_ptr<const void> node_;  // an nlohmann::json inside the document
  std::string file_;
  std::string pointer_;
};

}  // namespace polyphony
