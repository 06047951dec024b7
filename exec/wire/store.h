// The c10d key-value store through which the ranks of a launch find each other.
//
// LibTorch's timeouts continue to count while this process is stopped, and its waits cannot be
// interrupted. So stores made here have (nearly) infinite timeouts, and callers watch the time
// themselves (exec/wire/own_thread.h).
#pragma once

#include <atomic>
#include <string>

#include "exec/system/launch_env.h"
#include "exec/torch_pch.h"
#include "shared/patience.h"
#include "shared/units.h"

namespace polyphony::exec {

// The timeout passed to LibTorch and Gloo: 11 days. They count milliseconds in an int, which holds
// 24 days.
constexpr Seconds kForEver{1e6};
std::chrono::milliseconds milliseconds(Seconds time);

// Connects to the store, which rank 0 hosts unless the launcher does, and returns it when all ranks
// have connected. Keys are private to this attempt of the job.
//
// Throws InputError if the port is in use, if no process or another kind of server answers there,
// or if a rank does not appear or appears twice.
c10::intrusive_ptr<c10d::Store> meet_at_store(const LaunchEnv& launch, Seconds timeout);
// Returns a further connection to the store. To be called after meet_at_store().
c10::intrusive_ptr<c10d::Store> another_connection(const LaunchEnv& launch, Seconds timeout);

void set_text(c10d::Store& store, const std::string& key, const std::string& value);
// Waits for the key, and returns its value.
std::string get_text(c10d::Store& store, const std::string& key);
// Waits for the key. Returns false if `aborted` is set or the patience is used up; throws if the
// store is gone.
bool await_key(c10d::Store& store, const std::string& key, const std::atomic<bool>& aborted,
               Patience& patience);

}  // namespace polyphony::exec
