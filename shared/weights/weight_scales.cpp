#include "shared/weights/weight_scales.h"

#include <algorithm>
#include <optional>

#include "shared/error.h"
#include "shared/weights/number_bytes.h"

namespace polyphony {
namespace {

constexpr std::int64_t kBlock = 128;
constexpr const char* kOtherForm =
    "use weights that are not quantized, or whose scales have one of these forms";

std::int64_t blocks_in(std::int64_t size) { return (size + kBlock - 1) / kBlock; }

std::string pair(std::int64_t rows, std::int64_t columns) {
  return "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
}

// Returns the name of the tensor with the scales of a weight; empty if the folder has none.
std::string scale_name(const TensorFolder& folder, const std::string& weight) {
  for (const char* end : {"_scale_inv", "_scale"})
    if (folder.find(weight + end) != nullptr) return weight + end;
  return "";
}

struct Block {
  std::int64_t rows, columns;
};
// Returns the block that scales of this shape belong to; nothing for another shape.
std::optional<Block> block_of(const std::vector<std::int64_t>& shape, std::int64_t rows,
                              std::int64_t columns) {
  using Shape = std::vector<std::int64_t>;
  if (shape.empty() || shape == Shape{1}) return Block{rows, columns};
  if (shape == Shape{rows, 1}) return Block{1, columns};
  if (shape == Shape{blocks_in(rows), blocks_in(columns)}) return Block{kBlock, kBlock};
  return {};
}

template <class Format>
double scale_at(const std::byte* data, std::int64_t index) {
  return read_number<Format>(data +
                             index * static_cast<std::int64_t>(sizeof(typename Format::Bits)));
}

}  // namespace

WeightScales::Run WeightScales::at(std::int64_t element) const {
  const std::int64_t row = element / columns, column = element % columns;
  const std::int64_t across = (columns + block_columns - 1) / block_columns;
  const std::int64_t index = row / block_rows * across + column / block_columns;
  const double scale =
      with_format(format, [&](auto of) { return scale_at<decltype(of)>(data, index); });
  const std::int64_t end = std::min(columns, (column / block_columns + 1) * block_columns);
  return {scale, end - column};
}

std::vector<std::string> check_scales(const TensorFolder& folder, const std::string& name) {
  const StoredTensor& weight = *folder.find(name);
  if (weight.shape.size() != 2)
    throw InputError(weight.file, "/" + name,
                     "is in " + weight.format + " and has " + std::to_string(weight.shape.size()) +
                         " dimensions: only matrices are read from FP8",
                     "use weights that are not quantized");
  const std::string scales = scale_name(folder, name);
  if (scales.empty())
    throw InputError(weight.file, "/" + name,
                     "is in " + weight.format + ", but " + name + "_scale_inv and " + name +
                         "_scale are missing",
                     "copy all files of the model, or use weights that are not quantized");
  const StoredTensor& stored = *folder.find(scales);
  const std::int64_t rows = weight.shape[0], columns = weight.shape[1];
  if (!is_weight_format(stored.format) || !block_of(stored.shape, rows, columns)) {
    std::string shape;
    for (const std::int64_t size : stored.shape)
      shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    throw InputError(stored.file, "/" + scales,
                     "must be numbers of at least 16 bits with the shape " +
                         pair(blocks_in(rows), blocks_in(columns)) + " (blocks of 128 × 128), " +
                         pair(rows, 1) + " (rows) or [1] (got " + stored.format +
                         " with the shape [" + shape + "])",
                     kOtherForm);
  }
  std::vector<std::string> names = {scales};
  if (constexpr std::string_view kWeight = "weight"; name.ends_with(kWeight))
    if (const std::string input = name.substr(0, name.size() - kWeight.size()) + "input_scale";
        folder.find(input) != nullptr)
      names.push_back(input);
  return names;
}

bool describes_fp8(const TensorFolder& folder, const std::string& name) {
  struct Ending {
    std::string_view of_scale, of_weight;
  };
  for (const auto& [end, weight] :
       {Ending{"_scale_inv", ""}, Ending{"_scale", ""}, Ending{"input_scale", "weight"}}) {
    if (!name.ends_with(end)) continue;
    const StoredTensor* const found =
        folder.find(name.substr(0, name.size() - end.size()).append(weight));
    if (found != nullptr && is_fp8(found->format)) return true;
  }
  return false;
}

WeightScales scales_of(const TensorFolder& folder, const std::string& name) {
  const StoredTensor& weight = *folder.find(name);
  const StoredTensor* const stored = folder.find(scale_name(folder, name));
  POLYPHONY_CHECK(weight.shape.size() == 2 && stored != nullptr, name << " was checked");
  const std::optional<Block> block = block_of(stored->shape, weight.shape[0], weight.shape[1]);
  POLYPHONY_CHECK(block.has_value(), name << " was checked");
  return {folder.data(*stored), stored->format, weight.shape[1], block->rows, block->columns};
}

}  // namespace polyphony
