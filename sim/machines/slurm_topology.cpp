#include "sim/machines/slurm_topology.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "shared/error.h"
#include "shared/text/figure_text.h"
#include "sim/text/config_text.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kMostHosts = 1 << 20;

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw InputError(file, "", what, "give Slurm's topology.conf or topology.yaml, unchanged");
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Returns how many numbers "01-16,18" has.
std::int64_t numbers_in(const std::string& ranges, const std::string& file) {
  std::int64_t count = 0;
  std::istringstream parts(ranges);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = part.find('-');
    const std::string low = part.substr(0, dash),
                      high = dash == std::string::npos ? low : part.substr(dash + 1);
    const auto digits = [](const std::string& text) {
      return !text.empty() && text.size() < 10 &&
             std::all_of(
                 text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    };
    if (!digits(low) || !digits(high) || std::stol(high) < std::stol(low))
      refuse(file, "\"" + part + "\" is not a range of numbers");
    count += std::stol(high) - std::stol(low) + 1;
    if (count > kMostHosts) refuse(file, "has more than " + count_text(kMostHosts) + " nodes");
  }
  if (count == 0) refuse(file, "an empty range in a list of nodes");
  return count;
}

// Cuts at commas outside of brackets.
std::vector<std::string> names_of(const std::string& list) {
  std::vector<std::string> names{""};
  int depth = 0;
  for (const char c : list) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 0)
      names.emplace_back();
    else
      names.back() += c;
  }
  std::erase(names, "");
  return names;
}

// Groups of nodes, and what they become.
struct Groups {
  std::vector<int> leaves, blocks;
  int switches = 0;

  SlurmTopology topology() const {
    SlurmTopology found;
    found.leaves = static_cast<int>(leaves.size());
    found.leaf_nodes = usual(leaves);
    found.switches = switches;
    found.blocks = static_cast<int>(blocks.size());
    found.block_nodes = usual(blocks);
    std::int64_t nodes = 0;
    for (const int own : leaves.empty() ? blocks : leaves) nodes += own;
    found.nodes = static_cast<int>(std::min<std::int64_t>(nodes, kMostHosts));
    return found;
  }

  // Returns the most frequent size, of several the largest.
  static int usual(const std::vector<int>& sizes) {
    std::map<int, int> often;
    for (const int size : sizes) ++often[size];
    int best = 0, times = 0;
    for (const auto& [size, count] : often)
      if (count >= times) best = size, times = count;
    return best;
  }
};

void add_line(const std::string& line, const std::string& place, Groups& groups) {
  std::istringstream words(line);
  std::map<std::string, std::string> keys;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) refuse(place, "\"" + word + "\" is not KEY=VALUE");
    keys[lower(word.substr(0, equals))] = word.substr(equals + 1);
  }
  if (keys.contains("switchname")) {
    ++groups.switches;
    if (keys.contains("nodes")) groups.leaves.push_back(hosts_in(keys["nodes"], place));
  } else if (keys.contains("blockname") && keys.contains("nodes")) {
    groups.blocks.push_back(hosts_in(keys["nodes"], place));
  }
}

Groups read_conf(const std::string& text, const std::string& file) {
  Groups groups;
  std::istringstream stream(text);
  std::string whole;
  int number = 0, begin = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (whole.empty()) begin = number;
    if (const std::size_t hash = line.find('#'); hash != std::string::npos) line.resize(hash);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (line.ends_with('\\')) {  // goes on in the next line
      whole += line.substr(0, line.size() - 1) + " ";
      continue;
    }
    add_line(std::exchange(whole, "") + line, file + ":" + std::to_string(begin), groups);
  }
  add_line(whole, file + ":" + std::to_string(begin), groups);  // a last line that ends in "\"
  return groups;
}

const OrderedJson* child(const OrderedJson& value, const char* key) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(key);
  return found == value.end() ? nullptr : &*found;
}

// Appends the number of nodes of each entry that has a text "nodes".
void add_groups(const OrderedJson* entries, const std::string& file, std::vector<int>& sizes,
                int& all) {
  if (!entries || !entries->is_array()) return;
  for (const OrderedJson& entry : *entries) {
    ++all;
    if (const OrderedJson* nodes = child(entry, "nodes"); nodes && nodes->is_string())
      sizes.push_back(hosts_in(nodes->get<std::string>(), file));
  }
}

// topology.yaml: a list of topologies, of which the cluster's default one counts, else the first.
Groups read_yaml(const std::string& text, const std::string& file) {
  const OrderedJson whole = parse_config(text, file, ConfigFormat::yaml);
  if (!whole.is_array() || whole.empty()) refuse(file, "must be a list of topologies");
  const OrderedJson* chosen = &whole.front();
  for (const OrderedJson& topology : whole)
    if (const OrderedJson* is_default = child(topology, "cluster_default");
        is_default && is_default->is_string() && lower(is_default->get<std::string>()) == "true")
      chosen = &topology;
  Groups groups;
  int blocks = 0;
  if (const OrderedJson* tree = child(*chosen, "tree"))
    add_groups(child(*tree, "switches"), file, groups.leaves, groups.switches);
  if (const OrderedJson* block = child(*chosen, "block"))
    add_groups(child(*block, "blocks"), file, groups.blocks, blocks);
  return groups;
}

}  // namespace

int hosts_in(const std::string& list, const std::string& file) {
  std::int64_t all = 0;
  for (const std::string& name : names_of(list)) {
    std::int64_t here = 1;
    for (std::size_t at = 0; at < name.size();) {
      const std::size_t open = name.find_first_of("[]", at);
      if (open == std::string::npos) break;
      const std::size_t close = name.find_first_of("[]", open + 1);
      if (name[open] != '[' || close == std::string::npos || name[close] != ']')
        refuse(file, "\"" + name + "\" has brackets without their other half");
      here *= numbers_in(name.substr(open + 1, close - open - 1), file);
      if (here > kMostHosts) refuse(file, "has more than " + count_text(kMostHosts) + " nodes");
      at = close + 1;
    }
    all += here;
  }
  if (all == 0) refuse(file, "has a list of nodes without a name");
  if (all > kMostHosts) refuse(file, "has more than " + count_text(kMostHosts) + " nodes");
  return static_cast<int>(all);
}

SlurmTopology read_slurm_topology(const std::string& text, const std::string& file) {
  const bool yaml = file.ends_with(".yaml") || file.ends_with(".yml");
  const Groups groups = yaml ? read_yaml(text, file) : read_conf(text, file);
  const SlurmTopology topology = groups.topology();
  if (topology.nodes == 0) refuse(file, "lists no nodes");
  return topology;
}

}  // namespace polyphony::sim
