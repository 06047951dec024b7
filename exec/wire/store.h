// The c10d key-value store at which the ranks of a launch meet.
//   LibTorch's time-outs run on while this process is stopped, and nothing wakes its waits: a store
//   made here waits (nearly) for ever, for callers who watch the time themselves
//   (exec/wire/own_thread.h).
#pragma once

#include <atomic>
#include <string>

#include "exec/system/launch_env.h"
#include "exec/torch_pch.h"
#include "shared/patience.h"
#include "shared/units.h"

namespace polyphony::exec {

// For LibTorch and Gloo; what they count it in (milliseconds in an int) holds 24 days.
constexpr Seconds kForEver{1e6};
std::chrono::milliseconds milliseconds(Seconds time);

// Rank 0 hosts the store (unless the launcher does) and all connect; returns when all ranks are
// there. Keys are private to this attempt of the job. InputError when the port is taken, nobody
// answers there or somebody who is no store, a rank does not appear or appears twice.
c10::intrusive_ptr<c10d::Store> meet_at_store(const LaunchEnv& launch, Seconds timeout);
// To be called after meet_at_store.
c10::intrusive_ptr<c10d::Store> another_connection(const LaunchEnv& launch, Seconds timeout);

void set_text(c10d::Store& store, const std::string& key, const std::string& value);
// Waits for the key.
std::string get_text(c10d::Store& store, const std::string& key);
// False when `aborted` or out of patience; an exception when the store is gone.
bool await_key(c10d::Store& store, const std::string& key, const std::atomic<bool>& aborted,
               Patience& patience);

}  // namespace polyphony::exec
