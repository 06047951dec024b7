#include "sim/frameworks/pipeline_layout.h"

#include <doctest/doctest.h>

#include "shared/error.h"

namespace polyphony::sim {
namespace {

std::vector<int> blocks_of(const std::string& text) {
  std::vector<int> blocks;
  for (const PipelineStage& stage : parse_pipeline_layout(text, "here"))
    blocks.push_back(stage.blocks);
  return blocks;
}

}  // namespace

TEST_CASE("pipeline layout: Megatron Core's examples") {
  CHECK(blocks_of("Et*3|(tt|)*4,m|L") == std::vector<int>{3, 2, 2, 2, 2, 0, 0});
  CHECK(blocks_of("Et*4|(t*4|)*14tmL").size() == 16);
  CHECK(parse_pipeline_layout("Et*4|(t*4|)*14tmL", "here").back().predictions == 1);
  CHECK(blocks_of("E|t|L") == std::vector<int>{0, 1, 0});
  CHECK(blocks_of("Ett|(t|t|)*2tL") == std::vector<int>{2, 1, 1, 1, 1, 1});
}

TEST_CASE("pipeline layout: what Megatron Core refuses is refused") {
  for (const char* text : {"t|L", "Et|t", "EEtL", "Etx|L", "Et*|L", "E(t|L", "Et)|L", "tE|L", ""})
    CHECK_THROWS_AS(parse_pipeline_layout(text, "here"), InputError);
  CHECK_THROWS_WITH_AS(parse_pipeline_layout("E(((t*9999)*9999)*9999)L", "here"),
                       doctest::Contains("too long"), InputError);
}

TEST_CASE("pipeline layout: written stages are read again") {
  CHECK(pipeline_layout_text({7, 9, 9, 7}) == "Et*7|(t*9|)*2t*7L");
  for (const std::vector<int>& blocks : {std::vector<int>{1, 1},
                                         {4, 4, 4, 4},
                                         {3, 5, 5, 5, 2, 2, 1},
                                         {1, 2, 3, 4},
                                         {5, 4, 4, 4, 4, 4, 5, 2}})
    CHECK(blocks_of(pipeline_layout_text(blocks)) == blocks);
}

}  // namespace polyphony::sim
