#include "exec/data/question_words.h"

#include "shared/scenario_io/easy_vqa.h"

namespace polyphony::exec {

QuestionVocabulary::QuestionVocabulary(const std::vector<std::string>& training_questions,
                                       const std::vector<std::string>& answers) {
  for (const std::string& question : training_questions)
    for (const std::string& word : question_words(question)) words_.emplace(word, 0);
  std::int64_t next = 0;
  for (auto& [word, id] : words_) id = next++;
  query_ = static_cast<int>(next++);
  for (const std::string& answer : answers)
    if (answers_.emplace(answer, next).second) ++next;
}

std::vector<std::int64_t> QuestionVocabulary::encode(const std::string& question,
                                                     std::string& unknown) const {
  std::vector<std::int64_t> ids;
  for (const std::string& word : question_words(question)) {
    const auto found = words_.find(word);
    if (found == words_.end()) {
      unknown = word;
      return {};
    }
    ids.push_back(found->second);
  }
  ids.push_back(query_);
  return ids;
}

std::int64_t QuestionVocabulary::label(const std::string& answer) const {
  const auto found = answers_.find(answer);
  return found == answers_.end() ? -1 : found->second;
}

std::string QuestionVocabulary::text(const std::vector<std::int64_t>& ids) const {
  std::string all;
  for (const std::int64_t wanted : ids) {
    if (!all.empty()) all += ' ';
    if (wanted == query_) all += '?';
    for (const auto* table : {&words_, &answers_})
      for (const auto& [word, id] : *table)
        if (id == wanted) all += word;
  }
  return all;
}

}  // namespace polyphony::exec
