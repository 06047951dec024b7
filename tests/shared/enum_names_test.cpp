// Tables of names: as many names as enumerators, found in inner namespaces, also for nested enums.
#include "shared/enum_names.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/model/layout.h"
#include "shared/model/model.h"
#include "shared/number_format.h"
#include "shared/program/fault.h"
#include "shared/text/json_form.h"

using namespace polyphony;

namespace polyphony::inner {
using polyphony::name;

struct Switch {
  enum class State : std::uint8_t { off, on2 };
};
constexpr auto names(Switch::State) { return names_of<Switch::State>("is off", "is on"); }

}  // namespace polyphony::inner

namespace {

using State = inner::Switch::State;

static_assert(is_enumerator<State::off>() && is_enumerator<State::on2>());
static_assert(!is_enumerator<static_cast<State>(2)>() && !is_enumerator<static_cast<State>(255)>());
static_assert(last_of(State::off) == State::on2 && names(State{}).size() == 2);
static_assert(NamedEnum<Shard> && NamedEnum<State>);
static_assert(!NamedEnum<LayerKind> && !NamedEnum<ExitCode> && !NamedEnum<int>);

template <class Enum>
void check_round_trip(std::size_t count, Enum last) {
  const std::vector<std::string> all = enum_names<Enum>();
  CHECK(all.size() == count);
  CHECK(last_of(Enum{}) == last);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto value = static_cast<Enum>(i);
    CHECK(name(value) == all[i]);
    CHECK(enum_named<Enum>(all[i]) == value);
  }
}

}  // namespace

TEST_CASE("a name is found by its enumerator") {
  static_assert(name(Shard::gradients)[0] == 'g');  // at compile time
  CHECK(name(Shard::none) == std::string("none"));
  CHECK(name(Placement::non_colocated) == std::string("non-colocated"));
  CHECK(name(State::on2) == std::string("is on"));
}

TEST_CASE("every name leads back to its enumerator") {
  check_round_trip(4, Shard::full);
  check_round_trip(7, NumberFormat::nvfp4);
  check_round_trip(24, FaultKind::doubled_sample);
  check_round_trip(2, State::on2);
}

TEST_CASE("a value that is no enumerator has no name") {
  CHECK_THROWS_AS(name(static_cast<Shard>(4)), InternalError);
  CHECK_THROWS_AS(name(static_cast<FaultKind>(255)), InternalError);
  CHECK_THROWS_WITH_AS(name(static_cast<State>(2)),
                       doctest::Contains("value 2 of an enum with 2 enumerators"), InternalError);
  CHECK_THROWS_AS(enum_named<Shard>("half"), InternalError);
}
