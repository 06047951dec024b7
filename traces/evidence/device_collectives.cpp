#include "traces/evidence/device_collectives.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include "traces/kineto/summary.h"

namespace polyphony::traces {
namespace {

// Returns the ranks that a group's name ends with: "… [0, 8, 16]". Of long lists the profiler
// leaves out the middle.
std::vector<int> members_of(const std::string& group) {
  std::vector<int> members;
  const std::size_t begin = group.rfind('[');
  if (begin == group.npos) return members;
  const char *at = group.data() + begin, *end = group.data() + group.size();
  while (at < end) {
    int rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error == std::errc()) members.push_back(rank);
    at = error == std::errc() ? next : at + 1;
  }
  return members;
}

// Returns the number of nodes that a group is on; 0: not known.
int nodes_of(const CollectiveShape& shape, int per_node) {
  const std::vector<int> members = members_of(shape.group);
  if (members.empty()) return shape.ranks <= per_node ? 1 : 0;
  std::set<int> nodes;
  for (const int rank : members) nodes.insert(rank / per_node);
  if (static_cast<int>(members.size()) == shape.ranks) return static_cast<int>(nodes.size());
  return std::min(shape.ranks, *nodes.rbegin() - *nodes.begin() + 1);
}

}  // namespace

std::vector<CollectiveTimes> collective_times(const RankSet& ranks, int per_node) {
  struct Found {
    CollectiveTimes table;
    Nanoseconds total{};
  };
  std::map<std::tuple<CollectiveKind, int, int>, Found> all;
  for (const CollectiveRow& row : collective_rows(ranks)) {
    const auto kind = collective_kind(row.shape.call);
    if (!kind || !row.shape.bytes || row.shape.ranks < 2 || row.count < kLeastCount ||
        row.shortest.count() <= 0)
      continue;
    const int nodes = nodes_of(row.shape, per_node);
    if (nodes == 0) continue;
    Found& found = all[{*kind, row.shape.ranks, nodes}];
    found.table.kind = *kind;
    found.table.ranks = row.shape.ranks;
    found.table.nodes = nodes;
    found.table.rows.push_back({*row.shape.bytes, Seconds(row.shortest)});
    found.total += row.total;
  }
  std::vector<CollectiveTimes> tables;
  for (const bool inside : {true, false}) {
    const Found* most = nullptr;
    for (const auto& [key, found] : all)
      if ((found.table.nodes == 1) == inside && (!most || found.total > most->total)) most = &found;
    if (most) tables.push_back(most->table);
  }
  return tables;
}

}  // namespace polyphony::traces
