// Making and ending communicators in the double of NCCL.
#include <cstring>

#include "tests/exec/nccl_double/communicator.h"

namespace polyphony::exec::testing::nccl {

namespace {

// Returns what is wrong with the configuration; empty if nothing is. As parseCommConfig() in NCCL's
// src/init.cc, but every version other than this header's is wrong.
std::string wrong_config(const ncclConfig_t& config) {
  const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
  if (config.magic != fresh.magic || config.size != fresh.size || config.version != fresh.version)
    return "a configuration that NCCL_CONFIG_INITIALIZER has not initialized";
  const auto is_set = [](int value) { return value != NCCL_CONFIG_UNDEF_INT; };
  const auto is_switch = [&](int value) { return !is_set(value) || value == 0 || value == 1; };
  if (!is_switch(config.blocking)) return "blocking is neither 0 nor 1";
  if (!is_switch(config.splitShare)) return "splitShare is neither 0 nor 1";
  if (is_set(config.cgaClusterSize) && (config.cgaClusterSize < 0 || config.cgaClusterSize > 8))
    return "cgaClusterSize is not from 0 to 8";
  if ((is_set(config.minCTAs) && config.minCTAs <= 0) ||
      (is_set(config.maxCTAs) && config.maxCTAs <= 0) || config.minCTAs > config.maxCTAs)
    return "minCTAs and maxCTAs are no range";
  return {};
}

bool blocks(const ncclConfig_t& config) { return config.blocking != 0; }

// What all ranks of a new communicator give.
struct Given {
  int size, rank, count;
  const ncclUniqueId* ids;
};

std::string wrong_join(const Given& given, const Library& all) {
  if (given.size < 1 || given.rank < 0 || given.rank >= given.size)
    return "rank " + std::to_string(given.rank) + " of " + std::to_string(given.size);
  if (given.count < 1 || given.count > given.size || given.ids == nullptr)
    return std::to_string(given.count) + " unique ids for " + std::to_string(given.size) + " ranks";
  for (int i = 0; i < given.count; ++i)
    if (!all.ids.contains({given.ids[i].internal, sizeof(given.ids[i].internal)}))
      return "not a unique id of ncclGetUniqueId";
  return {};
}

// With the lock held: this rank comes. Returns what is wrong; empty if nothing is.
std::string join(ncclComm& made, const Given& given) {
  Library& all = library();
  std::string key;
  for (int i = 0; i < given.count; ++i)
    key.append(given.ids[i].internal, sizeof(given.ids[i].internal));
  std::shared_ptr<Clique>& clique = all.joining[key];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->name = "communicator " + std::to_string(++all.cliques);
    clique->members.resize(static_cast<std::size_t>(given.size));
    for (int i = 0; i < given.count; ++i) {
      std::string& user = all.ids[{given.ids[i].internal, sizeof(given.ids[i].internal)}];
      if (!user.empty()) return "its unique id was used before, by " + user;
      user = clique->name;
    }
  }
  made.clique = clique;
  made.rank = given.rank;
  if (clique->size() != static_cast<std::size_t>(given.size))
    return std::to_string(given.size) + " ranks, where another gives " +
           std::to_string(clique->size());
  for (const ncclComm* other : clique->members)
    if (other != nullptr && other->device == made.device)
      return "rank " + std::to_string(other->rank) + " is on the same device " +
             std::to_string(int{made.device});
  ncclComm*& place = clique->members[static_cast<std::size_t>(given.rank)];
  if (place != nullptr) return "two ranks are rank " + std::to_string(given.rank);
  place = &made;
  clique->joined = clique->complete();
  if (clique->joined) ++all.made.communicators;
  all.changed.notify_all();
  return {};
}

ncclResult_t init(const std::string& call, ncclComm** result, const Given& given,
                  const ncclConfig_t& config) {
  Lock lock(library().mutex);
  *result = nullptr;
  if (in_group())
    return mistaken(ncclInvalidUsage, call, nullptr, "in a group: not in this double");
  std::string wrong = wrong_config(config);
  if (wrong.empty()) wrong = wrong_join(given, library());
  if (!wrong.empty()) return mistaken(ncclInvalidArgument, call, nullptr, wrong);
  auto fresh = std::make_unique<ncclComm>();
  ncclComm& made = *fresh;
  made.device = queued::current_device();
  made.blocking = blocks(config);
  wrong = join(made, given);
  if (!wrong.empty())
    return mistaken(ncclInvalidUsage, call + " of rank " + std::to_string(given.rank), nullptr,
                    wrong);
  library().communicators.push_back(std::move(fresh));
  *result = &made;
  if (!made.blocking) return ncclInProgress;
  bool late = false;
  if (!wait(lock, made, [&] { return made.clique->joined; }, late))
    return late ? mistaken(ncclSystemError, call, &made,
                           "without " + made.clique->ranks([&](std::size_t rank) {
                             return made.clique->members[rank] == nullptr;
                           }))
                : failed(ncclInternalError, call + " on " + made.name() + ": aborted");
  made.state = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t split(ncclComm* parent, int color, int key, ncclComm** result,
                   const ncclConfig_t* config) {
  const std::string call = "ncclCommSplit";
  Lock lock(library().mutex);
  if (auto fault = library().faults.extract(queued::current_device())) {
    lock.unlock();
    fault.mapped()();
    lock.lock();
  }
  if (result == nullptr) return mistaken(ncclInvalidArgument, call, parent, "no place to return");
  if (const ncclResult_t ready = check_ready(call, parent); ready != ncclSuccess) return ready;
  std::string wrong = config != nullptr ? wrong_config(*config) : std::string();
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR) wrong = "color " + std::to_string(color);
  if (in_group()) wrong = "in a group: not in this double";
  if (parent->kernels > 0) wrong = "the parent has operations on its device";
  if (!wrong.empty()) return mistaken(ncclInvalidArgument, call, parent, wrong);
  *result = nullptr;
  Clique& clique = *parent->clique;
  const std::size_t number = parent->splits++;
  if (clique.splits.size() <= number) {
    clique.splits.push_back(std::make_shared<Split>());
    clique.splits.back()->parts.resize(clique.size());
  }
  const std::shared_ptr<Split> joined = clique.splits[number];
  joined->parts[static_cast<std::size_t>(parent->rank)] =
      Split::Part{color, key, config != nullptr ? blocks(*config) : parent->blocking};
  const auto all = [&](const auto& part) { return part.has_value(); };
  if (clique.complete() && std::all_of(joined->parts.begin(), joined->parts.end(), all))
    make_parts(clique, *joined);
  library().changed.notify_all();
  parent->split = joined;
  parent->result = result;
  parent->state = ncclInProgress;
  if (!parent->blocking) return ncclInProgress;
  bool late = false;
  ++parent->calls;
  parent->thread = std::this_thread::get_id();
  const bool came = wait(lock, *parent, [&] { return joined->done; }, late);
  --parent->calls;
  if (!came)
    return late ? mistaken(ncclSystemError, call, parent,
                           "without " + clique.ranks([&](std::size_t rank) {
                             return !joined->parts[rank].has_value();
                           }))
                : failed(ncclInternalError, call + " on " + parent->name() + ": aborted");
  poll(*parent);  // the state,
  poll(*parent);  // and the result
  return ncclSuccess;
}

// Destroys and aborts.
ncclResult_t end(const std::string& call, ncclComm* on) {
  Lock lock(library().mutex);
  if (on == nullptr) return ncclSuccess;
  if (const ncclResult_t alive = check_alive(call, on); alive != ncclSuccess) return alive;
  const bool abort = call == "ncclCommAbort";
  if (!abort && on->state == ncclInProgress)
    return mistaken(ncclInvalidArgument, call, on,
                    "the operation before has not returned ncclSuccess yet");
  if (!abort && on->calls > 0)
    return mistaken(ncclInvalidUsage, call, on, "another thread is in a call on it");
  bool late = false;
  // Destroying waits for what is queued.
  if (!abort && !wait(lock, *on, [&] { return on->kernels == 0; }, late))
    return mistaken(ncclSystemError, call, on, "its operations do not end");
  on->ended = call;
  on->split = nullptr;
  library().changed.notify_all();
  return ncclSuccess;
}

}  // namespace

}  // namespace polyphony::exec::testing::nccl

