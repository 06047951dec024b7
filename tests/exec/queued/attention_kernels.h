// What the double of a GPU's attention kernels saw (tests/exec/queued/attention_kernels.cpp).
#pragma once

namespace polyphony::exec::testing::queued {

// Whether the last backward of flash attention was told to add in one order.
bool summed_in_order();

}  // namespace polyphony::exec::testing::queued
