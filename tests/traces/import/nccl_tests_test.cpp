#include "traces/import/nccl_tests.h"

#include <doctest/doctest.h>

#include <sstream>

#include "shared/cost/collectives.h"
#include "shared/error.h"
#include "shared/hardware/devices.h"
#include "traces/calibrate/collective_fit.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

struct Shown {
  std::int64_t bytes;
  double microseconds;
};

// As all_reduce_perf prints it: `factor` is busbw ÷ algbw.
std::string table(int ranks, int nodes, double factor, const std::string& reduction,
                  const std::vector<Shown>& rows, const std::string& title = "") {
  std::ostringstream out;
  if (!title.empty()) out << "# Collective test starting: " << title << "\n";
  out << "# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor)\n# Using devices\n";
  for (int r = 0; r < ranks; ++r)
    out << "#  Rank " << r << " Group  0 Pid   71 on node-" << r / (ranks / nodes) << " device  "
        << r << " [0x1b] NVIDIA H100 80GB HBM3\n";
  out << "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong  "
         "   "
         "time   algbw   busbw #wrong\n#        (B)    (elements)\n";
  for (const Shown& row : rows) {
    const double rate = static_cast<double>(row.bytes) / row.microseconds / 1e3;
    out << "  " << row.bytes << "  " << row.bytes / 4 << "  float  " << reduction << "  -1  "
        << row.microseconds << "  " << rate << "  " << rate * factor << "  0  1.0  1.0  1.0  0\n";
  }
  out << "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.0\n";
  return out.str();
}

