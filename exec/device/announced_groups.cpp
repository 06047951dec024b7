#include "exec/device/announced_groups.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include "shared/error.h"

namespace polyphony::exec {

std::string words(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "" : " ") + std::to_string(rank.value);
  return text;
}

namespace {

struct Said {
  NamedGroup group;
  std::vector<Rank> by;  // ascending
};

void check(const Said& said, std::size_t ranks) {
  const auto& [group, by] = said;
  const std::string text = "group " + group.name + " of ranks " + words(group.members) + ": rank ";
  std::vector<Rank> members = group.members;
  std::sort(members.begin(), members.end());
  POLYPHONY_CHECK(std::adjacent_find(members.begin(), members.end()) == members.end() &&
                      (members.empty() || members.back().value < ranks),
                  text << "listed twice, or not below " << ranks);
  std::vector<Rank> missing, besides;
  std::set_difference(members.begin(), members.end(), by.begin(), by.end(),
                      std::back_inserter(missing));
  std::set_difference(by.begin(), by.end(), members.begin(), members.end(),
                      std::back_inserter(besides));
  POLYPHONY_CHECK(missing.empty(), text << words(missing) << " does not make it");
  POLYPHONY_CHECK(besides.empty(), text << words(besides) << " makes it but is not a member");
}

}  // namespace

std::string announcement(Rank self, const std::vector<NamedGroup>& mine) {
  std::string text;
  for (const NamedGroup& group : mine) {
    POLYPHONY_CHECK(
        group.name.find_first_of("\t\n") == std::string::npos && !group.members.empty(),
        "group \"" << group.name << "\" has no members, or a tab or newline in its name");
    text += group.name + "\t" + (group.members.front() == self ? words(group.members) : "") + "\n";
  }
  return text;
}

std::vector<NamedGroup> agreed_groups(const std::vector<std::string>& announcements) {
  std::map<std::string, std::size_t> ids;
  std::vector<Said> groups;
  std::vector<std::istringstream> texts;
  for (const std::string& text : announcements) texts.emplace_back(text);
  // The first groups of all ranks, then the second ones, and so on: similar groups are then
  // adjacent, and fill rounds well.
  for (bool more = true; more;) {
    more = false;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      std::string name, members;
      if (!std::getline(texts[rank], name, '\t') || !std::getline(texts[rank], members)) continue;
      more = true;
      const auto [found, fresh] = ids.try_emplace(name, groups.size());
      if (fresh) groups.push_back({{name, {}}, {}});
      Said& said = groups[found->second];
      said.by.emplace_back(rank);
      std::istringstream list(members);
      for (std::size_t member = 0; list >> member;) said.group.members.emplace_back(member);
    }
  }
  std::vector<NamedGroup> all;
  for (Said& said : groups) {
    std::sort(said.by.begin(), said.by.end());
    check(said, announcements.size());
    all.push_back(std::move(said.group));
  }
  return all;
}

std::vector<NamedGroup> announced_by_all(Transport& host, const std::string& name,
                                         const std::vector<NamedGroup>& mine) {
  const auto ranks = static_cast<std::size_t>(host.world_size());
  const auto group = host.make_group(name, everyone(host));
  const std::string text = announcement(host.rank(), mine);
  constexpr std::size_t kWord = sizeof(std::int64_t);
  const auto words = static_cast<std::int64_t>((text.size() + kWord - 1) / kWord);
  torch::Tensor sizes = torch::empty({2 * host.world_size()}, torch::kInt64);
  const torch::Tensor size =
      torch::tensor({words, static_cast<std::int64_t>(text.size())}, torch::kInt64);
  group->all_gather(size, sizes, std::vector<std::int64_t>(ranks, 2));
  std::vector<std::int64_t> counts;
  std::int64_t total = 0;
  const auto* said = sizes.const_data_ptr<std::int64_t>();
  for (std::size_t rank = 0; rank < ranks; ++rank) total += counts.emplace_back(said[2 * rank]);
  torch::Tensor own = torch::zeros({words}, torch::kInt64),
                all = torch::empty({total}, torch::kInt64);
  if (!text.empty()) std::memcpy(own.data_ptr(), text.data(), text.size());
  group->all_gather(own, all, counts);
  std::vector<std::string> announcements;
  const auto* at = static_cast<const char*>(all.const_data_ptr());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    announcements.emplace_back(at, static_cast<std::size_t>(said[2 * rank + 1]));
    at += static_cast<std::size_t>(counts[rank]) * kWord;
  }
  return agreed_groups(announcements);
}

}  // namespace polyphony::exec
