// A report of Nsight Systems is read as the same profile in PyTorch's format would be.
#include "traces/nsys/nsys.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "tests/shared/support/temp_folder.h"
#include "tests/traces/nsys/made_report.h"
#include "traces/evidence/device_evidence.h"

namespace polyphony::traces {
namespace {

using test::spill;
using test::TempFolder;
using namespace made;

std::string refused(const std::string& path) {
  try {
    read_nsys(path);
  } catch (const InputError& error) {
    return error.what_is_wrong;
  }
  return "";
}

}  // namespace

TEST_CASE("kernels, shapes, steps and waits of a report") {
  const TempFolder folder;
  const std::string path = folder / "r.sqlite";
  {
    Report report(path);
    add_steps(report);
  }
  const std::vector<DeviceTrace> all = read_nsys(path, "iteration");
  REQUIRE(all.size() == 1);
  const DeviceTrace& trace = all.front();
  CHECK(trace.device == "NVIDIA H100 80GB HBM3");
  CHECK_FALSE(trace.rank);
  CHECK(trace.notes.empty());
  REQUIRE(trace.steps.size() == 2);
  CHECK(trace.steps[1].number == 1);
  REQUIRE(trace.events.size() == 6);
  CHECK(trace.events[0].kind == KernelClass::gemm);
  CHECK(trace.events[0].step == 0);
  CHECK(trace.names[trace.events[0].op] == "aten::mm");
  CHECK(trace.products[trace.events[0].detail] == MatrixProduct{1, 64, 16, 32});
  CHECK(trace.events[1].kind == KernelClass::attention);
  CHECK(trace.events[1].op == kNone);
  CHECK(trace.events[2].kind == KernelClass::to_device);
  CHECK(trace.events[2].bytes == Bytes(4096));
  REQUIRE(trace.waits.size() == 2);
  CHECK(trace.waits[0].what == WaitsFor::copy);
  CHECK(trace.waits[0].duration == std::chrono::nanoseconds(12'000));
  CHECK(trace.unix_of->count() == 1'700'000'000'001'000'000);
  const DeviceEvidence found = device_evidence(trace);
  CHECK(found.of(KernelGroup::gemm).time.count() == doctest::Approx(20e-6));
  CHECK(found.of(KernelGroup::attention_backward).time.count() == doctest::Approx(8e-6));
  CHECK(found.known_products == doctest::Approx(1));
  CHECK(found.step.count() == doctest::Approx(100e-6));
}

TEST_CASE("a report of several processes is a trace of each; ranks are MPI's, if it states them") {
  const TempFolder folder;
  const std::string path = folder / "r.sqlite";
  const std::int64_t other = kProcess + (std::int64_t{1} << 24);
  {
    Report report(path);
    add_steps(report);
    add_steps(report, other, 1);
  }
  std::vector<DeviceTrace> all = read_nsys(path, "iteration");
  REQUIRE(all.size() == 2);
  CHECK_FALSE(all[1].rank);
  CHECK(all[1].events.size() == 6);
  CHECK(all[1].products.size() == 2);  // not those of the other process
  CHECK(all[1].notes.empty());
  {
    Report report(folder / "m.sqlite");
    add_steps(report);
    add_steps(report, other, 1);
    report.run("CREATE TABLE MPI_RANKS (globalPid INT, rank INT)");
    report.row("MPI_RANKS", {kProcess, 6});
    report.row("MPI_RANKS", {other, 2});
  }
  all = read_nsys(folder / "m.sqlite", "iteration");
  CHECK(all[0].rank == 6);
  CHECK(all[1].rank == 2);
  CHECK(all[0].notes.empty());
}

TEST_CASE("of a process that uses two GPUs, the busier one is kept") {
  const TempFolder folder;
  const std::string path = folder / "r.sqlite";
  {
    Report report(path);
    add_steps(report);
    report.kernel("nvjet", 2'000'000, 2'000'100, 50, kProcess, 1);
  }
  const std::vector<DeviceTrace> all = read_nsys(path, "iteration");
  REQUIRE(all.size() == 1);
  CHECK(all[0].events.size() == 6);
  CHECK(all[0].notes ==
        std::vector<std::string>{"1 kernels of another GPU of its process were omitted"});
}

TEST_CASE("a report whose ranges are not those of steps says which it has") {
  const TempFolder folder;
  const std::string path = folder / "r.sqlite";
  {
    Report report(path);
    add_steps(report);
    report.run("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT)");
  }
  const DeviceTrace trace = read_nsys(path).front();
  CHECK(trace.steps.empty());
  REQUIRE(trace.notes.size() == 3);  // also that steps are not separated
  CHECK(trace.notes[1].find("CUDA graphs were traced whole") == 0);
  CHECK(trace.notes[2].find(R"(has these NVTX ranges: "aten::mm" (2), "iteration 0" (1))") == 0);
}

TEST_CASE("what is no report is refused") {
  const TempFolder folder;
  const std::string path = folder / "r.sqlite";
  CHECK(refused(folder / "missing.sqlite").find("cannot be read") == 0);
  spill(path, "SQLite format 3, or so");
  CHECK(refused(path).find("cannot be read: file is not a database") == 0);
  {
    Report report(folder / "empty.sqlite");
  }
  CHECK(refused(folder / "empty.sqlite") == "has no kernels");
  {
    Report report(folder / "back.sqlite");
    report.kernel("nvjet", 100, 200, -50);
  }
  CHECK(refused(folder / "back.sqlite").find("has an event that ends before it begins") == 0);
  CHECK(is_sqlite(std::string("SQLite format 3\0and more", 24)));
  CHECK_FALSE(is_sqlite("SQLite format 3"));
}

}  // namespace polyphony::traces
