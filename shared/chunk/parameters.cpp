#include "shared/chunk/parameters.h"

#include "shared/error.h"
#include "shared/kernels/lora.h"
#include "shared/layers/layer_table.h"
#include "shared/random.h"

namespace polyphony {

std::vector<Parameter> parameters(const Module& module, LayerRange range) {
  std::vector<Parameter> out;
  const std::vector<LayerKind> stack = layers(module);
  POLYPHONY_CHECK(range.begin <= range.end && range.end <= stack.size(),
                  module.name << " has " << stack.size() << " layers, got the range ["
                              << range.begin << ", " << range.end << ")");
  for (int layer = range.begin; layer < range.end; ++layer) {
    const LayerRow& row = layer_row(stack[static_cast<std::size_t>(layer)]);
    const LayerParameters add(out, module, layer, range.begin);
    const bool block = row.place == LayerPlace::block;
    row.parameters(block ? add.under("block" + std::to_string(layer - 1)) : add);
  }
  return with_low_rank(module, std::move(out));
}

std::vector<Parameter> parameters(const Module& module) {
  return parameters(module, {0, static_cast<std::uint16_t>(layers(module).size())});
}

std::int64_t parameter_count(const Module& module) {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters(module)) total += parameter.count();
  return total;
}

std::uint64_t parameter_seed(std::uint64_t seed, const std::string& name) {
  std::uint64_t state = mix64(seed);
  for (const char c : name) state = mix64(state ^ static_cast<unsigned char>(c));
  return state;
}

}  // namespace polyphony
