// Lists of values to choose from: those that the search states, or else all that are worth trying.
#pragma once

#include <algorithm>
#include <vector>

namespace polyphony {

inline std::vector<int> powers_of_two(int least, int most) {
  std::vector<int> values;
  for (int value = 1; value <= most; value *= 2) {
    if (value >= least) values.push_back(value);
  }
  return values;
}

template <class T>
std::vector<T> choice(const std::vector<T>& given, std::vector<T> otherwise) {
  return given.empty() ? otherwise : given;
}

// For a field whose values all mean the same here: returns one value, `neutral` if it is allowed.
template <class T>
std::vector<T> only(const std::vector<T>& given, T neutral) {
  if (given.empty() || std::find(given.begin(), given.end(), neutral) != given.end())
    return {neutral};
  return {static_cast<T>(given.front())};
}

template <class T>
std::vector<T> without_repeats(std::vector<T> values) {
  std::vector<T> once;
  for (const T& value : values)
    if (std::find(once.begin(), once.end(), value) == once.end()) once.push_back(value);
  return once;
}

template <class Enum>
std::vector<Enum> all_of() {
  std::vector<Enum> all;
  for (int i = 0; i <= static_cast<int>(last_of(Enum{})); ++i) all.push_back(static_cast<Enum>(i));
  return all;
}

}  // namespace polyphony
