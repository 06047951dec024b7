// Groups of kernels of a profile, by hand.
#include "traces/evidence/device_evidence.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "tests/traces/kineto/made.h"

namespace polyphony::traces {
namespace {

using made::event, made::file, made::head, made::kernel, made::read, made::step;

std::string op(const std::string& name, double at, const std::string& dims = "") {
  return event("cpu_op", name, at, 3, dims.empty() ? "" : R"("Input Dims": )" + dims);
}

// Two steps of 100 us. Times of the second are those of the first and 2 us more.
std::vector<std::string> two_steps() {
  std::vector<std::string> events;
  int correlation = 0;
  for (int s = 0; s < 2; ++s) {
    const double at = 100.0 * s, more = 2.0 * s;
    const auto add = [&](const std::string& name, const std::string& by, double ts, double dur,
                         const std::string& dims = "") {
      if (!by.empty()) events.push_back(op(by, at + ts, dims));
      events.push_back(kernel(name, at + ts + 1, at + ts + 4, dur, 7, ++correlation));
    };
    events.push_back(step(s, at, 99));
    add("nvjet_tst_128x64", "aten::mm", 0, 10 + more, "[[64, 32], [32, 16]]");
    add("nvjet_tst_128x64", "aten::mm", 15, 10 + more, "[[64, 32], [32, 16]]");
    add("cutlass::device_kernel<GroupProblemShape>", "aten::_grouped_mm", 30, 5 + more);
    add("flash_fwd_kernel", "", 40, 4 + more);
    add("flash_bwd_dq_dk_dv_loop_kernel", "", 50, 8 + more);
    add("vectorized_elementwise_kernel", "aten::add", 60, 3 + more);
    add("multi_tensor_apply_kernel", "", 70, 6 + more);
    add("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "", 78, 1);
    add("some_kernel_of_theirs", "", 80, 2);
  }
  return events;
}

double microseconds(Seconds time) { return time.count() * 1e6; }

}  // namespace

TEST_CASE("kernels of a step by group: medians over the steps") {
  const DeviceEvidence found = device_evidence(read(file(two_steps(), head(3, 8))));
  CHECK(found.rank == 3);
  CHECK(found.world == 8);
  CHECK(found.steps == 2);
  const auto time = [&](KernelGroup group) { return microseconds(found.of(group).time); };
  CHECK(time(KernelGroup::gemm) == doctest::Approx(22));  // of 20 and 24
  CHECK(time(KernelGroup::grouped_gemm) == doctest::Approx(6));
  CHECK(time(KernelGroup::attention_forward) == doctest::Approx(5));
  CHECK(time(KernelGroup::attention_backward) == doctest::Approx(9));
  CHECK(time(KernelGroup::memory_bound) == doctest::Approx(4));
  CHECK(time(KernelGroup::optimizer) == doctest::Approx(7));
  CHECK(microseconds(found.unknown) == doctest::Approx(2));
  // Deviation of the mean of 20 and 24: √(8 / 2) / 22.
  CHECK(found.of(KernelGroup::gemm).noise == doctest::Approx(2.0 / 22));
  CHECK(found.of(KernelGroup::gemm).kernels == 4);
  REQUIRE(found.of(KernelGroup::gemm).by_name.size() == 1);
  CHECK(microseconds(found.of(KernelGroup::gemm).by_name.at("nvjet_tst_128x64")) ==
        doctest::Approx(22));
  REQUIRE(found.products.size() == 1);
  CHECK(found.products[0].product == MatrixProduct{1, 64, 16, 32});
  CHECK(found.products[0].count == 2);
  CHECK(microseconds(found.products[0].time) == doctest::Approx(11));
  CHECK(found.known_products == doctest::Approx(1));
  CHECK(microseconds(found.step) == doctest::Approx(100));
}

TEST_CASE("a profile without steps is one step; one without GEMMs is refused") {
  std::vector<std::string> events = two_steps();
  std::erase_if(events, [](const std::string& of) { return of.find("ProfilerStep") != of.npos; });
  const DeviceEvidence found = device_evidence(read(file(events, head(0, 1))));
  CHECK(found.steps == 1);
  CHECK(microseconds(found.of(KernelGroup::gemm).time) == doctest::Approx(44));
  CHECK_THROWS_AS(
      device_evidence(read(file({kernel("flash_fwd_kernel", 1, 4, 5, 7, 1)}, head(0, 1)))),
      InputError);
}

TEST_CASE("a profile whose kernels are outside of its steps is refused") {
  std::vector<std::string> events = two_steps();
  std::erase_if(events, [](const std::string& of) { return of.find("ProfilerStep") != of.npos; });
  events.push_back(step(0, 5000, 10));
  try {
    device_evidence(read(file(events, head(0, 1))));
    FAIL("no error");
  } catch (const InputError& error) {
    CHECK(error.what_is_wrong == "has no kernels that were launched within its steps");
  }
}

TEST_CASE("profiles of others are told from ours by their beginning") {
  const auto of_others = [](const std::string& text) {
    return is_profile_of_others(bytes_of(text), "t.json");
  };
  const std::string theirs = file(two_steps(), head(0, 1));
  CHECK(of_others(theirs));
  CHECK(of_others(packed(theirs)));
  CHECK_FALSE(of_others(file(two_steps(), head(0, 1) + R"("polyphony": {"kind": "profiled"},)")));
  CHECK_FALSE(of_others("[2026-04-13] iteration 1"));
  CHECK_FALSE(of_others(R"({"evidence": 1, "runs": []})"));
}

}  // namespace polyphony::traces
