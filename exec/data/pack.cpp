// Implements pack_work() of exec/data/dataset.h: packs one microbatch's share of its samples
// without padding.
#include <algorithm>

#include "exec/data/dataset.h"
#include "exec/data/latents.h"
#include "exec/data/positions.h"
#include "shared/error.h"
#include "shared/model/data_modules.h"
#include "shared/program/sample_mask.h"

namespace polyphony::exec {
namespace {

torch::Tensor indices(const std::vector<std::int64_t>& values) {
  return torch::tensor(values, torch::kInt64);
}

// The tokens of a microbatch: which part of its samples' packed axis it holds, and their contents.
class TokenPacker {
 public:
  TokenPacker(const Program& program, const Work& work) : program_(program), work_(work) {
    for (std::size_t e = 0; e < program.model.edges.size(); ++e)
      if (program.model.edges[e].to == language_module(program.model))
        edges_.push_back(static_cast<int>(e));
    edge_rows_.resize(edges_.size());
    by_axis_ = !program.model.modules[language_module(program.model).value].rope_sections.empty();
  }

  // Call in the order of the samples. `content` may be null: then ids and labels are omitted.
  void add(const Sample& sample, const SampleContent* content) {
    lengths_.push_back(0);
    const std::size_t held = positions_.size();
    std::size_t text = 0, label = 0;
    std::int64_t position = 0;
    for (const Item& item : sample.items) {
      const std::int64_t rows = language_rows(program_.model, item);
      const bool is_text = item.modality == Modality::text;
      for (std::int64_t i = 0; i < rows; ++i, ++position, ++at_) {
        const bool labelled = is_text && i >= rows - item.loss_tokens;
        if (holds(at_)) {
          if (is_text) {
            text_rows_.push_back(local_);
            if (content) token_ids_.push_back(content->token_ids.at(text));
          } else {
            add_edge_row(item.modality);
          }
          if (labelled) {
            loss_rows_.push_back(local_);
            if (content) labels_.push_back(content->labels.at(label));
          }
          positions_.push_back(position);
          ++lengths_.back();
          ++local_;
        }
        text += is_text ? 1 : 0;
        label += labelled ? 1 : 0;
      }
    }
    if (by_axis_)
      add_axes(sample, {positions_.begin() + static_cast<std::ptrdiff_t>(held), positions_.end()});
  }

  void finish(WorkInput& input, bool with_text) && {
    input.text_rows = indices(text_rows_);
    for (std::size_t e = 0; e < edges_.size(); ++e)
      input.edge_rows[edges_[e]] = indices(edge_rows_[e]);
    input.positions = by_axis_
                          ? axes_.empty() ? at::empty({3, 0}, torch::kInt64) : at::cat(axes_, 1)
                          : indices(positions_);
    input.loss_rows = indices(loss_rows_);
    input.lengths = std::move(lengths_);
    if (!with_text) return;
    input.token_ids = indices(token_ids_);
    input.labels = indices(labels_);
  }

 private:
  // Must be called with ascending positions.
  bool holds(std::int64_t position) {
    while (interval_ < work_.rows.size() && current().end <= position) ++interval_;
    return interval_ < work_.rows.size() && current().begin <= position;
  }
  const Interval& current() const { return program_.work_rows[work_.rows.begin + interval_]; }
  void add_edge_row(Modality modality) {
    for (std::size_t e = 0; e < edges_.size(); ++e)
      if (takes(program_.model, program_.model.edges[static_cast<std::size_t>(edges_[e])].from,
                modality))
        edge_rows_[e].push_back(local_);
  }

  // Adds time, row and column of the sample's tokens that this microbatch holds.
  void add_axes(const Sample& sample, const std::vector<std::int64_t>& held) {
    axes_.push_back(rope_positions(program_.model, sample).index_select(1, indices(held)));
  }

