#include <doctest/doctest.h>

#include <algorithm>

#include "shared/hardware/devices.h"
#include "tests/traces/report/well_formed.h"
#include "tests/traces/sample_run.h"
#include "traces/report/report_parts.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

Report full_report() {
  const Program program = test::varied_pipeline({.stages = 2, .microbatches = 4, .lanes = 2});
  HardwareProfile prior = *find_profile("cpu-core-roofline");
  HardwareProfile truth = prior;
  truth.corrections[{LayerKind::decoder_block, Phase::backward}] = 1.8;
  const Cluster cluster = test::one_node(program, prior);
  const Timeline predicted = test::timeline_of(program, cluster, prior);
  const Timeline measured = test::timeline_of(program, cluster, truth);
  const Comparison comparison =
      compare({{program, predicted, measured}, {program, predicted, measured}});
  return {
      "Polyphony <report>",
      "a subtitle & more",
      {{"12.3 ms", "step time"}},
      {{"Timelines", {gantts(program, predicted, measured)}},
       {"Errors", {comparison_table(comparison, "Step & part")}},
       {"Training", {loss_figure({{"run", {{0, 2.5}, {1, 1.5}}}}), Paragraph{"Text with <tags>."}}},
       {"Memory", {memory_figure(program, measured, prior.device.memory, 2)}}},
      "footer"};
}

}  // namespace

TEST_CASE("a report is one well-formed page without external resources") {
  const std::string html = to_html(full_report());
  const test::XmlCheck check(html);
  CHECK(check.problem() == "");
  CHECK(std::count(check.names().begin(), check.names().end(), "svg") == 4);
  CHECK(std::count(check.names().begin(), check.names().end(), "table") == 1);
  for (const char* outside : {"http", "src=", "@import", "url(", "<link"}) {
    CAPTURE(outside);
    CHECK(html.find(outside) == std::string::npos);
  }
  CHECK(html.find("Polyphony &lt;report&gt;") != std::string::npos);
  CHECK(html.find("Text with &lt;tags&gt;.") != std::string::npos);
  CHECK(html.find("prefers-color-scheme: dark") != std::string::npos);
}

TEST_CASE("tables keep their columns") {
  const Report report{
      "t", "", {}, {{"s", {Table{"c", {"a", "b"}, {{"1"}, {"2", "3"}}, 1, "n"}}}}, ""};
  const std::string html = to_html(report);
  CHECK(html.find("<tr><td>1</td><td></td></tr>") != std::string::npos);
  CHECK(html.find("<tr class=\"best\"><td>2</td><td>3</td></tr>") != std::string::npos);
  CHECK(html.find("<nav>") == std::string::npos);  // no table of contents for a single section
}

TEST_CASE("the comparison table has every part, on average and on the critical rank") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 2});
  const Compiled compiled = hand_made::compile_sound(program);
  const auto timeline = [&](double scale) {
    return estimate(program, compiled,
                    hand_made::fixed_costs(program, compiled,
                                           {Seconds(scale), Seconds(2 * scale), {}, {}}))
        .timeline;
  };
  // 1F1B of 2 stages: 9 F; forward 2 F, backward 4 F, idle 3 F per rank.
  const Timeline predicted = timeline(1), measured = timeline(2);
  const Table table = comparison_table(compare({{program, predicted, measured}}), "c");
  REQUIRE(table.rows.size() == 1 + kParts);
  CHECK(table.rows[0] == std::vector<std::string>{"step", "9s", "18s", "-50.0 %"});
  CHECK(table.rows[1] == std::vector<std::string>{"forward", "2s", "4s", "-50.0 %", "-11.1 %", "2s",
                                                  "4s", "-50.0 %"});
  CHECK(table.rows[1 + static_cast<std::size_t>(Part::exchange)][3] == "–");
}
