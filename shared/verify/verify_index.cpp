// Checks ids and ranges: each lies inside its table, and every op uses streams, buffers, messages
// and parameters of its own rank only.
#include <algorithm>

#include "shared/verify/verify_checks.h"

namespace polyphony {
namespace {

class IndexCheck {
 public:
  IndexCheck(const Program& program, Faults& faults) : program_(program), faults_(faults) {
    for (const Module& module : program.model.modules) stacks_.push_back(layers(module).size());
  }

  void run() {
    check_sizes();
    if (!faults_.empty()) return;
    check_tables();
    if (!faults_.empty()) return;
    for (std::size_t rank = 0; rank < program_.rank_ops.size(); ++rank) {
      const Range range = program_.rank_ops[rank];
      for (std::uint32_t op = range.begin; op < range.end; ++op) check_op(Rank(rank), OpId(op));
    }
  }

 private:
  void bad(const std::string& text) { faults_.add(FaultKind::bad_index, text); }

  static std::string numbered(const char* what, std::size_t i) {
    return std::string(what) + " " + std::to_string(i);
  }
  template <class Tag, class T>
  bool inside(Id<Tag> id, const std::vector<T>& table) const {
    return id.value < table.size();
  }
  template <class T>
  bool inside(Range range, const std::vector<T>& table) const {
    return range.begin <= range.end && range.end <= table.size();
  }
  bool inside(Rank rank) const { return rank.value < program_.ranks; }

  void check_sizes() {
    if (program_.rank_ops.size() != program_.ranks) {
      bad(std::to_string(program_.rank_ops.size()) + " ranks have ops, but the Program has " +
          std::to_string(program_.ranks));
    }
    std::uint32_t next = 0;
    for (std::size_t rank = 0; rank < program_.rank_ops.size(); ++rank) {
      const Range range = program_.rank_ops[rank];
      if (range.begin != next || range.end < next)
        bad(numbered("the ops of rank", rank) + " do not follow those of the previous rank");
      next = range.end;
    }
    if (next != program_.ops.size()) bad("not every op belongs to a rank");
    if (program_.sizes.size() != program_.works.size() * program_.model.modules.size()) {
      bad("sizes must have works × modules entries");
    }
  }

  void check_tables() {
    const Program& p = program_;
    for (std::size_t i = 0; i < p.streams.size(); ++i) {
      if (!inside(p.streams[i].rank)) bad(numbered("stream", i) + ": no such rank");
    }
    for (std::size_t i = 0; i < p.groups.size(); ++i) {
      std::vector<Rank> members = p.groups[i].members;
      std::sort(members.begin(), members.end());
      const bool twice = std::adjacent_find(members.begin(), members.end()) != members.end();
      if (members.empty() || twice || !inside(members.back())) {
        bad(numbered("group", i) + ": empty, duplicate member, or no such rank");
      }
      members_.push_back(std::move(members));
    }
    for (std::size_t i = 0; i < p.buffers.size(); ++i) {
      if (!inside(p.buffers[i].rank)) bad(numbered("buffer", i) + ": no such rank");
    }
    for (std::size_t i = 0; i < p.messages.size(); ++i) check_message(i);
    for (std::size_t i = 0; i < p.params.size(); ++i) check_params(i);
    for (std::size_t i = 0; i < p.works.size(); ++i) {
      if (!inside(p.works[i].samples, p.work_samples))
        bad(numbered("work", i) + ": no such samples");
    }
    for (const std::uint32_t sample : p.work_samples) {
      if (sample >= p.batch.samples.size())
        bad(numbered("work sample", sample) + ": not in the batch");
    }
    for (const MessageId message : p.exchange_messages) {
      if (!inside(message, p.messages))
        bad(numbered("message", message.value) + ": does not exist");
    }
    for (const BufferUse& use : p.buffer_uses) {
      if (!inside(use.buffer, p.buffers))
        bad(numbered("buffer", use.buffer.value) + ": does not exist");
    }
  }

  void check_message(std::size_t i) {
    const Message& message = program_.messages[i];
    if (!inside(message.from, program_.buffers) || !inside(message.to, program_.buffers)) {
      bad(numbered("message", i) + ": no such buffer");
    } else if (program_.buffers[message.from.value].rank != message.source ||
               program_.buffers[message.to.value].rank != message.destination) {
      bad(numbered("message", i) + ": its buffers are on other ranks");
    }
  }

  void check_params(std::size_t i) {
    const ParamGroup& params = program_.params[i];
    if (!inside(params.rank) || !inside(params.module, program_.model.modules)) {
      bad(numbered("parameter group", i) + ": no such rank or module");
    }
    if (params.replicas.valid() && !is_member(params.replicas, params.rank)) {
      bad(numbered("parameter group", i) + ": its rank is not among its replicas");
    }
  }

  bool is_member(GroupId group, Rank rank) const {
    if (!inside(group, program_.groups)) return false;
    const std::vector<Rank>& members = members_[group.value];
    return std::binary_search(members.begin(), members.end(), rank);
  }

