// Overrides of single values of a JSON document, such as "cluster.nic=100Gbps" (option --set).
// They are applied before the document is read, so that a wrong path or value is rejected in the
// same way as in the file, and derived values (ranks from nodes) follow from the new value.
//
// An override is PATH=VALUE. PATH: keys from the root of the document, joined by dots, or a JSON
// pointer ("/cluster/nic"). VALUE: a number, true, false, null (removes the key), or a list or
// object in JSON; any other text is a string (100Gbps, 1f1b). Lists can only be replaced as a
// whole.
//
// Paths are those of the file as written, with presets. If a path leads through the name of a
// preset (cluster.node.link, and the file has "node": "hgx-h100"), the key below the root (cluster)
// is first replaced by its resolved form, as `polyphony plan --resolved` prints it, with all
// figures of the device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/text/strict_json.h"

namespace polyphony {

struct Override {
  std::string text;               // as given: "cluster.nic=100Gbps"
  std::vector<std::string> path;  // "cluster", "nic"
  std::string value;              // JSON
  std::string pointer() const;    // the path as a JSON pointer: "/cluster/nic"
};

// Parses PATH=VALUE. Throws InputError if "=" is missing or a key of the path is empty.
Override parse_override(const std::string& text);

// Returns `document` with the overrides applied, in order. `spelled_out` returns the resolved form,
// without presets, of a key below the root; it is called only if a path leads through a string.
// Throws InputError if a path leads through a list or a number.
JsonValue apply(const JsonValue& document, const std::vector<Override>& overrides,
                const std::function<JsonValue(const std::string& key)>& spelled_out);

// Returns true if an error at `pointer` is caused by the override: at the overridden value, inside
// it, or at a parent that does not exist in `written`, the document without overrides.
bool is_about(const Override& override, const std::string& pointer, const JsonValue& written);

}  // namespace polyphony
