// Maps questions to token ids: one token per word, then one query token, whose position predicts
// the answer.
//   Splitting into words: shared/scenario_io/easy_vqa.h.
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
  // Returns the ids of the question's words and of the query token. If a word occurs in no training
  // question, `unknown` is set to it.
  std::vector<std::int64_t> encode(const std::string& question, std::string& unknown) const;
  // Returns the label of an answer; negative if it is not one of the answers.
  std::int64_t label(const std::string& answer) const;
  // Returns the words and answers of the ids, separated by blanks; the query token is "?".
  std::string text(const std::vector<std::int64_t>& ids) const;

 private:
  std::map<std::string, std::int64_t> words_;
  std::map<std::string, std::int64_t> answers_;
  int query_ = 0;
};

}  // namespace polyphony::exec
