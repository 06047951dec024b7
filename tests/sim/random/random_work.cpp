#include "tests/sim/random/random_work.h"

#include <algorithm>

namespace polyphony::tests {

void add_language(Program& program, bool trainable, int blocks, int hidden, int tensor,
                  int stages) {
  Module module;
  module.name = "language";
  module.trainable = trainable ? Trainable::full : Trainable::frozen;
  module.layers = blocks;
  module.hidden = hidden;
  module.heads = module.kv_heads = 16;
  module.head_dim = 4;
  module.ffn = 64;
  module.gated = true;
  module.vocab = 256;
  program.model.modules.push_back(module);
  ModuleLayout grid;
  grid.tp = tensor;
  grid.pp = stages;
  grid.ranks = static_cast<int>(program.ranks);
  program.layout.modules.push_back(grid);
}

WorkId add_work(Program& program, int lane, int index, std::int32_t tokens) {
  const std::int32_t labels = std::max(1, tokens / 2);
  const auto sample = static_cast<std::uint32_t>(program.batch.samples.size());
  program.batch.samples.push_back({sample, {{Modality::text, tokens, labels}}});
  program.work_samples.push_back(sample);
  Work item;
  item.lane = static_cast<std::uint32_t>(lane);
  item.index = static_cast<std::uint32_t>(index);
  item.samples = item.rows = {sample, sample + 1};
  program.work_rows.push_back({0, tokens});
  program.works.push_back(item);
  const std::int64_t n = tokens;
  program.sizes.push_back({n, n * (n + 1) / 2, n, labels, 1, 1, n, 0});
  program.totals.loss_tokens += labels;
  return WorkId(program.works.size() - 1);
}

}  // namespace polyphony::tests
