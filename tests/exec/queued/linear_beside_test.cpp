// On devices the collectives in the backward pass of a column-parallel layer overlap with its
// GEMMs.
#include "exec/transport/in_process.h"
#include "tests/exec/device_double/device_world.h"
#include "tests/exec/device_double/late_rank.h"  // after LibTorch, which has its own CHECK
#include "tests/exec/support/linear_layer.h"

namespace polyphony::exec::testing {

namespace {

// Overlapped calls: the reduction of dx with the weight-gradient GEMM; with sequence parallelism
// the gather of x before it, with dx.
int calls_beside(const LinearWay& way) { return !way.column ? 0 : way.sp ? 2 : 1; }

std::vector<Rank> all_ranks(int count) {
  std::vector<Rank> members;
  for (int i = 0; i < count; ++i) members.push_back(Rank(static_cast<std::size_t>(i)));
  return members;
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE(
      "a column-parallel layer overlaps gathering x with dx, and summing dx with its weight "
      "gradient") {
    for (const bool column : {true, false})
      for (const bool sp : {false, true}) {
        CAPTURE(column);
        CAPTURE(sp);
        const LinearWay way{3, 11, column, sp, false};
        std::vector<LinearResult> there(3), here(3);
        Done done{0};
        on_devices(3, /*in_order=*/false, [&](Transport& transport, torch::Device device) {
          const auto group = transport.make_group("tensor", all_ranks(3));
          connect_members(*group, device);
          LateRank late(*group, device, done);
          there[transport.rank().value] = run_linear(late, way, 1, device);
          CHECK(late.works() == calls_beside(way));
        });
        exec::run_in_process(3, [&](Transport& transport) {
          const auto group = transport.make_group("tensor", all_ranks(3));
          here[transport.rank().value] = run_linear(*group, way, 1);
        });
        for (std::size_t t = 0; t < 3; ++t) {
          REQUIRE(there[t].tensors.size() == here[t].tensors.size());
          for (std::size_t i = 0; i < here[t].tensors.size(); ++i)
            CHECK(torch::equal(there[t].tensors[i], here[t].tensors[i]));
          CHECK((there[t].collectives == here[t].collectives));
        }
      }
  }
}

}  // namespace polyphony::exec::testing
