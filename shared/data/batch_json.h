// Samples as JSON lines: the output of a data set scan, the input of a recorded data source, and
// the batches that a trace records.
//   {"id": 17, "items": [["image", 64], ["image", [4, 8]], ["text", 9, 1]]}     modality, tokens
//   (image: encoder patches of a square, or rows and columns of patches), label tokens of a text
//   item
//   {"step": 12, "samples": [{"id": …}, …]}                   one global batch, in batch order
// In the first form `id` may be omitted; it is then the number of the line, from 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/data/data.h"

namespace polyphony {

// Parses one sample per line. Throws InputError with the file and the line.
std::vector<Sample> parse_samples(const std::string& text, const std::string& file);
std::string to_json_line(const Sample& sample);
std::string to_json_line(std::uint64_t step, const Batch& batch);

struct StepBatch {
  std::uint64_t step = 0;
  Batch batch;
};
// Parses one global batch per line. Throws InputError with the file and the line.
std::vector<StepBatch> parse_batches(const std::string& text, const std::string& file);

}  // namespace polyphony
