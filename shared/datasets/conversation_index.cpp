#include "shared/datasets/conversation_index.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <sstream>

#include "shared/datasets/found.h"
#include "shared/datasets/native_images.h"
#include "shared/fnv.h"
#include "shared/model/data_modules.h"
#include "shared/program/work.h"

namespace polyphony {
namespace {

// Increase it with every change of records, and every one that gives other samples: of templates,
// tokenizers, labels, cuts, sizes of images.
constexpr int kVersion = 2;

// Returns a file's path, size and time of change.
std::string state_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return path + " missing\n";
  return path + " " + std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) +
         " " + std::to_string(status.st_mtim.tv_nsec) + "\n";
}

// Returns everything that samples depend on, except for files.
std::string settings_of(const Scenario& scenario, const std::string& path) {
  const auto& source = std::get<ConversationData>(scenario.data.source);
  const Model& model = scenario.model;
  std::ostringstream text;
  text << "samples " << kVersion << "\npath " << std::filesystem::absolute(path).string()
       << "\ntemplate " << name(source.chat) << "\nsystem " << source.system.size() << " "
       << source.system << "\ntoo long " << name(source.too_long) << "\nmost left out "
       << source.most_left_out << "\nsequence " << scenario.data.sequence << "\nvocabulary "
       << model.modules[language_module(model).value].vocab << "\n";
  if (const std::optional<NativeImages> native = native_images(scenario))
    text << "native patch " << native->patch << " merge " << native->merge << " pixels "
         << native->least << " to " << native->most << "\n";
  else if (const Module* vision = vision_module(model))
    text << "patches " << patches_of(*vision) << " rows "
         << language_rows(model, Item{Modality::image, patches_of(*vision), 0}) << "\n";
  if (const Module* audio = audio_module(model))
    text << "audio " << audio->audio_tokens << " merge " << merge_of(model, ModuleKind::audio)
         << "\n";
  return text.str();
}

// A tail is a list of texts, each after its number of bytes (uint64): remarks, then paths.
void append_text(const std::string& text, std::string& tail) {
  const std::uint64_t size = text.size();
  tail.append(reinterpret_cast<const char*>(&size), sizeof size);
  tail += text;
}
std::optional<std::vector<std::string>> texts_of(std::string_view tail) {
  std::vector<std::string> texts;
  while (!tail.empty()) {
    std::uint64_t size = 0;
    if (tail.size() < sizeof size) return {};
    std::memcpy(&size, tail.data(), sizeof size);
    tail.remove_prefix(sizeof size);
    if (size > tail.size()) return {};
    texts.emplace_back(tail.substr(0, size));
    tail.remove_prefix(size);
  }
  return texts;
}

}  // namespace

std::optional<IndexName> index_name(const Scenario& scenario, const std::string& path,
                                    const std::string& indexes) {
  if (indexes.empty()) return {};
  const std::vector<std::string> shards = tar_shards(path);
  if (shards.empty()) return {};
  const auto& source = std::get<ConversationData>(scenario.data.source);
  const std::string settings = settings_of(scenario, path);
  Fnv digest;
  digest.add(settings + source.tokenizer);
  const std::filesystem::path tokenizer(source.tokenizer);
  std::string key = settings + state_of(source.tokenizer) +
                    state_of((tokenizer.parent_path() / "tokenizer_config.json").string());
  for (const std::string& shard : shards) key += state_of(shard);
  return IndexName{indexes + "/" + digest.digits() + ".samples", std::move(key)};
}

std::string index_tail(const std::vector<std::string>& paths, const std::string& remarks) {
  std::string tail;
  append_text(remarks, tail);
  for (const std::string& path : paths) append_text(path, tail);
  return tail;
}

std::optional<ConversationSamples> indexed_samples(const IndexName& name) {
  std::optional<SampleIndex> index = open_index(name.file, name.key);
  if (!index) return {};
  std::optional<std::vector<std::string>> texts = texts_of(index->tail);
  if (!texts || texts->empty()) return {};
  ConversationSamples samples;
  samples.remarks_ = texts->front();
  samples.paths_.assign(texts->begin() + 1, texts->end());
  const std::string_view records = index->records;
  const auto first = static_cast<std::size_t>(records.data() - index->file->bytes().data());
  for (std::size_t at = 0, kept = 0; at < records.size();) {
    const std::optional<SampleRecord> record = record_at(records, at, samples.paths_.size());
    if (!record) return {};
    samples.samples_.push_back(
        {static_cast<std::uint32_t>(samples.samples_.size()), items_of(*record)});
    samples.begin_.push_back(at);
    at = record->end;
    if (at - kept < kIndexPiece) continue;
    index->file->let_go(first + kept, at - kept);
    kept = at;
  }
  samples.index_ = std::move(*index);
  return samples;
}

}  // namespace polyphony
