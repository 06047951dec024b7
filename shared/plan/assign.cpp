#include "shared/plan/assign.h"

namespace polyphony {
namespace {

// Start of part `index` when `count` things are cut into `parts` contiguous runs whose sizes differ
// by at most one.
std::size_t cut(std::size_t count, std::size_t parts, std::size_t index) {
  return count * index / parts;
}

int merge_of(const Model& model) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::projector) return module.merge;
  return 1;
}

}  // namespace

std::int64_t image_patches(const Sample& sample) {
  std::int64_t patches = 0;
  for (const Item& item : sample.items)
    if (item.modality == Modality::image) patches += item.tokens;
  return patches;
}

std::int64_t image_rows(const Model& model, const Sample& sample) {
  const int merge = merge_of(model);
  return image_patches(sample) / (merge * merge);
}

WorkTable assign_work(const Plan& plan, const Batch& batch) {
  WorkTable table;
  const std::size_t samples = batch.samples.size();
  const auto microbatches = static_cast<std::size_t>(plan.branches.back().microbatches);
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    const Branch& branch = plan.branches[b];
    const bool language = b + 1 == plan.branches.size();
    const auto indices = static_cast<std::size_t>(branch.microbatches);
    const auto lanes = static_cast<std::size_t>(branch.grid.dp());
    const std::size_t fed =
        microbatches / indices;  // language microbatches that one encoder work item feeds
    table.first_work.push_back(static_cast<std::uint32_t>(table.works.size()));
    for (std::size_t index = 0; index < indices; ++index) {
      std::vector<std::uint32_t> members;
      const std::size_t begin = cut(samples, microbatches, index * fed);
      const std::size_t end = cut(samples, microbatches, (index + 1) * fed);
      for (std::size_t s = begin; s < end; ++s)
        if (language || image_patches(batch.samples[s]) > 0)
          members.push_back(static_cast<std::uint32_t>(s));
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        Work work{static_cast<std::uint16_t>(b),
                  static_cast<std::uint16_t>(lane),
                  static_cast<std::uint16_t>(index),
                  {}};
        work.samples.begin = static_cast<std::uint32_t>(table.work_samples.size());
        for (std::size_t i = cut(members.size(), lanes, lane);
             i < cut(members.size(), lanes, lane + 1); ++i)
          table.work_samples.push_back(members[i]);
        work.samples.end = static_cast<std::uint32_t>(table.work_samples.size());
        table.works.push_back(work);
      }
    }
  }
  return table;
}

WorkSize work_size(const Model& model, ModuleId module, const Batch& batch,
                   const std::uint32_t* samples, std::size_t count) {
  WorkSize size;
  const ModuleKind kind = model.modules[module.value].kind;
  const int merge = merge_of(model);
  for (std::size_t i = 0; i < count; ++i) {
    const Sample& sample = batch.samples[samples[i]];
    std::int64_t length = 0;
    for (const Item& item : sample.items) {
      const bool image = item.modality == Modality::image;
      if (image && kind != ModuleKind::language) {
        const std::int64_t rows =
            kind == ModuleKind::projector ? item.tokens / (merge * merge) : item.tokens;
        size.tokens += rows;
        size.pairs += rows * rows;
        ++size.sequences;
      }
      length += image ? item.tokens / (merge * merge) : item.tokens;
      if (!image && kind == ModuleKind::language) {
        size.text_tokens += item.tokens;
        size.loss_tokens += item.loss_tokens;
      }
    }
    if (kind == ModuleKind::language) {
      size.tokens += length;
      size.pairs += length * (length + 1) / 2;
      ++size.sequences;
    }
  }
  return size;
}

Batch typical_batch(const Scenario& scenario) {
  const Module& first = scenario.model.modules.front();
  const std::int32_t patches =
      first.kind == ModuleKind::vision
          ? (first.image_size / first.patch) * (first.image_size / first.patch)
          : 0;
  if (const auto* synthetic = std::get_if<SyntheticData>(&scenario.data.source))
    return draw_batch(*synthetic, scenario.data.global_batch, patches, scenario.data.seed, 0);
  Batch batch;
  Sample sample;
  if (patches > 0) sample.items.push_back({Modality::image, patches, 0});
  // easy-vqa questions have 4 to 9 words and one label (shared/data.h); recorded samples are taken
  // at full length.
  const bool easy = std::holds_alternative<EasyVqaData>(scenario.data.source);
  const std::int32_t text = easy || scenario.data.sequence == 0 ? 8 : scenario.data.sequence;
  sample.items.push_back({Modality::text, text, easy ? 1 : text});
  batch.samples.assign(static_cast<std::size_t>(scenario.data.global_batch), sample);
  for (std::size_t i = 0; i < batch.samples.size(); ++i)
    batch.samples[i].id = static_cast<std::uint32_t>(i);
  return batch;
}

}  // namespace polyphony
