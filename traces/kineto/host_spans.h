// The host's side of a profile while it is read: operators and annotations, and what they say of the kernels
// that are launched inside them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

// Names, each once. What is not UTF-8 is replaced by "?", byte by byte.
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

// What the spans around a launch say, the innermost first.
struct LaunchedBy {
  std::uint32_t op = kNone, product = kNone, collective = kNone;
  bool optimizer = false;
};
// By launch, as they stand in `launches`. Reorders spans.
std::vector<LaunchedBy> launched_by(std::vector<HostSpan>& spans,
                                    const std::vector<Launch>& launches, const Names& names);

// Of an operator's name and its "Input Dims" as written; false: it is no product, or of other dimensions.
bool product_of(std::string_view op, std::string_view dims, MatrixProduct& product);
// Elements of the first of its "Input Dims"; -1: none.
std::int64_t first_elements(std::string_view dims);
// Of an element, by PyTorch's name of the type, C++'s ("c10::BFloat16") or Python's ("Float"); 0: unknown.
int element_size(std::string_view type);

}  // namespace polyphony::traces
