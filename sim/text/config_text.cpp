#include "sim/text/config_text.h"

#include <stdexcept>

// toml++ 3.3 asserts where a damaged text should be refused: an exception refuses it.
[[noreturn]] static void refuse_toml() {
  throw std::invalid_argument("a key or value has a letter that none has");
}
#define TOML_ASSERT(condition) ((condition) ? void() : refuse_toml())
#include <toml++/toml.h>
#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <sstream>

#include "shared/error.h"
#include "sim/text/one_line.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kDeepest = 64;
constexpr std::size_t kMostValues = 200000;  // aliases of YAML may repeat themselves

[[noreturn]] void refuse(const std::string& file, int line, const std::string& what) {
  throw InputError(line > 0 ? file + ":" + std::to_string(line) : file, "", one_line(what),
                   "check the file");
}

OrderedJson from_yaml(const YAML::Node& node, const std::string& file, int depth,
                      std::size_t& count) {
  const int line = node.Mark().line + 1;
  if (depth > kDeepest) refuse(file, line, "is nested too deep");
  if (++count > kMostValues) refuse(file, line, "has too many values");
  if (!node.IsDefined() || node.IsNull()) return nullptr;
  if (node.IsScalar()) return node.Scalar();
  OrderedJson value = node.IsMap() ? OrderedJson::object() : OrderedJson::array();
  if (node.IsMap()) {
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) refuse(file, line, "has a key that is no text");
      value[entry.first.Scalar()] = from_yaml(entry.second, file, depth + 1, count);
    }
  } else {
    for (const auto& entry : node) value.push_back(from_yaml(entry, file, depth + 1, count));
  }
  return value;
}

OrderedJson from_toml(const toml::node& node, const std::string& file, int depth) {
  if (depth > kDeepest)
    refuse(file, static_cast<int>(node.source().begin.line), "is nested too deep");
  if (const toml::table* table = node.as_table()) {
    OrderedJson value = OrderedJson::object();
    for (const auto& [key, inner] : *table)
      value[std::string(key.str())] = from_toml(inner, file, depth + 1);
    return value;
  }
  if (const toml::array* array = node.as_array()) {
    OrderedJson value = OrderedJson::array();
    for (const toml::node& inner : *array) value.push_back(from_toml(inner, file, depth + 1));
    return value;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* truth = node.as_boolean()) return truth->get();
  std::ostringstream other;  // dates
  node.visit([&](const auto& value) {
    if constexpr (toml::is_value<decltype(value)>) other << value.get();
  });
  return other.str();
}

}  // namespace

OrderedJson parse_config(const std::string& text, const std::string& file, ConfigFormat format) {
  if (format == ConfigFormat::toml) {
    try {
      // toml++ 3.3 does not survive every letter beyond ASCII; settings have none.
      std::string plain = text;
      for (char& c : plain)
        if (static_cast<unsigned char>(c) >= 0x80) c = '?';
      return from_toml(toml::parse(plain, file), file, 0);
    } catch (const toml::parse_error& error) {
      refuse(file, static_cast<int>(error.source().begin.line),
             "is not TOML: " + std::string(error.description()));
    } catch (const std::invalid_argument& error) {
      refuse(file, 0, "is not TOML: " + std::string(error.what()));
    }
  }
  if (format == ConfigFormat::json) {
    int depth = 0, deepest = 0;
    for (const char c : text) {
      if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
      if (c == '}' || c == ']') --depth;
    }
    if (deepest > kDeepest) refuse(file, 0, "is nested too deep");
    try {
      return OrderedJson::parse(text, nullptr, true, true);
    } catch (const OrderedJson::exception& error) {
      // Without the library's own prefix, "[json.exception.parse_error.101] ".
      std::string what = error.what();
      if (const std::size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
      refuse(file, 0, "is not JSON: " + what);
    }
  }
  try {
    std::size_t count = 0;
    return from_yaml(YAML::Load(text), file, 0, count);
  } catch (const YAML::Exception& error) {
    refuse(file, error.mark.line + 1, "is not YAML: " + error.msg);
  }
}

}  // namespace polyphony::sim
