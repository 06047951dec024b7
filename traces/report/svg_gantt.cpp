#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "shared/text/quantity_text.h"
#include "traces/compare/activity.h"
#include "traces/report/svg.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::traces {
namespace {

constexpr double kCompute = 20, kLane = 4.5, kLaneGap = 1.5, kRowGap = 9;
constexpr double kRow = kCompute + 2 * (kLane + kLaneGap);
constexpr double kLabelWidth = 13;  // a box this wide shows its microbatch
constexpr double kVisible = 0.5;    // blocked time shorter than this is not drawn

std::string compute_class(const Program& program, const Compute& op) {
  std::string classes;
  switch (op.phase) {
    case Phase::forward:
      classes = "forward";
      break;
    case Phase::backward:
    case Phase::backward_input:
      classes = "backward";
      break;
    case Phase::backward_weight:
      classes = "weight";
      break;
    case Phase::recompute:
      classes = "recompute";
      break;
  }
  const bool tint = program.model.modules[op.module.value].kind != ModuleKind::language;
  return tint && op.phase != Phase::backward_weight ? classes + " tint" : classes;
}

class Drawing {
 public:
  Drawing(const Program& program, const Timeline& timeline, const GanttOptions& options)
      : program_(program),
        options_(options),
        canvas_(options.width, options.title),
        times_(recorded(program, timeline)),
        activity_(find_activity(program, timeline)),
        makespan_(timeline.makespan.count()),
        span_(std::max(1e-12, options.span.value_or(timeline.makespan).count())) {}

  std::string draw() {
    double y = 0;
    if (!options_.title.empty()) {
      canvas_.text(0, 14, "title", options_.title);
      y = 24;
    }
    y = canvas_.legend(0, y, legend()) + 6;
    const double top = y;
    draw_axis(top, static_cast<double>(shown_ranks().size()) * (kRow + kRowGap));
    for (Rank rank : shown_ranks()) {
      draw_rank(rank, y);
      y += kRow + kRowGap;
    }
    canvas_.line(x(makespan_), top - 4, x(makespan_), y - kRowGap + 4, "finish");
    return canvas_.finish(y + 36);
  }

 private:
  double x(double seconds) const {
    return kRowsLeft + (canvas_.width() - kRowsLeft - kRowsRight) * seconds / span_;
  }

  std::vector<Rank> shown_ranks() const {
    const std::size_t shown =
        std::min<std::size_t>(std::max<std::size_t>(1, options_.most_ranks), program_.ranks);
    std::vector<Rank> result;
    for (std::size_t i = 0; i < shown; ++i) result.push_back(Rank(i * program_.ranks / shown));
    return result;
  }

  std::vector<std::pair<std::string, std::string>> legend() const {
    std::set<std::string> used;
    bool exchanges = false, collectives = false, copies = false, updates = false, tinted = false;
    for (const Op& op : program_.ops) {
      if (const auto* compute = std::get_if<Compute>(&op.what)) {
        const std::string classes = compute_class(program_, *compute);
        tinted = tinted || classes.ends_with(" tint");
        used.insert(classes.substr(0, classes.find(' ')));
      }
      exchanges = exchanges || std::holds_alternative<Exchange>(op.what);
      collectives = collectives || std::holds_alternative<Collective>(op.what);
      copies = copies || std::holds_alternative<HostCopy>(op.what);
      updates = updates || std::holds_alternative<Update>(op.what);
    }
    std::vector<std::pair<std::string, std::string>> result;
    for (const auto& [classes, text] : {std::pair{"forward", "forward"},
                                        {"backward", "backward"},
                                        {"weight", "backward (weights)"},
                                        {"recompute", "recompute"}}) {
      if (used.contains(classes)) result.emplace_back(classes, text);
    }
    if (tinted) result.emplace_back("forward tint", "encoder: lighter");
    if (updates) result.emplace_back("optimizer", "optimizer");
    if (exchanges) result.emplace_back("exchange", "messages");
    if (collectives) result.emplace_back("reduce", "all-reduce");
    if (copies) result.emplace_back("reduce tint", "to and from the host: lighter");
    result.emplace_back("row", "idle");
    return result;
  }

  void draw_axis(double top, double height) {
    const Unit unit = time_unit(span_);
    const double bottom = top + height - kRowGap + 4;
    const Ticks marks = ticks(0, span_ / unit.size, static_cast<int>(canvas_.width() / 90));
    for (double at : marks.at) {
      const double where = x(at * unit.size);
      canvas_.line(where, top - 4, where, bottom, "grid");
      canvas_.text(where, bottom + 14, "mid", marks.text(at));
    }
    std::string label = "time, " + unit.name + "; step " + short_text(Seconds(makespan_));
    if (shown_ranks().size() < program_.ranks) {
      label += "; " + std::to_string(shown_ranks().size()) + " of " +
               std::to_string(program_.ranks) + " ranks";
    }
    canvas_.text((kRowsLeft + canvas_.width() - kRowsRight) / 2, bottom + 30, "mid", label);
  }

