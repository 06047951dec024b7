#include "exec/checkpoint/safetensors.h"

#include <array>
#include <fstream>

#include "shared/checkpoint/write_safetensors_json.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

struct DtypeName {
  torch::Dtype dtype;
  const char* name;
};
constexpr std::array<DtypeName, 9> kDtypes{{{torch::kFloat32, "F32"},
                                            {torch::kFloat64, "F64"},
                                            {torch::kBFloat16, "BF16"},
                                            {torch::kFloat16, "F16"},
                                            {torch::kInt64, "I64"},
                                            {torch::kInt32, "I32"},
                                            {torch::kUInt8, "U8"},
                                            {torch::kFloat8_e4m3fn, "F8_E4M3"},
                                            {torch::kFloat8_e5m2, "F8_E5M2"}}};

}  // namespace

torch::Dtype dtype_named(const std::string& name) {
  for (const DtypeName& entry : kDtypes)
    if (name == entry.name) return entry.dtype;
  POLYPHONY_CHECK(false, "the form of the header accepts the unknown format \"" << name << "\"");
}

std::string dtype_name(torch::Dtype dtype) {
  for (const DtypeName& entry : kDtypes)
    if (entry.dtype == dtype) return entry.name;
  POLYPHONY_CHECK(false, "safetensors has no name for " << torch::toString(dtype));
}

FileDigest write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                             const std::map<std::string, std::string>& metadata,
                             const std::atomic<bool>& given_up) {
  std::vector<TensorToWrite> list;
  for (const auto& [name, tensor] : tensors)
    list.push_back({name, dtype_name(tensor.scalar_type()), tensor.sizes().vec()});
  return polyphony::write_safetensors(
      path, list, metadata, [&](std::size_t position, SyncedFile& file) {
        if (given_up) throw std::runtime_error(path + ": is not written to its end");
        const torch::Tensor data = tensors[position].tensor.detach().cpu().contiguous();
        if (data.numel() > 0) file.write(data.const_data_ptr(), data.nbytes());
      });
}

Safetensors::Safetensors(const std::string& path)
    : path_(path), header_(read_safetensors_header(path)) {}

torch::Tensor Safetensors::read(const std::string& name) const {
  const auto found = header_.entries.find(name);
  if (found == header_.entries.end())
    throw InputError(path_, "", "has no tensor \"" + name + "\"", kSafetensorsDamaged);
  const SafetensorsHeader::Entry& entry = found->second;
  torch::Tensor tensor = torch::empty(entry.shape, dtype_named(entry.format));
  std::ifstream file(path_, std::ios::binary);
  file.seekg(header_.data_begin + entry.begin);
  file.read(static_cast<char*>(tensor.data_ptr()), entry.end - entry.begin);
  if (!file)
    throw InputError(path_, "", "cannot be read at tensor \"" + name + "\"", kSafetensorsDamaged);
  return tensor;
}

}  // namespace polyphony::exec
