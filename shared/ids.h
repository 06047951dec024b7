// Strongly typed indices, so that a rank cannot be used as a module. Each is a position in the
// Program's (or Model's) table of that name.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace polyphony {

template <class Tag>
struct Id {
  std::uint32_t value = kNone;
  static constexpr std::uint32_t kNone = 0xffffffffu;
  constexpr Id() = default;
  constexpr explicit Id(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}
  constexpr bool valid() const { return value != kNone; }
  auto operator<=>(const Id&) const = default;
};

using Rank = Id<struct RankTag>;
using ModuleId = Id<struct ModuleTag>;
using StreamId = Id<struct StreamTag>;
using GroupId = Id<struct GroupTag>;
using MessageId = Id<struct MessageTag>;
using BufferId = Id<struct BufferTag>;
using WorkId = Id<struct WorkTag>;
using OpId = Id<struct OpTag>;
using ParamGroupId = Id<struct ParamGroupTag>;

// Half-open interval of positions in a flat array.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  constexpr std::uint32_t size() const { return end - begin; }
  auto operator<=>(const Range&) const = default;
};

}  // namespace polyphony