  struct Box {
    Interval time;
    std::string classes, label, hover;
  };

  void draw_rank(Rank rank, double y) {
    canvas_.text(kRowsLeft - 8, y + 14, "rank end", "rank " + std::to_string(rank.value));
    canvas_.rect(kRowsLeft, y, x(span_) - kRowsLeft, kCompute, "row");
    std::vector<Box> compute, exchange, reduce;
    for (std::size_t id = 0; id < program_.ops.size(); ++id) {
      const Op& op = program_.ops[id];
      if (!times_[id] || program_.rank_of(op) != rank) continue;
      if (std::holds_alternative<Exchange>(op.what)) {
        add_active(id, "exchange", exchange);
      } else if (std::holds_alternative<Collective>(op.what)) {
        add_active(id, "reduce", reduce);
      } else if (std::holds_alternative<HostCopy>(op.what)) {
        add_active(id, "reduce tint", reduce);
      } else {
        add_compute(id, y, compute);
      }
    }
    draw_boxes(compute, y, kCompute);
    draw_boxes(exchange, y + kCompute + kLaneGap, kLane);
    draw_boxes(reduce, y + kCompute + 2 * kLaneGap + kLane, kLane);
  }

  std::string hover(std::size_t id, const Interval& work) const {
    return describe(program_, OpId(id)) + ": " + short_text(work.end - work.start) + ", from " +
           short_text(work.start) + " to " + short_text(work.end);
  }

  void add_active(std::size_t id, const std::string& classes, std::vector<Box>& boxes) const {
    for (auto i = activity_.of[id].begin; i < activity_.of[id].end; ++i) {
      boxes.push_back({activity_.intervals[i], classes, "", hover(id, activity_.intervals[i])});
    }
  }

  void add_compute(std::size_t id, double y, std::vector<Box>& boxes) {
    const auto* compute = std::get_if<Compute>(&program_.ops[id].what);
    const std::string classes =
        compute != nullptr ? compute_class(program_, *compute) : "optimizer";
    Interval work{times_[id]->end, times_[id]->end};
    if (activity_.of[id].size() > 0) work = activity_.intervals[activity_.of[id].begin];
    const double from = x(times_[id]->start.count());
    if (x(work.start.count()) - from > kVisible) {
      canvas_.rect(from, y, x(work.start.count()) - from, kCompute, classes + " blocked",
                   describe(program_, OpId(id)) + ": waiting for " +
                       short_text(work.start - times_[id]->start));
    }
    const std::string label =
        compute != nullptr ? std::to_string(program_.works[compute->work.value].index) : "";
    boxes.push_back({work, classes, label, hover(id, work)});
  }

  // Draws sorted boxes. Boxes that are too thin to see are merged, so that a chart of a million ops
  // stays small.
  void draw_boxes(std::vector<Box>& boxes, double y, double height) {
    std::stable_sort(boxes.begin(), boxes.end(),
                     [](const Box& a, const Box& b) { return a.time < b.time; });
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      Box box = boxes[i];
      std::size_t joined = 1;
      Seconds longest = box.time.end - box.time.start;
      while (i + 1 < boxes.size() &&
             x(boxes[i + 1].time.end.count()) - x(box.time.start.count()) < kThin) {
        const Box& next = boxes[++i];
        box.time.end = std::max(box.time.end, next.time.end);
        if (next.time.end - next.time.start > longest) {
          longest = next.time.end - next.time.start;
          box.classes = next.classes;
        }
        ++joined;
      }
      if (joined > 1) box.hover = std::to_string(joined) + " short ops; the first: " + box.hover;
      const double from = x(box.time.start.count());
      const double width = x(box.time.end.count()) - from;
      if (width <= 0) continue;
      const bool wide = height == kCompute && width > 3;
      canvas_.rect(from, y, std::max(width, 0.2), height, wide ? box.classes + " op" : box.classes,
                   box.hover);
      const bool labelled = !box.label.empty() && height == kCompute && joined == 1 &&
                            width >= kLabelWidth + 3 * static_cast<double>(box.label.size() - 1);
      if (!labelled) continue;
      canvas_.text(from + width / 2, y + 14, box.classes.ends_with(" tint") ? "box tint" : "box",
                   box.label);
    }
  }

  const Program& program_;
  const GanttOptions& options_;
  Canvas canvas_;
  std::vector<std::optional<Interval>> times_;
  Activity activity_;
  double makespan_, span_;
};

}  // namespace

std::string gantt(const Program& program, const Timeline& timeline, const GanttOptions& options) {
  return Drawing(program, timeline, options).draw();
}

}  // namespace polyphony::traces
