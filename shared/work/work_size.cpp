#include "shared/work/work_size.h"

namespace polyphony {

const char* name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::backward_input:
      return "backward_input";
    case Phase::backward_weight:
      return "backward_weight";
    case Phase::recompute:
      return "recompute";
  }
  return "?";
}

const char* name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_reduce_max:
      return "all_reduce_max";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_to_all:
      return "all_to_all";
  }
  return "?";
}

}  // namespace polyphony
