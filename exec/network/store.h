// The c10d key-value store at which the ranks of a launch meet.
#pragma once

#include <string>

#include "exec/system/launch_env.h"
#include "exec/torch_pch.h"
#include "shared/units.h"

namespace polyphony::exec {

// Rank 0 hosts the store (unless the launcher does) and all connect; returns when all ranks are
// there. Keys are private to this attempt of the job. InputError when the port is taken, nobody
// answers, or a rank does not appear.
c10::intrusive_ptr<c10d::Store> meet_at_store(const LaunchEnv& launch, Seconds timeout);
// To be called after meet_at_store.
c10::intrusive_ptr<c10d::Store> another_connection(const LaunchEnv& launch, Seconds timeout);

void set_text(c10d::Store& store, const std::string& key, const std::string& value);
// Waits for the key.
std::string get_text(c10d::Store& store, const std::string& key);

}  // namespace polyphony::exec
