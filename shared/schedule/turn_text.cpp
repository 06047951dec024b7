#include "shared/schedule/turn_text.h"

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

constexpr std::string_view kTitle = "polyphony turns ";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kHash = "hash ";
constexpr std::string_view kPair = "OVERLAP_F_B";
constexpr const char* kTurnHint =
    "a turn is F0.3: F, B, I or W, stage . microbatch; F0.3+B7.1 a pair; F0.3:full, :selective or "
    ":none what its backward makes again, :offload that what it keeps goes to the host and back";
constexpr const char* kCellHint =
    "a cell is 0F3: stage, F, B, I or W, microbatch; (0F3;7B1)OVERLAP_F_B a pair; messages are put "
    "in by us";

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

// More than any layout has.
constexpr int kMostStages = 0xFFFF, kMostWorks = 1 << 24;

std::optional<int> number(std::string_view text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  if (value < 0 || value > most) return {};
  return value;
}
std::optional<TurnKind> kind_of(char c) {
  for (int k = 0; k <= static_cast<int>(TurnKind::backward_weight); ++k)
    if (letter(static_cast<TurnKind>(k)) == c) return static_cast<TurnKind>(k);
  return {};
}
std::optional<Recipe> recipe_of(std::string_view text) {
  for (const Recipe recipe : {Recipe::none, Recipe::selective, Recipe::full, Recipe::offload})
    if (text == name(recipe)) return recipe;
  return {};
}
// `work` may end in a recipe: "3:full".
std::optional<Turn> turn_of(std::optional<TurnKind> kind, std::string_view stage,
                            std::string_view work) {
  const std::size_t colon = work.find(':');
  const auto s = number(stage, kMostStages), w = number(work.substr(0, colon), kMostWorks);
  if (!kind || !s || !w) return {};
  Turn turn = make_turn(*kind, *s, *w);
  if (colon == std::string_view::npos) return turn;
  const auto recipe = recipe_of(work.substr(colon + 1));
  if (!recipe || !is_forward(turn)) return {};
  turn.recipe = *recipe;
  return turn;
}
std::string recipe_text(const Turn& turn) {
  return turn.recipe == Recipe::layout ? "" : std::string(":") + name(turn.recipe);
}

// "F0.3".
std::optional<Turn> read_turn(std::string_view text) {
  const std::size_t point = text.find('.');
  if (text.empty() || point == std::string_view::npos) return {};
  return turn_of(kind_of(text[0]), text.substr(1, point - 1), text.substr(point + 1));
}
// "0F3".
std::optional<Turn> read_cell(std::string_view text) {
  const std::size_t at = text.find_first_of("FBIW");
  if (at == std::string_view::npos) return {};
  return turn_of(kind_of(text[at]), text.substr(0, at), text.substr(at + 1));
}

// Two turns, a forward beside a whole backward.
template <class Read>
bool read_pair(std::string_view first, std::string_view second, Read read, Turns& turns) {
  const std::optional<Turn> a = read(first), b = read(second);
  if (!a || !b || !is_forward(*a) || b->kind != TurnKind::backward) return false;
  turns.push_back(*a);
  turns.back().overlapped = true;
  turns.push_back(*b);
  return true;
}

[[noreturn]] void refuse(const std::string& file, const std::string& where, std::string_view text,
                         const char* hint) {
  throw InputError(file, where, "\"" + std::string(text.substr(0, 40)) + "\" is not a turn", hint);
}

Turns read_row(std::string_view line, const std::string& file, const std::string& where) {
  Turns turns;
  for (std::string_view cell : split(line, ',')) {
    cell = trim(cell);
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
      cell = trim(cell.substr(1, cell.size() - 2));
    if (cell.empty()) continue;
    const std::size_t middle = cell.find(';'), close = cell.find(')');
    const bool pair = cell.front() == '(' && middle != std::string_view::npos &&
                      close != std::string_view::npos && middle < close &&
                      cell.substr(close + 1) == kPair;
    if (pair) {
      if (!read_pair(cell.substr(1, middle - 1), cell.substr(middle + 1, close - middle - 1),
                     read_cell, turns))
        refuse(file, where, cell, kCellHint);
    } else if (const auto turn = read_cell(cell)) {
      turns.push_back(*turn);
    } else {
      refuse(file, where, cell, kCellHint);
    }
  }
  if (turns.empty())
    throw InputError(file, where, "is a rank without turns", "every row is a rank of the pipeline");
  return turns;
}