  // An op for fault messages; its text is made only if there is a fault.
  struct Here {
    OpId op;
    Rank rank;
    std::string text() const { return numbered("op", op.value) + numbered(" of rank", rank.value); }
  };

  void check_op(Rank rank, OpId id) {
    const Op& op = program_.ops[id.value];
    const Here here{id, rank};
    if (!inside(op.stream, program_.streams) || program_.rank_of(op) != rank) {
      bad(here.text() + ": its stream is not one of the rank's");
      return;
    }
    if (op.group.valid() && !is_member(op.group, rank))
      bad(here.text() + ": not a member of its group");
    if (!inside(op.waits_for, program_.waits) || !inside(op.buffers, program_.buffer_uses)) {
      bad(here.text() + ": waits or buffers outside their tables");
      return;
    }
    const Range own = program_.rank_ops[rank.value];
    for (std::uint32_t i = op.waits_for.begin; i < op.waits_for.end; ++i) {
      const std::uint32_t before = program_.waits[i].value;
      if (before < own.begin || before >= own.end) {
        bad(here.text() + ": waits for an op of another rank");
      }
    }
    for (std::uint32_t i = op.buffers.begin; i < op.buffers.end; ++i) {
      if (program_.buffers[program_.buffer_uses[i].buffer.value].rank != rank) {
        bad(here.text() + ": uses a buffer of another rank");
      }
    }
    std::visit([&](const auto& what) { check_what(rank, here, what); }, op.what);
  }

  void check_what(Rank, const Here& here, const Compute& compute) {
    if (!inside(compute.module, program_.model.modules) || !inside(compute.work, program_.works)) {
      bad(here.text() + ": no such module or work");
      return;
    }
    const std::size_t stack = stacks_[compute.module.value];
    if (compute.layers.begin > compute.layers.end || compute.layers.end > stack) {
      bad(here.text() + ": layers outside the module's stack of " + std::to_string(stack));
    }
  }

  void check_what(Rank rank, const Here& here, const Exchange& exchange) {
    if (!inside(exchange.messages, program_.exchange_messages)) {
      bad(here.text() + ": messages outside their table");
      return;
    }
    for (std::uint32_t i = exchange.messages.begin; i < exchange.messages.end; ++i) {
      const Message& message = program_.messages[program_.exchange_messages[i].value];
      if ((exchange.sends ? message.source : message.destination) != rank) {
        bad(here.text() + ": " + (exchange.sends ? "sends" : "receives") +
            " another rank's message");
      }
    }
  }

  void check_what(Rank rank, const Here& here, const Collective& collective) {
    if (!is_member(collective.group, rank)) bad(here.text() + ": not a member of its group");
    if (collective.sequence >= program_.ops.size()) bad(here.text() + ": sequence out of range");
    if (collective.params.valid() && (!inside(collective.params, program_.params) ||
                                      program_.params[collective.params.value].rank != rank)) {
      bad(here.text() + ": reduces parameters of another rank");
    }
  }

  // A copy must read and write its number of bytes.
  void check_what(Rank, const Here& here, const HostCopy& copy) {
    if (!inside(copy.module, program_.model.modules) || !inside(copy.work, program_.works)) {
      bad(here.text() + ": no such module or work");
      return;
    }
    const Range uses = program_.ops[here.op.value].buffers;
    Bytes read{}, written{};
    for (std::uint32_t i = uses.begin; i < uses.end; ++i) {
      const BufferUse& use = program_.buffer_uses[i];
      const Buffer& buffer = program_.buffers[use.buffer.value];
      const bool host = buffer.kind == BufferKind::host;
      if (!host && buffer.kind != BufferKind::tape)
        bad(here.text() + ": copies a buffer that has no saved activations");
      if (use.use == Use::read && host != copy.to_host) read += buffer.bytes;
      if (use.use == Use::write && host == copy.to_host) written += buffer.bytes;
    }
    if (read != copy.bytes || written != copy.bytes)
      bad(here.text() + ": copies " + std::to_string(copy.bytes.value) + " bytes of " +
          std::to_string(read.value) + " into " + std::to_string(written.value));
  }

  void check_what(Rank rank, const Here& here, const Update& update) {
    if (!inside(update.params, program_.params)) {
      bad(here.text() + ": parameter groups outside their table");
      return;
    }
    for (std::uint32_t i = update.params.begin; i < update.params.end; ++i) {
      if (program_.params[i].rank != rank)
        bad(here.text() + ": updates parameters of another rank");
    }
  }

  const Program& program_;
  Faults& faults_;
  std::vector<std::size_t> stacks_;         // layers by module
  std::vector<std::vector<Rank>> members_;  // by group, sorted
};

}  // namespace

void check_indices(const Program& program, Faults& faults) { IndexCheck(program, faults).run(); }

}  // namespace polyphony
