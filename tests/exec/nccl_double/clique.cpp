#include "tests/exec/nccl_double/clique.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tests/exec/nccl_double/communicator.h"

namespace polyphony::exec::testing::nccl {

bool Clique::complete() const {
  return std::none_of(members.begin(), members.end(),
                      [](const ncclComm* one) { return one == nullptr || one->ends(); });
}

void make_parts(const Clique& parent, Split& split) {
  Library& all = library();
  split.made.resize(parent.size());
  std::map<int, std::vector<std::size_t>> colors;
  for (std::size_t rank = 0; rank < parent.size(); ++rank)
    if (const int color = split.parts[rank]->color; color >= 0) colors[color].push_back(rank);
  for (auto& [color, ranks] : colors) {
    // By key; ranks of the same key keep the parent's order.
    std::stable_sort(ranks.begin(), ranks.end(), [&](std::size_t a, std::size_t b) {
      return split.parts[a]->key < split.parts[b]->key;
    });
    const auto clique = std::make_shared<Clique>();
    clique->name = parent.name + ", split " + std::to_string(parent.splits.size()) + ", color " +
                   std::to_string(color);
    for (const std::size_t rank : ranks) {
      auto fresh = std::make_unique<ncclComm>();
      fresh->clique = clique;
      fresh->rank = static_cast<int>(clique->members.size());
      fresh->device = parent.members[rank]->device;
      fresh->blocking = split.parts[rank]->blocking;
      fresh->state = ncclSuccess;
      clique->members.push_back(fresh.get());
      split.made[rank] = fresh.get();
      all.communicators.push_back(std::move(fresh));
    }
    ++all.made.communicators;
  }
  ++all.made.splits;
  split.done = true;
}

namespace {

[[noreturn]] void fail(const Operation& operation, const std::string& text) {
  mistaken(ncclInternalError, operation.call, operation.communicator, text);
  operation.communicator->state = ncclInternalError;
  library().changed.notify_all();
  throw std::runtime_error(library().mistakes.back());
}

// A kernel of break_next_kernel() waits until its communicator is aborted.
bool broke(Lock& lock, const Operation& operation) {
  ncclComm& on = *operation.communicator;
  const auto found = library().breaks.find(on.device);
  if (found == library().breaks.end() ||
      static_cast<std::size_t>(found->second) != on.clique->size())
    return false;
  library().breaks.erase(found);
  on.state = ncclRemoteError;
  failed(ncclRemoteError, "planted");
  bool late = false;
  wait(lock, on, [] { return false; }, late);
  if (late) fail(operation, "its communicator failed, and was not aborted");
  return true;
}

// Waits for the other ends of a meeting. Returns false if the communicator was aborted.
bool met(Lock& lock, const Operation& operation, Meeting& meeting, std::size_t end,
         const std::string& what) {
  ncclComm& on = *operation.communicator;
  bool late = false;
  const bool came = wait(lock, on, [&] { return meeting.done || !meeting.error.empty(); }, late);
  if (!meeting.error.empty()) fail(operation, meeting.error);
  if (came) return true;
  const bool collective = operation.kind == Kind::collective;
  const std::string absent =
      collective ? on.clique->ranks([&](std::size_t rank) { return !meeting.parts[rank]; })
                 : "rank " + std::to_string(operation.root);
  meeting.parts[end] = nullptr;
  --meeting.came;
  if (late) fail(operation, absent + " did not come to " + what);
  return false;
}

}  // namespace

void run_collective(const Operation& operation, std::int64_t number) {
  Lock lock(library().mutex);
  ncclComm& on = *operation.communicator;
  if (on.ends() || broke(lock, operation)) return;
  Meeting& meeting = on.clique->collectives[number];
  meeting.parts.resize(on.clique->size());
  const auto rank = static_cast<std::size_t>(on.rank);
  const std::string what = operation.words() + " (collective " + std::to_string(number) + ")";
  for (const Operation* other : meeting.parts)
    if (other != nullptr && other->words() != operation.words())
      meeting.error = what + ", where " + other->communicator->name() + " calls " + other->words();
  meeting.parts[rank] = &operation;
  if (++meeting.came == on.clique->size() && meeting.error.empty()) {
    compute(meeting.parts);
    meeting.done = true;
  }
  library().changed.notify_all();
  if (!met(lock, operation, meeting, rank, what)) return;
  if (const std::string gone = overwritten(operation); !gone.empty()) fail(operation, gone);
  if (++meeting.left == on.clique->size()) on.clique->collectives.erase(number);
}

namespace {

struct End {
  const Operation* operation;
  Meeting* meeting;
  std::tuple<int, int, std::int64_t> key;
  std::string what;
};

End come(const Operation& operation, std::int64_t number) {
  ncclComm& on = *operation.communicator;
  const bool sends = operation.kind == Kind::send;
  const int from = sends ? on.rank : operation.root, to = sends ? operation.root : on.rank;
  End end{&operation,
          nullptr,
          {from, to, number},
          "message " + std::to_string(number) + " from " + std::to_string(from) + " to " +
              std::to_string(to)};
  end.meeting = &on.clique->messages[end.key];
  Meeting& meeting = *end.meeting;
  meeting.parts.resize(2);
  meeting.parts[sends ? 0 : 1] = &operation;
  if (++meeting.came < 2) return end;
  const Operation &out = *meeting.parts[0], &in = *meeting.parts[1];
  if (out.count != in.count || out.type != in.type)
    meeting.error = end.what + " is " + out.words() + " and " + in.words();
  else
    std::memmove(in.to, out.from, out.read * size_of(out.type));
  meeting.done = meeting.error.empty();
  return end;
}

}  // namespace

void run_messages(const std::vector<std::pair<Operation, std::int64_t>>& messages) {
  Lock lock(library().mutex);
  const Operation& first = messages.front().first;
  Clique& clique = *first.communicator->clique;
  if (first.communicator->ends() || broke(lock, first)) return;
  std::vector<End> ends;
  for (const auto& [operation, number] : messages) ends.push_back(come(operation, number));
  library().changed.notify_all();
  bool aborted = false;
  for (const End& end : ends) {
    const std::size_t side = end.operation->kind == Kind::send ? 0 : 1;
    aborted |= !met(lock, *end.operation, *end.meeting, side, end.what);
  }
  if (aborted) return;
  for (const End& end : ends) {
    if (const std::string gone = overwritten(*end.operation); !gone.empty())
      fail(*end.operation, gone);
    if (++end.meeting->left == 2) clique.messages.erase(end.key);
  }
}

}  // namespace polyphony::exec::testing::nccl
