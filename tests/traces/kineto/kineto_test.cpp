#include "traces/kineto/kineto.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include "shared/error.h"
#include "tests/traces/kineto/made.h"
#include "traces/kineto/device_times.h"
#include "traces/kineto/profile_event.h"

using namespace polyphony;
using namespace polyphony::traces;
using namespace std::chrono_literals;

namespace {

// One step. Stream 7: a GEMM from 100 to 200, an element-wise kernel from 250 to 300 (us). Stream
// 20: an all-reduce of 4,000,000 floats among 4 from 150 to 400. A copy to the host from 390 to
// 420.
std::vector<std::string> one_step() {
  return {
      made::step(3, 0, 300),
      made::event(
          "cpu_op", "aten::mm", 10, 20,
          R"("External id": 5, "Input Dims": [[64, 128], [128, 32]], "Input type": ["float"])"),
      made::kernel("nvjet_sm90", 15, 100, 100, 7, 1),
      made::kernel("void at::native::vectorized_elementwise_kernel<4>()", 40, 250, 50, 7, 2),
      made::kernel(
          "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 50, 150, 250,
          20, 3,
          R"(, "Collective name": "allreduce", "In msg nelems": 4000000, "Out msg nelems": 4000000,
                      "Group size": 4, "dtype": "Float", "Process Group Name": "0",
                      "Process Group Description": "dp", "Process Group Ranks": "[0, 1, 2, 3]")"),
      made::event("cuda_runtime", "cudaMemcpyAsync", 60, 1, R"("correlation": 4)"),
      made::event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 390, 30,
                  R"("device": 0, "stream": 7, "correlation": 4, "bytes": 1000)"),
      R"({"ph": "s", "id": 1, "pid": 9, "tid": 1, "ts": 15, "cat": "ac2g", "name": "ac2g"})",
  };
}
std::string whole(std::vector<std::string> events = one_step()) {
  return made::file(events, made::head(1, 4));
}

std::string packed(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() + 200, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void check_refused(const std::string& text, const std::string& wanted) {
  try {
    made::read(text);
    FAIL_CHECK("read: " << wanted);
  } catch (const InputError& error) {
    const std::string line = error.what();
    CHECK_MESSAGE(line.find(wanted) != std::string::npos, line);
    CHECK(line.find("t.json") == 0);
    CHECK(!error.hint.empty());
  }
}

}  // namespace

TEST_CASE("kernels of a profile have class, step, stream, operator, size and collective") {
  const DeviceTrace trace = made::read(whole());
  CHECK(trace.rank == 1);
  CHECK(trace.world == 4);
  REQUIRE(trace.events.size() == 4);
  const DeviceEvent& product = trace.events[0];
  CHECK(product.kind == KernelClass::gemm);
  CHECK(trace.names[product.name] == "nvjet_sm90");
  CHECK(trace.names[product.op] == "aten::mm");
  CHECK(trace.products.at(product.detail) == MatrixProduct{1, 64, 32, 128});
  CHECK(product.start == 100us);  // the step's annotation begins at the origin
  CHECK(product.launched == 15us);
  CHECK(product.stream == 7);
  CHECK(product.step == 0);
  const DeviceEvent& sum = trace.events[1];
  CHECK(sum.kind == KernelClass::collective);
  CHECK(trace.collectives.at(sum.detail) ==
        CollectiveShape{CollectiveCall::all_reduce, Bytes(16'000'000), 4, "dp [0, 1, 2, 3]"});
  CHECK(trace.events[2].kind == KernelClass::elementwise);
  CHECK(trace.events[2].op == kNone);
  CHECK(trace.events[3].kind == KernelClass::to_host);
  CHECK(trace.events[3].bytes == Bytes(1000));
  CHECK(trace.steps == std::vector<StepRange>{{"ProfilerStep#3", 3, 0us, 300us}});
  CHECK(trace.unix_of == Nanoseconds(1'700'000'000'000'000'000));
  CHECK(trace.notes.empty());
  CHECK(trace.read.at("kernel") == 3);
  CHECK(trace.read.at("cpu_op") == 1);
  CHECK(trace.read.at("ph s") == 1);
}

// Span 100 to 420. Computation 100-200, 250-300; the all-reduce gets 200-250 and 300-400; the copy
// gets 400-420, because its first 10 us belong to the all-reduce.
TEST_CASE("every moment of a step belongs to exactly one class or is idle") {
  const RankTimes times = rank_times(made::read(whole()));
  REQUIRE(times.steps.size() == 1);
  const DeviceTimes& step = times.steps[0].times;
  CHECK(step == times.whole);
  CHECK(step.span == 320us);
  CHECK(step.idle == 0us);
  CHECK(step.of(KernelClass::gemm) == ClassTime{100us, 100us, 1});
  CHECK(step.of(KernelClass::elementwise) == ClassTime{50us, 50us, 1});
  CHECK(step.of(KernelClass::collective) == ClassTime{150us, 250us, 1});
  CHECK(step.of(KernelClass::to_host) == ClassTime{20us, 30us, 1});
  CHECK(step.of(DeviceWork::compute) == 150us);
  CHECK(step.of(DeviceWork::communication) == 250us);
  CHECK(step.of(DeviceWork::memory) == 30us);
  CHECK(step.overlapped == 100us);
}

