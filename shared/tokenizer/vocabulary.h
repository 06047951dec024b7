// The tokens of a model and their ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace polyphony::tokenizing {

using Id = std::int32_t;
inline constexpr Id kNoId = -1;
inline constexpr Id kLargestId = (1 << 22) - 1;

class Vocabulary {
 public:
  // The ids must be from 0 to kLargestId, each given once. A token given twice has its last id.
  explicit Vocabulary(std::vector<std::pair<std::string, Id>> tokens) {
    Id most = kNoId;
    for (const auto& [token, id] : tokens) most = std::max(most, id);
    tokens_.resize(static_cast<std::size_t>(most) + 1);
    known_.resize(tokens_.size());
    ids_.reserve(tokens.size());
    for (auto& [token, id] : tokens) {
      const auto at = static_cast<std::size_t>(id);
      tokens_[at] = std::move(token);
      known_[at] = true;
      longest_ = std::max(longest_, tokens_[at].size());
      ids_.insert_or_assign(std::string_view(tokens_[at]), id);
    }
  }
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  ~Vocabulary() = default;

  Id id(std::string_view token) const {
    if (token.size() > longest_) return kNoId;
    const auto found = ids_.find(token);
    return found == ids_.end() ? kNoId : found->second;
  }
  bool has(Id id) const {
    return id >= 0 && static_cast<std::size_t>(id) < known_.size() &&
           known_[static_cast<std::size_t>(id)];
  }
  // The id must be one that has() knows.
  const std::string& token(Id id) const { return tokens_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return ids_.size(); }
  std::size_t end_id() const { return tokens_.size(); }  // one more than the largest id
  std::size_t longest() const { return longest_; }       // bytes

 private:
  std::vector<std::string> tokens_;               // by id
  std::vector<bool> known_;                       // by id
  std::unordered_map<std::string_view, Id> ids_;  // views of tokens_
  std::size_t longest_ = 0;
};

}  // namespace polyphony::tokenizing
