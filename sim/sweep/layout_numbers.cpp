#include "sim/sweep/layout_numbers.h"

#include <nlohmann/json.hpp>
#include <span>
#include <type_traits>

#include "shared/model/layout_fields.h"

namespace polyphony::sim {
namespace {

template <class Value>
constexpr bool is_list = std::is_same_v<Value, std::vector<int>>;

// Calls visit(number) for every scalar field, and then visit(list) for every list, to read or to
// write it.
template <class Field, class Whole, class Visit>
void visit_fields(std::span<const Field> fields, Whole& whole, Visit visit) {
  for (const bool lists : {false, true})
    for (const Field& field : fields)
      field.visit(whole, [&]<class Value>(Value& value) {
        if (is_list<std::remove_const_t<Value>> == lists) visit(value);
      });
}

}  // namespace

nlohmann::json layout_numbers(const Layout& layout) {
  nlohmann::json numbers = nlohmann::json::array();
  const auto write = [&]<class Value>(const Value& value) {
    if constexpr (is_list<Value>)
      numbers.push_back(value);
    else
      numbers.push_back(static_cast<int>(value));
  };
  visit_fields(layout_fields(), layout, write);
  for (const ModuleLayout& grid : layout.modules) visit_fields(grid_fields(), grid, write);
  return numbers;
}

Layout layout_of(const nlohmann::json& numbers) {
  Layout layout;
  std::size_t next = 0;
  const auto read = [&]<class Value>(Value& value) {
    if constexpr (is_list<Value>)
      value = numbers[next++].get<Value>();
    else
      value = static_cast<Value>(numbers[next++].get<int>());
  };
  visit_fields(layout_fields(), layout, read);
  while (next < numbers.size()) visit_fields(grid_fields(), layout.modules.emplace_back(), read);
  return layout;
}

}  // namespace polyphony::sim
