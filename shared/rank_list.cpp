#include "shared/rank_list.h"

#include <algorithm>

namespace polyphony {

RankList::RankList(std::vector<Rank> ranks) : count_(static_cast<std::uint32_t>(ranks.size())) {
  if (ranks.empty()) return;
  const std::uint32_t stride = ranks.size() > 1 ? ranks[1].value - ranks[0].value : 0;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i].value != ranks[0].value + static_cast<std::uint32_t>(i) * stride) {
      each_ = std::move(ranks);
      return;
    }
  first_ = ranks[0].value;
  stride_ = stride;
}

std::optional<std::size_t> RankList::find(Rank rank) const {
  if (!each_.empty()) {
    const auto found = std::find(each_.begin(), each_.end(), rank);
    if (found == each_.end()) return {};
    return static_cast<std::size_t>(found - each_.begin());
  }
  // Unsigned: a falling list's stride wraps round.
  if (stride_ == 0)
    return count_ > 0 && rank.value == first_ ? std::optional<std::size_t>(0) : std::nullopt;
  const bool falls = stride_ > 0x7fffffffu;
  const std::uint32_t distance = falls ? first_ - rank.value : rank.value - first_,
                      step = falls ? 0u - stride_ : stride_;
  if (distance % step != 0 || distance / step >= count_) return {};
  return distance / step;
}

}  // namespace polyphony