std::vector<Turns> read_compact(const std::string& text, const std::string& file) {
  std::vector<Turns> orders;
  int number = 0;
  for (const std::string_view whole : split(text, '\n')) {
    const std::string_view line = trim(whole);
    const std::string where = "line " + std::to_string(++number);
    if (line.empty()) continue;
    if (number == 1) {
      const std::string_view version = trim(whole.substr(kTitle.size()));
      if (version != kVersion)
        throw InputError(file, where,
                         "is version \"" + std::string(version.substr(0, 20)) + "\" of the form",
                         "this program reads version " + std::string(kVersion));
    } else if (line.starts_with(kHash)) {
      const auto before = static_cast<std::size_t>(whole.data() - text.data());
      if (trim(line.substr(kHash.size())) != hash_of(std::string_view(text).substr(0, before)))
        throw InputError(file, where, "is not the hash of the lines before it",
                         "the file was cut or changed; leave the line out if that is meant");
    } else {
      orders.push_back(read_turns(std::string(line), file, where));
    }
  }
  return orders;
}

std::string cell_of(const Turn& turn) {
  return std::to_string(turn.stage) + letter(turn.kind) + std::to_string(turn.work) +
         recipe_text(turn);
}

}  // namespace

std::string to_text(const Turns& turns) {
  std::string text;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (i > 0) text += turns[i - 1].overlapped ? '+' : ' ';
    text += letter(turns[i].kind) + std::to_string(turns[i].stage) + "." +
            std::to_string(turns[i].work) + recipe_text(turns[i]);
  }
  return text;
}

Turns read_turns(const std::string& text, const std::string& file, const std::string& where) {
  Turns turns;
  for (const std::string_view word : split(text, ' ')) {
    if (trim(word).empty()) continue;
    const std::size_t plus = word.find('+');
    if (plus != std::string_view::npos) {
      if (!read_pair(word.substr(0, plus), trim(word.substr(plus + 1)), read_turn, turns))
        refuse(file, where, word, kTurnHint);
    } else if (const auto turn = read_turn(trim(word))) {
      turns.push_back(*turn);
    } else {
      refuse(file, where, word, kTurnHint);
    }
  }
  return turns;
}

std::string compact_text(const std::vector<Turns>& orders) {
  std::string text = std::string(kTitle) + std::string(kVersion) + "\n";
  for (const Turns& turns : orders) text += to_text(turns) + "\n";
  return text + std::string(kHash) + hash_of(text) + "\n";
}

std::string csv_text(const std::vector<Turns>& orders,
                     const std::vector<std::vector<int>>& columns) {
  std::string text;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    int column = 0;
    for (std::size_t i = 0; i < orders[rank].size(); ++i) {
      const Turn& turn = orders[rank][i];
      if (rank < columns.size() && i < columns[rank].size())
        for (; column < columns[rank][i]; ++column) text += ",";
      if (turn.overlapped && i + 1 < orders[rank].size())
        text += "(" + cell_of(turn) + ";" + cell_of(orders[rank][++i]) + ")" + std::string(kPair);
      else
        text += cell_of(turn);
      text += ",";
      ++column;
    }
    if (!orders[rank].empty()) text.pop_back();
    text += "\n";
  }
  return text;
}

std::vector<Turns> read_orders(const std::string& text, const std::string& file) {
  std::vector<Turns> orders;
  if (text.starts_with(kTitle)) {
    orders = read_compact(text, file);
  } else {
    int line = 0;
    for (const std::string_view row : split(text, '\n')) {
      ++line;
      if (!trim(row).empty()) orders.push_back(read_row(row, file, "line " + std::to_string(line)));
    }
  }
  if (orders.empty())
    throw InputError(file, "", "has no turns",
                     "a row a rank of cells like 0F0,0B0, or the compact form that --out writes");
  return orders;
}

}  // namespace polyphony
