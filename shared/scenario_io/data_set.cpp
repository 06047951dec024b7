#include "shared/scenario_io/data_set.h"

#include <algorithm>
#include <cmath>

#include "shared/data/batch_json.h"
#include "shared/datasets/conversation_samples.h"
#include "shared/datasets/found.h"
#include "shared/datasets/token_file.h"
#include "shared/model/data_modules.h"
#include "shared/program/sample_mask.h"
#include "shared/program/work.h"
#include "shared/scenario_io/easy_vqa.h"
#include "shared/tokenizer/tokenizer.h"

namespace polyphony {
namespace {

// The reason why the model cannot process a sample, and what to do; empty if it can.
struct Objection {
  std::string what, hint;
};

// Learned positions are for images of up to the module's size; rotary ones have no limit.
bool takes_grid(const Module& vision, std::int32_t merge, PatchGrid grid) {
  const std::int32_t side = vision.image_size / vision.patch;
  return grid.rows % merge == 0 && grid.columns % merge == 0 &&
         (vision.rotary || (grid.rows <= side && grid.columns <= side));
}

Objection object_to_image(const Model& model, const Item& item) {
  const std::string image = "has an image of " + std::to_string(item.tokens) + " patches";
  const Module* vision = vision_module(model);
  const std::int32_t merge = merge_of(model);
  if (!vision)
    return {image + ", but the model has no vision module", "add one, or remove the images"};
  if (vision->abstract.is) {
    if (item.tokens % (merge * merge) == 0) return {};
    return {image + "; their number must be a multiple of " + std::to_string(merge * merge),
            "change the recorded number"};
  }
  const bool has_grid = item.columns > 0 || is_square(item.tokens);
  if (has_grid && takes_grid(*vision, merge, grid_of(item))) return {};
  const std::string most =
      vision->rotary ? "" : " and at most " + std::to_string(vision->image_size / vision->patch);
  return {image + "; images must be squares, or [rows, columns], whose sides are a multiple of " +
              std::to_string(merge) + most,
          vision->rotary ? "change the recorded number"
                         : "change the recorded number, or model.vision.image_size"};
}

Objection object_to_clip(const Model& model, const Item& item) {
  const std::string clip = "has an audio clip of " + std::to_string(item.tokens) + " tokens";
  const Module* audio = audio_module(model);
  const std::int32_t merge = merge_of(model, ModuleKind::audio);
  if (!audio) return {clip + ", but the model has no audio module", "add one, or remove the audio"};
  if (item.tokens >= 1 && item.tokens <= audio->audio_tokens && item.tokens % merge == 0) return {};
  return {clip + "; clips must have at most " + std::to_string(audio->audio_tokens) +
              " tokens, a multiple of " + std::to_string(merge),
          "change the recorded number, or model.audio.audio_tokens"};
}

Objection object_to(const Scenario& scenario, const Sample& sample) {
  const Model& model = scenario.model;
  for (std::uint32_t place = 0; place < sample.items.size(); ++place) {
    const Item& item = sample.items[place];
    const bool latent = item.modality == Modality::latent;
    if (latent && !diffusion_module(model))
      return {"has a latent, but the model has no diffusion module",
              "add one, or remove the latents"};
    if (latent && condition_rows(model, sample, place).size() == 0)
      return {"has a latent without text", "put the text of a latent before it"};
    Objection objection;
    if (item.modality == Modality::audio) objection = object_to_clip(model, item);
    if (item.modality == Modality::image) objection = object_to_image(model, item);
    if (!objection.what.empty()) return objection;
  }
  const std::int64_t length = language_rows(model, sample);
  if (length == 0) return {"has no tokens", "remove it"};
  if (scenario.data.sequence > 0 && length > scenario.data.sequence)
    return {"has " + std::to_string(length) + " tokens, more than the " +
                std::to_string(scenario.data.sequence) + " of /data/sequence in the scenario",
            "increase /data/sequence, or remove the sample"};
  return {};
}

std::vector<Sample> recorded_samples(const Scenario& scenario, const LoadText& load) {
  const std::string& path = std::get<RecordedData>(scenario.data.source).path;
  std::string text;
  try {
    text = load(path);
  } catch (const InputError& error) {
    throw InputError(path, "", error.what_is_wrong,
                     "check /data/source/recorded in " + scenario.file);
  }
  std::vector<Sample> samples = parse_samples(text, path);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Objection objection = object_to(scenario, samples[i]);
    if (!objection.what.empty())
      throw InputError(path, "",
                       "sample " + std::to_string(i) + " (counted from 0) " + objection.what,
                       objection.hint);
  }
  return samples;
}

}  // namespace

