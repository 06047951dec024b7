// What a search was asked, in words: the parts of an answer's first line (sim/shown/headline.h). An
// empty part is not printed.
#pragma once

#include <string>

namespace polyphony::sim {

struct QuestionWords {
  std::string model, cluster, data, software;
  std::string accuracy;  // of the profile; empty: it states its own error
};

}  // namespace polyphony::sim
