#include "exec/data/positions.h"

#include <algorithm>
#include <array>

#include "shared/error.h"
#include "shared/model/data_modules.h"

namespace polyphony::exec {

torch::Tensor rope_positions(const Model& model, const Sample& sample) {
  const std::int64_t image_merge = merge_of(model, ModuleKind::vision);
  const std::int64_t audio_merge = merge_of(model, ModuleKind::audio);
  std::array<std::vector<std::int64_t>, 3> axes;  // time, row, column
  std::int64_t next = 0;
  const auto run = [&](std::int64_t tokens) {
    for (std::int64_t i = 0; i < tokens; ++i, ++next)
      for (std::vector<std::int64_t>& axis : axes) axis.push_back(next);
  };
  for (const Item& item : sample.items) {
    switch (item.modality) {
      case Modality::text:
        run(item.tokens);
        break;
      case Modality::audio:
        run(item.tokens / audio_merge);
        break;
      case Modality::image: {
        const PatchGrid grid = grid_of(item);
        const std::int64_t rows = grid.rows / image_merge, columns = grid.columns / image_merge;
        for (std::int64_t row = 0; row < rows; ++row)
          for (std::int64_t column = 0; column < columns; ++column) {
            axes[0].push_back(next);
            axes[1].push_back(next + row);
            axes[2].push_back(next + column);
          }
        next += std::max(rows, columns);
        break;
      }
      case Modality::latent:  // takes no position in the sequence
        break;
      case Modality::video:
        POLYPHONY_CHECK(false, "sample " << sample.id << ": language modules do not support video");
    }
  }
  const auto tokens = static_cast<std::int64_t>(axes[0].size());
  if (model.modules[language_module(model).value].rope_sections.empty())
    return at::arange(tokens, torch::kInt64);
  std::vector<torch::Tensor> rows;
  for (const std::vector<std::int64_t>& axis : axes)
    rows.push_back(torch::tensor(axis, torch::kInt64));
  return at::stack(rows);
}

}  // namespace polyphony::exec
