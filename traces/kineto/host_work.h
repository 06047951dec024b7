// Work of the host's threads as events, for profiles of ranks that compute on a CPU (`polyphony run
// --kineto`). A thread is a stream. At every moment a thread does one of:
//   - an operator of ATen: the innermost that is running. Parts of one call, between the operators
//     that it calls, are several events. Operators that only allocate memory or make views do not
//     count as such, and neither do nodes of autograd;
//   - a message or collective of the Program: one event from its begin to its end, waits included,
//     whatever runs inside;
//   - nothing.
#pragma once

#include <vector>

#include "traces/kineto/host_spans.h"

namespace polyphony::traces {

struct HostCall {
  HostSpan span;  // `product` and `collective` as in kernels
  bool annotation = false;
};
// Returns the events, with the step -1. Reorders `calls`. The size of a GEMM is stated by the
// longest event of its call only.
std::vector<DeviceEvent> host_work(std::vector<HostCall>& calls, const Names& names);

}  // namespace polyphony::traces
