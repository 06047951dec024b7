// Marks an op in the profile that Kineto, PyTorch's profiler, records (exec/worker/kineto.h): an
// annotation named like the op (describe()), on the thread that runs it. Its arguments are those of
// the op in our own trace files (traces/format/op_args.h) and "op", its position in the rank's
// Program.
//   Without a profiler it costs a look at LibTorch's list of callbacks.
#pragma once

#include <ATen/record_function.h>

#include "shared/program/program.h"

namespace polyphony::exec {

class OpAnnotation {
 public:
  OpAnnotation(const Program& program, OpId op);

 private:
  at::RecordFunction range_;
};

}  // namespace polyphony::exec
