#include "shared/scenario/cluster.h"

#include <algorithm>

namespace polyphony {

const char* name(NumberFormat format) {
  switch (format) {
    case NumberFormat::fp64:
      return "fp64";
    case NumberFormat::fp32:
      return "fp32";
    case NumberFormat::tf32:
      return "tf32";
    case NumberFormat::bf16:
      return "bf16";
    case NumberFormat::fp16:
      return "fp16";
    case NumberFormat::fp8:
      return "fp8";
    case NumberFormat::nvfp4:
      return "nvfp4";
  }
  return "?";
}

// As stored; nvfp4 (half a byte and its block scale) is held as one byte, never as zero.
Bytes size_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::fp64:
      return Bytes(8);
    case NumberFormat::fp32:
    case NumberFormat::tf32:
      return Bytes(4);
    case NumberFormat::bf16:
    case NumberFormat::fp16:
      return Bytes(2);
    case NumberFormat::fp8:
    case NumberFormat::nvfp4:
      return Bytes(1);
  }
  return Bytes(0);
}

int Cluster::nic_of(Rank rank) const {
  if (nics == 0) return static_cast<int>(rank.value);
  const int local = static_cast<int>(rank.value) % ranks_per_node;
  return node_of(rank) * nics + local * nics / ranks_per_node;
}

int Cluster::leaf_of(Rank rank) const {
  if (leaf.nodes == 0) return 0;
  const int here = nics > 0 ? nics : ranks_per_node;
  return node_of(rank) / leaf.nodes * leaf.rails + nic_of(rank) % here % leaf.rails;
}

bool Cluster::flat() const {
  return domain_size() == ranks_per_node && nics == 0 && leaf.nodes == 0 && degraded.empty();
}

const Degraded* Cluster::degraded_at(Rank rank) const {
  const auto found = std::lower_bound(
      degraded.begin(), degraded.end(), rank,
      [](const Degraded& d, Rank r) { return d.rank < static_cast<int>(r.value); });
  if (found == degraded.end() || found->rank != static_cast<int>(rank.value)) return nullptr;
  return &*found;
}

}  // namespace polyphony
