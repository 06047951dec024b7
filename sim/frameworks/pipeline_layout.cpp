#include "sim/frameworks/pipeline_layout.h"

#include <algorithm>
#include <cctype>

#include "shared/error.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kLongest = 100000;  // letters of an unrolled text

class Parser {
 public:
  Parser(const std::string& text, const std::string& place) : place_(place) {
    for (const char c : text)
      if (c != ',' && std::isspace(static_cast<unsigned char>(c)) == 0) text_ += c;
  }

  std::string unrolled() {
    const std::string all = group(0);
    if (at_ < text_.size()) refuse("has a ) without a (");
    return all;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(place_, "", "the pipeline layout \"" + text_ + "\" " + what,
                     "letters are E, t, m and L; | ends a stage; x*n and (...)*n repeat");
  }

 private:
  std::string group(int depth) {
    if (depth > 32) refuse("is nested too deep");
    std::string all;
    while (at_ < text_.size() && text_[at_] != ')') {
      std::string part;
      if (text_[at_] == '(') {
        ++at_;
        part = group(depth + 1);
        if (at_ >= text_.size()) refuse("has a ( without a )");
        ++at_;
      } else {
        part = text_[at_++];
        if (std::string("Etm|L").find(part) == std::string::npos) refuse("has a \"" + part + "\"");
      }
      if (at_ < text_.size() && text_[at_] == '*') {
        std::size_t digits = ++at_;
        while (digits < text_.size() && std::isdigit(static_cast<unsigned char>(text_[digits])))
          ++digits;
        if (digits == at_ || digits - at_ > 4) refuse("has a * without a number");
        const int times = std::stoi(text_.substr(at_, digits - at_));
        at_ = digits;
        std::string once = part;
        part.clear();
        for (int i = 0; i < times; ++i) {
          part += once;
          if (part.size() > kLongest) refuse("is too long");
        }
      }
      all += part;
      if (all.size() > kLongest) refuse("is too long");
    }
    return all;
  }

  std::string text_;
  const std::string& place_;
  std::size_t at_ = 0;
};

std::string repeated(int count) {
  return count == 0 ? "" : count == 1 ? "t" : "t*" + std::to_string(count);
}

}  // namespace

std::vector<PipelineStage> parse_pipeline_layout(const std::string& text,
                                                 const std::string& place) {
  Parser parser(text, place);
  std::vector<PipelineStage> stages(1);
  int embeddings = 0, losses = 0;
  for (const char c : parser.unrolled()) {
    const PipelineStage& stage = stages.back();
    if (c == 'E' && (stage.blocks > 0 || stage.predictions > 0)) parser.refuse("must begin with E");
    if (c != '|' && stage.loss) parser.refuse("must end with L");
    if (c == '|') stages.push_back({});
    if (c == 'E') stages.back().embedding = ++embeddings > 0;
    if (c == 't') ++stages.back().blocks;
    if (c == 'm') ++stages.back().predictions;
    if (c == 'L') stages.back().loss = ++losses > 0;
  }
  if (embeddings != 1 || !stages.front().embedding)
    parser.refuse("must have one E, in its first stage");
  if (losses != 1 || !stages.back().loss) parser.refuse("must have one L, in its last stage");
  return stages;
}

std::string pipeline_layout_text(const std::vector<int>& blocks) {
  std::string text;
  for (std::size_t i = 0; i < blocks.size();) {
    const bool first = i == 0, last = i + 1 == blocks.size();
    std::size_t end = i + 1;  // equal stages that have neither embedding nor loss
    while (!first && end + 1 < blocks.size() && blocks[end] == blocks[i]) ++end;
    const std::string stage = (first ? "E" : "") + repeated(blocks[i]) + (last ? "L" : "|");
    text += end - i > 1 ? "(" + stage + ")*" + std::to_string(end - i) : stage;
    i = end;
  }
  return text;
}

}  // namespace polyphony::sim
