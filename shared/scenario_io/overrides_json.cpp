#include "shared/scenario_io/overrides_json.h"

#include <nlohmann/json.hpp>

namespace polyphony {
namespace {

constexpr const char* kHow = "write PATH=VALUE, such as cluster.nic=100Gbps";

std::vector<std::string> split_path(const std::string& text, const std::string& path) {
  const bool is_pointer = path.starts_with('/');
  const char separator = is_pointer ? '/' : '.';
  std::vector<std::string> keys;
  std::size_t begin = is_pointer ? 1 : 0;
  while (true) {
    const std::size_t end = path.find(separator, begin);
    keys.push_back(path.substr(begin, end == std::string::npos ? end : end - begin));
    if (keys.back().empty())
      throw InputError(Argument{"set " + text}, "", "the path has an empty key", kHow);
    if (end == std::string::npos) return keys;
    begin = end + 1;
  }
}

// Returns the patch {"cluster": {"nic": VALUE}}.
std::string patch_text(const std::vector<std::string>& path, const std::string& value) {
  std::string text = value;
  for (std::size_t i = path.size(); i-- > 0;)
    text = "{" + nlohmann::json(path[i]).dump() + ": " + text + "}";
  return text;
}

// Returns true if the path leads through a string (the name of a preset) or a number. Throws
// InputError if it leads through a list, which has no resolved form.
bool blocked(const JsonValue& document, const Override& override) {
  JsonValue at = document;
  for (std::size_t i = 0; i + 1 < override.path.size(); ++i) {
    if (!at.is_object() || !at.has(override.path[i])) return false;
    at = at.at(override.path[i]);
    if (at.is_list())
      throw InputError(Argument{"set " + override.text}, at.pointer(),
                       "a list can only be replaced as a whole",
                       "end the path " + override.text.substr(0, override.text.find('=')) +
                           " at the list, and write =[...]");
    if (!at.is_object()) return true;
  }
  return false;
}

}  // namespace

std::string Override::pointer() const {
  std::string keys;
  for (const std::string& key : path) keys += "/" + key;
  return keys;
}

Override parse_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw InputError(Argument{"set " + text}, "", "\"=\" is missing", kHow);
  Override override{text, split_path(text, text.substr(0, equals)), text.substr(equals + 1)};
  if (!nlohmann::json::accept(override.value))
    override.value = nlohmann::json(override.value)
                         .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return override;
}

JsonValue apply(const JsonValue& document, const std::vector<Override>& overrides,
                const std::function<JsonValue(const std::string& key)>& spelled_out) {
  JsonValue result = document;
  for (const Override& override : overrides) {
    const std::string& key = override.path.front();
    if (blocked(result, override)) {
      const auto replaced = [&](const std::string& value) {
        return JsonValue::merge(result, JsonValue::parse(patch_text({key}, value), result.file()));
      };
      result = replaced("null");
      result = replaced(spelled_out(key).dump());
      if (blocked(result, override))
        throw InputError(Argument{"set " + override.text}, override.pointer(),
                         "the path leads through a value that has no keys",
                         "end the path at this value");
    }
    const JsonValue patch =
        JsonValue::parse(patch_text(override.path, override.value), document.file());
    result = JsonValue::merge(result, patch);
  }
  return result;
}

bool is_about(const Override& override, const std::string& pointer, const JsonValue& written) {
  const auto within = [](const std::string& inner, const std::string& outer) {
    return inner == outer || inner.starts_with(outer + "/");
  };
  if (within(pointer, override.pointer())) return true;
  return within(override.pointer(), pointer) && !written.points_to_something(pointer);
}

}  // namespace polyphony
