#include "exec/data/recorded_dataset.h"

#include "exec/data/dataset_model.h"
#include "exec/system/files.h"
#include "shared/error.h"
#include "shared/layers/rows.h"
#include "shared/program/work.h"
#include "shared/scenario/batch_json.h"

namespace polyphony::exec {
namespace {

// Why the model cannot take the sample, and what to do; empty when it can.
struct Objection {
  std::string what, hint;
};
Objection object_to(const Scenario& scenario, const Sample& sample) {
  const Module* vision = vision_module(scenario.model);
  const std::int32_t merge = merge_of(scenario.model);
  int latents = 0;
  const Module* audio = audio_module(scenario.model);
  const std::int32_t audio_merge = merge_of(scenario.model, ModuleKind::audio);
  for (const Item& item : sample.items) {
    latents += item.modality == Modality::latent ? 1 : 0;
    if (latents > 0 && !diffusion_module(scenario.model))
      return {"has a latent, the model has no diffusion module", "add one, or remove the latents"};
    if (latents > 1) return {"has several latents", "keep one"};
    if (item.modality == Modality::audio) {
      const std::string clip = "has an audio clip of " + std::to_string(item.tokens) + " tokens";
      if (!audio) return {clip + ", the model has no audio module", "add one, or remove the audio"};
      if (item.tokens < 1 || item.tokens > audio->audio_tokens || item.tokens % audio_merge != 0)
        return {clip + "; the model takes at most " + std::to_string(audio->audio_tokens) +
                    " that divide by " + std::to_string(audio_merge),
                "change the recorded number, or model.audio.audio_tokens"};
    }
    if (item.modality != Modality::image) continue;
    const std::string image = "has an image of " + std::to_string(item.tokens) + " patches";
    if (!vision)
      return {image + ", the model has no vision module", "add one, or remove the images"};
    if (!is_square(item.tokens) || item.tokens > patches_of(*vision) ||
        square_side(item.tokens) % merge != 0)
      return {image + "; the model takes squares of at most " +
                  std::to_string(patches_of(*vision)) + " patches with sides that divide by " +
                  std::to_string(merge),
              "change the recorded number, or model.vision.image_size"};
  }
  const std::int64_t length = language_rows(scenario.model, sample);
  if (length == 0) return {"has no tokens", "remove it"};
  if (scenario.data.sequence > 0 && length > scenario.data.sequence)
    return {"is " + std::to_string(length) +
                " tokens long, /data/sequence of the scenario allows " +
                std::to_string(scenario.data.sequence),
            "allow more, or remove the sample"};
  return {};
}

}  // namespace

RecordedDataset::RecordedDataset(const Scenario& scenario)
    : data_(scenario.data), content_(scenario) {
  const std::string& path = std::get<RecordedData>(data_.source).path;
  samples_ =
      parse_samples(read_bytes(path, "check /data/source/recorded in " + scenario.file), path);
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const Objection objection = object_to(scenario, samples_[i]);
    if (!objection.what.empty())
      throw InputError(path, "",
                       "sample " + std::to_string(i) + " (counted from 0) " + objection.what,
                       objection.hint);
  }
}

Batch RecordedDataset::batch(std::uint64_t step) const {
  return take_batch(samples_, data_.global_batch, data_.seed, step);
}

}  // namespace polyphony::exec
