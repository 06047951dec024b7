#include "shared/export/tensor_files_json.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/files/whole.h"

namespace polyphony {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct File {
  std::size_t begin = 0, end = 0;  // positions of its tensors
  std::string name;
};

std::vector<File> files_of(const std::string& stem, const std::vector<TensorToWrite>& tensors,
                           Bytes largest) {
  std::vector<File> files(1);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (bytes > 0 && bytes + tensors[i].bytes() > largest.value) {
      files.push_back({i, i, ""});
      bytes = 0;
    }
    bytes += tensors[i].bytes();
    files.back().end = i + 1;
  }
  for (std::size_t f = 0; f < files.size(); ++f) {
    char place[32] = "";
    if (files.size() > 1)
      std::snprintf(place, sizeof place, "-%05zu-of-%05zu", f + 1, files.size());
    files[f].name = stem + place + ".safetensors";
  }
  return files;
}

void write_one(const std::string& path, const File& file, const std::vector<TensorToWrite>& tensors,
               const TensorData& data) {
  const auto at = [](std::size_t position) { return static_cast<std::ptrdiff_t>(position); };
  write_safetensors(path, {tensors.begin() + at(file.begin), tensors.begin() + at(file.end)},
                    {{"format", "pt"}}, [&](std::size_t position, SyncedFile& out) {
                      const std::size_t i = file.begin + position;
                      const std::string bytes = data(i);
                      POLYPHONY_CHECK(std::cmp_equal(bytes.size(), tensors[i].bytes()),
                                      tensors[i].name << " has " << bytes.size() << " bytes");
                      out.write(bytes.data(), bytes.size());
                    });
}

}  // namespace

void write_tensor_files(const std::string& folder, const std::string& stem,
                        const std::vector<TensorToWrite>& tensors, const TensorData& data,
                        Bytes largest) {
  const std::vector<File> files = files_of(stem, tensors, largest);
  OrderedJson index = {{"metadata", {{"total_size", 0}}}, {"weight_map", OrderedJson::object()}};
  std::int64_t all = 0;
  for (const File& file : files) {
    write_one(folder + "/" + file.name, file, tensors, data);
    for (std::size_t i = file.begin; i < file.end; ++i) {
      index["weight_map"][tensors[i].name] = file.name;
      all += tensors[i].bytes();
    }
  }
  if (files.size() == 1) return;
  index["metadata"]["total_size"] = all;
  write_file(folder + "/" + stem + ".safetensors.index.json", index.dump(2) + "\n");
}

}  // namespace polyphony