std::vector<Sample> vqa_samples(const Scenario& scenario, const std::vector<VqaQuestion>& questions,
                                const std::string& file, std::uint32_t first) {
  const Module* vision = vision_module(scenario.model);
  std::vector<Sample> samples;
  samples.reserve(questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    Sample sample{first + static_cast<std::uint32_t>(i), {}};
    if (vision) sample.items.push_back({Modality::image, patches_of(*vision), 0});
    const auto words = static_cast<std::int32_t>(question_words(questions[i].question).size());
    sample.items.push_back({Modality::text, words + 1, 1});
    const std::int64_t length = language_rows(scenario.model, sample);
    if (scenario.data.sequence > 0 && length > scenario.data.sequence)
      throw InputError(scenario.file, "/data/sequence",
                       "sequence must be at least " + std::to_string(length) +
                           " tokens, the length of question " + std::to_string(i) + " of " + file +
                           " with its image, got " + std::to_string(scenario.data.sequence),
                       "increase it, or remove the key");
    samples.push_back(std::move(sample));
  }
  return samples;
}

TextSamples text_samples(const Scenario& scenario, const LoadText& load, const std::string& path) {
  const TextData& source = std::get<TextData>(scenario.data.source);
  const Tokenizer tokenizer = Tokenizer::parse(load(source.tokenizer), source.tokenizer);
  check_vocabulary(scenario, tokenizer, source.tokenizer);
  refuse_parquet(path);
  TextSamples result;
  try {
    result.ids = tokenizer.encode(load(path));
  } catch (const InputError& error) {
    throw InputError(path, "", error.what_is_wrong, error.hint);
  }
  const auto predicted = static_cast<std::int64_t>(result.ids.size()) - 1;
  if (predicted < 1)
    throw InputError(path, "", "must have at least two tokens", "use a longer text");
  const std::int64_t sequence = scenario.data.sequence;
  for (std::int64_t begin = 0; begin < predicted; begin += sequence) {
    const auto tokens = static_cast<std::int32_t>(std::min(sequence, predicted - begin));
    result.samples.push_back(
        {static_cast<std::uint32_t>(result.samples.size()), {{Modality::text, tokens, tokens}}});
  }
  return result;
}

Scenario part_scenario(const Scenario& scenario, std::size_t part) {
  Scenario own = scenario;
  std::visit([&](const auto& source) { own.data.source = source; },
             std::get<MixtureData>(scenario.data.source).parts[part].source);
  own.data.samples = {};
  own.data.remarks.clear();
  own.data.pointer += "/mixture/" + std::to_string(part);
  return own;
}

std::uint64_t mixture_weight(const MixturePart& part) {
  return static_cast<std::uint64_t>(std::max(1LL, std::llround(part.weight * 1e6)));
}

std::string with_remarks(const std::string& all, const std::string& pointer,
                         const std::string& remarks) {
  if (remarks.empty()) return all;
  return all + (all.empty() ? "" : "\n") + pointer + ": " + remarks;
}

void check_listed(const Scenario& scenario, std::uint64_t count) {
  if (count > kMostListed)
    throw InputError(scenario.file, "/data/source/mixture",
                     "the parts have " + std::to_string(count) +
                         " samples, but a data set may have " + std::to_string(kMostListed),
                     "increase /data/sequence, or use fewer parts");
}

std::string index_folder(const std::string& downloads) {
  return downloads.empty() || downloads == "." ? "" : downloads + "/samples";
}

void load_samples(Scenario& scenario, const std::string& downloads, const LoadText& load) {
  if (std::holds_alternative<RecordedData>(scenario.data.source)) {
    scenario.data.samples = recorded_samples(scenario, load);
  } else if (const auto* text = std::get_if<TextData>(&scenario.data.source)) {
    scenario.data.samples = text_samples(scenario, load, text->path).samples;
  } else if (const auto* tokens = std::get_if<TokenData>(&scenario.data.source)) {
    const TokenFile file(tokens->path, scenario.data.pointer + "/tokens in " + scenario.file);
    file.check_sequences();
    scenario.data.samples = file.samples(scenario.data.sequence);
  } else if (const auto* mixture = std::get_if<MixtureData>(&scenario.data.source)) {
    SampleList samples;
    std::string remarks;
    for (std::size_t i = 0; i < mixture->parts.size(); ++i) {
      Scenario part = part_scenario(scenario, i);
      load_samples(part, downloads, load);
      samples.append_part(part.data.samples, mixture_weight(mixture->parts[i]));
      remarks = with_remarks(remarks, part.data.pointer, part.data.remarks);
    }
    check_listed(scenario, samples.size());
    scenario.data.samples = std::move(samples);
    scenario.data.remarks = std::move(remarks);
  } else if (const auto* files = std::get_if<ConversationData>(&scenario.data.source)) {
    const ConversationSamples read =
        read_conversations(scenario, files->path, index_folder(downloads));
    scenario.data.samples = read.samples();
    scenario.data.remarks = read.remarks();
  } else if (std::holds_alternative<EasyVqaData>(scenario.data.source)) {
    const std::string folder = find_easy_vqa(scenario, downloads, load);
    const std::string file = vqa_questions_file(folder, VqaPart::train);
    scenario.data.samples = vqa_samples(scenario, load_vqa_questions(file, load), file);
  }
}

}  // namespace polyphony
