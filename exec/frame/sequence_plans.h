// Plans what the attention of a chunk's blocks reads of a microbatch, by kind of module.
#pragma once

#include <cstdint>

#include "exec/attention/attention.h"
#include "exec/autograd/inner_groups.h"
#include "exec/work_input.h"
#include "shared/model/model.h"

namespace polyphony::exec {

// Returns the number of rows of a microbatch between the module's blocks, which is also the number
// of rows that leave the module if class tokens are not counted.
std::int64_t sequence_length(const Module& module, const WorkInput& data);
// Plans the attention of full sequences.
SequencePlan plan_sequences(const Module& module, const WorkInput& data,
                            const torch::TensorOptions& format, InnerGroup& context,
                            AttentionWay way);
// As above, for blocks with windowed attention; empty if the module has none.
SequencePlan plan_windows(const Module& module, const WorkInput& data,
                          const torch::TensorOptions& format, InnerGroup& context,
                          AttentionWay way);

}  // namespace polyphony::exec
