// Tables of collectives in profiles.
#include "traces/evidence/device_collectives.h"

#include <doctest/doctest.h>

#include "tests/traces/kineto/made.h"

namespace polyphony::traces {
namespace {

std::string collective(const std::string& name, int elements, int ranks, const std::string& members,
                       double ts, double dur, int correlation) {
  return made::kernel("ncclDevKernel_Generic", ts - 1, ts, dur, 20, correlation,
                      R"(, "Collective name": ")" + name + R"(", "In msg nelems": )" +
                          std::to_string(elements) + R"(, "Out msg nelems": )" +
                          std::to_string(elements) + R"(, "dtype": "BFloat16", "Group size": )" +
                          std::to_string(ranks) + R"(, "Process Group Ranks": ")" + members + "\"");
}

std::vector<CollectiveTimes> tables(const std::vector<std::string>& events, int per_node) {
  return collective_times(rank_set({made::read(made::file(events, made::head(0, 16)))}), per_node);
}

}  // namespace

TEST_CASE("the shortest time of each size counts, by where the group's ranks are") {
  std::vector<std::string> events;
  int correlation = 0;
  for (int i = 0; i < 4; ++i) {
    const double at = 1000.0 * i + 10;
    events.push_back(
        collective("allreduce", 1 << 24, 4, "[0, 1, 2, 3]", at, 100 + 10 * i, ++correlation));
    events.push_back(
        collective("allreduce", 1 << 20, 4, "[0, 1, 2, 3]", at + 200, 20 - i, ++correlation));
    events.push_back(
        collective("_allgather_base", 1 << 22, 2, "[0, 8]", at + 300, 50, ++correlation));
  }
  // Too few.
  events.push_back(collective("allreduce", 1 << 26, 16, "[0, 1, ..., 14, 15]", 9000, 900, 77));
  const std::vector<CollectiveTimes> found = tables(events, 8);
  REQUIRE(found.size() == 2);
  CHECK(found[0].kind == CollectiveKind::all_reduce);
  CHECK(found[0].ranks == 4);
  CHECK(found[0].nodes == 1);
  REQUIRE(found[0].rows.size() == 2);
  CHECK(found[0].rows[0].bytes == Bytes(1 << 25));
  CHECK(found[0].rows[0].time.count() == doctest::Approx(100e-6));
  CHECK(found[0].rows[1].time.count() == doctest::Approx(17e-6));
  CHECK(found[1].kind == CollectiveKind::all_gather);
  CHECK(found[1].ranks == 2);
  CHECK(found[1].nodes == 2);
}

TEST_CASE("without a list of ranks only groups that fit on a node are used") {
  std::vector<std::string> events;
  for (int i = 0; i < 4; ++i) {
    events.push_back(collective("allreduce", 1 << 24, 8, "", 1000.0 * i + 10, 100, 2 * i + 1));
    events.push_back(collective("allreduce", 1 << 24, 16, "", 1000.0 * i + 500, 200, 2 * i + 2));
  }
  const std::vector<CollectiveTimes> found = tables(events, 8);
  REQUIRE(found.size() == 1);
  CHECK(found[0].ranks == 8);
  CHECK(tables(events, 4).empty());
}

}  // namespace polyphony::traces
