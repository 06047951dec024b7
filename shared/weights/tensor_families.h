// The names and arrangements of published tensors: one table per family of models.
//
// A row relates one parameter of this program ("qkv.weight" of a block) to one or more tensors of
// the file ("self_attn.q_proj.weight", …), in both directions: training starts from the tensors,
// and an export writes them. Source of the names: files that transformers 5.23's save_pretrained()
// writes, which are those on the Hugging Face Hub.
#pragma once

#include <string>
#include <vector>

#include "shared/weights/arrangement.h"

namespace polyphony {

// Returns the parts of a parameter, for the tensors `names` of a row.
using Arrange = std::vector<TensorPart> (*)(const Module& module, const Parameter& parameter,
                                            const std::vector<std::string>& names);

struct TensorRow {
  // Name in the layer; "*" stands for "weight" or "bias", in the tensors' names too.
  const char* parameter;
  // "^" begins a name at the head's root instead of the module's; "{e}" stands for every expert.
  std::vector<const char*> tensors;
  Arrange arrange;
  double offset = 0;  // Arrangement::offset
  bool sums = false;  // Arrangement::sums
  // Whether the row is of this block (null: of every block); -1: of a layer that is no block.
  bool (*applies)(const Module& module, int block) = nullptr;
};

struct TensorFamily {
  std::vector<std::string> types;  // values of "model_type"
  ModuleKind kind = ModuleKind::language;
  std::vector<TensorRow> rows;  // the first one's tensor is searched for to find the module's root
  const char* root = "";        // in front of the names in a file of this module alone
  const char* block = "";       // in front of the names of block {i}
  // Ends of names of tensors that hold nothing that is trained; with "." at their end, beginnings
  // of names below the root, of parts that notes say are omitted.
  std::vector<const char*> ignored = {};
  // A file may hold blocks after the last one: multi-token prediction. So may that of a module
  // without a final norm, which ends before the published model does.
  bool later_blocks = false;
};

// Returns the family of a model type, or null if its tensors have no table yet. A projector's type
// is that of the whole model.
const TensorFamily* find_tensor_family(ModuleKind kind, const std::string& type);
// Returns what the names of a family's blocks begin with, below the root: "layers."; empty: the
// family has no blocks.
std::string blocks_of(const TensorFamily& family);
// Returns all model types with a table, for error messages.
std::vector<std::string> tensor_family_types(ModuleKind kind);

// The row of a parameter, and the names of its tensors below the module's roots; null if the family
// has no row for it.
struct FoundRow {
  const TensorRow* row = nullptr;
  std::vector<std::string> tensors;  // "^" and "{e}" still in place
};
FoundRow find_tensor_row(const TensorFamily& family, const Module& module,
                         const Parameter& parameter);

}  // namespace polyphony
