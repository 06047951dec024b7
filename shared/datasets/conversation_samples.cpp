#include "shared/datasets/conversation_samples.h"

#include "shared/datasets/conversation_index.h"
#include "shared/datasets/conversation_reading.h"
#include "shared/error.h"
#include "shared/model/data_modules.h"

namespace polyphony {

void check_vocabulary(const Scenario& scenario, const Tokenizer& tokenizer,
                      const std::string& file) {
  const std::int32_t vocab = scenario.model.modules[language_module(scenario.model).value].vocab;
  if (tokenizer.vocabulary_size() > vocab)
    throw InputError(file, "",
                     "has " + std::to_string(tokenizer.vocabulary_size()) +
                         " ids, but the language module's vocabulary has " + std::to_string(vocab),
                     "use the tokenizer of the model");
}

SampleRecord ConversationSamples::record(std::size_t sample) const {
  return *record_at(records(), begin_.at(sample), paths_.size());
}
std::vector<FilePart> ConversationSamples::parts(std::span<const MediaPlace> places) const {
  std::vector<FilePart> parts;
  for (const MediaPlace& place : places)
    parts.push_back({paths_[place.path], place.offset, place.bytes});
  return parts;
}
std::vector<FilePart> ConversationSamples::images(std::size_t sample) const {
  return parts(record(sample).images);
}
std::vector<FilePart> ConversationSamples::clips(std::size_t sample) const {
  return parts(record(sample).clips);
}

ConversationSamples read_conversations(const Scenario& scenario, const std::string& path,
                                       const std::string& indexes) {
  const auto read = [&](IndexWriter* index) {
    return ConversationReading(scenario, path, index).read();
  };
  const std::optional<IndexName> index = index_name(scenario, path, indexes);
  if (!index) return read(nullptr);
  if (auto known = indexed_samples(*index)) return std::move(*known);
  const std::unique_ptr<IndexWriter> writer = IndexWriter::create(index->file);
  if (!writer) return read(nullptr);
  if (auto known = indexed_samples(*index)) return std::move(*known);  // written meanwhile
  writer->begin(index->key);
  if (const ConversationSamples samples = read(writer.get());
      writer->finish(index_tail(samples.paths(), samples.remarks())))
    if (auto known = indexed_samples(*index)) return std::move(*known);
  return read(nullptr);  // the disk is full
}

}  // namespace polyphony
