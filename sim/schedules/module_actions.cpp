#include "sim/schedules/module_actions.h"

#include <algorithm>
#include <sstream>

#include "shared/error.h"
#include "shared/schedule/action_text.h"

namespace polyphony::sim {
namespace {

constexpr const char* kBlanks = " \t\r\"";

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Splits "vision 0F3" into "vision" and "0F3". Without a module name the first is empty.
std::pair<std::string, std::string> name_and_action(const std::string& cell) {
  const std::size_t blank = cell.find_last_of(" \t");
  if (blank == std::string::npos) return {"", cell};
  return {trimmed(cell.substr(0, blank)), cell.substr(blank + 1)};
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream row(line);
  for (std::string cell; std::getline(row, cell, ',');)
    if (cell = trimmed(cell); !cell.empty()) cells.push_back(cell);
  return cells;
}

std::optional<std::uint16_t> module_at(const std::string& name, const StageTimes& times) {
  for (std::size_t m = 0; m < times.modules.size(); ++m)
    if (times.modules[m].name == name) return static_cast<std::uint16_t>(m);
  return {};
}

// Converts "0F3" to the form that read_actions() takes, "F0.3".
std::string action_text(const std::string& action) {
  const std::size_t at = action.find_first_of("FBIW");
  if (at == std::string::npos) return action;
  return action[at] + action.substr(0, at) + "." + action.substr(at + 1);
}

}  // namespace

bool names_modules(const std::string& text, const StageTimes& times) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    for (const std::string& cell : cells_of(line))
      if (module_at(name_and_action(cell).first, times)) return true;
  return false;
}

std::vector<Actions> read_module_actions(const std::string& text, const std::string& file,
                                         const StageTimes& times) {
  std::string names;
  for (const ModuleTimes& module : times.modules)
    names += (names.empty() ? "" : ", ") + module.name;
  std::vector<Actions> orders;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = "line " + std::to_string(++number);
    const std::vector<std::string> cells = cells_of(line);
    if (cells.empty()) continue;
    Actions& actions = orders.emplace_back();
    for (const std::string& cell : cells) {
      const auto refuse = [&](const std::string& what, const std::string& how) {
        throw InputError(file, where, "\"" + cell.substr(0, 40) + "\" " + what, how);
      };
      if (cell.front() == '(')
        refuse("is a pair of actions", "write two cells: every action names its module");
      const auto [name, action] = name_and_action(cell);
      const auto module = module_at(name, times);
      if (!module)
        refuse(name.empty() ? "names no module" : "names a module that is not in the stage times",
               "write MODULE and its action, such as \"" + times.modules.front().name +
                   " 0F3\"; modules: " + names);
      if (action.find('.') != std::string::npos)
        refuse("is an action of a part of a microbatch",
               "omit the part: all parts of a microbatch in a module run in one action");
      Actions read = read_actions(action_text(action), file, where);
      read.front().branch = *module;
      actions.push_back(read.front());
    }
  }
  return orders;
}

}  // namespace polyphony::sim
