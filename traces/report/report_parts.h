// Builds the tables and figures of a run's report from a comparison, a Timeline, or a loss curve.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "traces/compare/compare.h"
#include "traces/report/report.h"
#include "traces/report/svg.h"

namespace polyphony::traces {

// Returns a table of seconds per part of the step, predicted and measured, averaged over the ranks
// and on the critical rank.
Table comparison_table(const Comparison& comparison, const std::string& caption);

// Draws a chart twice, for the width of a page and for that of a phone.
Figure figure(const ChartOptions& options,
              const std::function<std::string(const ChartOptions&)>& draw,
              const std::string& caption);

// Draws two Timelines of one Program on the same time axis.
SideBySide gantts(const Program& program, const Timeline& predicted, const Timeline& measured);

// Draws the loss curves of named runs, given as (step, loss).
Figure loss_figure(
    const std::vector<std::pair<std::string, std::vector<std::pair<double, double>>>>& runs);

// Draws the memory over the step of the ranks with the largest peaks. `capacity` of the device is
// drawn as a line; zero: no line.
Figure memory_figure(const Program& program, const Timeline& timeline, Bytes capacity,
                     std::size_t most_ranks = 4);

}  // namespace polyphony::traces
