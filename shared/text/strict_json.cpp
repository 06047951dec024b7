#include "shared/text/strict_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "shared/text/form_check.h"

namespace polyphony {

// Translates between the opaque node of a JsonValue and the library's type.
struct JsonAccess {
  static const nlohmann::json& node(const JsonValue& value) {
    return *static_cast<const nlohmann::json*>(value.node_.get());
  }
  static JsonValue root(nlohmann::json value, const std::string& file) {
    return {std::make_shared<const nlohmann::json>(std::move(value)), file, ""};
  }
  static JsonValue child(const JsonValue& parent, const nlohmann::json& node,
                         const std::string& token) {
    std::string pointer = parent.pointer_ + "/";
    for (const char c : token) pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return {std::shared_ptr<const void>(parent.node_, &node), parent.file_, pointer};
  }
};

namespace {

constexpr int kDeepest = 64;

std::string type_of(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return "a text";
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_null()) return "null";
  return value.dump();
}

bool has_type(const nlohmann::json& value, const Form& form) {
  switch (form.kind) {
    case Form::Kind::integer:
      return value.is_number_integer();
    case Form::Kind::number:
      return value.is_number();
    case Form::Kind::boolean:
      return value.is_boolean();
    case Form::Kind::text:
    case Form::Kind::quantity:
    case Form::Kind::choice:
      return value.is_string();
    case Form::Kind::list:
      return value.is_array();
    case Form::Kind::object:
      return value.is_object();
    case Form::Kind::any_of:
      return std::any_of(form.of.begin(), form.of.end(),
                         [&](const Form& one) { return has_type(value, one); });
  }
  return false;
}

bool in_range(const nlohmann::json& value, const Form& form) {
  if (form.kind == Form::Kind::number) {
    const auto number = value.get<double>();
    return number >= form.low && number <= form.high;
  }
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{1} << 63)
    return false;
  const auto number = value.get<std::int64_t>();
  return number >= form.least && number <= form.most;
}

// Rejects duplicate keys and too deeply nested documents while they are parsed.
class ParseGuard {
 public:
  explicit ParseGuard(std::string file) : file_(std::move(file)) {}
  bool operator()(int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > kDeepest)
      throw InputError(file_, "", "more than " + std::to_string(kDeepest) + " levels of nesting",
                       "flatten the document");
    if (event == Event::object_start) {
      keys_.resize(static_cast<std::size_t>(depth) + 1);
      keys_.back().clear();
    } else if (event == Event::key) {
      const auto key = parsed.get<std::string>();
      // A key's depth is one more than that of its object.
      if (!keys_[static_cast<std::size_t>(depth) - 1].insert(key).second)
        throw InputError(file_, "", "duplicate key \"" + key + "\" in one object",
                         "remove one of them");
    }
    return true;
  }

 private:
  std::string file_;
  std::vector<std::set<std::string>> keys_;  // by depth of the object
};

}  // namespace

