#include "exec/worker/answers_file.h"

#include <nlohmann/json.hpp>

#include "shared/files/whole.h"

namespace polyphony::exec {

void write_answers(const std::string& path, std::int64_t step, const Answers& answers,
                   const Dataset& dataset) {
  const std::vector<Sample> held_out = dataset.held_out();
  std::string text;
  for (const SampleAnswer& answer : answers.samples) {
    nlohmann::ordered_json line{{"step", step},
                                {"sample", answer.sample},
                                {"right", answer.labels == answer.predicted},
                                {"labels", answer.labels},
                                {"predicted", answer.predicted}};
    const Sample& sample = held_out[answer.sample];
    if (const auto wanted = dataset.text(sample, answer.labels)) {
      line["wanted"] = *wanted;
      line["answer"] = dataset.text(sample, answer.predicted).value_or("");
    }
    // A sequence of tokens may end within a character.
    text += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  write_file(path, text);
}

}  // namespace polyphony::exec
