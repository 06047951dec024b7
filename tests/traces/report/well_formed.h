// Checks whether a text is well-formed XML: tags nest and close, attributes are quoted and not
// repeated, & and < occur only where allowed. Sufficient for SVG and for our pages, which are also
// XML; not a validator.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <vector>

namespace polyphony::traces::test {

class XmlCheck {
 public:
  explicit XmlCheck(const std::string& text) : text_(text) { run(); }
  const std::string& problem() const { return problem_; }           // empty: well-formed
  const std::vector<std::string>& names() const { return names_; }  // of all elements, in order

 private:
  void run() {
    while (at_ < text_.size() && problem_.empty()) {
      if (text_[at_] == '<') {
        read_tag();
      } else {
        if (text_[at_] == '&') read_entity();
        ++at_;
      }
    }
    if (problem_.empty() && !open_.empty()) fail("<" + open_.back() + "> is never closed");
    if (problem_.empty() && roots_ != 1) fail("there must be one root element");
  }

  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = what + " near: " + text_.substr(at_ < 40 ? 0 : at_ - 40, 80);
  }

  void read_entity() {
    const std::size_t end = text_.find(';', at_);
    const std::string name = end == std::string::npos ? "" : text_.substr(at_, end - at_ + 1);
    static const std::set<std::string> kKnown = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    if (!kKnown.contains(name)) fail("a bare &");
  }

  void read_tag() {
    if (text_.compare(at_, 9, "<!DOCTYPE") == 0) {
      at_ = text_.find('>', at_) + 1;
      return;
    }
    ++at_;
    const bool closes = at_ < text_.size() && text_[at_] == '/';
    if (closes) ++at_;
    const std::string name = read_name();
    if (name.empty()) return fail("a bare <");
    if (closes) {
      if (open_.empty() || open_.back() != name) return fail("</" + name + "> closes nothing");
      open_.pop_back();
      if (at_ >= text_.size() || text_[at_] != '>') return fail("</" + name + " has no end");
      ++at_;
      return;
    }
    if (open_.empty()) ++roots_;
    names_.push_back(name);
    read_attributes(name);
  }

  void read_attributes(const std::string& element) {
    std::set<std::string> seen;
    while (problem_.empty()) {
      skip_blanks();
      if (at_ >= text_.size()) return fail("<" + element + " has no end");
      if (text_[at_] == '>') {
        ++at_;
        open_.push_back(element);
        return;
      }
      if (text_.compare(at_, 2, "/>") == 0) {
        at_ += 2;
        return;
      }
      const std::string name = read_name();
      if (name.empty()) return fail("no attribute name in <" + element + ">");
      if (!seen.insert(name).second) return fail("attribute " + name + " twice");
      if (text_.compare(at_, 2, "=\"") != 0) return fail("attribute " + name + " is not quoted");
      at_ += 2;
      while (at_ < text_.size() && text_[at_] != '"' && problem_.empty()) {
        if (text_[at_] == '<') fail("< in an attribute");
        if (text_[at_] == '&') read_entity();
        ++at_;
      }
      ++at_;
    }
  }

  std::string read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == ':' || text_[at_] == '_')) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int roots_ = 0;
  std::vector<std::string> open_, names_;
  std::string problem_;
};

}  // namespace polyphony::traces::test
