#include "sim/question/gpu_request.h"

#include <algorithm>
#include <cctype>

#include "shared/error.h"
#include "shared/hardware/devices.h"
#include "shared/text/json_form.h"

namespace polyphony::sim {
namespace {

constexpr const char* kGpuForms =
    "64x8xH100 is 64 nodes of 8, 512xH100 is 512 of them, ?xH100 asks";

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Words of product names that do not tell two shipped devices apart.
bool says_nothing(const std::string& word) {
  static const std::vector<std::string> words{
      "nvidia", "amd",  "instinct", "geforce", "tensor", "core",  "gpu",  "gpus", "sxm",
      "sxm2",   "sxm4", "sxm5",     "oam",     "hbm2",   "hbm2e", "hbm3", "hbm3e"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "NVIDIA A100-SXM4-40GB": "a100", "40".
std::vector<std::string> telling_words(const std::string& name) {
  std::vector<std::string> words{""};
  for (const char c : lower(name)) {
    if (c == ' ' || c == '-' || c == '_')
      words.emplace_back();
    else
      words.back() += c;
  }
  std::vector<std::string> telling;
  for (std::string word : words) {
    if (word.size() > 2 && word.ends_with("gb")) word.resize(word.size() - 2);
    if (!word.empty() && !says_nothing(word)) telling.push_back(word);
  }
  return telling;
}

// Returns whether a number is the size of the device's memory on its data sheet, which exceeds what
// a program can allocate by less than a tenth.
bool is_memory(const std::string& word, const Device& device) {
  const double stated = std::atof(word.c_str()),
               usable = static_cast<double>(device.memory.value) / (1 << 30);
  return stated >= usable && stated <= usable * 1.1;
}

// Returns the shipped device. Of several that a name may mean, A100-40 and A100-80, the one with
// the most memory.
const ShippedDevice* device_of(const std::string& name, GpuRequest& request) {
  if (const ShippedDevice* exact = find_device(name)) return exact;
  const std::vector<std::string> words = telling_words(name);
  const ShippedDevice* best = nullptr;
  std::vector<std::string> meant;
  for (const ShippedDevice& shipped : shipped_devices()) {
    const std::vector<std::string> own = telling_words(shipped.device.name);
    std::size_t known = 0;
    const bool fits = std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      const bool same = std::find(own.begin(), own.end(), word) != own.end();
      known += same ? 1 : 0;
      return same || is_memory(word, shipped.device);
    });
    if (!fits || known == 0) continue;
    meant.push_back(shipped.device.name);
    if (!best || best->device.memory < shipped.device.memory) best = &shipped;
  }
  if (meant.size() > 1) {
    std::erase(meant, best->device.name);
    request.assumed.push_back("\"" + name + "\" is " + best->device.name + ", not " +
                              joined(meant));
  }
  return best;
}

// Cuts "64x8xH100" at the "x" that follow numbers or "?".
std::vector<std::string> parts_of(std::string text) {
  for (std::size_t at; (at = text.find("×")) != std::string::npos;) text.replace(at, 2, "x");
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = begin;
    while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) ||
                                 text[end] == '?' || text[end] == ' '))
      ++end;
    if (end == begin || end == text.size() ||
        !(text[end] == 'x' || text[end] == 'X' || text[end] == '*'))
      break;
    std::string part = text.substr(begin, end - begin);
    std::erase(part, ' ');
    parts.push_back(part);
    begin = end + 1;
  }
  std::string rest = text.substr(begin);
  rest.erase(0, rest.find_first_not_of(' '));
  while (rest.ends_with(' ')) rest.pop_back();
  parts.push_back(rest);
  return parts;
}

int whole(const std::string& part, const std::string& text, const std::string& option) {
  constexpr int kMost = 1 << 20;
  int value = 0;
  for (const char c : part)
    value = std::isdigit(static_cast<unsigned char>(c)) && value < kMost ? value * 10 + (c - '0')
                                                                         : kMost + 1;
  if (part.empty() || value < 1 || value > kMost)
    throw InputError(option, "",
                     "\"" + text + "\" has no number of nodes and accelerators (1 to " +
                         std::to_string(kMost) + ")",
                     kGpuForms);
  return value;
}

}  // namespace

GpuRequest parse_gpus(const std::string& text, const std::string& option) {
  const std::vector<std::string> parts = parts_of(text);
  GpuRequest request;
  const std::string& name = parts.back();
  const ShippedDevice* device = device_of(name, request);
  if (!device && !is_profile_file(name))
    throw InputError(option, "",
                     name.empty() ? "\"" + text + "\" names no accelerator"
                                  : "there is no accelerator \"" + name + "\"",
                     suggest(name, device_names()) +
                         " Or write the path of a device file (.json); " + kGpuForms);
  if (parts.size() > 3)
    throw InputError(option, "", "\"" + text + "\" has more than two numbers", kGpuForms);
  request.device = device ? device->device.name : name;
  constexpr int kUsualNode = 8;
  int usual = kUsualNode;
  if (device)
    for (const NamedNode& node : device->nodes)  // of racks and trays, the tray
      usual = &node == &device->nodes.front() ? node.ranks : std::min(usual, node.ranks);
  request.least = parts.size() > 1 && parts.front() == "?";
  if (request.least) {
    request.per_node = parts.size() == 3 ? whole(parts[1], text, option) : usual;
  } else if (parts.size() == 3) {
    request.nodes = whole(parts[0], text, option);
    request.per_node = whole(parts[1], text, option);
  } else if (parts.size() == 2) {
    const int all = whole(parts[0], text, option);
    request.per_node = std::min(all, usual);
    if (all % request.per_node != 0)
      throw InputError(option, "",
                       std::to_string(all) + " are not whole nodes of " + std::to_string(usual),
                       "state nodes and accelerators per node: 3x4x" + name);
    request.nodes = all / request.per_node;
    if (request.nodes > 1)
      request.assumed.push_back("nodes of " + std::to_string(usual) + " " + request.device);
  }
  if (device)
    for (const NamedNode& node : device->nodes)
      if (node.ranks == request.per_node) request.node = node.name;
  return request;
}

}  // namespace polyphony::sim
