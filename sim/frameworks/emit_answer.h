// The answer of `polyphony emit`: the files for a framework, and what to expect of the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/units.h"
#include "sim/frameworks/emit.h"

namespace polyphony::sim {

struct EmitAnswer {
  Emitted emitted;
  std::string scenario;              // its file
  std::string layout;                // in words
  std::string model, cluster, data;  // in words
  Seconds step{}, low{}, high{};     // predicted, and the 90 % interval
  Bytes memory{}, room{};            // of the rank that needs most, and of a device
  double tokens_per_second = 0;      // of a device
  FlopsPerSecond megatron{};         // of a device, as Megatron-LM from core 0.12 on prints it
  double torchtitan_mfu = 0;
  std::string folder;  // that the files were written to; empty: none
};

// Returns the page that is written beside the files: how to start, what to expect, what differs.
std::string emit_page(const EmitAnswer& answer);

}  // namespace polyphony::sim
