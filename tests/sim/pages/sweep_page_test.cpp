// Pages of answers: well-formed, and with what they are for.
#include "sim/pages/sweep_page.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "sim/answer_json/answers_json.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/traces/report/well_formed.h"

namespace polyphony::tests {
namespace {

using namespace sim;
using nlohmann::json;

const Scenario& scenario() {
  static const Scenario made = [] {
    Scenario it = test::scenario_at("scenarios/rehearse_8.json");
    it.layout.reset();
    it.search = examples::few_choices(it.model.modules.size());
    it.search->microbatch = {1};
    return it;
  }();
  return made;
}

const Sweep& estimated() {
  static const Sweep made = [] {
    SweepOptions options;
    options.predictor = Predictor::estimate;
    return sweep(scenario(), *find_profile(default_profile("H100")), options);
  }();
  return made;
}

std::string page_of(const json& answer) {
  const std::string html = traces::to_html(answer_page(answer, "a <scenario>.json"));
  const traces::test::XmlCheck check(html);
  CHECK(check.problem() == "");
  CHECK(html.find("nan") == std::string::npos);
  return html;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

Varied varied(std::vector<Variation> variations, std::size_t answered, std::size_t asked) {
  Varied all{std::move(variations), {}};
  for (std::size_t i = 0; i < asked; ++i) {
    all.asked.push_back({{}, "no layout fits", {}, scenario().model});
    for (const Variation& v : all.variations)
      all.asked.back().values.push_back(v.values[i % v.values.size()]);
    if (i < answered) all.asked.back().answer = estimated();
  }
  return all;
}

}  // namespace

TEST_CASE("a sweep's page: table, bars and points, for a page and for a phone") {
  const json answer = to_json(estimated(), scenario().model);
  const std::string html = page_of(answer);
  CHECK(count(html, "<svg") == 4);
  CHECK(count(html, "<circle") == 2 * answer["ranked"].size());
  CHECK(count(html, "class=\"beside\"") == 2 * answer["baselines"].size());
  CHECK(html.find(answer["ranked"][0]["words"].get<std::string>()) != std::string::npos);
  CHECK(html.find("rule of thumb") != std::string::npos);
  CHECK(page_of(to_json(Sweep{}, scenario().model)).find("No layout fits.") != std::string::npos);
  json old = answer;
  old["ranked"][0].erase("words");
  CHECK_THROWS_AS(answer_page(old, ""), json::exception);
}

TEST_CASE(
    "a varied question's page: lines over one variation, a map over two, questions left out") {
  const Variation nic{"cluster.nic", {"1Gbps", "2Gbps"}},
      batch{"data.global_batch", {"8", "16", "32"}};
  CHECK(page_of(to_json(varied({nic}, 2, 2))).find("By placement") != std::string::npos);
  const std::string map = page_of(to_json(varied({nic, batch}, 4, 5)));
  CHECK(map.find("Regimes") != std::string::npos);
  CHECK(count(map, "not asked") == 2);  // on a page and on a phone
  CHECK(count(page_of(to_json(varied({nic, batch, nic}, 1, 1))), "<svg") == 0);
}

}  // namespace polyphony::tests
