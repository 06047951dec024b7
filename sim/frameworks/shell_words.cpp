#include "sim/frameworks/shell_words.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "shared/error.h"

namespace polyphony::sim {
namespace {

using Words = std::vector<ShellWord>;
using Texts = std::vector<std::string>;

// Stands for a line that goes on behind a backslash, inside a text whose lines are counted.
constexpr char kContinued = '\x01';

constexpr int kDeepest = 16;                // of `bash -c` and here-documents inside each other
constexpr int kDeepestWord = 64;            // of lists and defaults inside each other
constexpr std::size_t kMostWords = 100000;  // of a script: arrays may double themselves

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name(char c) { return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// A word as written, with its quotes; of an assignment NAME=( ... ) also the words in brackets.
struct RawWord {
  std::string text;
  int line = 0;
  bool is_list = false;  // text is "NAME=" or "NAME+="
  std::vector<RawWord> list;
};

struct RawCommand {
  std::vector<RawWord> words;
  std::string after;  // what ends it: "\n", ";", "&&", "||", "|", "&", "(", ")"
};

// Whether a condition holds, if that can be known.
using Known = std::optional<bool>;

class ShellReader {
 public:
  ShellReader(const std::string& file, ShellScript& script, int depth)
      : file_(file), script_(script), depth_(depth) {}

  void run(const std::string& text, int first_line) {
    text_ = &text;
    at_ = 0;
    line_ = first_line;
    while (at_ < text.size()) {
      const RawCommand command = next_command();
      if (in_pattern()) {
        read_pattern(command);
      } else {
        if (!command.words.empty()) execute(command);
        if (command.after == ";;" && !cases_.empty()) end_case_branch();
      }
      read_documents();
    }
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_->size() ? (*text_)[at_ + ahead] : '\0';
  }
  char take() {
    const char c = peek();
    ++at_;
    if (c == '\n') ++line_;
    return c;
  }
  [[noreturn]] void refuse(int line, const std::string& what) const {
    throw InputError(file_ + ":" + std::to_string(line), "", what, "the script ends inside it");
  }

  // Copies a quoted or bracketed part into `into`, its ends included.
  void take_quoted(std::string& into) {
    const int begin = line_;
    const char quote = take();
    into += quote;
    while (at_ < text_->size()) {
      const char c = take();
      into += c;
      if (c == quote) return;
      if (c == '\\' && quote == '"' && at_ < text_->size()) into += take();
    }
    refuse(begin, std::string("a ") + quote + " is not closed");
  }
  void take_bracketed(std::string& into, char open, char close) {
    const int begin = line_;
    int level = 0;
    while (at_ < text_->size()) {
      const char c = peek();
      if (c == '\'' || c == '"') {
        take_quoted(into);
        continue;
      }
      into += take();
      if (c == '\\' && at_ < text_->size()) into += take();
      if (c == open) ++level;
      if (c == close && --level == 0) return;
    }
    refuse(begin, std::string("a ") + open + " is not closed");
  }

  void skip_comment() {
    while (at_ < text_->size() && peek() != '\n') {
      take();
    }
  }
  void skip_blanks(bool lines) {
    while (at_ < text_->size()) {
      if (is_blank(peek()) || (lines && peek() == '\n')) {
        take();
      } else if (peek() == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        take();
        if (peek() == '\r') take();
        take();
      } else if (peek() == '#') {
        read_batch_line();
        skip_comment();
      } else {
        return;
      }
    }
  }

  void read_batch_line() {
    static const std::string kMark = "#SBATCH";
    if (text_->compare(at_, kMark.size(), kMark) != 0) return;
    const std::size_t end = std::min(text_->find('\n', at_), text_->size());
    std::string rest = text_->substr(at_ + kMark.size(), end - at_ - kMark.size());
    static const std::map<std::string, std::string> kShort{
        {"-N", "nodes"}, {"-n", "ntasks"}, {"-G", "gpus"}};
    const std::size_t begin = rest.find('-');
    if (begin == std::string::npos) return;
    rest = rest.substr(begin, rest.find_first_of("\r#") - begin);
    const std::size_t cut = rest.find_first_of("= ");
    std::string key = rest.substr(0, cut),
                value = cut == std::string::npos ? "" : rest.substr(cut + 1);
    if (const auto found = kShort.find(key); found != kShort.end()) key = "--" + found->second;
    value.erase(0, std::min(value.find_first_not_of(" ="), value.size()));
    value.erase(std::min(value.find_last_not_of(" \t") + 1, value.size()));
    if (key.starts_with("--")) script_.batch[key.substr(2)] = value;
  }

  RawWord next_word(int depth = 0) {
    RawWord word{"", line_, false, {}};
    if (depth > kDeepestWord) refuse(line_, "a list has too many lists inside");
    while (at_ < text_->size()) {
      const char c = peek();
      if (is_blank(c) || c == '\n' || c == ';' || c == '&' || c == '|' || c == ')') break;
      if (c == '(') {
        const bool assigned =
            word.text.ends_with("=") && !word.text.empty() && is_name_start(word.text.front());
        if (!assigned) break;
        take();
        word.is_list = true;
        const int begin = line_;
        for (skip_blanks(true); peek() != ')'; skip_blanks(true)) {
          if (at_ >= text_->size()) refuse(begin, "a ( is not closed");
          const std::size_t before = at_;
          word.list.push_back(next_word(depth + 1));
          if (at_ == before) take();  // a stray ; or & in a list
        }
        take();
        return word;
      }
      if (c == '<' && peek(1) == '<' && peek(2) != '<') {
        take();
        take();
        if (peek() == '-') take();
        skip_blanks(false);
        std::string end;
        while (at_ < text_->size() && !is_blank(peek()) && peek() != '\n' && peek() != ';') {
          const char d = take();
          if (d != '\'' && d != '"' && d != '\\') end += d;
        }
        documents_.push_back(end);
        continue;
      }
      if (c == '\'' || c == '"' || c == '`') {
        take_quoted(word.text);
      } else if (c == '\\') {
        take();
        if (peek() == '\r' && peek(1) == '\n') take();
        if (peek() == '\n') {
          take();
          if (word.text.empty()) skip_blanks(false);
        } else if (at_ < text_->size()) {
          word.text += '\\';
          word.text += take();
        }
      } else if (c == '$' && (peek(1) == '(' || peek(1) == '{')) {
        word.text += take();
        const char open = peek();
        take_bracketed(word.text, open, open == '(' ? ')' : '}');
      } else {
        word.text += take();
      }
    }
    return word;
  }

  RawCommand next_command() {
    RawCommand command;
    skip_blanks(true);
    while (at_ < text_->size()) {
      skip_blanks(false);
      if (at_ >= text_->size()) break;
      const char c = peek();
      if (c == '(' && peek(1) == '(') {  // an arithmetic condition
        RawWord word{"", line_, false, {}};
        take_bracketed(word.text, '(', ')');
        command.words.push_back(word);
        continue;
      }
      if (c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
        command.after = take();
        if ((c == '&' || c == '|') && peek() == c) command.after += take();
        if (c == ';' && peek() == ';') command.after += take();
        if (c == '&' && peek() == '>') skip_comment();  // &> file
        return command;
      }
      RawWord word = next_word();
      if (!word.text.empty() || word.is_list) command.words.push_back(std::move(word));
    }
    command.after = "\n";
    return command;
  }

  void read_documents() {
    for (const std::string& end : documents_) {
      std::string body;
      const int begin = line_;
      while (at_ < text_->size()) {
        std::string line;
        while (at_ < text_->size() && peek() != '\n') line += take();
        if (at_ < text_->size()) take();
        const std::size_t first = line.find_first_not_of("\t ");
        if (first != std::string::npos && line.substr(first) == end) break;
        body += line + "\n";
      }
      inner(body, begin);
    }
    documents_.clear();
  }

  // Reads the text of another script that this one starts.
  void inner(const std::string& text, int first_line) {
    if (depth_ >= kDeepest) return;
    ShellReader reader(file_, script_, depth_ + 1);
    reader.run(text, first_line);
  }

  // ---- expansion

  Words value_of(const std::string& name) {
    if (const auto found = script_.variables.find(name); found != script_.variables.end())
      return found->second;
    return {{"$" + name, line_}};
  }
  bool is_set(const std::string& name) const { return script_.variables.contains(name); }

  std::int64_t arithmetic(const std::string& text, bool& known) {
    // Precedence climbing over + - * / % and comparisons, with brackets.
    std::size_t at = 0;
    const auto skip = [&] {
      while (at < text.size() && (is_blank(text[at]) || text[at] == '\n')) ++at;
    };
    std::function<std::int64_t(int, int)> expression;
    const auto atom = [&](int depth) -> std::int64_t {
      skip();
      if (at < text.size() && text[at] == '(' && depth < 64) {
        ++at;
        const std::int64_t value = expression(0, depth + 1);
        skip();
        if (at < text.size() && text[at] == ')') ++at;
        return value;
      }
      if (at < text.size() && text[at] == '$') {
        ++at;
        if (at < text.size() && text[at] == '{') ++at;
      }
      std::string word;
      while (at < text.size() && is_name(text[at])) word += text[at++];
      if (at < text.size() && text[at] == '}') ++at;
      if (word.empty()) {
        known = false;
        at = text.size();
        return 0;
      }
      if (is_name_start(word.front())) word = is_set(word) ? joined(value_of(word)) : "";
      try {
        return std::stoll(word);
      } catch (const std::exception&) {
        known = false;
        return 0;
      }
    };
    expression = [&](int least, int depth) -> std::int64_t {
      std::int64_t left = atom(depth);
      while (true) {
        skip();
        static const std::vector<std::pair<std::string, int>> kOperators{
            {"==", 1}, {"!=", 1}, {"<=", 2}, {">=", 2}, {"<", 2}, {">", 2},
            {"+", 3},  {"-", 3},  {"*", 4},  {"/", 4},  {"%", 4}};
        const auto found =
            std::find_if(kOperators.begin(), kOperators.end(), [&](const auto& entry) {
              return text.compare(at, entry.first.size(), entry.first) == 0;
            });
        if (at >= text.size() || found == kOperators.end() || found->second <= least) return left;
        at += found->first.size();
        const std::int64_t right = expression(found->second, depth);
        const std::string& op = found->first;
        const auto both = [&](auto result) {  // without overflow
          return static_cast<std::int64_t>(result);
        };
        if (op == "+")
          left = both(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
        if (op == "-")
          left = both(static_cast<std::uint64_t>(left) - static_cast<std::uint64_t>(right));
        if (op == "*")
          left = both(static_cast<std::uint64_t>(left) * static_cast<std::uint64_t>(right));
        if (op == "/" || op == "%") {
          if (right == 0 || right == -1) known = known && right == -1;
          left = right == 0    ? 0
                 : right == -1 ? (op == "/" ? both(-static_cast<std::uint64_t>(left)) : 0)
                 : op == "/"   ? left / right
                               : left % right;
        }
        if (op == "==") left = left == right;
        if (op == "!=") left = left != right;
        if (op == "<=") left = left <= right;
        if (op == ">=") left = left >= right;
        if (op == "<") left = left < right;
        if (op == ">") left = left > right;
      }
    };
    return expression(0, 0);
  }

  static std::string joined(const Words& words) {
    std::string text;
    for (const ShellWord& word : words) text += (text.empty() ? "" : " ") + word.text;
    std::erase(text, kContinued);
    return text;
  }

  // Reads a parameter at `at`, which is behind its $. `many`: it is a list, ${NAME[@]}.
  Words parameter(const std::string& text, std::size_t& at, bool& many) {
    many = false;
    const auto one = [&](std::string value) { return Words{{std::move(value), line_}}; };
    if (at >= text.size()) return one("$");
    if (text[at] == '(') {
      const bool sum = at + 1 < text.size() && text[at + 1] == '(';
      int level = 0;
      const std::size_t begin = at;
      while (at < text.size()) {
        if (text[at] == '(') ++level;
        if (text[at++] == ')' && --level == 0) break;
      }
      const std::string inside = text.substr(begin, at - begin);
      if (!sum || inside.size() < 4) return one("$" + inside);
      bool known = true;
      const std::int64_t value = arithmetic(inside.substr(2, inside.size() - 4), known);
      return one(known ? std::to_string(value) : "$" + inside);
    }
    if (text[at] != '{') {
      std::string name;
      if (is_name_start(text[at])) {
        while (at < text.size() && is_name(text[at])) name += text[at++];
      } else {
        name = text[at++];  // $1, $@, $?
      }
      return value_of(name);
    }
    int level = 0;
    const std::size_t begin = at + 1;
    while (at < text.size()) {
      if (text[at] == '{') ++level;
      if (text[at++] == '}' && --level == 0) break;
    }
    const std::string inside = text.substr(begin, at - begin - 1);
    std::size_t end = 0;
    while (end < inside.size() && is_name(inside[end])) ++end;
    const std::string name = inside.substr(0, end), rest = inside.substr(end);
    if (rest == "[@]" || rest == "[*]") {
      many = rest == "[@]";
      if (!is_set(name)) return {};
      return value_of(name);
    }
    if (rest.empty()) return value_of(name);
    const bool colon = rest[0] == ':';
    const char op = rest.size() > (colon ? 1u : 0u) ? rest[colon ? 1 : 0] : '\0';
    if (op == '-' || op == '=') {
      const bool use = is_set(name) && (!colon || !joined(value_of(name)).empty());
      if (use) return value_of(name);
      const std::string otherwise = joined(expand(rest.substr(colon ? 2 : 1), true, line_));
      if (matters(name) && noted_.insert(name).second && !otherwise.empty())
        script_.notes.push_back("$" + name + " is taken as " + otherwise + ", its default (--env " +
                                name + "=...)");
      if (op == '=') script_.variables[name] = {{otherwise, line_}};
      return one(otherwise);
    }
    if (op == '+')
      return one(is_set(name) ? joined(expand(rest.substr(colon ? 2 : 1), true, line_)) : "");
    return one("${" + inside + "}");
  }

  // Whether a default may decide a layout: not those of addresses, paths and libraries.
  static bool matters(const std::string& name) {
    static const char* const kOthers[] = {"MASTER_",   "NODE_RANK", "SLURM_NODEID", "SLURM_PROCID",
                                          "SLURM_JOB", "RANK",      "CUDA_",        "NCCL_",
                                          "NVTE_",     "TORCH_",    "WANDB",        "LOG",
                                          "HF_",       "PYTHON",    "TRITON_",      "OMP_"};
    if (name.empty() || !is_name_start(name[0]) || name.ends_with("PATH") ||
        name.ends_with("DIR") || name.ends_with("IMAGE"))
      return false;
    return std::none_of(std::begin(kOthers), std::end(kOthers),
                        [&](const char* other) { return name.starts_with(other); });
  }

  // Returns the words that a raw word becomes. `whole`: one, whatever blanks it has, in which lines
  // that go on are still marked.
  Words expand(const std::string& raw, bool whole, int line) {
    const Level level(inside_);
    if (inside_ > kDeepestWord) return {{raw, line}};
    Words fields;
    ShellWord current{"", line};
    bool any = false;
    const auto add = [&](const std::string& text) {
      current.text += text;
      any = true;
    };
    const auto end_field = [&] {
      fields.push_back(current);
      current = {"", line};
      any = false;
    };
    const auto split = [&](const ShellWord& value) {
      int at_line = value.line;
      for (const char c : value.text) {
        if (c == '\n' || c == kContinued) ++at_line;
        if (c == kContinued) continue;
        if (is_blank(c) || c == '\n') {
          if (any) end_field();
          continue;
        }
        if (!any) current.line = at_line;
        current.text += c;
        any = true;
      }
    };
    std::size_t at = 0;
    const auto dollar = [&](bool quoted) {
      ++at;
      bool many = false;
      const Words values = parameter(raw, at, many);
      if ((quoted || whole) && !(many && !whole)) {
        std::string text;
        for (const ShellWord& value : values) text += (text.empty() ? "" : " ") + value.text;
        if (!whole) std::erase(text, kContinued);
        return add(text);
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i > 0 && (any || quoted)) end_field();
        if (!quoted) {
          split(values[i]);
          continue;
        }
        if (!any) current.line = values[i].line;
        std::string text = values[i].text;
        std::erase(text, kContinued);
        add(text);
      }
    };
    while (at < raw.size()) {
      const char c = raw[at];
      if (c == '\'') {
        const std::size_t end = std::min(raw.find('\'', at + 1), raw.size());
        add(raw.substr(at + 1, end - at - 1));
        at = end + 1;
      } else if (c == '"') {
        ++at;
        any = any || whole || raw.compare(at, 2, "${") != 0 ||
              raw.find("[@]", at) == std::string::npos;
        while (at < raw.size() && raw[at] != '"') {
          if (raw[at] == '\\' && at + 1 < raw.size()) {
            if (raw[at + 1] != '\n')
              add(std::string(1, raw[at + 1]));
            else if (whole)
              add(std::string(1, kContinued));
            at += 2;
          } else if (raw[at] == '$') {
            dollar(true);
          } else {
            add(std::string(1, raw[at++]));
          }
        }
        ++at;
      } else if (c == '\\' && at + 1 < raw.size()) {
        add(std::string(1, raw[at + 1]));
        at += 2;
      } else if (c == '$') {
        dollar(false);
      } else if (c == '`') {
        const std::size_t end = std::min(raw.find('`', at + 1), raw.size() - 1);
        add(raw.substr(at, end - at + 1));
        at = end + 1;
      } else {
        add(std::string(1, c));
        ++at;
      }
      if (fields.size() > kMostWords) refuse_size();
    }
    if (any || whole) fields.push_back(current);
    return fields;
  }
  [[noreturn]] void refuse_size() const {
    throw InputError(file_ + ":" + std::to_string(line_), "", "the script has too many words",
                     "give the arguments that it starts training with");
  }

  Words expand(const RawWord& raw) { return expand(raw.text, false, raw.line); }

  // ---- execution

  // Returns whether a test holds: [ a = b ], [[ -z "$A" ]], (( A > 1 )).
  Known test(const std::vector<RawWord>& raw) {
    if (raw.empty()) return std::nullopt;
    const std::string& first = raw[0].text;
    if (first.starts_with("((")) {
      bool known = true;
      const std::int64_t value = arithmetic(first.substr(2, first.size() - 4), known);
      return known ? Known(value != 0) : std::nullopt;
    }
    if (first != "[" && first != "[[" && first != "test") return std::nullopt;
    Texts words;
    for (std::size_t i = 1; i < raw.size(); ++i) {
      if (raw[i].text == "]" || raw[i].text == "]]") break;
      words.push_back(joined(expand(raw[i].text, true, raw[i].line)));
    }
    bool negated = false;
    if (!words.empty() && words[0] == "!") {
      negated = true;
      words.erase(words.begin());
    }
    const auto answer = [&](bool holds) { return Known(holds != negated); };
    // What is not set in the script is empty.
    for (std::string& word : words)
      if (word.starts_with("$") && word.size() > 1 && is_name(word[1])) word.clear();
    if (words.size() == 2 && words[0] == "-z") return answer(words[1].empty());
    if (words.size() == 2 && words[0] == "-n") return answer(!words[1].empty());
    if (words.size() != 3) return std::nullopt;
    const std::string &a = words[0], &op = words[1], &b = words[2];
    if (op == "=" || op == "==") return answer(a == b);
    if (op == "!=") return answer(a != b);
    static const std::map<std::string, int> kOrder{{"-eq", 0}, {"-ne", 1}, {"-gt", 2},
                                                   {"-ge", 3}, {"-lt", 4}, {"-le", 5}};
    const auto found = kOrder.find(op);
    if (found == kOrder.end()) return std::nullopt;
    try {
      const std::int64_t x = a.empty() ? 0 : std::stoll(a), y = b.empty() ? 0 : std::stoll(b);
      const bool holds[] = {x == y, x != y, x > y, x >= y, x < y, x <= y};
      return answer(holds[found->second]);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  // ---- case WORD in PATTERN|PATTERN) ...;; esac

  bool in_pattern() const { return !cases_.empty() && cases_.back().in_pattern; }
  void begin_case(const RawCommand& command) {
    Case begun;
    if (command.words.size() > 1) begun.value = joined(expand(command.words[1].text, true, line_));
    cases_.push_back(begun);
    branches_.push_back({false, Known(false)});
  }
  void end_case_branch() {
    cases_.back().in_pattern = true;
    if (!branches_.empty()) branches_.back().taken = Known(false);
  }
  void end_case() {
    if (!cases_.empty()) cases_.pop_back();
    if (!branches_.empty()) branches_.pop_back();
  }
  void read_pattern(const RawCommand& command) {
    Case& now = cases_.back();
    for (const RawWord& word : command.words) {
      if (word.text == "esac") return end_case();
      now.patterns.push_back(joined(expand(word.text, true, word.line)));
    }
    if (command.after != ")" || now.patterns.empty()) return;
    // What is not set may be set in the environment.
    const bool known = now.value.find('$') == std::string::npos;
    const bool matches =
        std::any_of(now.patterns.begin(), now.patterns.end(), [&](const std::string& pattern) {
          return pattern == now.value || pattern == "*" ||
                 (pattern.ends_with("*") &&
                  now.value.starts_with(pattern.substr(0, pattern.size() - 1)));
        });
    Branch& branch = branches_.back();
    branch.taken = !known ? Known() : Known(matches && !now.matched);
    if (!known && !now.told && !skipping()) {
      now.told = true;
      script_.notes.push_back("line " + std::to_string(line_) + ": the branches of \"case " +
                              now.value + "\" are all read");
    }
    now.matched = now.matched || (known && matches);
    now.patterns.clear();
    now.in_pattern = false;
  }

  bool skipping() const {
    return std::any_of(branches_.begin(), branches_.end(),
                       [](const Branch& branch) { return branch.taken == Known(false); });
  }

  void execute(RawCommand command) {
    while (!command.words.empty()) {
      const std::string first = command.words[0].text;
      const int line = command.words[0].line;
      const auto rest = [&] { command.words.erase(command.words.begin()); };
      if (first == "if" || first == "elif") {
        rest();
        if (first == "if") {
          branches_.push_back({});
        } else if (!branches_.empty()) {
          Branch& branch = branches_.back();
          branch.before = branch.before == Known(true) || branch.taken == Known(true) ? Known(true)
                          : !branch.taken || !branch.before                           ? Known()
                                                            : Known(false);
          branch.taken = Known(true);
        }
        asking_ = true;
        asked_at_ = line;
        condition_ = Known();
        chain_.clear();
      } else if (first == "then" || first == "else" || first == "do" || first == "{") {
        rest();
        if (branches_.empty()) continue;
        Branch& branch = branches_.back();
        if (first == "then" && asking_) {
          asking_ = false;
          branch.taken = branch.before == Known(true)                   ? Known(false)
                         : !branch.before && condition_ != Known(false) ? Known()
                                                                        : condition_;
          if (!branch.taken && !skipping())
            script_.notes.push_back(
                "line " + std::to_string(asked_at_) +
                ": a condition is not known here, so its branches are all read");
        }
        if (first == "else") {
          const bool earlier = branch.before == Known(true) || branch.taken == Known(true);
          const bool unknown = !branch.before || !branch.taken;
          branch.taken = earlier ? Known(false) : unknown ? Known() : Known(true);
        }
        continue;
      } else if (first == "fi") {
        if (!branches_.empty()) branches_.pop_back();
        return;
      } else if (first == "case") {
        return begin_case(command);
      } else if (first == "esac") {
        return end_case();
      } else if (first == "done" || first == "}" || first == "!") {
        rest();
        continue;
      }
      break;
    }
    if (asking_) {
      if (command.words.empty()) return;
      const Known now = skipping() ? Known() : test(command.words);
      if (chain_ == "&&")
        condition_ = condition_ == Known(false) || now == Known(false) ? Known(false)
                     : condition_ && now                               ? Known(true)
                                                                       : Known();
      else if (chain_ == "||")
        condition_ = condition_ == Known(true) || now == Known(true) ? Known(true)
                     : condition_ && now                             ? Known(false)
                                                                     : Known();
      else
        condition_ = now;
      chain_ = command.after;
      return;
    }
    if (command.words.empty() || skipping()) return;
    perform(command.words);
  }

  void perform(std::vector<RawWord> raw) {
    std::size_t first = 0;
    static const std::set<std::string> kDeclared{"export", "declare", "local", "readonly",
                                                 "typeset"};
    while (first < raw.size() &&
           (kDeclared.contains(raw[first].text) ||
            (first > 0 && raw[first].text.starts_with("-") && kDeclared.contains(raw[0].text))))
      ++first;
    std::size_t assigned = first;
    while (assigned < raw.size() && assign(raw[assigned])) ++assigned;
    Words words;
    for (std::size_t i = assigned; i < raw.size(); ++i) {
      Words more = expand(raw[i]);
      words.insert(words.end(), more.begin(), more.end());
    }
    if (words.empty() || first > 0) return;
    total_ += words.size();
    if (total_ > kMostWords) refuse_size();
    if (words[0].text == "let") {
      for (const ShellWord& word : words)
        if (const std::size_t cut = word.text.find('='); cut != std::string::npos) {
          bool known = true;
          const std::int64_t value = arithmetic(word.text.substr(cut + 1), known);
          script_.variables[word.text.substr(0, cut)] = {
              {known ? std::to_string(value) : "$((" + word.text.substr(cut + 1) + "))",
               word.line}};
        }
      return;
    }
    if (words[0].text == "unset") {
      for (const ShellWord& word : words) script_.variables.erase(word.text);
      return;
    }
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::string& shell = words[i].text;
      if (shell != "bash" && shell != "sh" && !shell.ends_with("/bash") && !shell.ends_with("/sh"))
        continue;
      for (std::size_t j = i + 1; j + 1 < words.size() && words[j].text.starts_with("-"); ++j)
        if (words[j].text.ends_with("c") && !words[j].text.starts_with("--")) {
          script_.commands.push_back({words.begin(), words.begin() + static_cast<long>(j)});
          std::erase(words[j + 1].text, kContinued);
          inner(words[j + 1].text, words[j + 1].line);
          return;
        }
    }
    script_.commands.push_back(std::move(words));
  }

  bool assign(const RawWord& raw) {
    std::size_t end = 0;
    while (end < raw.text.size() && is_name(raw.text[end])) ++end;
    if (end == 0 || !is_name_start(raw.text[0])) return false;
    const std::string name = raw.text.substr(0, end);
    if (end < raw.text.size() && raw.text[end] == '[') {  // A[3]=..., A[${#A[@]}]=...
      const std::size_t close = raw.text.find("]=", end);
      if (close == std::string::npos) return false;
      Words& list = script_.variables[name];
      Words value = expand(raw.text.substr(close + 2), true, raw.line);
      list.insert(list.end(), value.begin(), value.end());
      return true;
    }
    const bool more = raw.text.compare(end, 2, "+=") == 0;
    if (!more && (end >= raw.text.size() || raw.text[end] != '=')) return false;
    Words value;
    if (raw.is_list) {
      for (const RawWord& word : raw.list) {
        Words expanded = expand(word);
        value.insert(value.end(), expanded.begin(), expanded.end());
      }
    } else {
      value = expand(raw.text.substr(end + (more ? 2 : 1)), true, raw.line);
    }
    Words& variable = script_.variables[name];
    if (!more) {
      variable = std::move(value);
    } else if (raw.is_list) {
      variable.insert(variable.end(), value.begin(), value.end());
    } else if (variable.empty()) {
      variable = std::move(value);
    } else {
      variable.front().text += value.front().text;
    }
    total_ += variable.size();
    if (total_ > kMostWords * 10 || variable.size() > kMostWords ||
        (!variable.empty() && variable.front().text.size() > (std::size_t{1} << 22)))
      refuse_size();
    return true;
  }

  // Counts how many expansions are inside each other.
  struct Level {
    int& count;
    explicit Level(int& counted) : count(counted) { ++count; }
    ~Level() { --count; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
  };
  struct Case {
    std::string value;
    std::vector<std::string> patterns;
    bool in_pattern = true, matched = false, told = false;
  };
  struct Branch {
    Known before = false;  // an earlier branch of the same `if` was taken
    Known taken = true;
  };

  const std::string& file_;
  ShellScript& script_;
  const int depth_;
  const std::string* text_ = nullptr;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<std::string> documents_;
  std::vector<Branch> branches_;
  std::vector<Case> cases_;
  bool asking_ = false;
  int asked_at_ = 0;
  Known condition_;
  std::string chain_;
  std::set<std::string> noted_;
  std::size_t total_ = 0;
  int inside_ = 0;
};

}  // namespace

ShellScript read_shell(const std::string& text, const std::string& file,
                       const std::map<std::string, std::string>& set) {
  ShellScript script;
  for (const auto& [name, value] : set) script.variables[name] = {{value, 0}};
  ShellReader(file, script, 0).run(text, 1);
  for (auto& [name, words] : script.variables)
    for (ShellWord& word : words)
      std::replace(word.text.begin(), word.text.end(), kContinued, '\n');
  return script;
}

}  // namespace polyphony::sim
