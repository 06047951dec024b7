#include "exec/data/image_processor.h"

#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/exec/support/temp_folder.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec {
namespace {

using testing::refusal;
using testing::slurp;
using testing::spill;
using testing::TempFolder;
using torch::Tensor;

const std::string kImages = "tests/exec/data/images/";  // see tests/exec/data/decode_image_test.cpp

ImageProcessor processor(const std::string& json, int image_size) {
  const TempFolder folder;
  spill(folder / "preprocessor_config.json", json);
  return ImageProcessor::of(folder.path(), image_size);
}
// Returns the settings of a type with more keys: {"image_processor_type": …, more}.
std::string type(const std::string& name, const std::string& more = "") {
  return R"({"image_processor_type": ")" + name + "\"" + (more.empty() ? "" : ", ") + more + "}";
}
// The error without the folder of the file.
std::string processor_refusal(const std::string& json, int image_size = 4) {
  const std::string text = refusal([&] { processor(json, image_size); });
  return text.substr(text.find("preprocessor_config.json"));
}
// A gray image whose pixels are given row by row.
DecodedImage gray(std::int64_t height, std::int64_t width, std::vector<unsigned char> values) {
  DecodedImage image{width, height, {}};
  for (const unsigned char value : values) image.rgb.insert(image.rgb.end(), 3, value);
  return image;
}
const std::string kPlain = R"("do_normalize": false, "do_rescale": false)";
// Returns the first channel of the processed image as whole numbers, row by row.
std::vector<int> bytes(const ImageProcessor& from, const DecodedImage& image) {
  const Tensor channel = from.process(image)[0].to(torch::kInt32).contiguous();
  return {channel.data_ptr<int>(), channel.data_ptr<int>() + channel.numel()};
}

}  // namespace

