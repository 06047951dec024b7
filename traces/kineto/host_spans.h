// The host's side of a profile while it is read: operators and annotations, and what they state
// about the kernels that are launched inside them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

// A table of distinct names. Bytes that are not valid UTF-8 are replaced by "?".
class Names {
 public:
  std::uint32_t of(std::string_view name);
  const std::string& text(std::uint32_t name) const { return *texts_[name]; }
  std::int64_t mended() const { return mended_; }
  std::vector<std::string> take();

 private:
  std::unordered_map<std::string, std::uint32_t> known_;
  std::vector<const std::string*> texts_;  // map nodes stay where they are
  std::string key_;
  std::int64_t mended_ = 0;
};

struct HostSpan {
  std::int64_t start = 0, end = 0;  // nanoseconds, as in the file
  std::uint32_t name = 0, thread = 0;
  std::uint32_t product = kNone, collective = kNone;
};

struct Launch {
  std::int64_t at = 0, correlation = 0;
  std::uint32_t thread = 0;
};

// Information from the spans around a launch; the innermost span that states a value decides.
struct LaunchedBy {
  std::uint32_t op = kNone, product = kNone, collective = kNone;
  bool optimizer = false;
};
// Returns one entry per launch, in the order of `launches`. Reorders `spans`.
std::vector<LaunchedBy> launched_by(std::vector<HostSpan>& spans,
                                    const std::vector<Launch>& launches, const Names& names);

// Computes the GEMM of an operator from its name and its "Input Dims" as written. Returns false if
// the operator is not a matrix multiplication or has other dimensions.
bool product_of(std::string_view op, std::string_view dims, MatrixProduct& product);
// Returns the number of elements of the first of the "Input Dims"; -1 if there is none.
std::int64_t first_elements(std::string_view dims);
// Returns the bytes of an element, from PyTorch's name of its type in C++ ("c10::BFloat16") or
// Python ("Float"); 0 if the type is unknown.
int element_size(std::string_view type);

}  // namespace polyphony::traces
