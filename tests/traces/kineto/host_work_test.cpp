// Profiles of ranks that compute on a CPU.
#include "traces/kineto/host_work.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "tests/traces/kineto/made.h"
#include "traces/kineto/kernel_class.h"
#include "traces/kineto/profiled_ops.h"
#include "traces/kineto/summary.h"

using namespace polyphony;
using namespace polyphony::traces;
using std::chrono::microseconds;

namespace {

const std::string kHead =
    made::head(1, 2) +
    R"( "polyphony": {"format": 1, "kind": "profiled", "step": 7, "ops": 2, "on_device": false,
        "clock": {"offset_ns": -5, "error_ns": 9}},)";

std::string op(const std::string& name, int number, double ts, double dur, const char* thread,
               const std::string& more = "") {
  return made::event("user_annotation", name, ts, dur, "\"op\": " + std::to_string(number) + more,
                     thread);
}
std::string call(const std::string& name, double ts, double dur, const std::string& args = "") {
  return made::event("cpu_op", name, ts, dur, args);
}

// Microseconds, by thread:
//   1  F language 0-100: linear 10-60, in it mm 20-50 and, after that, empty 52-54; add 80-90
//   2  all_reduce 70-95: copy_ 75-80
std::string profile() {
  return made::file(
      {made::step(7, 0, 100), op("F language[0,2) work 0", 0, 0, 100, "1"),
       call("aten::linear", 10, 50), call("aten::mm", 20, 30, R"("Input Dims": [[2, 3], [3, 4]])"),
       call("aten::empty", 52, 2), call("aten::add_", 80, 10),
       op("all_reduce language[0,2)", 1, 70, 25, "2",
          R"(, "Collective name": "allreduce", "In msg nelems": 100, "Out msg nelems": 100,
             "dtype": "Byte", "Group size": 2)"),
       made::event("cpu_op", "aten::copy_", 75, 5, "", "2")},
      kHead);
}

}  // namespace

// linear itself takes 10-20 and 50-60, where empty does not count: with mm 50 us of GEMM. The
// collective takes 25 us, whatever runs inside, and 15 us of it (70-80, 90-95) are not hidden behind
// the addition. The step lasts from 10 to 95 us, of which 60-70 are idle.
TEST_CASE("operators of a CPU are accounted like kernels") {
  const RankSet ranks = rank_set({made::read(profile())});
  const DeviceTrace& trace = ranks.traces[0];
  CHECK(trace.on_host);
  CHECK(trace.rank == 1);
  // The first event begins at 0 us of the file; the clock is 5 ns ahead of rank 0's.
  CHECK(trace.unix_of == Nanoseconds(1'699'999'999'999'999'995));
  CHECK(trace.events.size() == 5);
  REQUIRE(ranks.times[0].steps.size() == 1);
  const DeviceTimes& times = ranks.times[0].steps[0].times;
  CHECK(times == ranks.times[0].whole);
  CHECK(times.of(KernelClass::gemm) == ClassTime{microseconds(50), microseconds(50), 3});
  CHECK(times.of(KernelClass::elementwise) == ClassTime{microseconds(10), microseconds(10), 1});
  CHECK(times.of(KernelClass::collective) == ClassTime{microseconds(15), microseconds(25), 1});
  CHECK(times.span == microseconds(85));
  CHECK(times.idle == microseconds(10));
  const std::vector<ProductRow> products = product_rows(ranks);
  REQUIRE(products.size() == 1);
  CHECK(products[0].product == MatrixProduct{1, 2, 4, 3});
  CHECK(products[0].total == microseconds(30));
  const std::vector<CollectiveRow> collectives = collective_rows(ranks);
  REQUIRE(collectives.size() == 1);
  CHECK(collectives[0].shape.bytes == Bytes(100));
}

// The size of a GEMM is stated once, by the longest of its parts: of addmm's 0-10 and 20-60 the
// second.
TEST_CASE("a GEMM in parts counts once") {
  const std::string text = made::file(
      {made::step(7, 0, 100), call("aten::addmm", 0, 60, R"("Input Dims": [[4], [2, 3], [3, 4]])"),
       call("aten::copy_", 10, 10)},
      kHead);
  const RankSet ranks = rank_set({made::read(text)});
  const std::vector<ProductRow> products = product_rows(ranks);
  REQUIRE(products.size() == 1);
  CHECK(products[0].count == 1);
  CHECK(products[0].total == microseconds(40));
}

