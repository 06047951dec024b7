// Writes the name and the arguments of an op in a trace, in the form that readers of PyTorch's
// profiles expect (HolisticTraceAnalysis, traces/kineto). Messages and collectives are kernels with
// names "nccl…Kernel…", whatever the transport, with NCCL's arguments (elements of one byte each).
// Source: PyTorch, torch/csrc/profiler/util.h.
#pragma once

#include "shared/program/program.h"
#include "traces/format/json_text.h"

namespace polyphony::traces {

std::string event_name(const Program& program, OpId op);
// Returns "kernel", or "gpu_memcpy" for copies to the host and back.
const char* event_category(const Op& op);
// Writes the fields of "args" after the op's id, each preceded by a comma.
void write_args(const Program& program, const Op& op, JsonText& text);

}  // namespace polyphony::traces
