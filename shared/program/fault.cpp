#include "shared/program/fault.h"

namespace polyphony {

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::bad_index:
      return "bad_index";
    case FaultKind::missing_send:
      return "missing_send";
    case FaultKind::missing_receive:
      return "missing_receive";
    case FaultKind::duplicate_send:
      return "duplicate_send";
    case FaultKind::duplicate_receive:
      return "duplicate_receive";
    case FaultKind::shape_mismatch:
      return "shape_mismatch";
    case FaultKind::overlapping_rows:
      return "overlapping_rows";
    case FaultKind::uncovered_rows:
      return "uncovered_rows";
    case FaultKind::unequal_collectives:
      return "unequal_collectives";
    case FaultKind::cycle:
      return "cycle";
    case FaultKind::read_before_write:
      return "read_before_write";
    case FaultKind::use_after_free:
      return "use_after_free";
    case FaultKind::double_free:
      return "double_free";
    case FaultKind::double_allocate:
      return "double_allocate";
    case FaultKind::leaked_buffer:
      return "leaked_buffer";
    case FaultKind::lost_gradient:
      return "lost_gradient";
    case FaultKind::doubled_gradient:
      return "doubled_gradient";
    case FaultKind::missing_reduction:
      return "missing_reduction";
    case FaultKind::doubled_reduction:
      return "doubled_reduction";
    case FaultKind::early_reduction:
      return "early_reduction";
    case FaultKind::missing_update:
      return "missing_update";
    case FaultKind::doubled_update:
      return "doubled_update";
    case FaultKind::unused_sample:
      return "unused_sample";
    case FaultKind::doubled_sample:
      return "doubled_sample";
  }
  return "?";
}

}  // namespace polyphony
