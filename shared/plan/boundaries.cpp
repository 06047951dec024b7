#include "shared/plan/boundaries.h"

#include "shared/error.h"

namespace polyphony {
namespace {

std::int64_t rows_of(const Model& model, ModuleId module, const Sample& sample) {
  return model.modules[module.value].kind == ModuleKind::projector ? image_rows(model, sample)
                                                                   : image_patches(sample);
}

// Which producer work item holds a sample's rows, and where.
struct Place {
  std::uint32_t work = 0;
  std::int64_t row = -1;
};

}  // namespace

bool input_grad_wanted(const Model& model, const Chunk& chunk) {
  return chunk.layers.begin > 0 ? needs_backward(model, chunk.module)
                                : needs_input_grad(model, chunk.module);
}

std::vector<Boundary> make_boundaries(const Model& model, const Plan& plan) {
  std::vector<Boundary> boundaries;
  const auto add = [&](std::size_t from_branch, std::size_t from_stage, std::size_t to_branch,
                       std::size_t to_stage) {
    const ModuleId producer = plan.branches[from_branch].stages[from_stage].chunks.back().module;
    const Chunk& consumer = plan.branches[to_branch].stages[to_stage].chunks.front();
    boundaries.push_back({from_branch, from_stage, to_branch, to_stage, producer,
                          input_grad_wanted(model, consumer)});
  };
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    const std::size_t stages = plan.branches[b].stages.size();
    for (std::size_t s = 0; s + 1 < stages; ++s) add(b, s, b, s + 1);
    if (b + 1 < plan.branches.size()) add(b, stages - 1, b + 1, 0);
  }
  return boundaries;
}

std::vector<Run> make_runs(const Model& model, const Plan& plan, const Boundary& boundary,
                           const WorkTable& table, const Batch& batch) {
  std::vector<Run> runs;
  const auto works_of = [&](std::size_t branch) {
    const Branch& b = plan.branches[branch];
    return static_cast<std::uint32_t>(b.microbatches * b.grid.dp());
  };
  const auto samples_of = [&](std::size_t branch, std::uint32_t work) {
    return table.works[table.first_work[branch] + work].samples;
  };
  if (boundary.producer_branch == boundary.consumer_branch) {
    for (std::uint32_t w = 0; w < works_of(boundary.consumer_branch); ++w) {
      const Range samples = samples_of(boundary.consumer_branch, w);
      const std::int64_t rows = work_size(model, boundary.producer_module, batch,
                                          table.work_samples.data() + samples.begin, samples.size())
                                    .tokens;
      if (rows > 0) runs.push_back({w, w, 0, 0, rows});
    }
    return runs;
  }
  std::vector<Place> places(batch.samples.size());
  for (std::uint32_t w = 0; w < works_of(boundary.producer_branch); ++w) {
    std::int64_t row = 0;
    const Range samples = samples_of(boundary.producer_branch, w);
    for (std::uint32_t i = samples.begin; i < samples.end; ++i) {
      const std::uint32_t s = table.work_samples[i];
      places[s] = {w, row};
      row += rows_of(model, boundary.producer_module, batch.samples[s]);
    }
  }
  for (std::uint32_t w = 0; w < works_of(boundary.consumer_branch); ++w) {
    std::int64_t to = 0;
    const Range samples = samples_of(boundary.consumer_branch, w);
    for (std::uint32_t i = samples.begin; i < samples.end; ++i) {
      const std::uint32_t s = table.work_samples[i];
      const std::int64_t rows = rows_of(model, boundary.producer_module, batch.samples[s]);
      if (rows == 0) continue;
      const Place place = places[s];
      POLYPHONY_CHECK(place.row >= 0, "sample " << s << " reaches no encoder work item");
      Run* last = runs.empty() ? nullptr : &runs.back();
      if (last && last->consumer_work == w && last->producer_work == place.work &&
          last->from + last->rows == place.row)
        last->rows += rows;
      else
        runs.push_back({place.work, w, place.row, to, rows});
      to += rows;
    }
  }
  return runs;
}

}  // namespace polyphony
