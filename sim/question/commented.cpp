#include "sim/question/commented.h"

#include <sstream>
#include <utility>
#include <vector>

namespace polyphony::sim {

std::string commented(const AskedScenario& asked) {
  static const std::vector<std::pair<std::string, std::string>> comments{
      {"model", "Modules, and what each reads. Under a module: \"train\": \"frozen\" or \"lora\"."},
      {"cluster",
       "Accelerators. \"nic\": \"400Gbps\" and \"price\": \"2.50USD/GPUh\" may be added."},
      {"data", "A sample: its images and its tokens of text. Recorded data: polyphony scan."},
      {"search", "What polyphony sweep tries; without a key it tries everything."},
      {"training",
       "\"software\": the framework that will run it (polyphony sweep --help, --stack)."}};
  std::istringstream lines(asked.text);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    for (const auto& [key, comment] : comments)
      if (line.starts_with("  \"" + key + "\":")) text += "  // " + comment + "\n";
    text += line + "\n";
  }
  return text;
}

}  // namespace polyphony::sim
