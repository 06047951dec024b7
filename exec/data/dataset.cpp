#include "exec/data/dataset.h"

#include "exec/data/conversation_dataset.h"
#include "exec/data/easy_vqa.h"
#include "exec/data/mixture_dataset.h"
#include "exec/data/recorded_dataset.h"
#include "exec/data/synthetic_dataset.h"
#include "exec/data/text_dataset.h"
#include "exec/data/token_dataset.h"
#include "shared/scenario_io/data_set.h"

namespace polyphony::exec {

std::unique_ptr<Dataset> open_dataset(const Scenario& scenario, const std::string& default_path) {
  if (std::holds_alternative<SyntheticData>(scenario.data.source))
    return std::make_unique<SyntheticDataset>(scenario);
  if (std::holds_alternative<RecordedData>(scenario.data.source))
    return std::make_unique<RecordedDataset>(scenario);
  if (std::holds_alternative<TextData>(scenario.data.source))
    return std::make_unique<TextDataset>(scenario);
  if (std::holds_alternative<TokenData>(scenario.data.source))
    return std::make_unique<TokenDataset>(scenario);
  if (std::holds_alternative<ConversationData>(scenario.data.source))
    return std::make_unique<ConversationDataset>(scenario, index_folder(default_path));
  if (std::holds_alternative<MixtureData>(scenario.data.source))
    return std::make_unique<MixtureDataset>(scenario, default_path);
  return std::make_unique<EasyVqa>(scenario, default_path);
}

}  // namespace polyphony::exec
