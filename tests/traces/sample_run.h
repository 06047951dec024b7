// A pipeline Program whose microbatches, messages and parameters differ in size, so that every
// parameter of the cost model has an effect; and Timelines of it with known times. The Program is
// for pricing and timing only: its sizes are no longer those of its batch.
#pragma once

#include "shared/cost/cost_model.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "tests/shared/support/hand_made.h"

namespace polyphony::traces::test {

inline Program varied_pipeline(const hand_made::PipelineShape& shape) {
  Program program = hand_made::pipeline(shape);
  for (Module& module : program.model.modules) {
    module.hidden = 256;
    module.heads = module.kv_heads = 4;
    module.head_dim = 64;
    module.ffn = 512;
    module.vocab = 2048;
  }
  for (std::size_t w = 0; w < program.sizes.size(); ++w) {
    const auto tokens = static_cast<std::int64_t>(16 << (w % 6));
    program.sizes[w] = {.tokens = tokens,
                        .pairs = tokens * (tokens + 1) / 2,
                        .text_tokens = tokens,
                        .loss_tokens = tokens - 8,
                        .sequences = 1 + static_cast<std::int32_t>(w % 3)};
  }
  for (std::size_t m = 0; m < program.messages.size(); ++m) {
    program.messages[m].bytes = Bytes(std::int64_t{1} << (12 + m % 10));
  }
  for (std::size_t p = 0; p < program.params.size(); ++p) {
    program.params[p].bytes = Bytes(std::int64_t{1} << (16 + p % 5));
  }
  for (Op& op : program.ops) {
    auto* collective = std::get_if<Collective>(&op.what);
    if (collective == nullptr || !collective->params.valid()) continue;
    // Replicas reduce arrays of equal size.
    collective->bytes = Bytes(
        std::int64_t{1} << (16 + 2 * (program.params[collective->params.value].layers.begin % 3)));
  }
  return program;
}

inline Cluster one_node(const Program& program, const HardwareProfile& profile) {
  Cluster cluster;
  cluster.device = profile.device;
  cluster.ranks_per_node = static_cast<int>(program.ranks);
  cluster.node_link = {BytesPerSecond(2e9), Seconds(1e-5)};
  cluster.fabric_link = {BytesPerSecond(1e9), Seconds(3e-5)};
  return cluster;
}

// The estimate with a profile, used as a measurement.
inline Timeline timeline_of(const Program& program, const Cluster& cluster,
                            const HardwareProfile& profile) {
  const Compiled compiled = hand_made::compile_sound(program);
  return estimate(program, compiled, price(program, compiled, cluster, profile)).timeline;
}

}  // namespace polyphony::traces::test
