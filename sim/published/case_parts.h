// Parts of a published row's case: what it ran on, and what it trained. Each throws Skip where the
// row does not say enough.
#pragma once

#include "sim/published/case.h"

namespace polyphony::sim {

struct Skip {
  std::string reason;
};
[[noreturn]] void skip(const std::string& reason);
bool has(const std::string& text, const std::string& part);  // whatever the case of letters
int need(const std::optional<int>& value, const char* column);
std::string number(std::int64_t value);

Cluster read_cluster(const PublishedRow& row);
// The shipped profile of the row's GPU, with the kernels and the clock that the row tells of.
HardwareProfile read_profile(const PublishedRow& row, const Cluster& cluster);
Module read_model(const PublishedRow& row);

// What selective recomputation runs again, of a block's forward by FLOPs: "op" (torchtitan), every
// second matrix product and what is between them; "mlp", "moe", "attn", what they name. Nothing:
// memory-bound kernels alone, a few hundredths of a block.
std::optional<double> selected_share(const PublishedRow& row, const Module& module);

}  // namespace polyphony::sim
