#include "sim/step_answers/layout_change.h"

#include <string_view>
#include <type_traits>

#include "shared/model/layout_fields.h"
#include "shared/model/model.h"

namespace polyphony::sim {
namespace {

std::string text(int value) { return std::to_string(value); }
std::string text(bool value) { return value ? "on" : "off"; }
template <class Choice>
std::string text(Choice value) {
  return name(value);
}

std::string range_text(const std::vector<int>& range) {
  if (range.size() != 2) return "all blocks";
  return "blocks " + text(range[0]) + "-" + text(range[1] - 1);
}

// Returns a text such as "a block from stage 3 to stage 4".
std::string shift_text(const std::vector<int>& from, const std::vector<int>& to) {
  std::string less, more;
  int moved = 0;
  for (std::size_t s = 0; s < from.size(); ++s) {
    if (from[s] == to[s]) continue;
    std::string& list = from[s] > to[s] ? less : more;
    list += (list.empty() ? "" : ", ") + std::to_string(s);
    if (from[s] > to[s]) moved += from[s] - to[s];
  }
  return (moved == 1 ? "a block" : text(moved) + " blocks") + " from stage " + less + " to stage " +
         more;
}

class Words {
 public:
  template <class Value>
  void add(const std::string& what, const Value& from, const Value& to) {
    if (from != to) add_texts(what, text(from), text(to));
  }
  void add_texts(const std::string& what, const std::string& from, const std::string& to) {
    if (from != to) found.push_back(what + " " + from + " -> " + to);
  }
  std::vector<std::string> found;
};

template <class Field, class Whole>
std::string text_of(const Field& field, const Whole& whole) {
  std::string words;
  field.show(whole, [&]<class Value>(const Value& value) {
    if constexpr (!std::is_same_v<Value, std::vector<int>>) words = text(value);
  });
  return field.zero && words == "0" ? field.zero : words;
}

void add_recompute(const std::string& whose, const ModuleLayout& from, const ModuleLayout& to,
                   Words& words) {
  words.add(whose + "recompute", from.recompute, to.recompute);
  if (from.recompute_blocks != to.recompute_blocks && to.recompute != Recompute::none)
    words.found.push_back(whose + "recompute of " + range_text(from.recompute_blocks) + " -> " +
                          range_text(to.recompute_blocks));
  words.add(whose + "offload_activations", from.offload_activations, to.offload_activations);
}

void add_shard_ranks(const std::string& whose, const ModuleLayout& from, const ModuleLayout& to,
                     Words& words) {
  if (to.shard == Shard::none) return;
  const auto over = [](const ModuleLayout& grid) {
    return grid.shard_ranks == 0 ? grid.dp() * grid.cp : grid.shard_ranks;
  };
  if (from.shard != Shard::none || to.shard_ranks != 0)
    words.add(whose + "shard ranks", over(from), over(to));
}

void add_grid(const std::string& whose, const Module& module, const ModuleLayout& from,
              const ModuleLayout& to, Words& words) {
  for (const GridField* field : in_order(grid_fields(), &GridField::spoken)) {
    if (!field->words) continue;
    if (!field->used || (field->used(module, from) && field->used(module, to)))
      words.add_texts(whose + field->words, text_of(*field, from), text_of(*field, to));
    if (field->key == std::string_view("vpp")) words.add(whose + "DP", from.dp(), to.dp());
    if (field->key == std::string_view("shard")) add_shard_ranks(whose, from, to, words);
  }
}

}  // namespace

std::vector<std::string> changes(const Model& model, const Layout& from, const Layout& to) {
  Words words;
  const auto add_modules = [&] {
    const bool one =
        from.placement == Placement::homogeneous && to.placement == Placement::homogeneous;
    const std::size_t language = language_module(model).value;
    for (std::size_t m = 0; m < from.modules.size(); ++m) {
      const ModuleLayout &was = from.modules[m], &is = to.modules[m];
      const std::string module = model.modules[m].name + " ";
      const std::string whose = one ? "" : module;
      const bool projector = model.modules[m].kind == ModuleKind::projector;
      if (!projector && (!one || m == language)) add_grid(whose, model.modules[m], was, is, words);
      if (!projector) add_recompute(module, was, is, words);
      if (was.blocks != is.blocks && was.blocks.size() == is.blocks.size())
        words.found.push_back(whose + shift_text(was.blocks, is.blocks));
    }
  };
  for (const LayoutField& field : layout_fields()) {
    if (field.key == std::string_view("schedule")) {
      add_modules();
      words.add_texts("schedule", schedule_name(from), schedule_name(to));
    }
    if (field.words) words.add_texts(field.words, text_of(field, from), text_of(field, to));
  }
  return words.found;
}

}  // namespace polyphony::sim
