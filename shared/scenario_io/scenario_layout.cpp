#include <algorithm>
#include <optional>

#include "shared/form/scenario_form.h"
#include "shared/form/search_fields.h"
#include "shared/model/chain_grid.h"
#include "shared/model/layout_fields.h"
#include "shared/scenario_io/scenario_parts.h"
#include "shared/schedule/action_text.h"

namespace polyphony {
namespace {

bool is_projector(const Model& model, ModuleId id) {
  return model.modules[id.value].kind == ModuleKind::projector;
}

// Returns the module whose grid a projector shares: the first module upstream that is not a
// projector.
std::size_t grid_owner(const Model& model, std::size_t m) {
  for (std::size_t steps = 0; steps < model.modules.size() && is_projector(model, ModuleId(m));
       ++steps)
    for (const Edge& edge : model.edges)
      if (edge.to == ModuleId(m)) {
        m = edge.from.value;
        break;
      }
  return m;
}

ModuleLayout read_grid(const JsonValue& value) {
  ModuleLayout grid;
  for (const GridField& field : grid_fields())
    if (field.about) field.read(value, grid);
  grid.ranks = 0;  // not given
  if (!value.has("ranks")) return grid;
  const JsonValue ranks = value.at("ranks");
  if (ranks.is_object()) {
    ranks.read("first", grid.first_rank);
    ranks.read("count", grid.ranks);
  } else {
    value.read("ranks", grid.ranks);
  }
  return grid;
}

bool names_first(const JsonValue& layout, const std::string& module) {
  return layout.has(module) && layout.at(module).has("ranks") &&
         layout.at(module).at("ranks").is_object();
}

// Reads the settings that may differ between the modules of a homogeneous layout.
void read_own_part(const JsonValue& value, const std::string& key, const Model& model,
                   Layout& layout) {
  const std::vector<const GridField*> fields = in_order(grid_fields(), &GridField::own);
  const JsonValue part = value.at(key);
  for (const std::string& given : part.keys()) {
    if (std::any_of(fields.begin(), fields.end(),
                    [&](const GridField* field) { return field->key == given; }))
      continue;
    std::string all = fields.front()->key;
    for (std::size_t i = 1; i < fields.size(); ++i)
      all += (i + 1 < fields.size() ? ", " : " and ") + std::string(fields[i]->key);
    value.refuse_at(key, "a homogeneous layout has one grid for all modules",
                    "write it once, under \"all\"; only " + all + " may differ");
  }
  const ModuleLayout own = read_grid(part);
  const std::size_t module = module_named(value, key, model).value;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (m != module && (!is_projector(model, ModuleId(m)) || grid_owner(model, m) != module))
      continue;
    for (const GridField* field : fields)
      if (part.has(field->with ? field->with : field->key)) field->copy(own, layout.modules[m]);
  }
}

void read_homogeneous(const JsonValue& value, const Model& model, const Cluster& cluster,
                      Layout& layout) {
  const std::string& language = model.modules[language_module(model).value].name;
  std::vector<std::string> words = module_words(value), parts;
  const bool all = std::find(words.begin(), words.end(), "all") != words.end();
  if (all && std::find(words.begin(), words.end(), language) != words.end())
    value.refuse_at(language, "the grid is given twice, under \"all\" and \"" + language + "\"",
                    "keep \"all\"");
  std::erase_if(words, [&](const std::string& key) {
    if (key == "all" || key == language) return false;
    parts.push_back(key);
    return true;
  });
  ModuleLayout grid;
  grid.ranks = 0;
  if (!words.empty()) grid = read_grid(value.at(words.front()));
  if (grid.ranks == 0) grid.ranks = cluster.ranks();
  layout.modules.assign(model.modules.size(), grid);
  // The list of blocks counts those of the whole chain, and is stored with the last module
  // (shared/model/layout.h).
  for (std::size_t m = 0; m + 1 < layout.modules.size(); ++m) layout.modules[m].blocks.clear();
  leave_to_language(model, layout);
  for (const std::string& key : parts) read_own_part(value, key, model, layout);
}

// Places modules on disjoint ranks. One module may omit the number of its ranks: it gets those that
// the others leave. A module without a first rank follows the previous module.
void place_disjoint(const JsonValue& value, const Model& model, const Cluster& cluster,
                    Layout& layout) {
  std::optional<std::size_t> unsized;
  std::int64_t taken = 0;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (is_projector(model, ModuleId(m))) continue;
    const std::string& module = model.modules[m].name;
    if (layout.modules[m].ranks == 0) {
      if (unsized)
        value.refuse(
            "key \"ranks\" is missing in both " + model.modules[*unsized].name + " and " + module,
            "write it in one of them");
      unsized = m;
    }
    taken += layout.modules[m].ranks;
  }
  if (unsized) {
    if (taken >= cluster.ranks())
      value.refuse("no ranks are left for " + model.modules[*unsized].name +
                       ": the other modules have " + std::to_string(taken) + ", the cluster has " +
                       std::to_string(cluster.ranks()),
                   "give the other modules fewer ranks, or use a larger cluster");
    layout.modules[*unsized].ranks = static_cast<int>(cluster.ranks() - taken);
  }
  std::int64_t next = 0;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (is_projector(model, ModuleId(m))) continue;
    ModuleLayout& grid = layout.modules[m];
    if (!names_first(value, model.modules[m].name))
      grid.first_rank = static_cast<int>(std::min(next, kMostRanks));
    next = std::int64_t{grid.first_rank} + grid.ranks;
  }
}

