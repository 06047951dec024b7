// Layouts as lists of numbers, the keys by which a search remembers its answers.
#include "sim/sweep/layout_numbers.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "shared/model/layout_fields.h"

namespace polyphony {
namespace {

template <class Field, class Whole>
void change(const Field& field, Whole& whole) {
  field.visit(whole, [&]<class Value>(Value& value) {
    if constexpr (std::is_same_v<Value, std::vector<int>>)
      value = {3, 1};
    else
      value = static_cast<Value>(value == Value{} ? 1 : 0);
  });
}

void check(const Layout& plain, const Layout& changed) {
  REQUIRE(changed != plain);
  CHECK(sim::layout_numbers(changed) != sim::layout_numbers(plain));
  CHECK(sim::layout_of(sim::layout_numbers(changed)) == changed);
}

}  // namespace

// The list is part of journals: fields in the order of the members, lists after numbers.
TEST_CASE("numbers of a layout, by hand") {
  Layout layout{.modules = {ModuleLayout{}}};
  layout.modules[0].blocks = {4, 3};
  layout.modules[0].ranks = 8;
  CHECK(sim::layout_numbers(layout).dump() ==
        "[0,1,1,0,0,0,0,0,1000,1,"
        "1,1,1,1,1,0,1,0,0,0,0,0,0,0,0,0,0,0,8,0,1,[],[4,3]]");
}

TEST_CASE("every field changes the numbers of a layout and is read back") {
  const Layout plain{.modules = {ModuleLayout{}, ModuleLayout{}}};
  for (const LayoutField& field : layout_fields()) {
    CAPTURE(field.key);
    Layout changed = plain;
    change(field, changed);
    check(plain, changed);
  }
  for (const GridField& field : grid_fields()) {
    CAPTURE(field.key);
    Layout changed = plain;
    change(field, changed.modules[1]);
    check(plain, changed);
  }
}

}  // namespace polyphony
