// The fields of a layout, one table row each: those of a module's grid (ModuleLayout), and those of
// the whole layout (Layout).
//
// A row defines the key in a scenario file, its schema, its reader and its place in the resolved
// scenario; it puts the field into the Program's hash and into the keys of a search's journal
// (sim/sweep/layout_numbers.h); and it says where the field stands in the table of a sweep
// (sim/shown/sweep_csv.h), in the words that compare two layouts (sim/step_answers/layout_change.h)
// and in the order of layouts (shared/search/shortlist.h). To add a field, add a member to layout.h
// and a row to layout_fields.cpp; a member without a row does not compile.
//
// Rows are in the order of the members. Where an output has another order, rows state their places.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "shared/model/layout.h"
#include "shared/text/strict_json.h"

namespace polyphony {

struct Module;

// After all fields that state a place, in the order of the table.
inline constexpr std::uint8_t kLast = 255;

template <class Whole, class... Choices>
struct FieldOf {
  using Member =
      std::variant<int Whole::*, bool Whole::*, std::vector<int> Whole::*, Choices Whole::*...>;
  const char* key;
  Member member;
  std::int64_t least = 0, most = 0;        // inclusive range of a number
  std::int64_t shortest = 0, longest = 0;  // inclusive range of a list's length
  // Description in the schema. Null: not a key by itself; its reader and writer are elsewhere.
  const char* about = nullptr;
  bool required = false;  // a scenario file must have the key
  // Returns true if the resolved scenario contains the field (null: where it is not the default).
  bool (*written)(const Whole&) = nullptr;

  // The modules of a homogeneous layout have one grid. `language`: but the field is the language
  // module's alone. `own`: but each module may state the field; the place among such keys, 0:
  // none. `with`: the field is stated together with this one.
  bool language = false;
  std::uint8_t own = 0;
  const char* with = nullptr;
  // A search that changes the field changes it in all modules that share the grid.
  bool shared = false;

  std::uint8_t column = kLast;  // place in the table of a sweep; 0: no column
  std::uint8_t simple = kLast;  // place in the order of layouts
  // Name where two layouts are compared (null: not compared, or in a way of its own), and its
  // place.
  const char* words = nullptr;
  std::uint8_t spoken = kLast;
  const char* zero = nullptr;  // what a 0 is called there
  // Returns true if the field means something for this module; null: always.
  bool (*used)(const Module&, const Whole&) = nullptr;
  // Returns the value in effect, for tables and words; null: as stated.
  int (*effective)(const Whole&) = nullptr;

  Form form() const;
  // Reads the key of `value`; leaves the field unchanged if the key is absent.
  void read(const JsonValue& value, Whole& whole) const;

  // Calls visit(value).
  template <class Visit>
  void visit(const Whole& whole, Visit&& visitor) const {
    std::visit([&](auto of) { visitor(whole.*of); }, member);
  }
  template <class Visit>
  void visit(Whole& whole, Visit&& visitor) const {
    std::visit([&](auto of) { visitor(whole.*of); }, member);
  }
  // Calls visit(value in effect).
  template <class Visit>
  void show(const Whole& whole, Visit&& visitor) const {
    if (effective)
      visitor(effective(whole));
    else
      visit(whole, visitor);
  }
  void copy(const Whole& from, Whole& to) const {
    std::visit([&](auto of) { to.*of = from.*of; }, member);
  }
  std::strong_ordering compare(const Whole& a, const Whole& b) const {
    return std::visit([&](auto of) { return a.*of <=> b.*of; }, member);
  }
  bool same(const Whole& a, const Whole& b) const { return compare(a, b) == 0; }
  // Returns true if the resolved scenario contains the field.
  bool is_written(const Whole& whole) const {
    return written ? written(whole) : !same(whole, Whole{});
  }
};

using GridField =
    FieldOf<ModuleLayout, Shard, Recompute, TokenAssignment, ContextAttention, Spread>;
using LayoutField =
    FieldOf<Layout, Placement, ScheduleKind, EncoderOrder, Bridge, Balance, Planning>;

// Returns all rows: of ModuleLayout; of Layout, except `modules` and `actions`.
std::span<const GridField> grid_fields();
std::span<const LayoutField> layout_fields();

// Returns the rows that have a place of this kind, in its order.
template <class Field>
std::vector<const Field*> in_order(std::span<const Field> fields, std::uint8_t Field::* place) {
  std::vector<const Field*> found;
  for (const Field& field : fields)
    if (field.*place > 0) found.push_back(&field);
  std::stable_sort(found.begin(), found.end(),
                   [&](const Field* a, const Field* b) { return a->*place < b->*place; });
  return found;
}

}  // namespace polyphony