using namespace polyphony::exec::testing::nccl;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::scoped_lock lock(library().mutex);
  std::memset(id->internal, 0, sizeof(id->internal));
  const std::string text = "unique id " + std::to_string(++library().unique_ids);
  std::memcpy(id->internal, text.data(), text.size());
  library().ids[{id->internal, sizeof(id->internal)}] = "";
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* result, int size, int rank, int count,
                                      ncclUniqueId* ids, ncclConfig_t* config) {
  return init("ncclCommInitRankScalable", result, {size, rank, count, ids},
              config != nullptr ? *config : ncclConfig_t(NCCL_CONFIG_INITIALIZER));
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* result, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return init("ncclCommInitRankConfig", result, {size, rank, 1, &id},
              config != nullptr ? *config : ncclConfig_t(NCCL_CONFIG_INITIALIZER));
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* result,
                           ncclConfig_t* config) {
  return split(parent, color, key, result, config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t on, ncclResult_t* state) {
  const std::scoped_lock lock(library().mutex);
  if (const ncclResult_t alive = check_alive("ncclCommGetAsyncError", on); alive != ncclSuccess)
    return alive;
  poll(*on);
  *state = on->state;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t on) {
  const std::scoped_lock lock(library().mutex);
  if (const ncclResult_t ready = check_ready("ncclCommFinalize", on); ready != ncclSuccess)
    return ready;
  on->finalized = true;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t on) { return end("ncclCommDestroy", on); }
ncclResult_t ncclCommAbort(ncclComm_t on) { return end("ncclCommAbort", on); }

}  // extern "C"