TEST_CASE("plain and gzip files, with one or several members, give the same trace") {
  const std::string text = whole();
  const DeviceTrace plain = made::read(text);
  CHECK(made::read(packed(text)).events == plain.events);
  const std::string halves =
      packed(text.substr(0, text.size() / 2)) + packed(text.substr(text.size() / 2));
  CHECK(made::read(halves).events == plain.events);
  // One byte at a time, so that every value crosses the end of the buffer.
  const auto slow = [&text, at = std::size_t{0}](char* into, std::size_t) mutable {
    if (at == text.size()) return std::size_t{0};
    *into = text[at++];
    return std::size_t{1};
  };
  CHECK(read_kineto(slow, "t.json").events == plain.events);
}

// Before 2023 the kernel of a collective had only a name; its size is in the host's annotation.
TEST_CASE("old format: the size of a collective is taken from the annotation around its launch") {
  const DeviceTrace trace = made::read(made::file(
      {made::step(1, 1682725898079292, 1000),
       made::event("user_annotation", "nccl:all_reduce", 1682725898079300, 50,
                   R"("Input Dims": [[19618307]], "Input type": ["float"])"),
       made::kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", 1682725898079310,
                    1682725898079400, 300, 84, 11)},
      R"("schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 128},)"));
  REQUIRE(trace.events.size() == 1);
  CHECK(trace.collectives.at(trace.events[0].detail) ==
        CollectiveShape{CollectiveCall::all_reduce, Bytes(4 * 19618307), 0, ""});
  CHECK(trace.events[0].start == 108us);
  // Microseconds since 1970 are exact: in a double they would be rounded to 256 ns.
  CHECK(trace.unix_of == Nanoseconds(1'682'725'898'079'292'000));
}

TEST_CASE("times are exact to the nanosecond") {
  std::int64_t ns = 0;
  CHECK(exact_nanoseconds("1682725898236567", ns));
  CHECK(ns == 1'682'725'898'236'567'000);
  CHECK(exact_nanoseconds("4458676522690.655", ns));
  CHECK(ns == 4'458'676'522'690'655);
  CHECK(exact_nanoseconds("0.0005", ns));
  CHECK(ns == 1);
  CHECK(exact_nanoseconds("-1.5", ns));
  CHECK(ns == -1500);
  CHECK(exact_nanoseconds("2.5e3", ns));
  CHECK(ns == 2'500'000);
  for (const char* bad : {"", "-", "1x", "1e30", "99999999999999999999", "4611686018427387904"})
    CHECK_FALSE(exact_nanoseconds(bad, ns));
}

TEST_CASE("user annotations can mark the steps") {
  std::vector<std::string> events = one_step();
  events[0] = made::event("user_annotation", "iteration 12", 0, 300, "");
  const DeviceTrace lost = made::read(whole(events));
  CHECK(lost.steps.empty());
  CHECK(lost.events[0].step == -1);
  REQUIRE(lost.notes.size() == 1);
  CHECK(lost.notes[0].find("ProfilerStep#") != std::string::npos);
  const DeviceTrace found = made::read(whole(events), "t.json", {"iteration"});
  CHECK(found.steps.at(0).number == 12);
  CHECK(found.events[0].step == 0);
}

TEST_CASE("the order of events does not matter") {
  std::vector<std::string> events = one_step();
  const DeviceTrace forwards = made::read(whole(events));
  std::reverse(events.begin(), events.end());
  const DeviceTrace backwards = made::read(whole(events));
  CHECK(backwards.steps == forwards.steps);
  CHECK(rank_times(backwards).whole == rank_times(forwards).whole);
  CHECK(backwards.products.at(backwards.events[0].detail) == MatrixProduct{1, 64, 32, 128});
}

TEST_CASE("damaged files (truncated, concatenated, empty, without device events) are rejected") {
  const std::string text = whole();
  // Truncated anywhere before the closing bracket.
  for (std::size_t keep = 0; keep + 2 < text.size(); keep += 7)
    check_refused(text.substr(0, keep), keep == 0 ? "the file is empty" : "ends in the middle");
  const std::string zip = packed(text);
  check_refused(zip.substr(0, zip.size() / 2), "ends in the middle");
  check_refused(zip.substr(0, zip.size() - 4), "ends in the middle");
  std::string torn = zip;
  torn[zip.size() / 2] = static_cast<char>(~torn[zip.size() / 2]);
  check_refused(torn, "");
  check_refused(text + text, "continues after the end of its JSON value");
  check_refused(packed(text) + packed(text), "continues after the end of its JSON value");
  check_refused("[]", "a list of events");
  check_refused("{\"a\": 1}", "/traceEvents");
  check_refused(made::file({made::step(1, 0, 10)}, ""),
                "no kernel and no copy of a device among its ");
  check_refused(whole({made::event("kernel", "k", 5, -1, R"("stream": 7)")}),
                "must not be negative");
  check_refused(whole({R"({"ph": "X", "cat": "kernel", "name": "k", "dur": 1})"}),
                "ts or dur is missing");
}

TEST_CASE("a single event is a trace; its missing launch is noted") {
  const DeviceTrace trace =
      made::read(whole({made::event("kernel", "k", 5, 2.5, R"("stream": 7, "correlation": 1)")}));
  REQUIRE(trace.events.size() == 1);
  CHECK(trace.events[0].kind == KernelClass::unknown);
  CHECK(rank_times(trace).whole.span == 2500ns);
  REQUIRE(trace.notes.size() == 2);
  CHECK(trace.notes[0].find("1 events have no launch") != std::string::npos);
}

TEST_CASE("names that are not UTF-8 are repaired and noted") {
  const DeviceTrace trace = made::read(whole({made::kernel("gr\xff\xc3\xb6\xc3", 1, 2, 3, 7, 1)}));
  CHECK(trace.names[trace.events[0].name] == "gr?\xc3\xb6?");
  CHECK(trace.notes.back().find("not UTF-8") != std::string::npos);
}
