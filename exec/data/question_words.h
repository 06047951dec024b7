// Questions as token ids: one token a word, then one query token, whose position predicts the
// answer.
//   Words: shared/scenario_io/easy_vqa.h.
//   Ids: the words of the training questions in sorted order, then the query token, then the
//   answers in their given order (answers are labels only and never part of an input).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace polyphony::exec {

class QuestionVocabulary {
 public:
  QuestionVocabulary(const std::vector<std::string>& training_questions,
                     const std::vector<std::string>& answers);
  int size() const { return query_ + 1 + static_cast<int>(answers_.size()); }
  // The question's words and the query token; `unknown` names a word that no training question has,
  // when there is one.
  std::vector<std::int64_t> encode(const std::string& question, std::string& unknown) const;
  // Negative when it is no answer.
  std::int64_t label(const std::string& answer) const;

 private:
  std::map<std::string, std::int64_t> words_;
  std::map<std::string, std::int64_t> answers_;
  int query_ = 0;
};

}  // namespace polyphony::exec