JsonValue JsonValue::parse(const std::string& text, const std::string& file) {
  try {
    return JsonAccess::root(nlohmann::json::parse(text, ParseGuard(file), true, true), file);
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: syntax error …" without
    // the library's prefix.
    std::string what = error.what();
    if (const auto bracket = what.find("] "); bracket != std::string::npos)
      what.erase(0, bracket + 2);
    std::replace_if(
        what.begin(), what.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    throw InputError(file, "", "not JSON: " + what,
                     "look there for a missing or extra comma, quote or bracket");
  }
}

JsonValue JsonValue::merge(const JsonValue& base, const JsonValue& patch) {
  nlohmann::json merged = JsonAccess::node(base);
  merged.merge_patch(JsonAccess::node(patch));
  return JsonAccess::root(std::move(merged), patch.file_);
}

void JsonValue::refuse(const std::string& what, const std::string& hint) const {
  throw InputError(file_, pointer_, what, hint);
}
void JsonValue::refuse_at(const std::string& key, const std::string& what,
                          const std::string& hint) const {
  throw InputError(file_, JsonAccess::child(*this, JsonAccess::node(*this), key).pointer_, what,
                   hint);
}

void JsonValue::check(const Form& form) const {
  const nlohmann::json& node = JsonAccess::node(*this);
  if (!has_type(node, form)) {
    const bool bare = form.kind == Form::Kind::quantity && node.is_number();
    refuse(bare ? type_of(node) + " has no unit" : type_of(node) + " is not allowed here",
           "write " + wanted(form));
  }
  switch (form.kind) {
    case Form::Kind::integer:
    case Form::Kind::number:
      if (!in_range(node, form)) refuse(node.dump() + " is out of range", "write " + wanted(form));
      break;
    case Form::Kind::quantity:
      check_quantity(*this, form);
      break;
    case Form::Kind::choice:
      if (std::find(form.choices.begin(), form.choices.end(), node.get<std::string>()) ==
          form.choices.end())
        refuse("unknown value " + node.dump(), suggest(node.get<std::string>(), form.choices));
      break;
    case Form::Kind::list:
      if (std::cmp_less(node.size(), form.least) || std::cmp_greater(node.size(), form.most))
        refuse("list has " + std::to_string(node.size()) + " values",
               "it must have " + std::to_string(form.least) +
                   (form.least == form.most ? "" : " to " + std::to_string(form.most)));
      for (std::size_t i = 0; i < node.size(); ++i) at(i).check(form.of.front());
      break;
    case Form::Kind::object:
      if (!form.change) check_object(*this, *form.object);
      break;
    case Form::Kind::any_of: {
      const auto one = std::find_if(form.of.begin(), form.of.end(),
                                    [&](const Form& f) { return has_type(node, f); });
      check(*one);
      break;
    }
    case Form::Kind::boolean:
    case Form::Kind::text:
      break;
  }
}

bool JsonValue::is_object() const { return JsonAccess::node(*this).is_object(); }
bool JsonValue::is_list() const { return JsonAccess::node(*this).is_array(); }
bool JsonValue::is_text() const { return JsonAccess::node(*this).is_string(); }
bool JsonValue::is_number() const { return JsonAccess::node(*this).is_number(); }
bool JsonValue::is_boolean() const { return JsonAccess::node(*this).is_boolean(); }
bool JsonValue::has(const std::string& key) const {
  const nlohmann::json& node = JsonAccess::node(*this);
  return is_object() && node.contains(key) && !node.at(key).is_null();
}

std::vector<std::string> JsonValue::keys() const {
  POLYPHONY_CHECK(is_object(), pointer_);
  std::vector<std::string> keys;
  for (const auto& item : JsonAccess::node(*this).items()) keys.push_back(item.key());
  return keys;
}
JsonValue JsonValue::at(const std::string& key) const {
  POLYPHONY_CHECK(is_object() && JsonAccess::node(*this).contains(key), pointer_ << " " << key);
  return JsonAccess::child(*this, JsonAccess::node(*this).at(key), key);
}
std::size_t JsonValue::size() const { return JsonAccess::node(*this).size(); }
JsonValue JsonValue::at(std::size_t position) const {
  POLYPHONY_CHECK(is_list() && position < size(), pointer_ << " " << position);
  return JsonAccess::child(*this, JsonAccess::node(*this).at(position), std::to_string(position));
}
std::int64_t JsonValue::integer() const {
  POLYPHONY_CHECK(JsonAccess::node(*this).is_number_integer(), pointer_);
  return JsonAccess::node(*this).get<std::int64_t>();
}
double JsonValue::number() const {
  POLYPHONY_CHECK(is_number(), pointer_);
  return JsonAccess::node(*this).get<double>();
}
bool JsonValue::boolean() const {
  POLYPHONY_CHECK(is_boolean(), pointer_);
  return JsonAccess::node(*this).get<bool>();
}
std::string JsonValue::text() const {
  POLYPHONY_CHECK(is_text(), pointer_);
  return JsonAccess::node(*this).get<std::string>();
}
bool JsonValue::points_to_something(const std::string& pointer) const {
  try {
    return JsonAccess::node(*this).contains(nlohmann::json::json_pointer(pointer));
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}
std::string JsonValue::dump() const { return JsonAccess::node(*this).dump(2); }

bool JsonValue::read(const std::string& key, int& out) const {
  if (has(key)) out = static_cast<int>(at(key).integer());
  return has(key);
}
bool JsonValue::read(const std::string& key, std::int64_t& out) const {
  if (has(key)) out = at(key).integer();
  return has(key);
}
bool JsonValue::read(const std::string& key, std::uint64_t& out) const {
  if (has(key)) out = static_cast<std::uint64_t>(at(key).integer());
  return has(key);
}
bool JsonValue::read(const std::string& key, double& out) const {
  if (has(key)) out = at(key).number();
  return has(key);
}
bool JsonValue::read(const std::string& key, bool& out) const {
  if (has(key)) out = at(key).boolean();
  return has(key);
}
bool JsonValue::read(const std::string& key, std::string& out) const {
  if (has(key)) out = at(key).text();
  return has(key);
}
bool JsonValue::read(const std::string& key, Seconds& out) const {
  if (has(key)) out = parse_seconds(at(key).text());
  return has(key);
}
bool JsonValue::read(const std::string& key, Bytes& out) const {
  if (has(key)) out = parse_bytes(at(key).text());
  return has(key);
}
bool JsonValue::read(const std::string& key, BytesPerSecond& out) const {
  if (has(key)) out = parse_rate(at(key).text());
  return has(key);
}
bool JsonValue::read(const std::string& key, FlopsPerSecond& out) const {
  if (has(key)) out = parse_compute_rate(at(key).text());
  return has(key);
}
bool JsonValue::read(const std::string& key, std::vector<int>& out) const {
  if (!has(key)) return false;
  const JsonValue value = at(key);
  out.clear();
  if (!value.is_list()) {
    out.push_back(static_cast<int>(value.integer()));
  } else {
    for (std::size_t i = 0; i < value.size(); ++i)
      out.push_back(static_cast<int>(value.at(i).integer()));
  }
  return true;
}

}  // namespace polyphony
