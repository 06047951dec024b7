#include "shared/schedule/action_text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "shared/error.h"
#include "shared/fnv.h"
#include "shared/schedule/schedule.h"

namespace polyphony {
namespace {

constexpr std::string_view kTitle = "polyphony actions ";
constexpr std::string_view kOldTitle = "polyphony turns ";  // up to version 0.2
constexpr std::string_view kVersion = "1";
constexpr std::string_view kHash = "hash ";
constexpr std::string_view kPair = "OVERLAP_F_B";
constexpr const char* kActionHint =
    "an action is F0.3: F, B, I or W, then stage.microbatch; F0.3+B7.1 is a pair; :full, "
    ":selective or :none after a forward sets what its backward recomputes, :offload offloads its "
    "activations";
constexpr const char* kCellHint =
    "a cell is 0F3: stage, then F, B, I or W, then microbatch; (0F3;7B1)OVERLAP_F_B is a pair; "
    "messages and collectives as PyTorch names them (0SEND_F3, 0UNSHARD) are skipped";

std::string hash_of(std::string_view text) {
  Fnv hash;
  hash.add(text);
  return hash.digits();
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(at, begin);
    parts.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Far above any layout.
constexpr int kMostStages = 0xFFFF, kMostWorks = 1 << 24;

std::optional<int> number(std::string_view text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  if (value < 0 || value > most) return {};
  return value;
}
std::optional<ActionKind> kind_of(char c) {
  for (int k = 0; k <= static_cast<int>(ActionKind::backward_weight); ++k)
    if (letter(static_cast<ActionKind>(k)) == c) return static_cast<ActionKind>(k);
  return {};
}
std::optional<Recipe> recipe_of(std::string_view text) {
  for (const Recipe recipe : {Recipe::none, Recipe::selective, Recipe::full, Recipe::offload})
    if (text == name(recipe)) return recipe;
  return {};
}
// `work` may end in a recipe: "3:full".
std::optional<Action> action_of(std::optional<ActionKind> kind, std::string_view stage,
                                std::string_view work) {
  const std::size_t colon = work.find(':');
  const auto s = number(stage, kMostStages), w = number(work.substr(0, colon), kMostWorks);
  if (!kind || !s || !w) return {};
  Action action = make_action(*kind, *s, *w);
  if (colon == std::string_view::npos) return action;
  const auto recipe = recipe_of(work.substr(colon + 1));
  if (!recipe || !is_forward(action)) return {};
  action.recipe = *recipe;
  return action;
}
std::string recipe_text(const Action& action) {
  return action.recipe == Recipe::layout ? "" : std::string(":") + name(action.recipe);
}

// "F0.3".
std::optional<Action> read_action(std::string_view text) {
  const std::size_t point = text.find('.');
  if (text.empty() || point == std::string_view::npos) return {};
  return action_of(kind_of(text[0]), text.substr(1, point - 1), text.substr(point + 1));
}
// "0F3".
std::optional<Action> read_cell(std::string_view text) {
  const std::size_t at = text.find_first_of("FBIW");
  if (at == std::string_view::npos) return {};
  return action_of(kind_of(text[at]), text.substr(0, at), text.substr(at + 1));
}

// "0SEND_F3", "1UNSHARD": what PyTorch's runtime adds to a schedule before it runs
// (torch/distributed/pipelining/schedules.py, _ComputationType).
bool is_communication(std::string_view cell) {
  const std::size_t kind = cell.find_first_not_of("0123456789");
  if (kind == 0 || kind == std::string_view::npos || !number(cell.substr(0, kind), kMostStages))
    return false;
  const std::string_view rest = cell.substr(kind);
  for (const std::string_view message : {"SEND_F", "RECV_F", "SEND_B", "RECV_B"})
    if (rest.starts_with(message))
      return number(rest.substr(message.size()), kMostWorks).has_value();
  return rest == "UNSHARD" || rest == "RESHARD" || rest == "REDUCE_GRAD";
}

// Reads a pair: a forward and a whole backward.
template <class Read>
bool read_pair(std::string_view first, std::string_view second, Read read, Actions& actions) {
  const std::optional<Action> a = read(first), b = read(second);
  if (!a || !b || !is_forward(*a) || b->kind != ActionKind::backward) return false;
  actions.push_back(*a);
  actions.back().overlapped = true;
  actions.push_back(*b);
  return true;
}

[[noreturn]] void refuse(const std::string& file, const std::string& where, std::string_view text,
                         const char* hint) {
  throw InputError(file, where, "\"" + std::string(text.substr(0, 40)) + "\" is not an action",
                   hint);
}

Actions read_row(std::string_view line, const std::string& file, const std::string& where) {
  Actions actions;
  for (std::string_view cell : split(line, ',')) {
    cell = trim(cell);
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
      cell = trim(cell.substr(1, cell.size() - 2));
    if (cell.empty() || is_communication(cell)) continue;
    const std::size_t middle = cell.find(';'), close = cell.find(')');
    const bool pair = cell.front() == '(' && middle != std::string_view::npos &&
                      close != std::string_view::npos && middle < close &&
                      cell.substr(close + 1) == kPair;
    if (pair) {
      if (!read_pair(cell.substr(1, middle - 1), cell.substr(middle + 1, close - middle - 1),
                     read_cell, actions))
        refuse(file, where, cell, kCellHint);
    } else if (const auto action = read_cell(cell)) {
      actions.push_back(*action);
    } else {
      refuse(file, where, cell, kCellHint);
    }
  }
  if (actions.empty())
    throw InputError(file, where, "has no actions",
                     "every row must list the actions of one pipeline rank");
  return actions;
}

std::vector<Actions> read_compact(const std::string& text, const std::string& file) {
  std::vector<Actions> orders;
  int number = 0;
  for (const std::string_view whole : split(text, '\n')) {
    const std::string_view line = trim(whole);
    const std::string where = "line " + std::to_string(++number);
    if (line.empty()) continue;
    if (number == 1) {
      const std::size_t title = whole.starts_with(kTitle) ? kTitle.size() : kOldTitle.size();
      const std::string_view version = trim(whole.substr(title));
      if (version != kVersion)
        throw InputError(file, where,
                         "version \"" + std::string(version.substr(0, 20)) + "\" is not supported",
                         "this program reads version " + std::string(kVersion));
    } else if (line.starts_with(kHash)) {
      const auto before = static_cast<std::size_t>(whole.data() - text.data());
      if (trim(line.substr(kHash.size())) != hash_of(std::string_view(text).substr(0, before)))
        throw InputError(file, where, "hash does not match the lines before it",
                         "the file was truncated or edited; if that is intended, remove this line");
    } else {
      orders.push_back(read_actions(std::string(line), file, where));
    }
  }
  return orders;
}

std::string cell_of(const Action& action) {
  return std::to_string(action.stage) + letter(action.kind) + std::to_string(action.work) +
         recipe_text(action);
}

}  // namespace

std::string to_text(const Actions& actions) {
  std::string text;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (i > 0) text += actions[i - 1].overlapped ? '+' : ' ';
    text += letter(actions[i].kind) + std::to_string(actions[i].stage) + "." +
            std::to_string(actions[i].work) + recipe_text(actions[i]);
  }
  return text;
}

Actions read_actions(const std::string& text, const std::string& file, const std::string& where) {
  Actions actions;
  for (const std::string_view word : split(text, ' ')) {
    if (trim(word).empty()) continue;
    const std::size_t plus = word.find('+');
    if (plus != std::string_view::npos) {
      if (!read_pair(word.substr(0, plus), trim(word.substr(plus + 1)), read_action, actions))
        refuse(file, where, word, kActionHint);
    } else if (const auto action = read_action(trim(word))) {
      actions.push_back(*action);
    } else {
      refuse(file, where, word, kActionHint);
    }
  }
  return actions;
}

std::string compact_text(const std::vector<Actions>& orders) {
  std::string text = std::string(kTitle) + std::string(kVersion) + "\n";
  for (const Actions& actions : orders) text += to_text(actions) + "\n";
  return text + std::string(kHash) + hash_of(text) + "\n";
}

std::string csv_text(const std::vector<Actions>& orders,
                     const std::vector<std::vector<int>>& columns) {
  std::string text;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    int column = 0;
    for (std::size_t i = 0; i < orders[rank].size(); ++i) {
      const Action& action = orders[rank][i];
      if (rank < columns.size() && i < columns[rank].size())
        for (; column < columns[rank][i]; ++column) text += ",";
      if (action.overlapped && i + 1 < orders[rank].size())
        text += "(" + cell_of(action) + ";" + cell_of(orders[rank][++i]) + ")" + std::string(kPair);
      else
        text += cell_of(action);
      text += ",";
      ++column;
    }
    if (!orders[rank].empty()) text.pop_back();
    text += "\n";
  }
  return text;
}

std::vector<Actions> read_orders(const std::string& text, const std::string& file) {
  std::vector<Actions> orders;
  if (text.starts_with(kTitle) || text.starts_with(kOldTitle)) {
    orders = read_compact(text, file);
  } else {
    int line = 0;
    for (const std::string_view row : split(text, '\n')) {
      ++line;
      if (!trim(row).empty()) orders.push_back(read_row(row, file, "line " + std::to_string(line)));
    }
  }
  if (orders.empty())
    throw InputError(
        file, "", "has no actions",
        "write one row per rank with cells such as 0F0,0B0, or the form that --out writes");
  return orders;
}

}  // namespace polyphony