TEST_SUITE("images") {
  TEST_CASE("without a file, images are resized and normalized as SigLIP's") {
    const TempFolder folder;
    for (const std::string& path : {std::string(), folder.path()}) {
      const Tensor out = ImageProcessor::of(path, 3).process(gray(1, 2, {51, 51}));
      REQUIRE(out.sizes() == torch::IntArrayRef({3, 3, 3}));
      // (51 / 255 − 0.5) / 0.5 = −0.6.
      CHECK(out.allclose(torch::full({3, 3, 3}, -0.6)));
    }
  }

  TEST_CASE("values are rescaled, then normalized by channel") {
    const DecodedImage image{1, 1, {10, 20, 30}};
    // x · 0.1 = 1, 2, 3; minus 1, 1, 1 is 0, 1, 2; divided by 2, 4, 8.
    const Tensor out = processor(type("SiglipImageProcessor",
                                      R"("size": {"height": 1, "width": 1}, "rescale_factor": 0.1,
                                         "image_mean": 1, "image_std": [2, 4, 8], "do_pad": null)"),
                                 1)
                           .process(image);
    CHECK(out.flatten().allclose(torch::tensor({0.0F, 0.25F, 0.25F})));
    CHECK(processor(type("SiglipImageProcessor",
                         R"("size": {"height": 1, "width": 1}, "do_normalize": false)"),
                    1)
              .process(image)
              .flatten()
              .allclose(torch::tensor({10.0F, 20.0F, 30.0F}) / 255));
  }

  TEST_CASE("missing keys have the defaults of the type") {
    // White is (1 − 0.48145466) / 0.26862954 = 1.930336 in red, (1 − 0.40821073) / 0.27577711 =
    // 2.145897 in blue.
    const Tensor clip = processor(type("CLIPImageProcessor"), 224).process(gray(1, 1, {255}));
    CHECK(clip[0].allclose(torch::full({224, 224}, 1.930336)));
    CHECK(clip[2].allclose(torch::full({224, 224}, 2.145897)));
  }

  TEST_CASE("a center crop cuts more below, and pads more above") {
    const auto crop = [](const std::string& edge, int size) {
      return processor(
          type("CLIPImageProcessor", R"("do_resize": false, "crop_size": )" + edge + "," + kPlain),
          size);
    };
    // 5 − 2 = 3 columns are cut: 1 left, 2 right.
    const DecodedImage wide = gray(2, 5, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    CHECK(bytes(crop("2", 2), wide) == std::vector<int>{2, 3, 7, 8});
    // One row is missing: above. 5 − 3 = 2 columns are cut.
    CHECK(bytes(crop(R"({"height": 3, "width": 3})", 3), wide) ==
          std::vector<int>{0, 0, 0, 2, 3, 4, 7, 8, 9});
  }

  TEST_CASE("the shorter edge gets the given length, the longer one is rounded down") {
    const ImageProcessor clip = processor(
        type("CLIPFeatureExtractor", R"("size": 2, "crop_size": 2, "resample": 2,)" + kPlain), 2);
    // 3 × 5 to 2 × ⌊2 · 5 / 3⌋ = 2 × 3; all rows are equal, so columns are weighted means. Bilinear,
    // antialiased, from 5 to 3: scale and support 5/3, centers 5/6, 15/6, 25/6; pixels' centers 0.5 to
    // 4.5. Column 0: weights 1 − |0.5 − 5/6| · 3/5 = 0.8, 1 − 2/3 · 3/5 = 0.6, 1 − 5/3 · 3/5 = 0: so
    // (0.8 · 0 + 0.6 · 70) / 1.4 = 30. Column 1: weights 0.4, 1, 0.4 of pixels 1 to 3: (28 + 70 + 28)
    // / 1.8 = 70. The crop cuts ⌊1/2⌋ = 0 columns left.
    const std::vector<unsigned char> row{0, 70, 70, 70, 70};
    std::vector<unsigned char> rows;
    for (int i = 0; i < 3; ++i) rows.insert(rows.end(), row.begin(), row.end());
    CHECK(bytes(clip, gray(3, 5, rows)) == std::vector<int>{30, 70, 30, 70});
    // The same image on its side.
    CHECK(bytes(clip, gray(5, 3, {0, 0, 0, 70, 70, 70, 70, 70, 70, 70, 70, 70, 70, 70, 70})) ==
          std::vector<int>{30, 30, 70, 70});
  }

  TEST_CASE("LLaVA's images are padded to a square with the mean color") {
    for (const std::string& asked :
         {std::string(R"("do_pad": true)"), std::string(R"("image_aspect_ratio": "pad")")}) {
      const ImageProcessor llava =
          processor(type("LlavaImageProcessor", asked + R"(, "size": {"shortest_edge": 4},
               "do_center_crop": false, "do_normalize": false, "do_rescale": false,
               "image_mean": [0.5, 0.2, 1])"),
                    4);
      const Tensor out = llava.process(gray(1, 4, {1, 2, 3, 4}));
      // ⌊(4 − 1) / 2⌋ = 1 row above; ⌊0.5 · 255⌋ = 127.
      CHECK(out[0].flatten().equal(torch::tensor(
          {127., 127., 127., 127., 1., 2., 3., 4., 127., 127., 127., 127., 127., 127., 127., 127.},
          torch::kFloat32)));
      CHECK(out[1][0][0].item<float>() == 51);
      CHECK(out[2][0][0].item<float>() == 255);
    }
  }

  TEST_CASE("resized pixels are those of PIL") {
    const DecodedImage image = decode_image(slurp(kImages + "rgb.png"), "rgb.png");
    for (const int edge : {10, 32})
      for (const auto& [name, number] :
           std::vector<std::pair<std::string, std::string>>{{"bilinear", "2"}, {"bicubic", "3"}}) {
        INFO(name << " " << edge);
        const std::string size = std::to_string(edge);
        const Tensor out =
            processor(type("ViTImageProcessorFast",
                           R"("size": )" + size + R"(, "resample": )" + number + "," + kPlain),
                      edge)
                .process(image);
        const std::string expected = slurp(kImages + name + "-" + size + ".rgb");
        const Tensor pil =
            torch::from_blob(const_cast<char*>(expected.data()), {edge, edge, 3}, torch::kUInt8)
                .permute({2, 0, 1})
                .to(torch::kFloat32);
        CHECK(out.equal(pil));
      }
  }

  TEST_CASE("images that keep their sizes become grids of patches, with CLIP's values") {
    const ImageProcessor qwen = processor(
        type("Qwen2VLImageProcessor", R"("patch_size": 2, "merge_size": 1, "min_pixels": 4)"), 0);
    // 4 × 6 pixels are kept: white is 1.930336 in red, 2.145897 in blue (see above).
    const Tensor kept = qwen.process(gray(4, 6, std::vector<unsigned char>(24, 255)), {2, 3});
    REQUIRE(kept.sizes() == torch::IntArrayRef({3, 4, 6}));
    CHECK(kept[0].allclose(torch::full({4, 6}, 1.930336)));
    CHECK(kept[2].allclose(torch::full({4, 6}, 2.145897)));
    REQUIRE(qwen.native());
    CHECK((native_grid(*qwen.native(), 4, 6) == PatchGrid{2, 3}));
    // PIL's bicubic pixels, 32 rows and columns.
    const ImageProcessor plain =
        processor(type("Qwen2VLImageProcessor", R"("patch_size": 4,)" + kPlain), 0);
    const std::string expected = slurp(kImages + "bicubic-32.rgb");
    const Tensor pil =
        torch::from_blob(const_cast<char*>(expected.data()), {32, 32, 3}, torch::kUInt8)
            .permute({2, 0, 1})
            .to(torch::kFloat32);
    CHECK(plain.process(decode_image(slurp(kImages + "rgb.png"), "rgb.png"), {8, 8}).equal(pil));
  }

  TEST_CASE("threads share an image processor") {
    const ImageProcessor clip =
        processor(type("CLIPImageProcessor", R"("size": 8, "crop_size": 8)"), 8);
    const DecodedImage image = decode_image(slurp(kImages + "rgb.png"), "rgb.png");
    const Tensor expected = clip.process(image);
    std::array<bool, 4> equal{};
    std::vector<std::thread> threads;
    for (bool& one : equal)
      threads.emplace_back([&] { one = torch::equal(clip.process(image), expected); });
    for (std::thread& thread : threads) thread.join();
    CHECK(equal == std::array{true, true, true, true});
  }

  TEST_CASE("processor_config.json comes first") {
    const TempFolder folder;
    const std::string all = folder / "processor_config.json";
    spill(folder / "preprocessor_config.json", type("SiglipImageProcessor"));
    spill(all, R"({"image_processor": )" + type("CLIPImageProcessor", R"("crop_size": 6)") + "}");
    CHECK_NOTHROW(ImageProcessor::of(folder.path(), 6));
    CHECK(refusal([&] { ImageProcessor::of(folder.path(), 224); }) ==
          all +
              ": /image_processor/crop_size: gives images of 6 × 6 pixels, but the model expects "
              "224 × 224 pixels (change it, or the vision module's image_size)");
    spill(all, R"({"processor_class": "LlavaProcessor"})");
    CHECK_NOTHROW(ImageProcessor::of(folder.path(), 224));
  }

  TEST_CASE("what is not supported is refused with file and key") {
    CHECK(processor_refusal(type("Idefics3ImageProcessor")) ==
          "preprocessor_config.json: /image_processor_type: Idefics3ImageProcessor is not "
          "supported (use a vision model with the image processor of CLIP, SigLIP, LLaVA-1.5, ViT, "
          "BiT, Qwen2-VL or Qwen2.5-VL)");
    CHECK(processor_refusal(type("Qwen2VLImageProcessor", R"("do_resize": false)")) ==
          "preprocessor_config.json: /do_resize: is false: sides would be no multiples of patches "
          "(set it to true)");
    CHECK(processor_refusal(type("Qwen2VLImageProcessor", R"("do_center_crop": true)"))
              .starts_with("preprocessor_config.json: /do_center_crop: "));
    CHECK(processor_refusal("{}") ==
          "preprocessor_config.json: has no image_processor_type (add it, for example "
          "\"CLIPImageProcessor\")");
    CHECK(processor_refusal(type("CLIPImageProcessor", R"("resample": 1)")) ==
          "preprocessor_config.json: /resample: Lanczos is not supported (use 2 (bilinear) or 3 "
          "(bicubic))");
    CHECK(processor_refusal(type("CLIPImageProcessor", R"("do_pad": true)")) ==
          "preprocessor_config.json: /do_pad: is supported for LlavaImageProcessor only (set it to "
          "false)");
    CHECK(processor_refusal(type("SiglipImageProcessor", R"("do_grayscale": true)"))
              .starts_with("preprocessor_config.json: /do_grayscale: "));
    CHECK(
        processor_refusal(type("SiglipImageProcessor")) ==
        "preprocessor_config.json: /size: gives images of 224 × 224 pixels, but the model expects "
        "4 × 4 pixels (change it, or the vision module's image_size)");
    CHECK(processor_refusal(type("SiglipImageProcessor", R"("size": {"height": 4, "width": 5})"))
              .starts_with("preprocessor_config.json: /size: gives images of 4 × 5 pixels"));
    CHECK(processor_refusal(type("SiglipImageProcessor", R"("size": {"shortest_edge": 4})")) ==
          "preprocessor_config.json: /size: keeps the aspect ratio without do_center_crop: not all "
          "images are square (write {\"height\": 4, \"width\": 4})");
    CHECK(processor_refusal(type("SiglipImageProcessor", R"("size": {"height": 4})"))
              .starts_with("preprocessor_config.json: /size: must have either height and width"));
    CHECK(processor_refusal(type("SiglipImageProcessor", R"("size": {"longest_edge": 4})"))
              .starts_with("preprocessor_config.json: /size/longest_edge: "));
    CHECK(processor_refusal(type("SiglipImageProcessor", R"("do_resize": false)"))
              .starts_with("preprocessor_config.json: /do_resize: is false without"));
    CHECK(processor_refusal(type("CLIPImageProcessor", R"("crop_size": 4, "image_std": [1, 0, 1])"))
              .starts_with("preprocessor_config.json: /image_std/1: "));
    CHECK(processor_refusal(
              type("LlavaImageProcessor", R"("crop_size": 4, "do_pad": true, "image_mean": 2)"))
              .starts_with("preprocessor_config.json: /image_mean: is no color"));
    // 1 × 20,000 pixels with the shorter edge 224 would be 224 × 4,480,000.
    DecodedImage line = gray(1, 20000, std::vector<unsigned char>(20000));
    line.name = "line.png";
    CHECK(refusal([&] { processor(type("CLIPImageProcessor"), 224).process(line); }) ==
          "line.png: has 1 × 20000 pixels, which would become 224 × 4480000 pixels before they are "
          "cropped or resized (crop the image, or remove its sample)");
  }

  // Not a test: scripts/oracle_images compares the results. Each line of the file that
  // POLYPHONY_IMAGES names has an image, the folder of an image processor or "-", the model's image
  // size, and the file for the values. The file stays empty if the image is refused.
  TEST_CASE("images named by scripts/oracle_images become raw values" *
            doctest::skip(std::getenv("POLYPHONY_IMAGES") == nullptr)) {
    std::ifstream cases(std::getenv("POLYPHONY_IMAGES"));
    std::string file, folder, size, out;
    while (std::getline(cases, file, '\t') && std::getline(cases, folder, '\t') &&
           std::getline(cases, size, '\t') && std::getline(cases, out)) {
      std::string values;
      refusal([&] {
        const DecodedImage image = decode_image(slurp(file), file);
        values.assign(image.rgb.begin(), image.rgb.end());
        if (folder == "-") return;
        const ImageProcessor processor = ImageProcessor::of(folder, std::stoi(size));
        PatchGrid grid;
        if (processor.native()) {
          const auto own = native_grid(*processor.native(), image.height, image.width);
          if (!own) throw InputError(file, "", "has no grid", "");
          grid = *own;
        }
        const Tensor result = processor.process(image, grid);
        values.assign(static_cast<const char*>(result.const_data_ptr()), result.nbytes());
      });
      spill(out, values);
    }
  }
}

}  // namespace polyphony::exec
