#include "shared/weights/pretrained.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "shared/error.h"
#include "shared/kernels/lora.h"
#include "shared/text/json_form.h"
#include "shared/weights/number_bytes.h"

namespace polyphony {
namespace {

constexpr const char* kOtherWeights =
    "use the weights of the model that the scenario describes, or leave \"weights\" out to begin "
    "at random";

std::string text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::string first_tensor(const TensorFamily& family) {
  std::string name = family.rows.front().tensors.front();
  if (name.ends_with("*")) name.replace(name.size() - 1, 1, "weight");
  return name;
}

// Returns all that stands in front of the family's first tensor in the folder, outside of blocks.
std::vector<std::string> roots_of(const TensorFolder& folder, const TensorFamily& family) {
  const std::string name = first_tensor(family), blocks = blocks_of(family);
  std::vector<std::string> roots;
  for (const auto& [tensor, stored] : folder.tensors()) {
    if (!tensor.ends_with(name)) continue;
    const std::string root = tensor.substr(0, tensor.size() - name.size());
    const bool in_block = !blocks.empty() && root.find(blocks) != std::string::npos;
    if ((root.empty() || root.back() == '.') && !in_block) roots.push_back(root);
  }
  return roots;
}

std::string root_of(const TensorFolder& folder, const Module& module, const TensorFamily& family) {
  const std::string name = first_tensor(family);
  const std::vector<std::string> roots = roots_of(folder, family);
  if (roots.size() == 1) return roots.front();
  if (roots.empty())
    throw InputError(
        folder.folder(), "",
        "has no tensor \"…" + name + "\", which the module \"" + module.name + "\" begins with",
        kOtherWeights);
  throw InputError(folder.folder(), "",
                   "has " + std::to_string(roots.size()) + " tensors \"…" + name + "\" (below \"" +
                       roots[0] + "\" and \"" + roots[1] +
                       "\"), so it is not clear which is the module \"" + module.name + "\"",
                   "use a folder with one such model");
}

// Throws InputError if a tensor is missing because the folder has it in a quantized form.
void check_quantized(const TensorFolder& folder, const std::string& name) {
  for (const char* end : {"_blocks", "_scales", ".qweight"}) {
    const std::string stem = end[0] == '.' ? name.substr(0, name.rfind('.')) : name;
    if (const StoredTensor* stored = folder.find(stem + end); stored != nullptr)
      throw InputError(stored->file, "/" + stem + end,
                       "belongs to a quantized weight, which is not read",
                       "use weights that are not quantized");
  }
}

const TensorFamily& family_of(const Module& module, const std::string& type,
                              const std::string& folder) {
  const TensorFamily* family = find_tensor_family(module.kind, type);
  if (family == nullptr)
    throw InputError(folder, "",
                     "weights of the model type \"" + type + "\" cannot be read for a " +
                         name(module.kind) + " module yet",
                     "supported are: " + joined(tensor_family_types(module.kind)));
  return *family;
}

}  // namespace

bool is_published(const Parameter& parameter) { return !is_low_rank(parameter.name); }

TensorNames::TensorNames(const Module& module, const TensorFamily& family)
    : module_(&module), family_(&family), root_(family.root) {}

TensorNames::TensorNames(const Module& module, const TensorFamily& family, std::string root,
                         std::string head_root)
    : module_(&module),
      family_(&family),
      root_(std::move(root)),
      head_root_(std::move(head_root)) {}

TensorNames::TensorNames(const Module& module, const TensorFamily& family,
                         const TensorFolder& folder)
    : module_(&module),
      family_(&family),
      file_(folder.folder()),
      root_(root_of(folder, module, family)) {
  // "language_model.model." has its head at "language_model.lm_head.weight", or at the very front.
  for (const auto& [tensor, stored] : folder.tensors())
    if (constexpr std::string_view kHead = "lm_head.weight"; tensor.ends_with(kHead))
      head_root_ = tensor.substr(0, tensor.size() - kHead.size());
}

std::string TensorNames::full(const std::string& name) const {
  if (name.empty()) return name;
  return name.front() == '^' ? head_root_ + name.substr(1) : root_ + name;
}

Arrangement TensorNames::of(const Parameter& parameter) const {
  FoundRow found = find_tensor_row(*family_, *module_, parameter);
  if (found.row == nullptr)
    throw InputError(file_, "",
                     "models of the type \"" + family_->types.front() + "\" have no tensor for " +
                         parameter.name,
                     kOtherWeights);
  for (std::string& name : found.tensors) name = full(name);
  Arrangement arrangement;
  arrangement.parts = found.row->arrange(*module_, parameter, found.tensors);
  arrangement.offset = found.row->offset;
  arrangement.sums = found.row->sums;
  return arrangement;
}

PretrainedModule::PretrainedModule(const Module& module, const std::string& type,
                                   std::shared_ptr<const TensorFolder> folder)
    : module_(&module),
      folder_(std::move(folder)),
      names_(module, family_of(module, type, folder_->folder()), *folder_) {}

void PretrainedModule::check() const {
  std::set<std::string> used;
  for (const Parameter& parameter : parameters(*module_)) {
    if (!is_published(parameter)) continue;
    for (const TensorPart& part : names_.of(parameter).parts) {
      const StoredTensor* stored = folder_->find(part.tensor);
      if (stored == nullptr) check_quantized(*folder_, part.tensor);
      if (stored == nullptr)
        throw InputError(
            folder_->folder(), "/" + part.tensor,
            "is missing: " + parameter.name + " needs it, with the shape " + text(part.shape),
            kOtherWeights);
      if (stored->shape != part.shape)
        throw InputError(stored->file, "/" + part.tensor,
                         "must have the shape " + text(part.shape) + " for " + parameter.name +
                             " (got " + text(stored->shape) + ")",
                         kOtherWeights);
      if (is_fp8(stored->format))
        for (const std::string& name : check_scales(*folder_, part.tensor)) used.insert(name);
      else if (!is_weight_format(stored->format))
        throw InputError(stored->file, "/" + part.tensor,
                         "must be F32, BF16, F16, F64, F8_E4M3 or F8_E5M2 (got " + stored->format +
                             "): other quantized weights are not read",
                         "use weights that are not quantized");
      used.insert(part.tensor);
    }
  }
  for (const auto& [name, stored] : folder_->tensors())
    if (!used.contains(name) && is_expected(name))
      throw InputError(
          stored.file, "/" + name,
          "belongs to the module \"" + module_->name + "\", which has no parameter for it",
          "check the module's dimensions, such as \"layers\"; a model that computes something "
          "that this program does not cannot be used");
}

// Whether some parameter must be read from a tensor. Without a root, other modules' tensors can
// only be told from those of the module's blocks.
bool PretrainedModule::is_expected(const std::string& name) const {
  const std::string &root = names_.root(), blocks = blocks_of(names_.family());
  if (!name.starts_with(root)) return false;
  const std::string below = name.substr(root.size());
  const bool in_block = !blocks.empty() && below.starts_with(blocks);
  if (root.empty() && !in_block) return false;
  if (in_block && (names_.family().later_blocks || !module_->final_norm) &&
      std::atoi(below.c_str() + blocks.size()) >= module_->layers)
    return false;
  return std::none_of(names_.family().ignored.begin(), names_.family().ignored.end(),
                      [&](const std::string& part) {
                        return part.ends_with('.') ? below.starts_with(part) : name.ends_with(part);
                      });
}

bool PretrainedModule::read(const Parameter& parameter, const ShardIndex& shard,
                            const std::string& format, std::byte* out) const {
  if (!is_published(parameter)) return false;
  std::vector<ElementRun> runs = parameter.runs(shard);
  std::sort(runs.begin(), runs.end(),
            [](const ElementRun& a, const ElementRun& b) { return a.global < b.global; });
  std::vector<const StoredTensor*> used;
  const TensorSource tensor = [&](const std::string& name) -> TensorBytes {
    const StoredTensor* stored = folder_->find(name);
    POLYPHONY_CHECK(stored != nullptr, name << " was checked");
    used.push_back(stored);
    TensorBytes bytes{folder_->data(*stored), stored->format};
    if (is_fp8(stored->format)) bytes.scales = scales_of(*folder_, name);
    return bytes;
  };
  gather(names_.of(parameter), runs, tensor, format, out);
  for (const StoredTensor* stored : used) folder_->let_go(*stored);
  return true;
}

PretrainedModel::PretrainedModel(const Model& model, const std::vector<ModuleWeights>& weights) {
  std::map<std::string, std::shared_ptr<const TensorFolder>> folders;
  for (std::size_t m = 0; m < weights.size(); ++m) {
    const ModuleWeights& own = weights[m];
    if (own.folder.empty()) continue;
    std::shared_ptr<const TensorFolder>& folder = folders[own.folder];
    if (!folder) folder = std::make_shared<const TensorFolder>(own.folder);
    modules_.emplace(ModuleId(m), PretrainedModule(model.modules[m], own.type, folder));
  }
}

const PretrainedModule* PretrainedModel::find(ModuleId module) const {
  const auto found = modules_.find(module);
  return found == modules_.end() ? nullptr : &found->second;
}

void PretrainedModel::check() const {
  for (const auto& [id, module] : modules_) module.check();
}

std::vector<std::string> begin_missing_at_random(const Model& model,
                                                 std::vector<ModuleWeights>& weights) {
  std::vector<std::string> random;
  for (std::size_t m = 0; m < weights.size(); ++m) {
    if (weights[m].folder.empty()) continue;
    const Module& module = model.modules[m];
    const TensorFamily& family = family_of(module, weights[m].type, weights[m].folder);
    if (!roots_of(TensorFolder(weights[m].folder), family).empty()) continue;
    weights[m].folder.clear();
    random.push_back(module.name);
  }
  return random;
}

}  // namespace polyphony
