// The tables of a layout's fields: every field is written and read back, hashed, and part of the
// order of layouts.
#include "shared/model/layout_fields.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>

#include "shared/form/scenario_form.h"
#include "shared/model/chain_grid.h"
#include "shared/program/program.h"
#include "shared/random.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/search/layout_order.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

class Draws {
 public:
  int below(int count) {
    return static_cast<int>(random_bits(1, next_++) % static_cast<std::uint64_t>(count));
  }

 private:
  std::uint64_t next_ = 0;
};

// Draws one of the first two values of a field; lists of at most two numbers.
template <class Field, class Whole>
void draw(const Field& field, Whole& whole, Draws& draws) {
  field.visit(whole, [&]<class Value>(Value& value) {
    if constexpr (std::is_same_v<Value, std::vector<int>>)
      value.assign(static_cast<std::size_t>(draws.below(3)), draws.below(2));
    else
      value = static_cast<Value>(draws.below(2));
  });
}

// Gives a field another value that a scenario file may have.
template <class Field, class Whole>
void change(const Field& field, Whole& whole) {
  field.visit(whole, [&]<class Value>(Value& value) {
    if constexpr (std::is_same_v<Value, std::vector<int>>)
      value = value.empty() ? std::vector<int>{1, 2} : std::vector<int>{};
    else if constexpr (std::is_same_v<Value, ScheduleKind>)
      value = value == kLastSchedule ? Value{} : kLastSchedule;
    else if constexpr (std::is_enum_v<Value>)
      value = value == last_of(Value{}) ? Value{} : last_of(Value{});
    else if constexpr (std::is_same_v<Value, bool>)
      value = !value;
    else
      ++value;
  });
}

// Few fields differ from those of other draws, so that every field decides between some of them.
Layout random_fields(Draws& draws) {
  Layout layout;
  for (const LayoutField& field : layout_fields())
    if (draws.below(6) == 0) draw(field, layout, draws);
  layout.modules.resize(draws.below(4) == 0 ? 1 : 2);
  for (ModuleLayout& grid : layout.modules)
    for (const GridField& field : grid_fields())
      if (draws.below(16) == 0) draw(field, grid, draws);
  if (draws.below(4) == 0) layout.actions = {{make_action(ActionKind::forward, 0, 0)}};
  return layout;
}

std::uint64_t hash_of(const Layout& layout) {
  Program program;
  program.layout = layout;
  return hash(program);
}

Scenario read_again(const Scenario& scenario) {
  return read_scenario(resolved_text(scenario), scenario.file, test::file_text);
}

}  // namespace

TEST_CASE("a layout is simpler, equal, or less simple, and nothing else") {
  Draws draws;
  std::vector<Layout> layouts;
  for (int i = 0; i < 150; ++i) layouts.push_back(random_fields(draws));
  for (const LayoutField& field : layout_fields()) {  // also pairs that differ in one field alone
    layouts.push_back(layouts.front());
    change(field, layouts.back());
  }
  for (const GridField& field : grid_fields()) {
    layouts.push_back(layouts.front());
    change(field, layouts.back().modules.front());
  }
  for (const Layout& a : layouts)
    for (const Layout& b : layouts)
      CHECK(int{simpler(a, b)} + int{simpler(b, a)} + int{a == b} == 1);
  // Transitive: in a sorted list, every layout is simpler than all different ones after it.
  std::sort(layouts.begin(), layouts.end(),
            [](const Layout& a, const Layout& b) { return simpler(a, b); });
  for (std::size_t i = 0; i < layouts.size(); ++i)
    for (std::size_t j = i + 1; j < layouts.size(); ++j)
      CHECK((simpler(layouts[i], layouts[j]) || layouts[i] == layouts[j]));
}

TEST_CASE("the simplest grid has the fewest parallel parts, then the fewest stages") {
  const auto grid = [](int tp, int pp, int vpp) {
    ModuleLayout made;
    made.tp = tp;
    made.pp = pp;
    made.vpp = vpp;
    return made;
  };
  CHECK(simpler(grid(2, 1, 1), grid(1, 4, 1)));  // 2 parts, 4 parts
  CHECK(simpler(grid(4, 1, 1), grid(2, 2, 1)));  // 4 parts each, in 1 and in 2 stages
  CHECK(simpler(grid(1, 2, 2), grid(1, 4, 1)));  // 4 stages each, on 2 and on 4 ranks
  // The modules count before the planner.
  Layout planned{.modules = {grid(1, 1, 1)}}, parallel{.modules = {grid(2, 1, 1)}};
  planned.planner = Planning::dip;
  CHECK(simpler(planned, parallel));
}

TEST_CASE("every field of a grid is written, read back and hashed") {
  const Scenario scenario = test::scenario_at("scenarios/tiny_non_colocated.json");
  for (const GridField& field : grid_fields()) {
    CAPTURE(field.key);
    Scenario changed = scenario;
    change(field, changed.layout->modules.front());
    REQUIRE(changed.layout != scenario.layout);
    CHECK(read_again(changed).layout->modules.front() == changed.layout->modules.front());
    CHECK(hash_of(*changed.layout) != hash_of(*scenario.layout));
  }
}

TEST_CASE("every field of a layout is written, read back and hashed") {
  Scenario scenario = test::scenario_at("scenarios/tiny_non_colocated.json");
  scenario.layout->planner = Planning::dip;  // placements are written for it alone
  for (const LayoutField& field : layout_fields()) {
    CAPTURE(field.key);
    Scenario changed = scenario;
    change(field, *changed.layout);
    CHECK(read_again(changed).layout == changed.layout);
    CHECK(hash_of(*changed.layout) != hash_of(*scenario.layout));
  }
  scenario.layout->planner = Planning::entrain;
  CHECK(read_again(scenario).layout == scenario.layout);
}

TEST_CASE("a homogeneous layout: what one module states by itself, and what is the language's") {
  const Scenario scenario = test::scenario_at("scenarios/tiny.json");
  REQUIRE(scenario.layout->placement == Placement::homogeneous);
  const std::size_t language = language_module(scenario.model).value;
  for (const GridField& field : grid_fields()) {
    CAPTURE(field.key);
    Scenario changed = scenario;
    Layout left = *scenario.layout;
    for (ModuleLayout& grid : left.modules) change(field, grid);
    const ModuleLayout grid = left.modules[language];
    leave_to_language(scenario.model, left);
    CHECK(left.modules[language] == grid);
    CHECK(field.same(left.modules.front(), field.language ? ModuleLayout{} : grid));
    if (field.own > 0) {
      ModuleLayout& vision = changed.layout->modules.front();
      change(field, vision);
      CHECK(read_again(changed).layout->modules.front() == vision);
    }
  }
  // Blocks are stated together with what is recomputed: without them, all blocks are.
  Scenario changed = scenario;
  for (ModuleLayout& grid : changed.layout->modules) {
    grid.recompute = Recompute::full;
    grid.recompute_blocks = {0, 1};
  }
  changed.layout->modules.front().recompute_blocks.clear();
  CHECK(read_again(changed).layout->modules.front().recompute_blocks.empty());
}

TEST_CASE("every key has one row, and no module may have its name") {
  std::set<std::string> keys;
  for (const GridField& field : grid_fields()) CHECK(keys.insert(field.key).second);
  const std::vector<std::string>& reserved = reserved_module_names();
  for (const LayoutField& field : layout_fields()) {
    CHECK(keys.insert(field.key).second);
    CHECK(std::count(reserved.begin(), reserved.end(), field.key) == 1);
  }
}
