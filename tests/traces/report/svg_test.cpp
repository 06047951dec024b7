#include <doctest/doctest.h>

#include <algorithm>

#include "tests/shared/support/hand_made.h"
#include "tests/traces/report/well_formed.h"
#include "traces/report/svg.h"
#include "traces/report/svg_canvas.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

struct Ran {
  Program program;
  Timeline timeline;
  explicit Ran(const hand_made::PipelineShape& shape) : program(hand_made::pipeline(shape)) {
    const Compiled compiled = hand_made::compile_sound(program);
    const auto costs = hand_made::fixed_costs(
        program, compiled, {Seconds(1), Seconds(2), Seconds(0.25), Seconds(0.5)});
    timeline = estimate(program, compiled, costs).timeline;
  }
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::string problem_of(const std::string& text) { return test::XmlCheck(text).problem(); }

}  // namespace

TEST_CASE("the well-formedness check detects faults") {
  CHECK(problem_of("<a><b c=\"1\"/>x &amp; y</a>").empty());
  CHECK_FALSE(problem_of("<a><b></a></b>").empty());
  CHECK_FALSE(problem_of("<a>x & y</a>").empty());
  CHECK_FALSE(problem_of("<a>1 < 2</a>").empty());
  CHECK_FALSE(problem_of("<a b=c/>").empty());
  CHECK_FALSE(problem_of("<a b=\"1\" b=\"2\"/>").empty());
  CHECK_FALSE(problem_of("<a>").empty());
  CHECK_FALSE(problem_of("<a/><b/>").empty());
}

TEST_CASE("a Gantt chart shows every op with a tooltip and is well-formed") {
  const Ran ran({.stages = 3, .microbatches = 4, .lanes = 2});
  const std::string svg = gantt(ran.program, ran.timeline, {.title = "A <b> & \"c\""});
  CHECK(problem_of(svg) == "");
  CHECK(svg.find("A &lt;b&gt; &amp; &quot;c&quot;") != std::string::npos);
  // 3 stages × 2 lanes × 4 microbatches, each forward and backward.
  CHECK(count(svg, "class=\"forward op\"") == 24);
  CHECK(count(svg, "class=\"backward op\"") == 24);
  CHECK(count(svg, "class=\"rank end\"") == 6);
  CHECK(svg.find("F language[0,2) work 0: 1s, from 0ns to 1s") != std::string::npos);
  for (const Theme theme : {Theme::light, Theme::dark, Theme::page}) {
    CHECK(svg_style(theme).find('$') == std::string::npos);
    CHECK(problem_of(svg_file(svg, theme)) == "");
  }
}

// 1 rank: F 0-1, B 1-3 on a 658-pixel picture: the axis is 58 to 646, 588 pixels for 3 s, so 196 a
// second.
TEST_CASE("boxes are at the positions of the time axis") {
  const Ran ran({.stages = 1, .microbatches = 1});
  REQUIRE(ran.timeline.makespan.count() == doctest::Approx(3));
  const std::string svg = gantt(ran.program, ran.timeline, {.title = "", .width = 658});
  CHECK(svg.find("<rect x=\"58\" y=\"23\" width=\"196\" height=\"20\" class=\"forward op\">") !=
        std::string::npos);
  CHECK(svg.find("<rect x=\"254\" y=\"23\" width=\"392\" height=\"20\" class=\"backward op\">") !=
        std::string::npos);
  const std::string wider =
      gantt(ran.program, ran.timeline, {.title = "", .width = 658, .span = Seconds(6)});
  CHECK(wider.find("<rect x=\"58\" y=\"23\" width=\"98\" height=\"20\" class=\"forward op\">") !=
        std::string::npos);
}

