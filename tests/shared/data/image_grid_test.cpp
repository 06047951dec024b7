// Images that are no squares: their grids, as items of samples and as JSON lines.
#include <doctest/doctest.h>

#include "shared/data/batch_json.h"
#include "shared/error.h"

using namespace polyphony;

namespace {

std::string refused(const std::string& image) {
  try {
    parse_samples(R"({"items": [["image", )" + image + "]]}", "mix.jsonl");
  } catch (const InputError& error) {
    return error.what_is_wrong;
  }
  return "";
}

}  // namespace

TEST_CASE("an image item has the grid that it was made with") {
  const Item oblong = image_item({2, 6});
  CHECK(oblong.tokens == 12);
  CHECK(grid_of(oblong) == PatchGrid{2, 6});
  CHECK(grid_of(image_item({6, 2})) == PatchGrid{6, 2});
  CHECK(image_item({6, 2}) != oblong);
  // A square is what it was before grids: a number of patches.
  CHECK(image_item({4, 4}) == Item{Modality::image, 16, 0});
  CHECK(grid_of({Modality::image, 16, 0}) == PatchGrid{4, 4});
}

TEST_CASE("images in JSON lines are squares, or rows and columns of patches") {
  const std::string line = R"({"id":3,"items":[["image",16],["image",[2,6]],["text",2,1]]})";
  const Sample sample = parse_samples(line, "mix.jsonl").at(0);
  CHECK(sample.items.at(0) == image_item({4, 4}));
  CHECK(sample.items.at(1) == image_item({2, 6}));
  CHECK(to_json_line(sample) == line);
  CHECK(parse_samples(R"({"items": [["image", [4, 4]]]})", "mix.jsonl").at(0).items.at(0) ==
        image_item({4, 4}));
  CHECK(refused("[2, 6, 1]") == "must be a number of patches, or [rows, columns]");
  CHECK(refused("[0, 6]") == "must be rows and columns of 1 to 2^30 patches");
  CHECK(refused("[65536, 65536]") == "must be rows and columns of 1 to 2^30 patches");
  CHECK(refused("[2, 1.5]") == "must be an integer");
}