void read_own_grids(const JsonValue& value, const Model& model, const Cluster& cluster,
                    Layout& layout) {
  ModuleLayout unsized;
  unsized.ranks = 0;
  layout.modules.assign(model.modules.size(), unsized);
  for (const std::string& key : module_words(value)) {
    if (key == "all")
      value.refuse_at(key,
                      "\"all\" must not be given in this placement: each module has its own grid",
                      "write one grid per module, or \"placement\": \"homogeneous\"");
    layout.modules[module_named(value, key, model).value] = read_grid(value.at(key));
  }
  if (layout.placement == Placement::non_colocated) {
    place_disjoint(value, model, cluster, layout);
  } else {
    for (ModuleLayout& grid : layout.modules)
      if (grid.ranks == 0) grid.ranks = cluster.ranks();
  }
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (!is_projector(model, ModuleId(m))) continue;
    layout.modules[m] = layout.modules[grid_owner(model, m)];
    layout.modules[m].blocks.clear();
  }
}

// Returns the values of one key of a search: one value, a list, or none for "auto".
std::vector<std::string> texts(const JsonValue& value, const std::string& key) {
  std::vector<std::string> all;
  if (!value.has(key)) return all;
  const JsonValue choices = value.at(key);
  if (choices.is_list()) {
    for (std::size_t i = 0; i < choices.size(); ++i) all.push_back(choices.at(i).text());
  } else if (choices.text() != "auto") {
    all.push_back(choices.text());
  }
  return all;
}
template <class Enum>
void read_choices(const JsonValue& value, const std::string& key, std::vector<Enum>& out) {
  Enum last;
  if constexpr (std::is_same_v<Enum, ScheduleKind>)
    last = kLastSchedule;
  else
    last = last_of(Enum{});
  for (const std::string& text : texts(value, key)) out.push_back(enum_named(text, last));
}
void read_choices(const JsonValue& value, const std::string& key, std::vector<int>& out) {
  if (value.has(key) && !value.at(key).is_text()) value.read(key, out);
}
void read_choices(const JsonValue& value, const std::string& key, std::vector<bool>& out) {
  if (!value.has(key) || value.at(key).is_text()) return;
  const JsonValue choices = value.at(key);
  if (!choices.is_list()) return out.push_back(choices.boolean());
  for (std::size_t i = 0; i < choices.size(); ++i) out.push_back(choices.at(i).boolean());
}

}  // namespace

std::vector<std::string> module_words(const JsonValue& value) {
  const auto& reserved = reserved_module_names();
  std::vector<std::string> keys = value.keys();
  std::erase_if(keys, [&](const std::string& key) {
    return key != "all" && std::find(reserved.begin(), reserved.end(), key) != reserved.end();
  });
  return keys;
}

ModuleId module_named(const JsonValue& value, const std::string& key, const Model& model) {
  std::vector<std::string> names;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (model.modules[m].name != key) {
      if (!is_projector(model, ModuleId(m))) names.push_back(model.modules[m].name);
      continue;
    }
    if (is_projector(model, ModuleId(m)))
      value.refuse_at(key, "a projector has no grid of its own",
                      "remove the key; it shares the grid of the module that it reads from");
    return ModuleId(m);
  }
  value.refuse_at(key, "unknown key \"" + key + "\", and no module has this name",
                  suggest(key, names));
}

Layout read_layout(const JsonValue& value, const Model& model, const Cluster& cluster) {
  Layout layout;
  for (const LayoutField& field : layout_fields()) field.read(value, layout);
  for (const char* key : {"actions", "turns"})  // "turns": name up to version 0.2
    for (std::size_t rank = 0; value.has(key) && rank < value.at(key).size(); ++rank) {
      const JsonValue text = value.at(key).at(rank);
      layout.actions.push_back(read_actions(text.text(), text.file(), text.pointer()));
    }
  if (layout.placement == Placement::homogeneous) {
    read_homogeneous(value, model, cluster, layout);
  } else {
    read_own_grids(value, model, cluster, layout);
  }
  return layout;
}

Search read_search(const JsonValue& value, const Model& model) {
  Search search;
  search.modules.resize(model.modules.size());
  visit_choices(search, [&](const char* key, auto& choices, const char*) {
    read_choices(value, key, choices);
  });
  value.read("memory_margin", search.memory_margin);
  for (const std::string& key : module_words(value)) {
    if (key == "all")
      value.refuse_at(key, "\"all\" must not be given in a search",
                      "write the choices under the name of each module");
    const JsonValue choices = value.at(key);
    ModuleSearch& module = search.modules[module_named(value, key, model).value];
    visit_module_choices(
        module, [&](const char* of, auto& list, const char*) { read_choices(choices, of, list); });
  }
  return search;
}

}  // namespace polyphony
