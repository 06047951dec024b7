#include "traces/kineto/host_spans.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <utility>

namespace polyphony::traces {
namespace {

// Returns the number of bytes of the UTF-8 sequence at the front; 0 if it is not valid. Source: RFC
// 3629.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 && lead < 0xf5   ? 4
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Rejects overlong encodings, surrogate halves, and values beyond the last code point.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) >= 0xa0) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) >= 0x90) return 0;
  return length;
}

bool plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

using Dims = std::vector<std::vector<std::int64_t>>;

// Parses "[[4096, 8192], [8192, 14336], []]"; tensors in lists are omitted.
Dims read_dims(std::string_view text) {
  Dims dims;
  std::size_t depth = 0;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    const char c = *at;
    if (c == '[' && ++depth == 2) dims.emplace_back();
    if (c == ']') --depth;
    if (depth == 0) break;
    std::int64_t value = 0;
    if (depth == 2 && c >= '0' && c <= '9') {
      at = std::from_chars(at, end, value).ptr;
      dims.back().push_back(value);
      continue;
    }
    ++at;
  }
  return dims;
}

std::int64_t elements(const std::vector<std::int64_t>& shape, std::size_t count) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < count; ++i)
    if (__builtin_mul_overflow(product, shape[i], &product)) return -1;
  return product;
}

// Computes the GEMM [.., m, k] by [.., k, n].
bool from_shapes(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                 MatrixProduct& product) {
  if (a.size() < 2 || b.size() < 2) return false;
  product.batch = 1;
  if (a.size() == 3 && b.size() == 3) product.batch = a[0];
  product.m = a.size() == 3 && b.size() == 3 ? a[1] : elements(a, a.size() - 1);
  product.k = a.back();
  product.n = b.back();
  return b[b.size() - 2] == product.k && product.m > 0 && product.n > 0 && product.k > 0 &&
         product.batch > 0;
}

}  // namespace

std::uint32_t Names::of(std::string_view name) {
  key_.assign(name);
  const auto found = known_.find(key_);
  if (found != known_.end()) return found->second;
  std::string text(name);
  if (!plain(name)) {
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t length = utf8_length(std::string_view(text).substr(i));
      if (length == 0) text[i] = '?';
      i += std::max<std::size_t>(length, 1);
    }
    if (text != name) {
      ++mended_;
      const std::uint32_t number = of(text);
      known_.emplace(std::string(name), number);
      return number;
    }
  }
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(&known_.emplace(std::move(text), number).first->first);
  return number;
}

std::vector<std::string> Names::take() {
  std::vector<std::string> texts;
  texts.reserve(texts_.size());
  for (const std::string* text : texts_) texts.push_back(*text);
  return texts;
}

std::vector<LaunchedBy> launched_by(std::vector<HostSpan>& spans,
                                    const std::vector<Launch>& launches, const Names& names) {
  std::sort(spans.begin(), spans.end(), [](const HostSpan& a, const HostSpan& b) {
    if (a.thread != b.thread) return a.thread < b.thread;
    if (a.start != b.start) return a.start < b.start;
    return a.end > b.end;  // outer spans come first
  });
  std::vector<std::uint32_t> order(launches.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(launches[a].thread, launches[a].at) <
           std::pair(launches[b].thread, launches[b].at);
  });
  std::vector<LaunchedBy> result(launches.size());
  std::vector<const HostSpan*> around;
  std::size_t next = 0;
  for (const std::uint32_t index : order) {
    const Launch& launch = launches[index];
    if (!around.empty() && around.front()->thread != launch.thread) around.clear();
    while (next < spans.size() &&
           (spans[next].thread < launch.thread ||
            (spans[next].thread == launch.thread && spans[next].start <= launch.at))) {
      const HostSpan& span = spans[next++];
      if (span.thread != launch.thread) continue;
      while (!around.empty() && around.back()->end < span.start) around.pop_back();
      around.push_back(&span);
    }
    while (!around.empty() && around.back()->end < launch.at) around.pop_back();
    LaunchedBy& by = result[index];
    for (auto span = around.rbegin(); span != around.rend(); ++span) {
      if ((*span)->end < launch.at) continue;
      if (by.op == kNone) by.op = (*span)->name;
      if (by.product == kNone) by.product = (*span)->product;
      if (by.collective == kNone) by.collective = (*span)->collective;
      by.optimizer = by.optimizer || names.text((*span)->name).starts_with("Optimizer.step#");
    }
  }
  return result;
}

bool product_of(std::string_view op, std::string_view dims, MatrixProduct& product) {
  const bool plus = op == "aten::addmm" || op == "aten::baddbmm";
  if (!plus && op != "aten::mm" && op != "aten::bmm" && op != "aten::_scaled_mm" &&
      op != "aten::_int_mm" && op != "aten::_grouped_mm")
    return false;
  const Dims shapes = read_dims(dims);
  const std::size_t first = plus ? 1 : 0;
  if (shapes.size() < first + 2) return false;
  // A grouped GEMM divides the rows among its matrices.
  if (op == "aten::_grouped_mm" && shapes[0].size() == 2 && shapes[1].size() == 3)
    return from_shapes(shapes[0], {shapes[1][1], shapes[1][2]}, product);
  return from_shapes(shapes[first], shapes[first + 1], product);
}

std::int64_t first_elements(std::string_view dims) {
  const Dims shapes = read_dims(dims);
  if (shapes.empty() || shapes[0].empty()) return -1;
  return elements(shapes[0], shapes[0].size());
}

int element_size(std::string_view type) {
  std::string word;
  for (const char c : type) word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto has = [&](const char* part) { return word.find(part) != std::string::npos; };
  if (has("float8") || has("int8") || has("char") || has("byte") || has("bool")) return 1;
  if (has("bfloat16") || has("half") || has("float16") || has("short")) return 2;
  if (has("double") || has("long") || has("float64") || has("int64")) return 8;
  if (has("float") || has("int")) return 4;
  return 0;
}

}  // namespace polyphony::traces
