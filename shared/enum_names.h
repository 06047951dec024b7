// Names of enumerators, as files and output write them. A table next to the enum lists one name per
// enumerator, in the order of the enumerators, which count from 0:
//   enum class Norm : std::uint8_t { rms, layer };
//   constexpr auto names(Norm) { return names_of<Norm>("rms", "layer"); }
//
// name() and last_of() work for every enum with a table, and so do enum_names() and enum_named() of
// shared/text/json_form.h. The table is in the namespace of its enum; if that is not polyphony, so
// is `using polyphony::name;`.
#pragma once

#include <cstddef>

namespace polyphony {

// Returns true if the value is an enumerator: GCC and Clang then write it as "Norm::layer" in the
// name of this function, otherwise as "(Norm)2".
template <auto value>
constexpr bool is_enumerator() {
  const char* const text = __PRETTY_FUNCTION__;
  std::size_t end = 0;
  while (text[end + 1] != '\0') ++end;  // to the closing bracket
  while (text[end - 1] >= '0' && text[end - 1] <= '9') --end;
  return text[end - 1] != ')';
}

// Throws InternalError: `value` is not among `count` enumerators.
[[noreturn]] void no_enumerator(std::size_t value, std::size_t count);

template <class Enum, std::size_t count>
struct EnumNames {
  static constexpr std::size_t size() { return count; }
  const char* text[count];
  constexpr const char* operator[](Enum value) const {
    const auto at = static_cast<std::size_t>(value);
    return at < count ? text[at] : (no_enumerator(at, count), nullptr);
  }
};
template <class Enum, class... Text>
constexpr EnumNames<Enum, sizeof...(Text)> names_of(Text... text) {
  static_assert(is_enumerator<static_cast<Enum>(sizeof...(Text) - 1)>(), "too many names");
  static_assert(!is_enumerator<static_cast<Enum>(sizeof...(Text))>(), "too few names");
  return {{text...}};
}

template <class Enum>
concept NamedEnum = requires(Enum value) { names(value)[value]; };
template <NamedEnum Enum>
inline constexpr auto kNames = names(Enum{});

// Return the name of an enumerator (any other value throws InternalError), and the last enumerator.
template <NamedEnum Enum>
constexpr const char* name(Enum value) {
  return kNames<Enum>[value];
}
template <NamedEnum Enum>
constexpr Enum last_of(Enum) {
  return static_cast<Enum>(kNames<Enum>.size() - 1);
}

}  // namespace polyphony
