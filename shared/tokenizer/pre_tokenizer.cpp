#include "shared/tokenizer/pre_tokenizer.h"

#include <utility>

#include "shared/tokenizer/letters.h"

namespace polyphony::tokenizing {
namespace {

struct Part {
  std::size_t begin, end;
  bool match;
};

// Splits the pieces of one step. Piece by piece, parts are marked and then grouped.
class Splitter {
 public:
  Splitter(std::vector<Piece>& out, std::deque<std::string>& made) : out_(out), made_(made) {}

  void operator()(const Split& step) {
    step.pattern.find_all(piece_.text, found_);
    group(step.behavior, step.invert);
  }
  void operator()(const SplitByClass& step) {
    found_.clear();
    for (std::size_t at = 0; at < piece_.text.size();) {
      const std::size_t begin = at;
      if (step.of(next_code_point(piece_.text, at))) found_.push_back({begin, at});
    }
    group(step.behavior, false);
  }
  void operator()(const ByteLevel& step) {
    if (step.add_prefix_space && !piece_.text.starts_with(' '))
      change(" " + std::string(piece_.text), piece_.head > 0 ? piece_.head + 1 : 0);
    const std::size_t from = out_.size();
    if (step.pattern) {
      step.pattern->find_all(piece_.text, found_);
      group(Behavior::isolated, false);
    } else {
      put(0, piece_.text.size());
    }
    for (std::size_t i = from; step.letters && i < out_.size(); ++i) {
      std::string text;
      append_letters(text, out_[i].text.substr(0, out_[i].head));
      const std::size_t head = text.size();
      append_letters(text, out_[i].text.substr(out_[i].head));
      out_[i] = {made_.emplace_back(std::move(text)), head, kNoId};
    }
  }
  void operator()(const Metaspace& step) {
    std::string text;
    std::size_t head = 0;
    for (std::size_t i = 0; i < piece_.text.size(); ++i) {
      if (piece_.text[i] == ' ')
        text += step.replacement;
      else
        text += piece_.text[i];
      if (i < piece_.head) head = text.size();
    }
    using Scheme = Metaspace::Scheme;
    if ((step.scheme == Scheme::always || (step.scheme == Scheme::first && head > 0)) &&
        !text.starts_with(step.replacement)) {
      text.insert(0, step.replacement);
      if (head > 0) head += step.replacement.size();
    }
    change(std::move(text), head);
    if (!step.split) return put(0, piece_.text.size());
    std::size_t begin = 0;
    for (std::size_t at = 1; at < piece_.text.size();) {
      at = piece_.text.find(step.replacement, at);
      if (at == std::string_view::npos) break;
      put(begin, at);
      begin = at;
      at += step.replacement.size();
    }
    put(begin, piece_.text.size());
  }

  void run(const PreTokenizerStep& step, const Piece& piece) {
    piece_ = piece;
    std::visit(*this, step);
  }

 private:
  void change(std::string text, std::size_t head) {
    piece_ = {made_.emplace_back(std::move(text)), head, kNoId};
  }

  void put(std::size_t begin, std::size_t end) {
    if (begin < end) out_.push_back(piece_.part(begin, end));
  }

  // Puts the parts that match (found_) and those between them.
  void group(Behavior behavior, bool invert) {
    parts_.clear();
    std::size_t last = 0;
    for (const Span& span : found_) {
      if (span.begin != last) parts_.push_back({last, span.begin, invert});
      parts_.push_back({span.begin, span.end, !invert});
      last = span.end;
    }
    if (last != piece_.text.size()) parts_.push_back({last, piece_.text.size(), invert});
    switch (behavior) {
      case Behavior::removed:
      case Behavior::isolated:
        for (const Part& part : parts_)
          if (behavior == Behavior::isolated || !part.match) put(part.begin, part.end);
        return;
      case Behavior::merged_with_previous:
        return merge(
            [](const Part& before, const Part& part) { return part.match && !before.match; });
      case Behavior::contiguous:
        return merge(
            [](const Part& before, const Part& part) { return part.match == before.match; });
      case Behavior::merged_with_next:
        return merge_backwards();
    }
  }

  // Joins each part with the one before it if joins(before, part).
  template <class Joins>
  void merge(const Joins& joins) {
    std::size_t begin = 0;
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      if (joins(parts_[i - 1], parts_[i])) continue;
      put(begin, parts_[i].begin);
      begin = parts_[i].begin;
    }
    put(begin, piece_.text.size());
  }
  // Joins each match with the part behind it, unless that is a match.
  void merge_backwards() {
    merge([](const Part& before, const Part& part) { return before.match && !part.match; });
  }

  Piece piece_;
  std::vector<Piece>& out_;
  std::deque<std::string>& made_;
  std::vector<Span> found_;
  std::vector<Part> parts_;
};

}  // namespace

void pre_tokenize(const std::vector<PreTokenizerStep>& steps, std::vector<Piece>& pieces,
                  std::deque<std::string>& made) {
  std::vector<Piece> out;
  Splitter splitter(out, made);
  for (const PreTokenizerStep& step : steps) {
    out.clear();
    for (const Piece& piece : pieces)
      if (piece.id == kNoId)
        splitter.run(step, piece);
      else
        out.push_back(piece);
    pieces.swap(out);
  }
}

}  // namespace polyphony::tokenizing
