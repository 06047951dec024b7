#include "shared/scenario/typical_batch.h"

namespace polyphony {

Batch batch_of_step(const Scenario& scenario, std::uint64_t step) {
  std::int32_t patches = 0, clip = 0, latent = 0;
  for (const Module& module : scenario.model.modules) {
    if (module.kind == ModuleKind::vision)
      patches = (module.image_size / module.patch) * (module.image_size / module.patch);
    if (module.kind == ModuleKind::audio) clip = module.audio_tokens;
    if (module.kind == ModuleKind::diffusion) latent = module.latent_tokens;
  }
  if (const auto* synthetic = std::get_if<SyntheticData>(&scenario.data.source))
    return draw_batch(*synthetic, scenario.data.global_batch, patches, scenario.data.seed, step);
  Batch batch;
  Sample sample;
  if (patches > 0) sample.items.push_back({Modality::image, patches, 0});
  if (clip > 0) sample.items.push_back({Modality::audio, clip, 0});
  // easy-vqa questions have 4 to 9 words and one label (shared/scenario/data.h); recorded samples
  // are taken at full length.
  const bool easy = std::holds_alternative<EasyVqaData>(scenario.data.source);
  const std::int32_t text = easy || scenario.data.sequence == 0 ? 8 : scenario.data.sequence;
  sample.items.push_back({Modality::text, text, easy ? 1 : text});
  if (latent > 0) sample.items.push_back({Modality::latent, latent, 0});
  batch.samples.assign(static_cast<std::size_t>(scenario.data.global_batch), sample);
  for (std::size_t i = 0; i < batch.samples.size(); ++i)
    batch.samples[i].id = static_cast<std::uint32_t>(i);
  return batch;
}

Batch typical_batch(const Scenario& scenario) { return batch_of_step(scenario, 0); }

}  // namespace polyphony
