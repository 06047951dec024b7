#include "traces/kineto/device_trace.h"

#include "shared/error.h"

namespace polyphony::traces {

const char* name(KernelClass kind) {
  switch (kind) {
    case KernelClass::gemm:
      return "gemm";
    case KernelClass::convolution:
      return "convolution";
    case KernelClass::attention:
      return "attention";
    case KernelClass::normalisation:
      return "normalisation";
    case KernelClass::softmax:
      return "softmax";
    case KernelClass::elementwise:
      return "elementwise";
    case KernelClass::reduction:
      return "reduction";
    case KernelClass::embedding:
      return "embedding";
    case KernelClass::data_movement:
      return "data_movement";
    case KernelClass::sort:
      return "sort";
    case KernelClass::optimizer:
      return "optimizer";
    case KernelClass::layers:
      return "layers";
    case KernelClass::unknown:
      return "unknown";
    case KernelClass::collective:
      return "collective";
    case KernelClass::to_device:
      return "to_device";
    case KernelClass::to_host:
      return "to_host";
    case KernelClass::on_device:
      return "on_device";
    case KernelClass::fill:
      return "fill";
  }
  POLYPHONY_CHECK(false, "no such class");
}

const char* name(DeviceWork work) {
  switch (work) {
    case DeviceWork::compute:
      return "compute";
    case DeviceWork::communication:
      return "communication";
    case DeviceWork::memory:
      return "memory";
  }
  POLYPHONY_CHECK(false, "no such work");
}

const char* name(CollectiveCall call) {
  switch (call) {
    case CollectiveCall::all_reduce:
      return "all_reduce";
    case CollectiveCall::all_gather:
      return "all_gather";
    case CollectiveCall::reduce_scatter:
      return "reduce_scatter";
    case CollectiveCall::all_to_all:
      return "all_to_all";
    case CollectiveCall::broadcast:
      return "broadcast";
    case CollectiveCall::reduce:
      return "reduce";
    case CollectiveCall::send_receive:
      return "send_receive";
    case CollectiveCall::other:
      return "other";
  }
  POLYPHONY_CHECK(false, "no such call");
}

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
