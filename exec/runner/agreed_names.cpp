#include "exec/runner/agreed_names.h"

#include <map>
#include <utility>

#include "shared/fnv.h"

namespace polyphony::exec {

std::vector<std::string> group_names(const Program& program) {
  std::vector<std::string> names;
  std::map<std::string, int> alike;
  for (const Group& group : program.groups) {
    Fnv members;
    for (const Rank rank : group.members) members.add(std::uint64_t{rank.value});
    const std::string name = polyphony::name(group.kind) + std::string(".") + members.digits();
    names.push_back(name + "." + std::to_string(alike[name]++));
  }
  return names;
}

std::vector<std::uint32_t> message_tags(const Program& program, Rank rank) {
  std::vector<std::uint32_t> tags;
  std::map<std::pair<Rank, bool>, std::uint32_t> before;  // by peer and direction
  for (const Message& message : program.messages) {
    const bool sends = message.source == rank, mine = sends || message.destination == rank;
    tags.push_back(mine ? before[{sends ? message.destination : message.source, sends}]++ : 0);
  }
  return tags;
}

}  // namespace polyphony::exec
