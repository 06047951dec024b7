// What the pages of a search show of its answer. It is made from the answer, or read from the JSON
// that `polyphony sweep --format json` wrote (sim/answer_json/answers_json.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/sweep/vary.h"
#include "sim/text/question_words.h"

namespace polyphony::sim {

// A layout of the ranking, or a baseline.
struct SearchedRow {
  std::string name;  // of a baseline
  std::string words, brief;
  Placement placement = Placement::homogeneous;
  bool simulated = false, leading = false, tied = false;
  Seconds step{};
  std::optional<double> change;                           // from the first baseline, relative
  std::optional<std::pair<Seconds, Seconds>> interval;    // 90 %
  std::optional<std::pair<Seconds, Seconds>> difference;  // 90 %, from the first row
  double tokens_per_second_per_rank = 0;
  double utilization = 0;                 // MFU, a fraction; 0: not known
  std::optional<double> dollars;          // per million tokens
  Bytes memory{};                         // of the rank that needs most
  std::map<std::string, double> seconds;  // by part of the step; empty: not known
};

struct Searched {
  std::string profile, stack;
  std::optional<Bytes> device;  // memory of a device
  std::vector<SearchedRow> ranked, baselines;
  std::int64_t tied = 0;     // number of rows
  std::size_t simplest = 0;  // position in `ranked`
  double combinations = 0;
  std::int64_t legal = 0, too_large = 0, screened_by_bound = 0, estimated = 0, simulated = 0;
  std::map<std::string, double> gaps;  // by placement
  std::vector<std::string> notes, why;
  std::optional<QuestionWords> question;
};

// One combination of values of a varied search.
struct SearchedQuestion {
  std::vector<std::string> values;  // by variation
  std::optional<SearchedRow> best;
  std::string why_not;                 // set if there is no best
  std::map<Placement, Seconds> steps;  // of the best of each placement
};
struct SearchedVaried {
  std::vector<Variation> variations;
  std::vector<SearchedQuestion> questions;
};

Searched searched_of(const Sweep& sweep, const Model& model);
SearchedVaried searched_of(const Varied& varied);

// Reads the answer of a search from JSON. Throws InputError if `text` is not such an answer of this
// version; `file` is the name used in errors.
std::variant<Searched, SearchedVaried> read_searched(const std::string& text,
                                                     const std::string& file);

}  // namespace polyphony::sim
