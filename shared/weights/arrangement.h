// Where the elements of a parameter (shared/kernels/parameter.h) stand in the tensors of a
// published file: renamed, cut into several tensors, fused in another order, or transposed.
//
// An Arrangement is a list of parts. Each part relates one tensor to the parameter by nested loops
// around lines: runs of elements that are consecutive in the parameter and `step` apart in the
// tensor. So a fused qkv of any size is three short parts, and experts one part per tensor. Every
// element of the parameter is in exactly one part, except for parts that add up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shared/chunk/parameters.h"
#include "shared/weights/weight_scales.h"

namespace polyphony {

struct TensorPart {
  std::string tensor;               // its name
  std::vector<std::int64_t> shape;  // that the tensor must have
  struct Loop {
    std::int64_t count = 1, tensor = 0, parameter = 0;  // strides in elements
  };
  std::vector<Loop> loops;  // outermost first; strides in the parameter are positive
  std::int64_t length = 0;  // of a line, in elements
  std::int64_t step = 1;    // between a line's elements in the tensor
  std::int64_t tensor_begin = 0, parameter_begin = 0;

  std::int64_t count() const;  // elements
  // Calls `line` for each run of elements that is in the part and in `runs` (sorted by global
  // position): the position in the tensor, the local position of the run, and the number.
  // Takes time in proportion to what it calls, and to the loops' counts.
  using Line = std::function<void(std::int64_t tensor, std::int64_t local, std::int64_t count)>;
  void lines(const std::vector<ElementRun>& runs, const Line& line) const;
};

// Returns the part that is a whole tensor in order, from `begin` of the parameter on.
TensorPart whole_tensor(const std::string& name, std::vector<std::int64_t> shape,
                        std::int64_t begin = 0);

struct Arrangement {
  std::vector<TensorPart> parts;
  // The parameter is the sum of the parts, which all cover it. A video model has one kernel for
  // each of several frames; a still image repeats its frame.
  bool sums = false;
  // The parameter is the tensor plus this number: Gemma's norms multiply by 1 + weight.
  double offset = 0;
};

// Returns the numbers of `arrangement` that belong to `runs`, sorted by global position, as bytes
// of the format `to`; `out` has room for all local elements. `tensor` returns the bytes and the
// format of a tensor, and the scales of one in FP8.
struct TensorBytes {
  const std::byte* data = nullptr;
  std::string format;
  std::optional<WeightScales> scales = {};
};
using TensorSource = std::function<TensorBytes(const std::string& name)>;
void gather(const Arrangement& arrangement, const std::vector<ElementRun>& runs,
            const TensorSource& tensor, const std::string& to, std::byte* out);

// The inverse: returns the bytes of a tensor of the arrangement in the format `to`. `parameter`:
// the whole parameter in the format `from`.
std::string scatter(const Arrangement& arrangement, const std::string& tensor,
                    const std::byte* parameter, const std::string& from, const std::string& to);

}  // namespace polyphony
