// A set of byte strings with numbers, for finding those that a text starts with.
//   One open-addressing table holds the edges of all nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace polyphony::tokenizing {

class ByteTrie {
 public:
  static constexpr std::int32_t kNone = -1;
  struct Found {
    std::size_t size = 0;
    std::int32_t value = kNone;
  };

  // Adds a key, which must not be empty, or replaces its value, which must not be negative.
  void add(std::string_view key, std::int32_t value) {
    std::uint32_t node = 0;
    for (const char c : key) {
      if (2 * values_.size() > edges_.size()) grow();
      Edge& edge = slot(key_of(node, c));
      if (edge.key == 0) {
        edge = {key_of(node, c), static_cast<std::uint32_t>(values_.size())};
        values_.push_back(kNone);
      }
      node = edge.child;
    }
    values_[node] = value;
  }

  // Calls visit(size, value) for each key that `text` starts with, the shortest first.
  template <class Visit>
  void prefixes(std::string_view text, const Visit& visit) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const Edge& edge = slot(key_of(node, text[i]));
      if (edge.key == 0) return;
      node = edge.child;
      if (values_[node] != kNone) visit(i + 1, values_[node]);
    }
  }

  Found longest(std::string_view text) const {
    Found found;
    prefixes(text, [&](std::size_t size, std::int32_t value) { found = {size, value}; });
    return found;
  }

 private:
  struct Edge {
    std::uint64_t key = 0;  // 0: free
    std::uint32_t child = 0;
  };

  static std::uint64_t key_of(std::uint32_t node, char c) {
    return (std::uint64_t{node} << 8 | static_cast<unsigned char>(c)) + 1;
  }
  std::size_t place(std::uint64_t key) const {
    std::size_t at = (key * 0x9E3779B97F4A7C15ull) >> shift_;
    while (edges_[at].key != 0 && edges_[at].key != key) at = (at + 1) & (edges_.size() - 1);
    return at;
  }
  const Edge& slot(std::uint64_t key) const { return edges_[place(key)]; }
  Edge& slot(std::uint64_t key) { return edges_[place(key)]; }
  void grow() {
    std::vector<Edge> old(edges_.size() * 2);
    old.swap(edges_);
    --shift_;
    for (const Edge& edge : old)
      if (edge.key != 0) slot(edge.key) = edge;
  }

  unsigned shift_ = 60;
  std::vector<Edge> edges_ = std::vector<Edge>(16);
  std::vector<std::int32_t> values_ = {kNone};  // by node; node 0 is the root
};

}  // namespace polyphony::tokenizing
