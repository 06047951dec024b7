// The published weights of one module: which tensors of a folder its parameters are, checked before
// training begins, and read shard by shard.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "shared/weights/module_weights.h"
#include "shared/weights/tensor_families.h"
#include "shared/weights/tensor_folder.h"

namespace polyphony {

// The names of a module's tensors in one file layout.
class TensorNames {
 public:
  // With the roots of a file that holds this module alone.
  TensorNames(const Module& module, const TensorFamily& family);
  // With given roots: in front of the module's names, and of those at the head.
  TensorNames(const Module& module, const TensorFamily& family, std::string root,
              std::string head_root);
  // With the roots found in `folder`: those in front of the family's first tensor. Throws
  // InputError if the folder has no such tensor, or several ("vision_model." and "text_model.").
  TensorNames(const Module& module, const TensorFamily& family, const TensorFolder& folder);

  // Returns where the parameter's elements stand. Throws InputError if the family has no such
  // parameter ("a Llama has no biases").
  Arrangement of(const Parameter& parameter) const;
  const std::string& root() const { return root_; }
  const TensorFamily& family() const { return *family_; }

 private:
  std::string full(const std::string& name) const;

  const Module* module_;
  const TensorFamily* family_;
  std::string file_;  // for messages
  std::string root_, head_root_;
};

class PretrainedModule {
 public:
  // Reads the headers of the folder. `type`: the model_type that names the module's tensors. Throws
  // InputError if the type has no table of names yet, or the tensors are not found.
  // `folder` is shared by the modules that are read from it. Both must outlive this object.
  PretrainedModule(const Module& module, const std::string& type,
                   std::shared_ptr<const TensorFolder> folder);

  // Throws InputError that names a parameter's tensor if it is missing, or has another shape or
  // format than expected; or a tensor below the module's root that no parameter is read from.
  void check() const;
  // Writes the elements of `shard` to `out`, in the order of its local tensor. Parameters that
  // only this program has (low-rank pairs) are not in any file: returns false and writes nothing.
  bool read(const Parameter& parameter, const ShardIndex& shard, const std::string& format,
            std::byte* out) const;
  const TensorNames& names() const { return names_; }

 private:
  bool is_expected(const std::string& tensor) const;

  const Module* module_;
  std::shared_ptr<const TensorFolder> folder_;
  TensorNames names_;
};

// The published weights of all modules of a model that have some. Folders that several modules name
// are opened once. `model` must outlive this object.
class PretrainedModel {
 public:
  // `weights`: by ModuleId; may be empty. Throws InputError as PretrainedModule does.
  PretrainedModel(const Model& model, const std::vector<ModuleWeights>& weights);
  const PretrainedModule* find(ModuleId module) const;  // null: begins at random
  void check() const;                                   // of every module

 private:
  std::map<ModuleId, PretrainedModule> modules_;
};

// Takes the folder from every module of which it has no tensors at all, so that the module begins
// at random, and returns the names of these modules. A module of which it has some tensors stays,
// and is checked. Throws InputError if a model type has no table of names yet.
std::vector<std::string> begin_missing_at_random(const Model& model,
                                                 std::vector<ModuleWeights>& weights);

// Returns whether a parameter is part of a published model, and not of a low-rank pair of LoRA.
bool is_published(const Parameter& parameter);

}  // namespace polyphony
