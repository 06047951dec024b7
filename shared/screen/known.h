// A table of what was made before, by a short list of numbers that says all that it depends on.
// What is in it never moves.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shared/random.h"

namespace polyphony {

using Key = std::vector<std::int32_t>;

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t state = key.size();
    for (const std::int32_t number : key) state = mix64(state ^ static_cast<std::uint32_t>(number));
    return state;
  }
};

template <class Value>
class Known {
 public:
  // What `make` returned when it was first asked for.
  template <class Make>
  const Value& get(const Key& key, Make make) {
    if (const auto found = table_.find(key); found != table_.end()) return found->second;
    Key own = key;  // what makes may reuse the caller's
    Value value = make();
    return table_.emplace(std::move(own), std::move(value)).first->second;
  }

 private:
  std::unordered_map<Key, Value, KeyHash> table_;
};

}  // namespace polyphony
