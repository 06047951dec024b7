#include <algorithm>
#include <type_traits>

#include "shared/data/distribution_text.h"
#include "shared/scenario/image_tokens.h"
#include "shared/scenario_io/scenario_parts.h"
#include "shared/validate/validate.h"

namespace polyphony {
namespace {

Distribution read_distribution(const JsonValue& value) {
  if (!value.is_text()) return constant(value.integer());
  try {
    return parse_distribution(value.text());
  } catch (const InputError& error) {
    value.refuse(error.what_is_wrong, error.hint);
  }
}

// Sets the upper limit of a lognormal distribution that has none: the rest of the sequence or, for
// the sides of images, the image_size of the vision module. Two distributions without limits would
// have to share the sequence, which is an error.
void close_ends(const JsonValue& value, SyntheticData& data, std::int64_t sequence,
                const Model& model) {
  if (is_open(data.image_sides)) {
    data.image_sides.low = 1;
    for (const Module& module : model.modules)
      if (module.kind == ModuleKind::vision) data.image_sides.high = std::max(1, module.image_size);
  }
  const std::int64_t image_tokens = tokens_per_image(model, data);
  constexpr const char* kHow = "write lognormal(mu,sigma,low,high)";
  const bool open_images = is_open(data.images), open_text = is_open(data.text_tokens);
  if (!open_images && !open_text) return;
  const JsonValue place =
      open_images ? value.at("images").at("per_sample") : value.at("text").at("tokens");
  const std::int64_t left = sequence - largest(data.clips) * tokens_per_clip(model);
  if (sequence == 0)
    place.refuse("a lognormal distribution without limits needs \"sequence\" as its limit", kHow);
  if (open_images && open_text)
    place.refuse("images and text must not both be lognormal distributions without limits", kHow);
  if (open_images) {
    const std::int64_t room = std::max<std::int64_t>(0, left - largest(data.text_tokens));
    data.images.high = static_cast<std::int32_t>(image_tokens > 0 ? room / image_tokens : 0);
  } else {
    const std::int64_t room = left - largest(data.images) * image_tokens;
    data.text_tokens.low = 1;
    data.text_tokens.high = static_cast<std::int32_t>(std::max<std::int64_t>(1, room));
  }
}

SyntheticData read_synthetic(const JsonValue& value, const Model& model, std::int64_t sequence) {
  SyntheticData data;
  const bool sees_images =
      std::any_of(model.modules.begin(), model.modules.end(),
                  [](const Module& m) { return m.kind == ModuleKind::vision; });
  data.images = constant(sees_images ? 1 : 0);
  if (value.has("images")) {
    const JsonValue images = value.at("images");
    data.images = read_distribution(images.at("per_sample"));
    if (images.has("side")) data.image_sides = read_distribution(images.at("side"));
    if (images.has("side") && largest(data.image_sides) < 1)
      images.at("side").refuse("side must be at least 1 pixel",
                               "remove the key for images of full size");
  }
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::diffusion) data.latent_tokens = module.latent_tokens;
  data.latents = constant(data.latent_tokens > 0 ? 1 : 0);
  if (value.has("latents")) data.latents = read_distribution(value.at("latents").at("per_sample"));
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::audio) data.clip_tokens = module.audio_tokens;
  data.clips = constant(data.clip_tokens > 0 ? 1 : 0);
  if (value.has("audio")) data.clips = read_distribution(value.at("audio").at("per_sample"));
  data.loss_tokens = constant(kAllTokens);
  const bool abstract_language =
      std::any_of(model.modules.begin(), model.modules.end(),
                  [](const Module& m) { return m.kind == ModuleKind::language && m.abstract.is; });
  if (!value.has("text") && abstract_language) {
    data.text_tokens = constant(1);  // its times are per sample
    return data;
  }
  if (!value.has("text"))
    value.refuse("key \"text\" is missing",
                 "synthetic samples need text; write \"text\": {\"tokens\": 256}");
  const JsonValue text = value.at("text");
  data.text_tokens = read_distribution(text.at("tokens"));
  if (text.has("loss_tokens")) {
    const JsonValue loss = text.at("loss_tokens");
    const bool all = loss.is_text() && loss.text() == "all";
    if (!all) data.loss_tokens = read_distribution(loss);
    if (is_open(data.loss_tokens))
      data.loss_tokens.high = kAllTokens - 1;  // draws are limited to the text anyway
  }
  close_ends(value, data, sequence, model);
  return data;
}

