// Samples as JSON lines: what a scan of a data set writes, what a recorded data source reads, what
// a trace keeps of its batches.
//   {"id": 17, "items": [["image", 64], ["text", 9, 1]]}     modality, tokens (image: encoder
//   patches), label tokens of a text item
//   {"step": 12, "samples": [{"id": …}, …]}                   one global batch, in batch order
// `id` may be left out of the first form: it is then the line's number from 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/data/data.h"

namespace polyphony {

const char* name(Modality modality);  // as in the lines

// Errors: InputError naming the line.
std::vector<Sample> parse_samples(const std::string& text, const std::string& file);
std::string to_json_line(const Sample& sample);
std::string to_json_line(std::uint64_t step, const Batch& batch);

struct StepBatch {
  std::uint64_t step = 0;
  Batch batch;
};
std::vector<StepBatch> parse_batches(const std::string& text, const std::string& file);

}  // namespace polyphony
