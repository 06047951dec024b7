// Runs independent tasks on several threads.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace polyphony::sim {

// Runs work(i) for every i in [0, count) on `jobs` threads; a free thread takes the next i. Calls
// arrived(i, answer) on the calling thread exactly once for each i, as answers arrive. `work` is
// called from several threads at a time.
//
// If work(i) throws, its answer is {"error": "..."}. `stopped` is asked ten times a second: once it
// returns true, tasks that run are finished, and all others have the answer {"error": "stopped"}.
using Arrived = std::function<void(std::size_t i, const std::string& answer)>;
void run_on_threads(int jobs, std::size_t count,
                    const std::function<std::string(std::size_t)>& work, const Arrived& arrived,
                    const std::function<bool()>& stopped = {});

// Returns the answers in the order of i; calls `progress` with the number of answers so far.
std::vector<std::string> run_on_threads(int jobs, std::size_t count,
                                        const std::function<std::string(std::size_t)>& work,
                                        const std::function<void(std::size_t done)>& progress);

}  // namespace polyphony::sim
