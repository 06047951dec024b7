#include "shared/checkpoint/checkpoint_region.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "shared/enum_names.h"

namespace polyphony {
namespace {

const char* word_of(Cut cut) {
  constexpr auto kWords = names_of<Cut>("", "rows", "columns", "heads");
  return kWords[cut];
}

// Parses two numbers separated by `between`.
bool read_pair(std::string_view text, char between, std::int64_t& first, std::int64_t& second) {
  const char* const end = text.data() + text.size();
  const auto [middle, bad] = std::from_chars(text.data(), end, first);
  if (bad != std::errc() || middle == end || *middle != between) return false;
  const auto [last, worse] = std::from_chars(middle + 1, end, second);
  return worse == std::errc() && last == end;
}

// Parses "2/4" to index 1 of 4.
bool read_part(std::string_view text, int& index, int& parts) {
  std::int64_t k = 0, n = 0;
  if (!read_pair(text, '/', k, n) || k < 1 || k > n || n > 1 << 20) return false;
  index = static_cast<int>(k - 1);
  parts = static_cast<int>(n);
  return true;
}

// Heads are cut into whole groups, or a group is shared by several ranks.
bool cuts_heads(const Parameter& parameter, int parts) {
  const int heads = parameter.key_value_heads;
  if (parts <= heads) return heads % parts == 0;
  return parts % heads == 0 && parameter.group_heads % (parts / heads) == 0;
}

}  // namespace

bool Region::whole_part(const Parameter& parameter) const {
  return elements == Interval{0, parameter.local_count(place)};
}

std::string Region::text(const Parameter& parameter) const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const auto part = [](int index, int parts) {
    return " " + std::to_string(index + 1) + "/" + std::to_string(parts);
  };
  if (parameter.cut != Cut::replicated && place.tensor > 1)
    add(word_of(parameter.cut) + part(place.tensor_index, place.tensor));
  if (parameter.expert && place.expert > 1) add("experts" + part(place.expert_index, place.expert));
  if (!whole_part(parameter))
    add("elements " + std::to_string(elements.begin) + ":" + std::to_string(elements.end));
  return text.empty() ? "whole" : text;
}

std::vector<ElementRun> Region::runs(const Parameter& parameter) const {
  std::vector<ElementRun> cut;
  for (const ElementRun& run : parameter.runs(place)) {
    const std::int64_t begin = std::max(run.local, elements.begin);
    const std::int64_t end = std::min(run.local + run.count, elements.end);
    if (begin < end)
      cut.push_back({begin - elements.begin, run.global + begin - run.local, end - begin});
  }
  return cut;
}

std::optional<Region> parse_region(const Parameter& parameter, const std::string& text) {
  Region region;
  std::optional<Interval> elements;
  if (text != "whole") {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(", ", begin), text.size());
      const std::string_view part = std::string_view(text).substr(begin, end - begin);
      const std::size_t space = std::min(part.find(' '), part.size());
      const std::string_view word = part.substr(0, space);
      const std::string_view value = part.substr(std::min(space + 1, part.size()));
      bool known = false;
      if (word == "experts" && parameter.expert)
        known = read_part(value, region.place.expert_index, region.place.expert);
      else if (word == "elements")
        known = read_pair(value, ':', elements.emplace().begin, elements->end);
      else if (!word.empty() && word == word_of(parameter.cut))
        known = read_part(value, region.place.tensor_index, region.place.tensor);
      if (!known) return {};
      begin = end + 2;
    }
  }
  if (parameter.cut == Cut::heads && !cuts_heads(parameter, region.place.tensor)) return {};
  const std::int64_t count = parameter.local_count(region.place);
  region.elements = elements.value_or(Interval{0, count});
  const bool inside = region.elements.begin >= 0 && region.elements.end <= count &&
                      region.elements.begin <= region.elements.end;
  if (!inside || region.text(parameter) != text) return {};
  return region;
}

std::vector<ElementCopy> overlap(const std::vector<ElementRun>& from,
                                 const std::vector<ElementRun>& to) {
  std::vector<ElementCopy> copies;
  for (std::size_t f = 0, t = 0; f < from.size() && t < to.size();) {
    const std::int64_t from_end = from[f].global + from[f].count;
    const std::int64_t to_end = to[t].global + to[t].count;
    const std::int64_t begin = std::max(from[f].global, to[t].global);
    const std::int64_t end = std::min(from_end, to_end);
    if (begin < end)
      copies.push_back({from[f].local + begin - from[f].global, to[t].local + begin - to[t].global,
                        end - begin});
    from_end < to_end ? ++f : ++t;
  }
  return copies;
}

}  // namespace polyphony