TEST_CASE("a CPU's profile without operators is rejected") {
  CHECK_THROWS_WITH_AS(made::read(made::file({made::step(7, 0, 100)}, kHead)),
                       doctest::Contains("no operator among its events"), InputError);
  // Profiles of other programs that lack a device are still rejected: the device was forgotten.
  CHECK_THROWS_WITH_AS(made::read(made::file({call("aten::mm", 0, 1)}, made::head(0, 1))),
                       doctest::Contains("no kernel and no copy"), InputError);
}

TEST_CASE("operators have classes by their own name") {
  CHECK(operator_class("aten::mm") == KernelClass::gemm);
  CHECK(operator_class("aten::_scaled_dot_product_flash_attention_for_cpu") ==
        KernelClass::attention);
  CHECK(operator_class("aten::normal_") == KernelClass::elementwise);
  CHECK(operator_class("aten::native_layer_norm") == KernelClass::normalisation);
  CHECK(operator_class("aten::linalg_vector_norm") == KernelClass::reduction);
  CHECK(operator_class("aten::add_") == KernelClass::elementwise);
  CHECK(operator_class("aten::addmm") == KernelClass::gemm);
  CHECK(operator_class("aten::copy_") == KernelClass::data_movement);
  CHECK(operator_class("aten::igamma") == KernelClass::unknown);
  CHECK_FALSE(operator_class("aten::t"));
  CHECK(operator_class("aten::tanh") == KernelClass::elementwise);
  CHECK_FALSE(operator_class("aten::empty_like"));
  CHECK_FALSE(operator_class("MmBackward0"));
}

TEST_CASE("the ops of a Program are read from a profile, packed or not") {
  const std::string text = profile(), small = packed(text);
  CHECK(small.size() < text.size());
  for (const std::string& bytes : {text, small}) {
    CHECK(is_profile(bytes));
    const ProfiledOps found = read_profiled_ops(bytes, "p");
    CHECK(found.step == 7);
    CHECK(found.rank == 1);
    CHECK(found.ranks == 2);
    CHECK(found.count == 2);
    CHECK(found.offset == Nanoseconds(-5));
    CHECK(found.error == Nanoseconds(9));
    CHECK_FALSE(found.on_device);
    const Nanoseconds base(1'700'000'000'000'000'000);
    REQUIRE(found.ops.size() == 2);
    CHECK(found.ops[1] == ProfiledOp{1, "all_reduce language[0,2)", base + microseconds(70),
                                     base + microseconds(95)});
    CHECK(read_profiled_ops(bytes, "p", true).step == 7);
  }
  CHECK_THROWS_WITH_AS(read_profiled_ops(R"({"polyphony": {"kind": "profiled", "clock": )"
                                         R"({"offset_ns": 9000000000000000000}}})",
                                         "p"),
                       doctest::Contains("less than a year off"), InputError);
  CHECK_FALSE(is_profile(R"({"polyphony": {"kind": "measured"}, "traceEvents": []})"));
  CHECK_THROWS_WITH_AS(read_profiled_ops(packed(made::file({}, made::head(0, 1))), "p"),
                       doctest::Contains("is no profile of `polyphony run --kineto`"), InputError);
  CHECK_THROWS_WITH_AS(read_profiled_ops(packed(text.substr(0, text.size() / 2)), "p"),
                       doctest::Contains("ends"), InputError);
}

// Larger than zlib's and our blocks, and with a length that no block divides.
TEST_CASE("packed text unpacks to itself") {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += std::to_string(i * 7919) + ",";
  for (const std::string& one : {text, std::string(), std::string("x")}) {
    const std::string small = packed(one);
    const ByteSource bytes = unpacked(bytes_of(small), "t");
    std::string back, block(1000, '\0');
    while (const std::size_t count = bytes(block.data(), block.size()))
      back.append(block, 0, count);
    CHECK(back == one);
  }
}
