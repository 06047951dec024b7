#include "shared/files/free_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>

#include "shared/error.h"
#include "shared/files/whole.h"

namespace polyphony {
namespace {

std::string text_of(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return "";
  try {
    return read_file(path);
  } catch (const InputError&) {
    return "";
  }
}

// The number after `key` at the start of a line ("MemAvailable:   12 kB", "inactive_file 12").
std::optional<std::int64_t> value_of(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return {};
}

std::optional<std::int64_t> number_in(const std::string& path) {
  std::istringstream words(text_of(path));
  std::int64_t value = 0;
  if (words >> value) return value;  // "max" is no number: no limit
  return {};
}

// What one control group leaves. Cached file pages count as free: the kernel drops them when memory
// is short.
std::optional<std::int64_t> left_in(const std::string& folder, const char* limit, const char* usage,
                                    const char* cached) {
  const auto most = number_in(folder + "/" + limit), used = number_in(folder + "/" + usage);
  if (!most || !used) return {};
  return std::max<std::int64_t>(
      0, *most - *used + value_of(text_of(folder + "/memory.stat"), cached).value_or(0));
}

// Applies the limits of the process's group and of the groups around it. In a container the path
// may be the host's; the container's own group is then at the top.
void add_groups(const std::string& mount, std::filesystem::path group, const char* limit,
                const char* usage, const char* cached, std::int64_t& least) {
  for (;; group = group.parent_path()) {
    if (const auto left = left_in(mount + group.string(), limit, usage, cached))
      least = std::min(least, *left);
    if (!group.has_relative_path()) return;
  }
}

}  // namespace

Bytes free_memory(const std::string& root) {
  constexpr std::int64_t kUnknown = INT64_MAX, kKiB = 1024;
  std::int64_t least = kUnknown;
  if (const auto available = value_of(text_of(root + "/proc/meminfo"), "MemAvailable:"))
    least = *available * kKiB;
  std::istringstream groups(text_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (kinds == ",,")
      add_groups(root + "/sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file",
                 least);
    else if (kinds.find(",memory,") != std::string::npos)
      add_groups(root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                 "memory.usage_in_bytes", "total_inactive_file", least);
  }
  rlimit addresses{};
  if (root.empty() && ::getrlimit(RLIMIT_AS, &addresses) == 0 &&
      addresses.rlim_cur != RLIM_INFINITY) {
    const std::int64_t held = value_of(text_of("/proc/self/status"), "VmSize:").value_or(0) * kKiB;
    least = std::min(
        least, std::max<std::int64_t>(1, static_cast<std::int64_t>(addresses.rlim_cur) - held));
  }
  return Bytes(least == kUnknown ? 0 : std::max<std::int64_t>(1, least));
}

}  // namespace polyphony