TEST_CASE("many ranks are sampled and the chart states so; tiny ops are merged") {
  const Ran ran({.stages = 2, .microbatches = 300, .lanes = 8});
  const std::string svg =
      gantt(ran.program, ran.timeline, {.title = "", .width = 300, .most_ranks = 4});
  CHECK(count(svg, "class=\"rank end\"") == 4);
  CHECK(svg.find("4 of 16 ranks") != std::string::npos);
  CHECK(problem_of(svg) == "");
  const Ran small({.stages = 1, .microbatches = 2000});
  CHECK(gantt(small.program, small.timeline, {.title = "", .width = 100}).size() < 60'000);
}

TEST_CASE("line and memory charts are well-formed, also without data") {
  const Ran ran({.stages = 2, .microbatches = 2});
  const ChartOptions options{.title = "T & t", .x_label = "x < 1", .y_label = "y"};
  CHECK(problem_of(line_chart({{"a & b", {{0, 1}, {1, 0.5}, {2, 0.25}}}, {"c", {}}}, options)) ==
        "");
  CHECK(problem_of(line_chart({}, options)) == "");
  CHECK(problem_of(line_chart({{"one point", {{3, 4}}}}, options)) == "");
  const std::string memory =
      memory_chart(ran.program, ran.timeline, {Rank(std::size_t{0}), Rank(std::size_t{1})},
                   Bytes(6000), options);
  CHECK(problem_of(memory) == "");
  CHECK(memory.find("capacity 5.86KiB") != std::string::npos);
  CHECK(memory.find("nan") == std::string::npos);
}

// One bar of 1 and 3 on a 408-pixel picture: 400 pixels for 4, below a legend of 17, a gap of 10
// and two lines of text of 15 and a gap of 3.
TEST_CASE("stacked bars: lengths, shares, a tooltip for each part") {
  const ChartOptions options{.title = "", .x_label = "s", .y_label = "", .width = 408};
  const std::string svg = bar_chart({{"forward", "forward"}, {"wait tint", "a & b"}},
                                    {{"best", "4 s", "a <layout>", {1, 3}}}, options);
  CHECK(problem_of(svg) == "");
  CHECK(svg.find("<rect x=\"0\" y=\"60\" width=\"100\" height=\"18\" class=\"forward op\">") !=
        std::string::npos);
  CHECK(svg.find("<rect x=\"100\" y=\"60\" width=\"300\" height=\"18\" class=\"wait tint op\">") !=
        std::string::npos);
  CHECK(svg.find("forward: 25 % of 4 s") != std::string::npos);
  CHECK(svg.find("a &amp; b: 75 % of 4 s") != std::string::npos);
  CHECK(problem_of(bar_chart({}, {}, options)) == "");
}

// 400 pixels for 1 to 2 and 3 % of it to either side: 1 is at 58 + 400 · 0.03 / 1.06 = 69.32.
// Vertically 221 for 4.24: 4 is at 260 - 221 · 4 / 4.24 = 51.51, 2 at 155.75.
TEST_CASE("scatter chart: points, their intervals and the front as a step function") {
  const ChartOptions options{.title = "", .x_label = "x", .y_label = "y", .width = 474};
  const std::vector<Mark> marks{{1, 4, 0, false, "a & b", {}, ""},
                                {2, 2, 1, true, "c", {{1.5, 3.0}}, ""},
                                {2, 3, 0, false, "", {}, "by <hand>"}};
  const std::string svg = scatter_chart({"one", "two", "three"}, marks, {{1, 4}, {2, 2}}, options);
  CHECK(problem_of(svg) == "");
  CHECK(svg.find("<path d=\"M69.32 51.51L446.68 51.51L446.68 155.75\" class=\"front\"/>") !=
        std::string::npos);
  CHECK(svg.find("cx=\"69.32\" cy=\"51.51\"") != std::string::npos);
  CHECK(count(svg, "<circle") == 2);
  CHECK(count(svg, "hollow s1") == 1);
  CHECK(count(svg, "whisker s1") ==
        2);  // a line and its left end; the right end is outside the chart
  CHECK(count(svg, "class=\"beside\"") == 1);
  CHECK(svg.find("by &lt;hand&gt;") != std::string::npos);
  CHECK(svg.find(">three<") == std::string::npos);  // no such point
  CHECK(problem_of(scatter_chart({}, {}, {}, options)) == "");
}

TEST_CASE("a map has a cell for each pair of values, colored if there is a result") {
  CellMap map{"rows", "columns", {"1", "2"}, {"a", "b", "c"}, {}, {{"forward tint", "one"}}};
  for (int i = 0; i < 5; ++i)
    map.cells.push_back({i < 4 ? "forward tint" : "", "1 s", i == 0 ? "-3 %" : "", "hover"});
  const std::string svg = map_chart(map, {.title = "", .x_label = "", .y_label = ""});
  CHECK(problem_of(svg) == "");
  CHECK(count(svg, "<title>hover</title>") == 5);
  CHECK(count(svg, "class=\"forward tint\"><title>") == 4);
  CHECK(count(svg, "-3 %") == 1);
}

TEST_CASE("an axis with places shows their names instead of numbers") {
  const std::string svg = line_chart(
      {{"a", {{0, 1}, {1, 2}}}},
      {.title = "", .x_label = "", .y_label = "", .width = 474, .x_names = {"200Gbps", "400Gbps"}});
  // Two places of 200 pixels each, starting at 58.
  CHECK(svg.find("<text x=\"158\" y=\"277\" class=\"mid\">200Gbps</text>") != std::string::npos);
  CHECK(svg.find("<text x=\"358\" y=\"277\" class=\"mid\">400Gbps</text>") != std::string::npos);
}

// 0 to 10 in 5 steps: 2. 0 to 0.7 in 5: rough 0.14, so 0.2.
TEST_CASE("ticks are round") {
  CHECK(ticks(0, 10, 5).step == doctest::Approx(2));
  CHECK(ticks(0, 10, 5).at.size() == 6);
  CHECK(ticks(0, 10, 5).text(ticks(0, 10, 5).at[0]) == "0");
  const Ticks small = ticks(0, 0.7, 5);
  CHECK(small.step == doctest::Approx(0.2));
  CHECK(small.text(0.6) == "0.6");
  CHECK(ticks(3, 3, 5).at.size() > 1);
  CHECK(fixed(1.50) == "1.5");
  CHECK(fixed(-0.001) == "0");
  CHECK(fixed(100) == "100");
}

TEST_CASE("text is escaped, control characters do not reach the file") {
  CHECK(escape("<a href='x'>&\"\x01") == "&lt;a href=&#39;x&#39;&gt;&amp;&quot; ");
  CHECK(percent(-0.1234) == "-12.3 %");
  CHECK(percent(0.05) == "+5.0 %");
  CHECK(percent(-0.0001) == "0.0 %");
}