  const Program& program_;
  const Work& work_;
  bool by_axis_ = false;             // exec/data/positions.h
  std::vector<torch::Tensor> axes_;  // per sample: [3, its tokens in this microbatch]
  std::uint32_t interval_ = 0;
  std::int64_t at_ = 0, local_ = 0;
  std::vector<int> edges_;
  std::vector<std::vector<std::int64_t>> edge_rows_;
  std::vector<std::int64_t> text_rows_, positions_, loss_rows_, lengths_, token_ids_, labels_;
};

// The tokens of all context-parallel ranks, rank after rank.
void add_contexts(const Program& program, WorkId id, WorkInput& input) {
  const Work& own = program.works[id.value];
  std::vector<Interval> samples;  // their ranges of the packed axis
  std::int64_t end = 0;
  for (std::uint32_t i = own.samples.begin; i < own.samples.end; ++i) {
    const std::int64_t rows =
        language_rows(program.model, program.batch.samples[program.work_samples[i]]);
    samples.push_back({end, end + rows});
    end += rows;
  }
  std::vector<std::int64_t> sample_of, position_of;
  for (std::uint32_t w = id.value - own.context; w < program.works.size(); ++w) {
    const Work& work = program.works[w];
    if (work.branch != own.branch || work.lane != own.lane || work.index != own.index) break;
    std::size_t sample = 0;
    const std::size_t before = sample_of.size();
    for (std::uint32_t i = work.rows.begin; i < work.rows.end; ++i)
      for (std::int64_t row = program.work_rows[i].begin; row < program.work_rows[i].end; ++row) {
        while (samples[sample].end <= row) ++sample;
        sample_of.push_back(static_cast<std::int64_t>(sample));
        position_of.push_back(row - samples[sample].begin);
      }
    input.context_rows.push_back(static_cast<std::int64_t>(sample_of.size() - before));
  }
  input.context_samples = indices(sample_of);
  input.context_positions = indices(position_of);
}

// Writes the patches of `image` [channels, height, width] as rows, row-major over the image;
// features (channel, row, column).
void write_patches(const torch::Tensor& image, PatchGrid grid, std::int64_t patch,
                   torch::Tensor rows) {
  const std::int64_t channels = image.size(0);
  POLYPHONY_CHECK(image.size(1) == grid.rows * patch && image.size(2) == grid.columns * patch,
                  "an image of " << image.size(1) << " × " << image.size(2) << " pixels for "
                                 << grid.rows << " × " << grid.columns << " patches of " << patch);
  rows.view({grid.rows, grid.columns, channels, patch, patch})
      .copy_(
          image.view({channels, grid.rows, patch, grid.columns, patch}).permute({1, 3, 0, 2, 4}));
}

// Returns the index of an item among those of its modality in its sample.
std::size_t place_of(const Sample& sample, std::uint32_t item) {
  std::size_t place = 0;
  for (std::uint32_t i = 0; i < item; ++i)
    place += sample.items[i].modality == sample.items[item].modality ? 1 : 0;
  return place;
}

void add_images(const Program& program, const Work& work, const Dataset& dataset,
                torch::Dtype dtype, bool with_pixels, WorkInput& input) {
  std::int64_t patches = 0;
  std::vector<ItemOfWork> images;
  for (std::uint32_t i = work.items.begin; i < work.items.end; ++i) {
    const ItemOfWork& place = program.items_of_works[i];
    const Item& item = program.batch.samples[place.sample].items[place.item];
    if (item.modality != Modality::image) continue;
    images.push_back(place);
    input.images.push_back(grid_of(item));
    patches += item.tokens;
  }
  const Module* vision = vision_module(program.model);
  if (!with_pixels || !vision) return;
  input.patches = torch::empty(
      {patches, std::int64_t{vision->channels} * vision->patch * vision->patch}, dtype);
  std::int64_t row = 0;
  SampleContent content;
  std::uint32_t loaded = 0xffffffffu;
  for (const ItemOfWork& place : images) {
    const Sample& sample = program.batch.samples[place.sample];
    if (loaded != place.sample)
      content = dataset.content(sample, {.text = false, .latents = false, .audio = false});
    loaded = place.sample;
    const Item& item = sample.items[place.item];
    write_patches(content.images.at(place_of(sample, place.item)), grid_of(item), vision->patch,
                  input.patches.narrow(0, row, item.tokens));
    row += item.tokens;
  }
}

void add_clips(const Program& program, const Work& work, const Dataset& dataset, torch::Dtype dtype,
               bool with_frames, WorkInput& input) {
  const Module* audio = audio_module(program.model);
  std::vector<torch::Tensor> clips;
  SampleContent content;
  std::uint32_t loaded = 0xffffffffu;
  for (std::uint32_t i = work.items.begin; i < work.items.end; ++i) {
    const ItemOfWork& place = program.items_of_works[i];
    const Sample& sample = program.batch.samples[place.sample];
    const Item& item = sample.items[place.item];
    if (item.modality != Modality::audio) continue;
    input.audio_lengths.push_back(item.tokens);
    if (!with_frames) continue;
    if (loaded != place.sample)
      content = dataset.content(sample, {.images = false, .text = false, .latents = false});
    loaded = place.sample;
    clips.push_back(content.audio.at(place_of(sample, place.item)));
    POLYPHONY_CHECK(clips.back().size(0) == 2 * item.tokens,
                    clips.back().size(0) << " frames for " << item.tokens << " tokens");
  }
  if (!with_frames || !audio) return;
  input.frames = clips.empty() ? at::empty({0, audio->mel_bins}, dtype) : at::cat(clips).to(dtype);
}

void add_latents(const Program& program, const Work& work, const Dataset& dataset,
                 torch::Dtype dtype, const PackParts& parts, WorkInput& input) {
  const auto found = std::find_if(program.model.modules.begin(), program.model.modules.end(),
                                  [](const Module& m) { return m.kind == ModuleKind::diffusion; });
  if (found == program.model.modules.end()) return;
  input.latent_scale = 1.0 / static_cast<double>(latent_elements(*found, program.totals));
  std::vector<LatentItem> items;
  for (std::uint32_t i = work.items.begin; i < work.items.end; ++i) {
    const ItemOfWork& place = program.items_of_works[i];
    const Sample& sample = program.batch.samples[place.sample];
    const Item& item = sample.items[place.item];
    if (item.modality != Modality::latent) continue;
    LatentItem latent{
        {sample.id, place.item},
        item.tokens,
        found->condition > 0 ? condition_rows(program.model, sample, place.item).size() : 0,
        {}};
    if (parts.latents)
      latent.latent = dataset.content(sample, {.images = false, .text = false, .audio = false})
                          .latents.at(place_of(sample, place.item));
    items.push_back(std::move(latent));
  }
  pack_latents(input, *found, items, parts.draw, dtype, parts.latents);
}

}  // namespace

WorkInput pack_work(const Program& program, WorkId id, const Dataset& dataset, torch::Dtype dtype,
                    const PackParts& parts) {
  const bool with_text = parts.text;
  const Work& work = program.works[id.value];
  WorkInput input;
  input.loss_scale =
      1.0 / static_cast<double>(std::max<std::int64_t>(1, program.totals.loss_tokens));
  input.balance_scale =
      1.0 / static_cast<double>(std::max<std::int64_t>(1, program.totals.samples));
  add_images(program, work, dataset, dtype, parts.images, input);
  add_clips(program, work, dataset, dtype, parts.audio, input);
  add_latents(program, work, dataset, dtype, parts, input);
  TokenPacker tokens(program, work);
  for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i) {
    const Sample& sample = program.batch.samples[program.work_samples[i]];
    SampleContent content;
    if (with_text)
      content = dataset.content(sample, {.images = false, .latents = false, .audio = false});
    tokens.add(sample, with_text ? &content : nullptr);
  }
  std::move(tokens).finish(input, with_text);
  const ModuleLayout& grid = program.layout.modules[language_module(program.model).value];
  if (with_text && grid.cp > 1) add_contexts(program, id, input);
  if (program.model.modules[language_module(program.model).value].mask != Mask::causal)
    for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i)
      add_sample(input.mask, program.model, program.batch.samples[program.work_samples[i]]);
  return input;
}

}  // namespace polyphony::exec
