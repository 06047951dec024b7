#include "traces/calibrate/collective_fit.h"

#include <algorithm>
#include <cmath>

#include "shared/cost/collectives.h"
#include "shared/error.h"
#include "shared/hardware/hardware_json.h"

namespace polyphony::traces {
namespace {

// Largest accepted efficiency of a link. A larger one means that the stated rate is wrong.
constexpr double kMost = kMostOfLink, kLeast = 0.01;

double& efficiency(HardwareProfile& profile, const Cluster& cluster) {
  return cluster.nodes > 1 ? profile.fabric_efficiency : profile.collective_efficiency;
}

// The measured collective, over all ranks of the cluster.
class ModeledCollective {
 public:
  ModeledCollective(const HardwareProfile& profile, const Cluster& cluster, CollectiveKind kind)
      : profile_(profile), cluster_(cluster), kind_(kind) {
    for (int r = 0; r < cluster.ranks(); ++r) members_.emplace_back(static_cast<std::size_t>(r));
  }

  Seconds time(double value, Bytes bytes) {
    efficiency(profile_, cluster_) = value;
    return ring_time(make_ring(members_, cluster_, profile_), kind_, bytes);
  }
  double mean_error(double value, const std::vector<CollectiveTimes::Row>& rows) {
    double sum = 0;
    for (const auto& row : rows) sum += std::abs(time(value, row.bytes) / row.time - 1);
    return sum / static_cast<double>(rows.size());
  }

 private:
  HardwareProfile profile_;
  const Cluster& cluster_;
  CollectiveKind kind_;
  std::vector<Rank> members_;
};

}  // namespace

CollectiveFit fit_collective(const HardwareProfile& prior, const Cluster& links,
                             const CollectiveTimes& measured, const std::string& file) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw InputError(file, "", what, hint);
  };
  Cluster cluster = links;
  cluster.nodes = measured.nodes;
  cluster.ranks_per_node = measured.ranks / measured.nodes;
  if (measured.ranks % measured.nodes != 0)
    refuse("its " + std::to_string(measured.nodes) + " nodes have unequal numbers of ranks",
           "run nccl-tests with as many ranks on every node");
  if (cluster.domain > 0) cluster.domain = std::min(cluster.domain, cluster.ranks());
  std::vector<CollectiveTimes::Row> rows;
  for (const auto& row : measured.rows)
    if (row.bytes >= kLeastBytes) rows.push_back(row);
  if (rows.empty())
    refuse("no array of 16 MiB or more",
           "run nccl-tests with -b 8 -e 1G -f 2: small arrays show latency alone");
  CollectiveFit fit{prior, 0, 0, 0, 0, static_cast<int>(rows.size())};
  ModeledCollective collective(prior, cluster, measured.kind);
  // Time decreases with the efficiency: bisect the interval for each row, then take the median.
  std::vector<double> found;
  for (const auto& row : rows) {
    double low = kLeast, high = kMost;
    const auto time = [&](double value) { return collective.time(value, row.bytes); };
    if (time(high) > row.time || time(low) < row.time)
      refuse("an array of " + std::to_string(row.bytes.value) + " bytes took " +
                 std::to_string(row.time.count() * 1e6) +
                 " us, which no efficiency of these links explains",
             "check the device and, between nodes, the rate of a NIC");
    while (high - low > 1e-9) {
      const double middle = (low + high) / 2;
      (time(middle) > row.time ? low : high) = middle;
    }
    found.push_back(high);
  }
  std::sort(found.begin(), found.end());
  const std::size_t half = found.size() / 2;
  fit.before = efficiency(fit.profile, cluster);
  fit.after = found.size() % 2 == 1 ? found[half] : (found[half - 1] + found[half]) / 2;
  fit.error_before = collective.mean_error(fit.before, rows);
  fit.error_after = collective.mean_error(fit.after, rows);
  efficiency(fit.profile, cluster) = fit.after;
  return fit;
}

}  // namespace polyphony::traces
