// Sizes of images that keep their own: the rule by hand, and which settings ask for it.
#include "shared/datasets/native_images.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

using test::spill;
using test::TempFolder;

ImageSettings settings(const std::string& keys) {
  return parse_image_settings(R"({"image_processor_type": "Qwen2VLImageProcessor", )" + keys + "}",
                              "p.json");
}
NativeImages images(const std::string& keys) { return native_images(settings(keys)).value(); }

std::string refused(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.pointer + ": " + error.what_is_wrong;
  }
  return "";
}

}  // namespace

TEST_SUITE("native images") {
  // Cells of 28 pixels, each of 2 × 2 patches; 3,136 to 1,003,520 pixels are 4 to 1,280 cells.
  TEST_CASE("sides are rounded to whole cells") {
    const NativeImages qwen;
    CHECK(native_grid(qwen, 224, 224) == PatchGrid{16, 16});
    // 100 / 28 = 3.57, 75 / 28 = 2.68: 4 × 3 cells.
    CHECK(native_grid(qwen, 100, 75) == PatchGrid{8, 6});
    CHECK(native_grid(qwen, 75, 100) == PatchGrid{6, 8});
    // Half to even: 42 / 28 = 1.5 and 70 / 28 = 2.5 both become 2.
    CHECK(native_grid(qwen, 42, 112) == PatchGrid{4, 8});
    CHECK(native_grid(qwen, 70, 112) == PatchGrid{4, 8});
    // 16 pixels of patches, 3 × 3 of which are a cell: 100 / 48 = 2.08, 75 / 48 = 1.56.
    CHECK(native_grid({.patch = 16, .merge = 3}, 100, 75) == PatchGrid{6, 6});
  }

  TEST_CASE("too many pixels shrink both sides, too few enlarge them") {
    const NativeImages qwen;
    // 71 × 36 cells are too many. β = √(2,000,000 / 1,003,520) = 1.41173: 2000 / β / 28 = 50.6, 1000
    // / β / 28 = 25.3, rounded down.
    CHECK(native_grid(qwen, 2000, 1000) == PatchGrid{100, 50});
    // 0 × 1 cells are too few. β = √(3136 / 300) = 3.2332: 10 β / 28 = 1.15, 30 β / 28 = 3.46, rounded
    // up.
    CHECK(native_grid(qwen, 10, 30) == PatchGrid{4, 8});
    // β = √(28 · 2800 / 3136) = 5: 28 / 5 is no whole cell, so one remains; 2800 / 5 are 20.
    CHECK(native_grid({.least = 1, .most = 3136}, 28, 2800) == PatchGrid{2, 40});
  }

  TEST_CASE("an image is refused if one side is over 200 times the other") {
    const NativeImages qwen;
    // β = √(3136 / 200) = 3.96: β / 28 = 0.14, 200 β / 28 = 28.3.
    CHECK(native_grid(qwen, 1, 200) == PatchGrid{2, 58});
    CHECK_FALSE(native_grid(qwen, 1, 201));
    CHECK_FALSE(native_grid(qwen, 402, 2));
  }

  TEST_CASE("settings: numbers of pixels by either name, and the defaults") {
    CHECK(images(R"("do_resize": true)") == NativeImages());
    CHECK(images(R"("min_pixels": 4, "max_pixels": 8, "patch_size": 16, "merge_size": 1)") ==
          NativeImages{16, 1, 4, 8});
    CHECK(images(R"("size": {"shortest_edge": 4, "longest_edge": 8})") ==
          NativeImages{14, 2, 4, 8});
    CHECK(images(R"("size": {"shortest_edge": 4, "longest_edge": 8}, "max_pixels": 9)") ==
          NativeImages{14, 2, 4, 9});
    CHECK(
        images(R"("size": {"min_pixels": 1, "max_pixels": 2}, "min_pixels": 4, "max_pixels": 8)") ==
        NativeImages{14, 2, 4, 8});
    CHECK(refused([] { images(R"("do_resize": false)"); }) ==
          "/do_resize: is false: sides would be no multiples of patches");
    CHECK(images(R"("temporal_patch_size": 2, "do_pad": null)") == NativeImages());
    CHECK_FALSE(native_images(
        parse_image_settings(R"({"image_processor_type": "CLIPImageProcessor"})", "p.json")));
  }

  TEST_CASE("settings that are unknown or contradict each other are refused by name") {
    const auto what = [](const std::string& keys) { return refused([&] { images(keys); }); };
    CHECK(what(R"("size": {"shortest_edge": 4})") ==
          "/size: must have shortest_edge and longest_edge, which count pixels of whole images");
    CHECK(what(R"("size": {"height": 4, "width": 4})").starts_with("/size/height: "));
    CHECK(what(R"("min_pixels": 9, "max_pixels": 8)") ==
          ": asks for images of at least 9 pixels, but at most 8");
    CHECK(what(R"("do_center_crop": true)").starts_with("/do_center_crop: "));
  }

  TEST_CASE("the processor of published weights must fit the model") {
    const TempFolder folder;
    Module vision{.name = "vision", .kind = ModuleKind::vision};
    vision.patch = 4;
    vision.image_size = 16;
    vision.rotary = true;
    Module projector{.name = "projector", .kind = ModuleKind::projector};
    projector.merge = 2;
    Scenario scenario;
    scenario.model = {{vision, projector}, {{ModuleId(0), ModuleId(1)}}};
    CHECK_FALSE(native_images(scenario));
    scenario.weights = {{folder.path(), "", "qwen2_vl"}, {}};
    CHECK_FALSE(native_images(scenario));  // the folder has no image processor
    const auto write = [&](const std::string& keys) {
      spill(folder / "preprocessor_config.json",
            R"({"image_processor_type": "Qwen2VLImageProcessorFast", )" + keys + "}");
    };
    write(R"("patch_size": 4, "max_pixels": 5000)");
    CHECK(native_images(scenario) == NativeImages{4, 2, 3136, 5000});
    scenario.model.modules[0].rotary = false;
    CHECK(
        refused([&] { native_images(scenario); }) ==
        "/image_processor_type: keeps the images' own sizes, but the vision module \"vision\" has "
        "learned positions for one size");
    scenario.model.modules[0].rotary = true;
    write(R"("patch_size": 14)");
    CHECK(refused([&] { native_images(scenario); }) == "/patch_size: is 14, but the model's is 4");
    write(R"("patch_size": 4, "merge_size": 1)");
    CHECK(refused([&] { native_images(scenario); }) == "/merge_size: is 1, but the model's is 2");
  }
}

}  // namespace polyphony
