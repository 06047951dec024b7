#include "sim/datasets/pack.h"

#include <algorithm>

#include "shared/program/work.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kOpen =
    16;  // first fit over more sequences gains little: less than 1/16 is lost

struct Sequence {
  Sample sample;
  std::int64_t tokens = 0;
};

}  // namespace

std::vector<Sample> pack(const Model& model, const std::vector<Sample>& samples,
                         std::int64_t tokens) {
  std::vector<Sample> packed;
  std::vector<Sequence> open;
  const auto close = [&](std::vector<Sequence>::iterator sequence) {
    packed.push_back(std::move(sequence->sample));
    packed.back().id = static_cast<std::uint32_t>(packed.size() - 1);
    open.erase(sequence);
  };
  for (const Sample& sample : samples) {
    const std::int64_t length = language_rows(model, sample);
    auto place = std::find_if(open.begin(), open.end(), [&](const Sequence& sequence) {
      return sequence.tokens + length <= tokens;
    });
    if (place == open.end()) {
      if (open.size() == kOpen)
        close(std::max_element(open.begin(), open.end(), [](const Sequence& a, const Sequence& b) {
          return a.tokens < b.tokens;
        }));
      place = open.emplace(open.end());
    }
    place->sample.items.insert(place->sample.items.end(), sample.items.begin(), sample.items.end());
    place->tokens += length;
  }
  while (!open.empty()) close(open.begin());
  return packed;
}

}  // namespace polyphony::sim