std::string nccl_refusal(const std::string& text) {
  try {
    read_nccl_tests(text, "table.txt");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a table of nccl-tests is read") {
  const CollectiveTimes times =
      read_nccl_tests(table(8, 2, 1.75, "sum", {{1024, 20}, {1 << 20, 50}}), "table.txt");
  CHECK(times.kind == CollectiveKind::all_reduce);  // 2·7/8 = 1.75
  CHECK(times.ranks == 8);
  CHECK(times.nodes == 2);
  REQUIRE(times.rows.size() == 2);
  CHECK(times.rows[1].bytes == Bytes(1 << 20));
  CHECK(times.rows[1].time.count() == doctest::Approx(50e-6));
  CHECK(read_nccl_tests(table(8, 1, 0.875, "sum", {{1 << 20, 50}}), "t").kind ==
        CollectiveKind::reduce_scatter);
  CHECK(read_nccl_tests(table(8, 1, 0.875, "none", {{1 << 20, 50}}, "alltoall_perf"), "t").kind ==
        CollectiveKind::all_to_all);
}

// As all_reduce_perf -J writes it.
TEST_CASE("the JSON of nccl-tests is read as its table is") {
  const auto json = [](const std::string& time, const std::string& wrong) {
    return R"({"version": 1, "args": ["./build/all_gather_perf", "-J", "x.json"], "env": ["A=1"],
      "nccl_version": 22809, "config": {"nthreads": 1},
      "devices": [{"rank": 0, "group": 0, "pid": 71, "hostname": "n0", "device": 0,
                   "device_hex": "0000:1b:00", "device_info": "NVIDIA H100 80GB HBM3"},
                  {"rank": 1, "hostname": "n1", "device_info": "NVIDIA H100 80GB HBM3"}],
      "results": [{"size": 1048576, "count": 131072, "type": "float", "redop": "none",
                   "root": "-1", "out_of_place": {")" +
           time + R"(": 50.5, "alg_bw": 20.8, "bus_bw": 10.4, "nwrong": )" + wrong +
           R"(}, "in_place": {"time": 49.0, "alg_bw": 21.0, "bus_bw": 10.5, "nwrong": 0}}],
      "average_bus_bandwidth": {"bandwidth": 10.4, "okay": "unchecked"}})";
  };
  const CollectiveTimes times = read_nccl_tests(json("time", "null"), "x.json");
  CHECK(times.kind == CollectiveKind::all_gather);
  CHECK(times.ranks == 2);
  CHECK(times.nodes == 2);
  CHECK(times.device == "NVIDIA H100 80GB HBM3");
  REQUIRE(times.rows.size() == 1);
  CHECK(times.rows[0].bytes == Bytes(1 << 20));
  CHECK(times.rows[0].time.count() == doctest::Approx(50.5e-6));
  CHECK(nccl_refusal(json("cpu_time", "0")).find("run it without -C") != std::string::npos);
  CHECK(nccl_refusal(json("time", "7")).find("7 wrong results") != std::string::npos);
  CHECK(nccl_refusal("{\"devices\": 3}").find("is not JSON of nccl-tests") != std::string::npos);
  CHECK(nccl_refusal("{").find("is not JSON of nccl-tests") != std::string::npos);
}

TEST_CASE("an invalid table of nccl-tests is rejected by line") {
  const std::string good = table(2, 1, 1, "sum", {{1024, 20}});
  CHECK(nccl_refusal("").find("table.txt: its header must list at least 2 ranks (got 0)") !=
        std::string::npos);
  CHECK(nccl_refusal(table(2, 1, 1, "sum", {})).find("no rows") != std::string::npos);
  CHECK(nccl_refusal(good + "  2048  512  float\n").find("table.txt:11: the row has 3 columns") !=
        std::string::npos);
  CHECK(nccl_refusal(good + "  2048  512  float  sum  -1  0  1  1  0\n").find("table.txt:11:") !=
        std::string::npos);
  CHECK(nccl_refusal(good + "  2048  512  float  sum  -1  9  1  1  3\n").find("3 wrong results") !=
        std::string::npos);
  CHECK(nccl_refusal("#  size  count  type  redop  root  cputime\n" + good).find("without -C") !=
        std::string::npos);
  // Half of 2(n − 1)/n and no reduction: all-gather and all-to-all look alike.
  CHECK(nccl_refusal(table(2, 1, 0.5, "none", {{1024, 20}}))
            .find("do not determine the collective") != std::string::npos);
}

// A ring of n ranks with efficiency e of the link's rate B takes latency + 2(n − 1)/n · S/(e·B):
// the fit to such times is e.
TEST_CASE("the efficiency of a ring is recovered from times") {
  const ShippedDevice* h100 = find_device("H100");
  Cluster links;
  links.device = h100->device;
  links.node_link = h100->node_link;
  links.fabric_link = h100->fabric_link;
  HardwareProfile prior = *find_profile("h100-roofline");
  for (const int nodes : {1, 4}) {
    CAPTURE(nodes);
    HardwareProfile truth = prior;
    (nodes == 1 ? truth.collective_efficiency : truth.fabric_efficiency) = 0.61;
    Cluster cluster = links;
    cluster.nodes = nodes;
    cluster.ranks_per_node = 8;
    std::vector<Rank> members;
    for (int r = 0; r < cluster.ranks(); ++r) members.emplace_back(static_cast<std::size_t>(r));
    const Ring ring = make_ring(members, cluster, truth);
    CollectiveTimes times{CollectiveKind::all_reduce, 8 * nodes, nodes, {}};
    for (std::int64_t size = 8; size <= std::int64_t{1} << 30; size *= 8)
      times.rows.push_back({Bytes(size), ring_time(ring, times.kind, Bytes(size))});
    const CollectiveFit fit = fit_collective(prior, links, times, "table.txt");
    CHECK(fit.after == doctest::Approx(0.61).epsilon(1e-6));
    CHECK(fit.rows == 3);  // 2^24, 2^27 and 2^30 bytes
    CHECK(fit.error_before > 0.05);
    CHECK(fit.error_after < 1e-6);
    times.rows.resize(3);
    CHECK_THROWS_AS(fit_collective(prior, links, times, "table.txt"), InputError);
    times.rows = {{Bytes(std::int64_t{1} << 30), Seconds(1e-6)}};  // 1 PB/s
    CHECK_THROWS_AS(fit_collective(prior, links, times, "table.txt"), InputError);
  }
}
