// Runs pure pieces of work in forked processes, several at a time: SimGrid allows one engine per
// process, and a crash in one piece must not take the others along.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace polyphony::sim {

// work(i) for i in [0, count), in order, each to the first of `jobs` processes that is free;
// arrived(i, answer) is called as answers arrive, once for each. A piece that throws answers
// {"error": "..."}; one whose process dies likewise, naming the signal, and so do those that no process
// is left for; all processes die once `stopped` says so. No other threads may run in the caller.
using Arrived = std::function<void(std::size_t i, const std::string& answer)>;
void run_in_workers(int jobs, std::size_t count,
                    const std::function<std::string(std::size_t)>& work, const Arrived& arrived,
                    const std::function<bool()>& stopped = {});

// The answers in order. `progress` is called as they arrive.
std::vector<std::string> run_in_workers(int jobs, std::size_t count,
                                        const std::function<std::string(std::size_t)>& work,
                                        const std::function<void(std::size_t done)>& progress);

}  // namespace polyphony::sim