// The kinds of data sets in files, and the other keys of each.
struct SourceKind {
  const char* key;
  std::vector<std::string> others;
  bool part = false;  // may be a part of a mixture
};
const std::vector<SourceKind>& source_kinds() {
  static const std::vector<SourceKind> kinds{
      {"dataset",
       {"tokenizer", "held_out", "template", "system", "images", "too_long", "most_left_out"},
       true},
      {"text", {"tokenizer", "held_out"}, true},
      {"tokens", {"held_out"}, true},
      {"mixture", {}},
      {"recorded", {}},
      {"easy-vqa", {}}};
  return kinds;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns the kind that the keys of a data source, or of a part of a mixture, name. Refuses keys
// that do not go with it.
std::string kind_of(const JsonValue& source, bool part) {
  const std::string what = part ? "a part of a mixture" : "source";
  const std::string how = part ? "write {\"tokens\": \"data/corpus_text_document\", \"weight\": 2}"
                               : "write {\"recorded\": \"mix.jsonl\"}";
  const SourceKind* found = nullptr;
  for (const SourceKind& kind : source_kinds()) {
    if (!source.has(kind.key)) continue;
    if (found)
      source.refuse(
          what + " must name one data set, got \"" + found->key + "\" and \"" + kind.key + "\"",
          how);
    found = &kind;
  }
  if (!found)
    source.refuse(what + " must name a data set: " +
                      (part ? "dataset, text or tokens"
                            : "dataset, text, tokens, mixture, recorded or easy-vqa"),
                  how);
  for (const std::string& key : source.keys())
    if (key != found->key && !(part && key == "weight") && !contains(found->others, key))
      source.refuse_at(key, key + " must not be given with \"" + found->key + "\"",
                       "remove the key");
  if (contains(found->others, "tokenizer") && !source.has("tokenizer"))
    source.refuse("key \"tokenizer\" is missing",
                  "write \"tokenizer\": \"model/tokenizer.json\", that of the language module");
  return found->key;
}

std::string place_of(const JsonValue& source, const char* key, const OtherFiles& files) {
  return source.has(key) ? files.place(source.at(key)) : std::string();
}

// Reads a data set that may be a part of a mixture.
decltype(MixturePart::source) read_part(const JsonValue& source, const std::string& kind,
                                        const OtherFiles& files) {
  const std::string path = place_of(source, kind.c_str(), files);
  const std::string held_out = place_of(source, "held_out", files);
  if (kind == "tokens") return TokenData{path, held_out};
  const std::string tokenizer = place_of(source, "tokenizer", files);
  if (kind == "text") return TextData{path, tokenizer, held_out};
  ConversationData data{path, tokenizer, held_out, place_of(source, "images", files)};
  if (source.has("template")) data.chat = enum_named<ChatTemplate>(source.at("template").text());
  source.read("system", data.system);
  if (source.has("too_long")) data.too_long = enum_named<TooLong>(source.at("too_long").text());
  source.read("most_left_out", data.most_left_out);
  return data;
}

decltype(Data::source) read_source(const JsonValue& source, const OtherFiles& files) {
  const std::string kind = kind_of(source, false);
  if (kind == "recorded") return RecordedData{files.place(source.at(kind))};
  if (kind == "easy-vqa") return EasyVqaData{files.place(source.at(kind))};
  if (kind != "mixture")
    return std::visit([](auto data) -> decltype(Data::source) { return data; },
                      read_part(source, kind, files));
  MixtureData mixture;
  const JsonValue parts = source.at("mixture");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const JsonValue part = parts.at(i);
    MixturePart read{read_part(part, kind_of(part, true), files)};
    part.read("weight", read.weight);
    mixture.parts.push_back(std::move(read));
  }
  return mixture;
}

// Returns whether samples are cut to the length of a sequence.
bool is_cut(const decltype(Data::source)& source) {
  const auto cut = []<class Source>(const Source&) {
    return std::is_same_v<Source, TextData> || std::is_same_v<Source, TokenData>;
  };
  if (const auto* mixture = std::get_if<MixtureData>(&source))
    return std::any_of(mixture->parts.begin(), mixture->parts.end(),
                       [&](const MixturePart& part) { return std::visit(cut, part.source); });
  return std::visit(cut, source);
}

}  // namespace

Data read_data(const JsonValue& value, const Model& model, const OtherFiles& files) {
  Data data;
  value.read("sequence", data.sequence);
  value.read("global_batch", data.global_batch);
  value.read("seed", data.seed);
  if (!value.has("source") ||
      (value.at("source").is_text() && value.at("source").text() == "synthetic")) {
    if (value.has("shuffle"))
      value.refuse_at("shuffle",
                      "shuffle must not be given with synthetic samples, which have no order",
                      "remove the key");
    data.source = read_synthetic(value, model, data.sequence);
    return data;
  }
  value.read("shuffle", data.shuffle);
  for (const char* key : {"images", "audio", "text", "latents"})
    if (value.has(key))
      value.refuse_at(key, std::string(key) + " must not be given with data from files",
                      "remove the key, or write \"source\": \"synthetic\"");
  const JsonValue source = value.at("source");
  if (source.is_text()) {
    data.source = EasyVqaData{};
    return data;
  }
  data.source = read_source(source, files);
  if (is_cut(data.source) && data.sequence < 1)
    value.refuse("key \"sequence\" is missing",
                 "a text is cut into samples of \"sequence\" tokens");
  return data;
}

Training read_training(const JsonValue& value) {
  Training training;
  if (value.has("precision"))
    training.precision = enum_named<NumberFormat>(value.at("precision").text());
  if (value.has("fp8")) training.fp8 = enum_named<Fp8Scaling>(value.at("fp8").text());
  value.read("learning_rate", training.learning_rate);
  value.read("weight_decay", training.weight_decay);
  value.read("beta1", training.beta1);
  value.read("beta2", training.beta2);
  value.read("epsilon", training.epsilon);
  value.read("clip_norm", training.clip_norm);
  value.read("warmup_steps", training.warmup_steps);
  if (value.has("decay")) training.decay = enum_named<RateDecay>(value.at("decay").text());
  value.read("min_learning_rate", training.min_learning_rate);
  value.read("decay_steps", training.decay_steps);
  value.read("wsd_decay_steps", training.wsd_decay_steps);
  value.read("steps", training.steps);
  value.read("seed", training.seed);
  value.read("software", training.software);
  return training;
}

std::vector<double> read_rate_factors(const JsonValue& value, const Model& model) {
  std::vector<double> factors(model.modules.size(), 1.0);
  for (const std::string& key : value.keys()) {
    const auto module =
        std::find_if(model.modules.begin(), model.modules.end(),
                     [&](const Module& candidate) { return candidate.name == key; });
    if (module == model.modules.end())
      value.refuse_at(key, "\"" + key + "\" is no module of the model", "name a module of /model");
    factors[static_cast<std::size_t>(module - model.modules.begin())] = value.at(key).number();
  }
  return factors;
}

}  // namespace polyphony
