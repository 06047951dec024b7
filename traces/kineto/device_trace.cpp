#include "traces/kineto/device_trace.h"

#include "shared/error.h"

namespace polyphony::traces {

double bus_factor(CollectiveCall call, int ranks) {
  const double n = ranks;
  switch (call) {
    case CollectiveCall::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveCall::all_gather:
    case CollectiveCall::reduce_scatter:
    case CollectiveCall::all_to_all:
      return (n - 1) / n;
    case CollectiveCall::broadcast:
    case CollectiveCall::reduce:
    case CollectiveCall::send_receive:
    case CollectiveCall::other:
      return 1;
  }
  POLYPHONY_CHECK(false, "no such call");
}

}  // namespace polyphony::traces
