// What a trace says of an op beside its times: its name and its arguments, in the words that readers of
// PyTorch's profiles know (HolisticTraceAnalysis, traces/kineto): messages and collectives are kernels called
// "nccl…Kernel…", whoever carries them, with NCCL's arguments (elements of one byte each).
// Source: PyTorch, torch/csrc/profiler/util.h.
#pragma once

#include "shared/program/program.h"
#include "traces/format/json_text.h"

namespace polyphony::traces {

const char* kind_name(GroupKind kind);
std::string event_name(const Program& program, OpId op);
// "kernel"; of copies to the host and back "gpu_memcpy".
const char* event_category(const Op& op);
// The fields of "args" after the op's id, each led by a comma.
void write_args(const Program& program, const Op& op, JsonText& text);

}  // namespace polyphony::traces
