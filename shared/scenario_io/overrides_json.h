// What if: single values said anew, "cluster.nic=100Gbps", before a document is read as strictly as
// ever, so that a wrong path or value is refused as the file's own would be.
//   PATH=VALUE   PATH: keys from the document's root, joined by dots (or a JSON pointer,
//   "/cluster/nic"). VALUE: a number, true, false, null (removes the key), a list or object in
//   JSON; anything else is a text: 100Gbps, 1f1b
// Paths are those of the file as it is written, presets and all: what follows from a value follows
// from the new one, too (ranks from nodes). Where a preset's name stands in the way of a path
// ("node": "hgx-h100" before cluster.node.link), the key below the root is first spelled out as in
// `polyphony plan --resolved`, a device with all its figures.
// Lists are replaced whole.
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
  std::string pointer() const;    // "/cluster/nic"
};

// InputError: no "=", no path, an empty key.
Override parse_override(const std::string& text);

// `document` with the values said anew. `spelled_out` gives a key below the root without presets,
// as a JSON document; called only where a path leads through a text.
JsonValue apply(const JsonValue& document, const std::vector<Override>& overrides,
                const std::function<JsonValue(const std::string& key)>& spelled_out);

// Whether an error at `pointer` is about what the override says; `written`: the document without
// it.
bool is_about(const Override& override, const std::string& pointer, const JsonValue& written);

}  // namespace polyphony
