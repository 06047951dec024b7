// A memo table: values keyed by the integers that they depend on. References to values stay valid.
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
class MemoTable {
 public:
  // Returns the value for `key`; calls `make` the first time that the key is asked for.
  template <class Make>
  const Value& get(const Key& key, Make make) {
    if (const auto found = table_.find(key); found != table_.end()) return found->second;
    Key own = key;  // a copy: `make` may reuse the caller's key
    Value value = make();
    return table_.emplace(std::move(own), std::move(value)).first->second;
  }

 private:
  std::unordered_map<Key, Value, KeyHash> table_;
};

}  // namespace polyphony
