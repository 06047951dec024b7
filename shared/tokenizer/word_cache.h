// Remembers the ids of pieces. Holds a bounded number of them: a full cache is emptied.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "shared/tokenizer/vocabulary.h"

namespace polyphony::tokenizing {

class WordCache {
 public:
  static constexpr std::size_t kLongest = 255;  // bytes; longer pieces are not remembered

  // Appends the ids of a piece, if they are known, and returns true. `whole` pieces and parts are
  // remembered separately.
  bool find(std::string_view piece, bool whole, std::vector<Id>& ids) const {
    const std::uint64_t hash = hash_of(piece, whole);
    const Slot& slot = slots_[place(hash, piece)];
    if (slot.hash == 0) return false;
    const Id* const first = ids_.data() + slot.ids_at;
    if (slot.ids == 1)
      ids.push_back(*first);
    else
      ids.insert(ids.end(), first, first + slot.ids);
    return true;
  }
  // Remembers the ids from `first` on of a piece that find() does not know.
  void add(std::string_view piece, bool whole, const std::vector<Id>& ids, std::size_t first) {
    const std::size_t count = ids.size() - first;
    if (piece.size() > kLongest || count > kLongest) return;
    if (2 * used_ >= kSlots || text_.size() + piece.size() > kTextBytes) clear();
    const std::uint64_t hash = hash_of(piece, whole);
    slots_[place(hash, piece)] = {
        hash, static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(ids_.size()),
        static_cast<std::uint16_t>(piece.size()), static_cast<std::uint16_t>(count)};
    text_.insert(text_.end(), piece.begin(), piece.end());
    ids_.insert(ids_.end(), ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
    ++used_;
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;  // 0: free
    std::uint32_t text_at = 0, ids_at = 0;
    std::uint16_t size = 0, ids = 0;
  };
  static constexpr std::size_t kSlots = 1 << 17;
  static constexpr std::size_t kTextBytes = 4 << 20;  // and at most as many ids as bytes

  static std::uint64_t hash_of(std::string_view piece, bool whole) {
    std::uint64_t hash = piece.size() * 2 + (whole ? 1 : 0);
    const auto mix = [&](std::uint64_t word) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    };
    std::size_t at = 0;
    for (; at + 8 <= piece.size(); at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, piece.data() + at, 8);
      mix(word);
    }
    std::uint64_t rest = 0;
    std::memcpy(&rest, piece.data() + at, piece.size() - at);
    mix(rest);
    mix(0x632BE59BD9B4E019ull);
    return hash == 0 ? 1 : hash;
  }
  std::size_t place(std::uint64_t hash, std::string_view piece) const {
    for (std::size_t at = hash & (kSlots - 1);; at = (at + 1) & (kSlots - 1)) {
      const Slot& slot = slots_[at];
      if (slot.hash == 0 ||
          (slot.hash == hash && slot.size == piece.size() &&
           std::memcmp(text_.data() + slot.text_at, piece.data(), piece.size()) == 0))
        return at;
    }
  }
  void clear() {
    slots_.assign(kSlots, Slot{});
    text_.clear();
    ids_.clear();
    used_ = 0;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::vector<char> text_;
  std::vector<Id> ids_;
  std::size_t used_ = 0;
};

}  // namespace polyphony::tokenizing
