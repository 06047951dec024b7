// Runs pure pieces of work in forked processes, several at a time: SimGrid allows one engine per
// process, and a crash in one piece must not take the others along.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace polyphony::sim {

// work(i) for i in [0, count), dealt to `jobs` processes in turn; the answers in order. A piece
// that throws answers {"error": "..."}; one whose process dies likewise, naming the signal.
// `progress` is called as answers arrive. No other threads may run in the caller.
std::vector<std::string> run_in_workers(int jobs, std::size_t count,
                                        const std::function<std::string(std::size_t)>& work,
                                        const std::function<void(std::size_t done)>& progress);

}  // namespace polyphony::sim
