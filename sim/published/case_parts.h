// Parts of the case of a published row: the cluster, the profile and the model. The functions throw
// Skip if the row lacks information.
#pragma once

#include "shared/text/number_text.h"
#include "sim/published/case.h"

namespace polyphony::sim {

struct Skip {
  std::string reason;
};
[[noreturn]] void skip(const std::string& reason);
// Returns whether `text` contains `part`, which must be in lower case; ignores the case of `text`.
bool has(const std::string& text, const std::string& part);
// Returns the value; throws Skip ("COLUMN is not stated") if it is absent or not positive.
int need(const std::optional<int>& value, const char* column);

Cluster read_cluster(const PublishedRow& row);
// Adjusts the profile of a device to these attention kernels, if its own are others:
// FlashAttention-2 ("flash", and "sdpa" and "flex", which are PyTorch's of its time) on GPUs of
// Hopper's fit.
void take_attention(const std::string& kernels, const Device& device, HardwareProfile& profile);
// Returns the shipped profile of the row's GPU, adjusted to the row's attention kernels and clock.
HardwareProfile read_profile(const PublishedRow& row, const Cluster& cluster);
Module read_model(const PublishedRow& row);
// Returns the row's software stack: that of its column stack, or, without one, the shipped stack
// that `software` and the year of `measured_on` suggest. Throws Skip if there is none.
SoftwareStack read_stack(const PublishedRow& row);

// Returns which fraction of a block's forward FLOPs selective recomputation runs again. "op"
// (torchtitan): every second matrix multiplication and what is between them; "mlp", "moe" and
// "attn": the named parts. Returns nullopt if only memory-bound kernels are recomputed, a few
// percent of a block.
std::optional<double> selected_share(const PublishedRow& row, const Module& module);

}  // namespace polyphony::sim
