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

// The page of an answer, which is the same if the answer is read from its JSON.
std::string page_of(const Searched& answer, const json& written) {
  const std::string html = traces::to_html(sweep_page(answer, "a <scenario>.json"));
  const auto read = read_searched(written.dump(2), "sweep.json");
  CHECK(traces::to_html(sweep_page(std::get<Searched>(read), "a <scenario>.json")) == html);
  const traces::test::XmlCheck check(html);
  CHECK(check.problem() == "");
  CHECK(html.find("nan") == std::string::npos);
  return html;
}
std::string page_of(const Varied& varied) {
  const std::string html = traces::to_html(vary_page(searched_of(varied), "a <scenario>.json"));
  const auto read = read_searched(to_json(varied).dump(), "vary.json");
  CHECK(traces::to_html(vary_page(std::get<SearchedVaried>(read), "a <scenario>.json")) == html);
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
  Searched answer = searched_of(estimated(), scenario().model);
  answer.question = {"vision 0.8M", "8 ranks", "batch 32", "fp32", "A shipped profile."};
  json written = to_json(estimated(), scenario().model);
  written["question"] = to_json(*answer.question);
  const std::string html = page_of(answer, written);
  CHECK(count(html, "<svg") == 4);
  CHECK(count(html, "<circle") == 2 * answer.ranked.size());
  CHECK(count(html, "class=\"beside\"") == 2 * answer.baselines.size());
  CHECK(html.find(answer.ranked[0].words) != std::string::npos);
  CHECK(html.find("rule of thumb") != std::string::npos);
  CHECK(html.find("vision 0.8M; 8 ranks; batch 32; fp32") != std::string::npos);
  CHECK(html.find("How accurate: A shipped profile.") != std::string::npos);
}

TEST_CASE(
    "a search without a layout has a page, and a text that is no answer of a search has none") {
  const Sweep none;
  CHECK(page_of(searched_of(none, scenario().model), to_json(none, scenario().model))
            .find("No layout fits.") != std::string::npos);
  json old = to_json(estimated(), scenario().model);
  old["ranked"][0].erase("words");
  json beyond = to_json(estimated(), scenario().model);
  beyond["simplest"] = beyond["ranked"].size();
  for (const std::string& text : {old.dump(), beyond.dump(), std::string("{}"), std::string("[]"),
                                  std::string("{\"ranked\"")})
    CHECK_THROWS_AS(read_searched(text, "sweep.json"), InputError);
}

TEST_CASE(
    "a varied question's page: lines over one variation, a map over two, questions left out") {
  const Variation nic{"cluster.nic", {"1Gbps", "2Gbps"}},
      batch{"data.global_batch", {"8", "16", "32"}};
  CHECK(page_of(varied({nic}, 2, 2)).find("By placement") != std::string::npos);
  const std::string map = page_of(varied({nic, batch}, 4, 5));
  CHECK(map.find("Regimes") != std::string::npos);
  CHECK(count(map, "not asked") == 2);  // on a page and on a phone
  CHECK(count(page_of(varied({nic, batch, nic}, 1, 1)), "<svg") == 0);
}

}  // namespace polyphony::tests
