// Megatron Core's text for the split of a model into pipeline stages,
// --pipeline-model-parallel-layout: "Et*4|(t*4|)*14tmL".
//   E embedding, t decoder block, m block of multi-token prediction, L loss; | ends a stage;
//   x*n and (...)*n repeat; commas and blanks do not matter. Stage i is virtual stage i / pp of
//   pipeline rank i % pp.
// Source: megatron/core/transformer/pipeline_parallel_layer_layout.py.
#pragma once

#include <string>
#include <vector>

namespace polyphony::sim {

struct PipelineStage {
  bool embedding = false, loss = false;
  int blocks = 0, predictions = 0;  // decoder blocks, blocks of multi-token prediction
};

// Throws InputError, whose file is `place`, for texts that Megatron Core refuses.
std::vector<PipelineStage> parse_pipeline_layout(const std::string& text, const std::string& place);

// Writes stages in the shortest form that repeats equal neighbors.
std::string pipeline_layout_text(const std::vector<int>& blocks);

}  // namespace polyphony::sim
