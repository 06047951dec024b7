// Reads what PyTorch's profiler writes (Kineto's Chrome trace JSON), plain or packed, of one rank.
//   Old files: ts in whole microseconds, collectives known by their kernel's name and by the sizes that
//   the host's "nccl:…" annotation around the launch has. New ones: ts with three decimals after
//   baseTimeNanoseconds, collectives' sizes, groups and types among the kernel's arguments.
//   A kernel's launch on the host is found by `correlation`; the operators and annotations around that, on
//   its thread, say what it computes. Order of events does not matter.
// Memory: about 100 bytes an event of the device, 32 an operator or annotation and 24 a launch or wait; the file
// itself is never in memory.
// Errors: InputError. Refused: files that are cut off, joined or of no profiler, negative durations, nothing
// of a device. Mended, and noted: names that are not UTF-8, launches that are missing.
// Source: Kineto, libkineto/src/output_json.cpp; PyTorch, torch/csrc/profiler/util.h (collectives' arguments).
#pragma once

#include <string>

#include "traces/kineto/bytes.h"
#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

struct KinetoOptions {
  // Annotations whose names begin with it are the steps. Empty: "ProfilerStep#".
  std::string step;
};
DeviceTrace read_kineto(ByteSource bytes, const std::string& file,
                        const KinetoOptions& options = {});

}  // namespace polyphony::traces
