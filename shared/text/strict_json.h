// Reading JSON strictly: a Form says what a value may be, check() refuses the rest with file and
// JSON pointer, and the JSON Schema (shared/form/schema_json.h) is printed from the same Forms,
// so that reader and schema cannot disagree.
//   Refused: unknown keys ("did you mean"), duplicate keys, missing required keys, wrong types,
//   numbers out of range, numbers without units where a quantity is meant, more than 64 levels,
//   null. `//` and `/* */` comments are accepted.
// Use: JsonValue root = JsonValue::parse(text, file); root.check(object_form(kForm)); then read()
// what is there. A file format of its own defines its ObjectForm beside its reader. The JSON
// library is seen by *_json.cpp files only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shared/text/json_form.h"
#include "shared/units.h"

namespace polyphony {

// A value of a parsed document and its place in it. Cheap to copy; keeps the document alive.
class JsonValue {
 public:
  static JsonValue parse(const std::string& text, const std::string& file);
  // RFC 7396: keys of `patch` replace those of `base`, objects key by key; null removes.
  static JsonValue merge(const JsonValue& base, const JsonValue& patch);

  void check(const Form& form) const;
  // For what a Form cannot say.
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const;
  [[noreturn]] void refuse_at(const std::string& key, const std::string& what,
                              const std::string& hint) const;

  const std::string& file() const { return file_; }
  const std::string& pointer() const { return pointer_; }
  bool is_object() const;
  bool is_list() const;
  bool is_text() const;
  bool is_number() const;  // whole or not
  bool is_boolean() const;

  // Of a checked value: the wrong type is our mistake.
  bool has(const std::string& key) const;  // and it is not null
  std::vector<std::string> keys() const;   // sorted
  JsonValue at(const std::string& key) const;
  std::size_t size() const;
  JsonValue at(std::size_t position) const;
  std::int64_t integer() const;
  double number() const;
  bool boolean() const;
  std::string text() const;
  bool points_to_something(const std::string& pointer) const;  // from the document's root
  std::string dump() const;                                    // indented

  // Reads key of an object into `out` when it is there; otherwise leaves `out` and returns false.
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
  bool read(const std::string& key, std::vector<int>& out) const;  // a list, or one number

 private:
  JsonValue(std::shared_ptr<const void> node, std::string file, std::string pointer)
      : node_(std::move(node)), file_(std::move(file)), pointer_(std::move(pointer)) {}
  friend struct JsonAccess;

  std::shared_ptr<const void> node_;  // a nlohmann::json inside the document
  std::string file_;
  std::string pointer_;
};

}  // namespace polyphony
