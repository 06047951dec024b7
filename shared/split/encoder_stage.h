// Splits the chain of a homogeneous layout as training frameworks do: all blocks of the encoders
// are on the first pipeline stage (Megatron-Bridge's multimodal providers build the encoder where
// pre_process is set; megatron/bridge/models/qwen_vl/modelling_qwen3_vl/model.py).
#pragma once

#include <optional>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/model/layout.h"
#include "shared/scenario/scenario.h"
#include "shared/work/work_size.h"

namespace polyphony {

// Returns the number of blocks of encoders that come before the language module in the chain of a
// homogeneous layout.
int blocks_of_encoders(const Model& model);

// Returns whether the layout has such a chain, cut into several stages that its `blocks` do not
// state.
bool leaves_encoder_stage(const Model& model, const Layout& layout);

// Returns the layout with the `blocks` that make its most expensive rank as cheap as possible with
// all encoders on the first stage; if they take more than `room` on a rank (0: no limit), those
// that do not. Nothing if the language module has too few blocks for the other stages. Requires
// leaves_encoder_stage(). `typical`: module_sizes() of the typical batch.
std::optional<Layout> with_encoder_stage(const Scenario& scenario, const Layout& layout,
                                         const HardwareProfile& profile,
                                         const std::vector<WorkSize>& typical, Bytes room);

}  // namespace polyphony
