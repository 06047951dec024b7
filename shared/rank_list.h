// An ordered list of ranks, as in a communication group. Most lists are a first rank, a stride and
// a count, which take three words whatever their length; all others store each rank.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "shared/ids.h"

namespace polyphony {

class RankList {
 public:
  RankList() = default;
  RankList(std::initializer_list<Rank> ranks) : RankList(std::vector<Rank>(ranks)) {}
  RankList(std::vector<Rank> ranks);
  // first, first + stride, …
  static RankList spaced(Rank first, int stride, int count) {
    RankList list;
    list.first_ = first.value;
    list.stride_ = count > 1 ? static_cast<std::uint32_t>(stride) : 0;
    list.count_ = static_cast<std::uint32_t>(count);
    return list;
  }

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Rank operator[](std::size_t i) const {
    return each_.empty() ? Rank(std::size_t{first_ + static_cast<std::uint32_t>(i) * stride_})
                         : each_[i];
  }
  Rank front() const { return (*this)[0]; }
  Rank back() const { return (*this)[count_ - 1]; }
  // Returns the position of the rank in the list.
  std::optional<std::size_t> find(Rank rank) const;
  bool contains(Rank rank) const { return find(rank).has_value(); }
  operator std::vector<Rank>() const { return {begin(), end()}; }

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Rank;
    using difference_type = std::ptrdiff_t;
    using pointer = const Rank*;
    using reference = Rank;
    Iterator() = default;
    Iterator(const RankList* list, std::size_t at) : list_(list), at_(at) {}
    Rank operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return {list_, at_++}; }
    bool operator==(const Iterator&) const = default;

   private:
    const RankList* list_ = nullptr;
    std::size_t at_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, count_}; }

  bool operator==(const RankList&) const = default;

 private:
  std::uint32_t first_ = 0, stride_ = 0, count_ = 0;
  std::vector<Rank> each_;  // all ranks of the list; empty if it is evenly spaced
};

}  // namespace polyphony
