// Writes tensors as a folder in Hugging Face layout: one model.safetensors, or files of at most
// 5 GB with model.safetensors.index.json (shared/weights/tensor_folder.h reads both).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shared/checkpoint/write_safetensors_json.h"
#include "shared/units.h"

namespace polyphony {

// Largest file of a folder, as in transformers' save_pretrained(); a larger tensor has its own
// file.
inline constexpr Bytes kLargestFile{5'000'000'000};

// Returns the data of the tensor at a position of the list. Called once for each, in order.
using TensorData = std::function<std::string(std::size_t position)>;

// Writes the files `stem`.safetensors (or `stem`-00001-of-00003.safetensors, …) to the folder,
// synced to the disk. Throws std::runtime_error if the disk is full.
void write_tensor_files(const std::string& folder, const std::string& stem,
                        const std::vector<TensorToWrite>& tensors, const TensorData& data,
                        Bytes largest = kLargestFile);

}  // namespace polyphony
