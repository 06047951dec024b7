// Reads and simulates execution traces, independently of the writer: the result of a simulator that
// uses every recorded duration. A node starts when its dependencies have ended; the two ends of a
// message (source, destination, tag) start together, and so do all members' nth collective of a
// process group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace polyphony::traces::test {

// Fields of a message by number: numbers and texts in the order of the message.
struct Fields {
  std::map<int, std::vector<std::uint64_t>> numbers;
  std::map<int, std::vector<std::string>> texts;
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  bool done() const { return at_ == bytes_.size(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      if (done() || shift > 63) throw std::runtime_error("a varint that does not end");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  std::string piece() {
    const std::uint64_t size = varint();
    if (size > bytes_.size() - at_) throw std::runtime_error("a piece that ends early");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  Fields message() {
    Fields fields;
    while (!done()) {
      const std::uint64_t key = varint();
      const int field = static_cast<int>(key >> 3);
      if ((key & 7) == 0)
        fields.numbers[field].push_back(varint());
      else if ((key & 7) == 2)
        fields.texts[field].push_back(piece());
      else
        throw std::runtime_error("a wire type that is not used");
    }
    return fields;
  }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};
inline Fields parse(const std::string& bytes) { return Reader(bytes).message(); }

struct GraphNode {
  std::uint64_t id = 0, type = 0, micros = 0, nanos = 0;
  std::string name;
  std::vector<std::uint64_t> after;
  std::map<std::string, std::uint64_t> numbers;  // attributes
  std::map<std::string, std::string> texts;
};

inline std::map<std::string, std::string> head_texts(const std::string& file) {
  Reader reader(file);
  const std::string piece = reader.piece();
  const Fields head = parse(piece);
  std::map<std::string, std::string> result{{"version", head.texts.at(1).at(0)}};
  for (const std::string& attribute : head.texts.at(2)) {
    const Fields fields = parse(attribute);
    result[fields.texts.at(1).at(0)] = fields.texts.contains(29)
                                           ? fields.texts.at(29).at(0)
                                           : std::to_string(fields.numbers.at(9).at(0));
  }
  return result;
}

inline std::vector<GraphNode> read_graph(const std::string& file) {
  Reader reader(file);
  reader.piece();  // the header
  std::vector<GraphNode> nodes;
  while (!reader.done()) {
    const std::string piece = reader.piece();
    const Fields fields = parse(piece);
    GraphNode node;
    node.id = fields.numbers.at(1).at(0);
    node.name = fields.texts.at(2).at(0);
    node.type = fields.numbers.at(3).at(0);
    node.micros = fields.numbers.at(7).at(0);
    if (fields.texts.contains(5)) {
      const std::string& packed = fields.texts.at(5).at(0);
      for (Reader inside(packed); !inside.done();) node.after.push_back(inside.varint());
    }
    for (const std::string& attribute : fields.texts.at(10)) {
      const Fields value = parse(attribute);
      const std::string& name = value.texts.at(1).at(0);
      for (const auto& [field, numbers] : value.numbers) node.numbers[name] = numbers.at(0);
      if (value.texts.contains(29)) node.texts[name] = value.texts.at(29).at(0);
    }
    node.nanos = node.numbers.at("duration_nanos");
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// Returns the end of the last node; 0 if nodes wait for each other.
inline std::uint64_t play(const std::vector<std::vector<GraphNode>>& ranks, bool nanoseconds) {
  struct State {
    std::vector<std::size_t> next;
    std::size_t waiting = 0;
    std::uint64_t ready = 0;
  };
  struct Flat {
    const GraphNode* node;
    std::size_t meeting;
  };
  std::vector<Flat> nodes;
  std::vector<State> states;
  std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> at;  // rank, id
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t>, std::size_t> known;
  std::vector<std::vector<std::size_t>> of_meeting;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::map<std::string, std::uint64_t> calls;
    std::vector<const GraphNode*> order;
    for (const GraphNode& node : ranks[rank]) order.push_back(&node);
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->id < b->id; });
    for (const GraphNode* node : order) {
      std::size_t meeting = of_meeting.size();
      if (node->type == 5 || node->type == 6)
        meeting = known
                      .try_emplace({"", node->numbers.at("comm_src"), node->numbers.at("comm_dst"),
                                    node->numbers.at("comm_tag")},
                                   meeting)
                      .first->second;
      if (node->type == 7) {
        const std::string& group = node->texts.at("pg_name");
        meeting = known.try_emplace({group, calls[group]++, 0, 0}, meeting).first->second;
      }
      if (meeting == of_meeting.size()) of_meeting.emplace_back();
      of_meeting[meeting].push_back(nodes.size());
      at[{rank, node->id}] = nodes.size();
      nodes.push_back({node, meeting});
    }
  }
  states.resize(nodes.size());
  for (const auto& [key, index] : at) {
    for (const std::uint64_t before : nodes[index].node->after)
      states[at.at({key.first, before})].next.push_back(index);
    states[index].waiting = nodes[index].node->after.size();
  }
  std::vector<std::size_t> missing(of_meeting.size());
  std::vector<std::uint64_t> start(of_meeting.size(), 0);
  std::vector<std::size_t> free;
  for (std::size_t m = 0; m < of_meeting.size(); ++m) missing[m] = of_meeting[m].size();
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (states[i].waiting == 0) free.push_back(i);
  std::uint64_t last = 0;
  std::size_t played = 0;
  while (!free.empty()) {
    const std::size_t index = free.back();
    free.pop_back();
    const std::size_t meeting = nodes[index].meeting;
    start[meeting] = std::max(start[meeting], states[index].ready);
    if (--missing[meeting] > 0) continue;
    for (const std::size_t member : of_meeting[meeting]) {
      ++played;
      const GraphNode& node = *nodes[member].node;
      const std::uint64_t end = start[meeting] + (nanoseconds ? node.nanos : node.micros);
      last = std::max(last, end);
      for (const std::size_t next : states[member].next) {
        states[next].ready = std::max(states[next].ready, end);
        if (--states[next].waiting == 0) free.push_back(next);
      }
    }
  }
  return played == nodes.size() ? last : 0;
}

}  // namespace polyphony::traces::test
