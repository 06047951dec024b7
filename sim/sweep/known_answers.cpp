#include "sim/sweep/known_answers.h"

namespace polyphony::sim {

std::vector<TaskResult<std::string>> KnownAnswers::ask(
    int jobs, std::vector<std::string> keys, const std::function<std::string(std::size_t)>& work,
    const std::function<void(std::size_t done)>& progress) {
  for (std::string& key : keys) key.insert(0, of);
  std::vector<std::size_t> open;
  std::vector<TaskResult<std::string>> answers(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto known = known_.find(keys[i]);
    if (known == known_.end()) {
      open.push_back(i);
    } else {
      answers[i] = known->second;
      ++reused_;
    }
  }
  if (stopped && stopped()) {
    for (const std::size_t i : open) answers[i] = TaskFailed{"stopped"};
    return answers;
  }
  const std::size_t from_before = keys.size() - open.size();
  std::size_t done = 0;
  run_on_threads(
      jobs, open.size(), [&](std::size_t i) { return work(open[i]); },
      [&](std::size_t i, TaskResult<std::string> answer) {
        if (const auto* text = std::get_if<std::string>(&answer)) {
          known_[keys[open[i]]] = *text;
          if (learned) learned(keys[open[i]], *text);
        }
        answers[open[i]] = std::move(answer);
        if (progress) progress(from_before + ++done);
      },
      stopped);
  return answers;
}

}  // namespace polyphony::sim
