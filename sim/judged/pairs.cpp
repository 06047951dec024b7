#include "sim/judged/pairs.h"

namespace polyphony::sim {

std::string question_of(const PublishedRow& row) {
  std::string key = row.family + "|" + row.software + "|" + row.precision;
  for (const auto& count : {row.layers, row.hidden, row.seq, row.gpus, row.global_batch})
    key += "|" + std::to_string(count.value_or(0));
  return key;
}

std::vector<Pair> find_pairs(const std::vector<RowResult>& results) {
  std::map<std::string, std::vector<std::size_t>> questions;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const RowResult& result = results[i];
    if (result.counts() && !is_memory(result.row.metric))
      questions[question_of(result.row)].push_back(i);
  }
  std::vector<Pair> pairs;
  for (const auto& [question, rows] : questions)
    for (std::size_t a = 0; a < rows.size(); ++a)
      for (std::size_t b = a + 1; b < rows.size(); ++b) {
        const Layout &one = results[rows[a]].layout, &other = results[rows[b]].layout;
        if (one.modules.size() == other.modules.size())
          pairs.push_back({rows[a], rows[b], layout_distance(one, other)});
      }
  return pairs;
}

}  // namespace polyphony::sim
