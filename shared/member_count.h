// The number of members of an aggregate, for tables with one row per member.
#pragma once

#include <cstddef>

namespace polyphony {

struct AnyMember {
  template <class T>
  operator T() const;
};
template <class T, class... Members>
constexpr std::size_t member_count() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; })
    return member_count<T, Members..., AnyMember>();
  else
    return sizeof...(Members);
}

}  // namespace polyphony
