// Reads one rank's trace from PyTorch's profiler (Kineto's Chrome trace JSON), plain or gzip.
//
// Old files have ts in whole microseconds; collectives are known by the kernel's name, and their
// sizes by the host's "nccl:…" annotation around the launch. New files have ts with three decimals
// after baseTimeNanoseconds, and sizes, groups and types of collectives in the kernel's arguments.
//
// The launch of a kernel on the host is found by `correlation`. The operators and annotations
// around it, on its thread, tell what the kernel computes. The order of the events in the file does
// not matter.
//
// Memory: about 100 bytes per device event, 32 per operator or annotation, and 24 per launch or
// wait; the file itself is never in memory as a whole.
//
// Throws InputError if the file is truncated, consists of several joined files, is not a profiler's
// trace, has negative durations, or has no device events. Names that are not UTF-8 and missing
// launches are repaired and noted.
//
// Source: Kineto, libkineto/src/output_json.cpp; PyTorch, torch/csrc/profiler/util.h (arguments of
// collectives).
#pragma once

#include <cstddef>
#include <string>

#include "traces/kineto/bytes.h"
#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

struct KinetoOptions {
  // Annotations whose names begin with this text mark the steps. Empty: "ProfilerStep#".
  std::string step;
};
// Returns the trace. `file` is used in messages.
DeviceTrace read_kineto(ByteSource bytes, const std::string& file,
                        const KinetoOptions& options = {});

// Returns whether the bytes begin like a profiler's trace that was not recorded by Polyphony: with
// "traceEvents" within kLongestHead, and without "polyphony" before it. Reads no more than that.
bool is_profile_of_others(ByteSource bytes, const std::string& file);
inline constexpr std::size_t kLongestHead = std::size_t{1} << 20;

}  // namespace polyphony::traces
