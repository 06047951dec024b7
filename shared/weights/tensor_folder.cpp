#include "shared/weights/tensor_folder.h"

#include <filesystem>
#include <set>
#include <utility>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/text/strict_json.h"

namespace polyphony {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// Throws InputError for a folder without safetensors files.
[[noreturn]] void refuse_folder(const std::string& folder) {
  std::error_code error;
  std::string pickled;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string kind = entry.path().extension();
    if (kind == ".bin" || kind == ".pt" || kind == ".pth" || kind == ".ckpt")
      pickled = std::min(pickled.empty() ? entry.path().filename().string() : pickled,
                         entry.path().filename().string());
  }
  if (!pickled.empty())
    throw InputError(
        folder + "/" + pickled, "",
        "is a file of pickled objects, which can run any code when it is opened; it is not read",
        "convert it once where you trust it, with the class that config.json names under "
        "\"architectures\": LlamaForCausalLM.from_pretrained(folder).save_pretrained(new_folder) "
        "writes model.safetensors; copy the tokenizer's and processor's files, too");
  throw InputError(folder, "",
                   fs::is_directory(folder, error)
                       ? std::string("has neither ") + kSingle + " nor " + kIndex
                       : std::string("is not a folder"),
                   "name a folder as transformers' save_pretrained() writes it");
}

// Returns the file of each tensor. File names must be plain names: an index must not lead
// elsewhere.
std::map<std::string, std::string> read_index(const std::string& path) {
  const JsonValue index = JsonValue::parse(read_records(path), path);
  if (!index.is_object() || !index.has("weight_map") || !index.at("weight_map").is_object())
    index.refuse("has no object \"weight_map\"", "copy the index file again");
  const JsonValue map = index.at("weight_map");
  std::map<std::string, std::string> files;
  for (const std::string& name : map.keys()) {
    const JsonValue file = map.at(name);
    if (!file.is_text() || file.text().empty() || file.text().front() == '.' ||
        file.text().find('/') != std::string::npos || !file.text().ends_with(".safetensors"))
      map.refuse_at(name, "must be the name of a .safetensors file in this folder",
                    "copy the index file again");
    files[name] = file.text();
  }
  if (files.empty()) map.refuse("lists no tensors", "copy the index file again");
  return files;
}

}  // namespace

TensorFolder::TensorFolder(const std::string& folder) : folder_(folder) {
  const std::string index = folder + "/" + kIndex, single = folder + "/" + kSingle;
  if (!fs::exists(index)) {
    if (!fs::exists(single)) refuse_folder(folder);
    add_file(single);
    return;
  }
  const std::map<std::string, std::string> listed = read_index(index);
  std::set<std::string> files;
  for (const auto& [name, file] : listed) files.insert(file);
  for (const std::string& file : files) add_file(folder + "/" + file);
  for (const auto& [name, file] : listed)
    if (const StoredTensor* found = find(name);
        found == nullptr || found->file != folder + "/" + file)
      throw InputError(index, "/weight_map/" + name, file + " does not hold this tensor",
                       "copy the index and its files again, from one model");
  for (const auto& [name, tensor] : tensors_)
    if (!listed.contains(name))
      throw InputError(tensor.file, "/" + name, std::string("is not listed by ") + kIndex,
                       "copy the index and its files again, from one model");
}
TensorFolder::~TensorFolder() = default;
TensorFolder::TensorFolder(TensorFolder&&) noexcept = default;
TensorFolder& TensorFolder::operator=(TensorFolder&&) noexcept = default;

void TensorFolder::add_file(const std::string& path) {
  const SafetensorsHeader header = read_safetensors_header(path);
  for (const auto& [name, entry] : header.entries) {
    const auto [place, fresh] =
        tensors_.insert({name,
                         {path, entry.format, entry.shape, header.data_begin + entry.begin,
                          header.data_begin + entry.end}});
    if (!fresh)
      throw InputError(path, "/" + name, "is also in " + place->second.file,
                       "copy the index and its files again, from one model");
  }
}

const StoredTensor* TensorFolder::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const std::byte* TensorFolder::data(const StoredTensor& tensor) const {
  std::unique_ptr<MappedFile>& file = files_[tensor.file];
  if (!file) file = std::make_unique<MappedFile>(tensor.file, "check the file and its permissions");
  if (std::cmp_greater(tensor.end, file->bytes().size()))
    throw InputError(tensor.file, "", "became shorter while it was read", kSafetensorsDamaged);
  return reinterpret_cast<const std::byte*>(file->bytes().data()) + tensor.begin;
}

void TensorFolder::let_go(const StoredTensor& tensor) const {
  if (const auto file = files_.find(tensor.file); file != files_.end())
    file->second->let_go(static_cast<std::size_t>(tensor.begin),
                         static_cast<std::size_t>(tensor.end - tensor.begin));
}

}  // namespace polyphony
