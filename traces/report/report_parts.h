// The tables and pictures that a run of the product puts into its report: from a comparison, a
// Timeline, a loss curve.
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

// Seconds per part, predicted and measured, averaged over ranks and on the critical rank.
Table comparison_table(const Comparison& comparison, const std::string& caption);

// A chart drawn twice: as wide as a page, and as wide as a phone.
Figure figure(const ChartOptions& options,
              const std::function<std::string(const ChartOptions&)>& draw,
              const std::string& caption);

// Two Timelines of one Program on one time axis.
SideBySide gantts(const Program& program, const Timeline& predicted, const Timeline& measured);

// (step, loss) of each named run.
Figure loss_figure(
    const std::vector<std::pair<std::string, std::vector<std::pair<double, double>>>>& runs);

// Memory over the step of the ranks with the largest peaks; `capacity` of the device, zero: not
// drawn.
Figure memory_figure(const Program& program, const Timeline& timeline, Bytes capacity,
                     std::size_t most_ranks = 4);

}  // namespace polyphony::traces
