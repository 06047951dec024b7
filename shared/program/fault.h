// The named faults that a Program can have. verify() finds them (shared/verify/verify.h).
#pragma once

#include <cstdint>
#include <string>

#include "shared/enum_names.h"

namespace polyphony {

enum class FaultKind : std::uint8_t {
  bad_index,            // an id or range points outside its table
  missing_send,         // a message that no op sends
  missing_receive,      // a message that no op receives
  duplicate_send,       // sent twice
  duplicate_receive,    // received twice
  shape_mismatch,       // rows do not fit a buffer, or the widths or bytes of both ends differ
  overlapping_rows,     // two messages write the same row
  uncovered_rows,       // a boundary buffer is read before all of its rows are written
  unequal_collectives,  // members of a group run different lists of collectives (kind, bytes or
                        // order), inner collectives included
  cycle,                // ops wait for each other, through streams, waits, messages or collectives
  read_before_write,    // a buffer is read, or accumulated into, before it is written
  use_after_free,       // used after it was freed
  double_free,          // freed twice
  double_allocate,      // allocated twice
  leaked_buffer,        // allocated and never freed: memory does not return to its start
  lost_gradient,      // a microbatch that reaches a trainable parameter group has no backward there
  doubled_gradient,   // … has more than one
  missing_reduction,  // a replicated trainable parameter group is never reduced
  doubled_reduction,  // … reduced twice
  early_reduction,    // … reduced before its last backward
  missing_update,     // a trainable parameter group is never updated, or before its reduction
  doubled_update,     // … updated twice
  unused_sample,      // a sample of the batch is in no microbatch of a module that consumes it
  doubled_sample,     // … is in two
};
constexpr auto names(FaultKind) {
  return names_of<FaultKind>(
      "bad_index", "missing_send", "missing_receive", "duplicate_send", "duplicate_receive",
      "shape_mismatch", "overlapping_rows", "uncovered_rows", "unequal_collectives", "cycle",
      "read_before_write", "use_after_free", "double_free", "double_allocate", "leaked_buffer",
      "lost_gradient", "doubled_gradient", "missing_reduction", "doubled_reduction",
      "early_reduction", "missing_update", "doubled_update", "unused_sample", "doubled_sample");
}

struct Fault {
  FaultKind kind{};
  std::string text;  // one line: rank, op, buffer …
};

}  // namespace polyphony
