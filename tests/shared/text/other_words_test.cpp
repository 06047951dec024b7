// Hints for the words of other programs.
#include "shared/text/other_words.h"

#include <doctest/doctest.h>

#include "shared/text/json_form.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

TEST_CASE("words of Megatron-LM and DeepSpeed are mapped to keys and values of a scenario") {
  const std::vector<std::string> grid{"tp", "cp", "pp", "shard"},
      shards{"none", "optimizer", "gradients", "full"};
  CHECK(suggest("dp", grid).find("ranks / (tp * cp * pp)") != std::string::npos);
  CHECK(suggest("fsdp", grid).find("\"full\" for ZeRO-3 and FSDP") != std::string::npos);
  CHECK(suggest("zero3", shards) == "did you mean \"full\"?");
  CHECK(suggest("FSDP", shards) == "did you mean \"full\"?");
  CHECK(suggest("lr", {"learning_rate", "steps"}) == "did you mean \"learning_rate\"?");
  CHECK(suggest("gpus", {"node", "nodes"}).find("64 GPUs") != std::string::npos);
  CHECK(suggest("micro_batch_size", {"microbatches"})
            .find("global_batch / (dp * micro_batch_size)") != std::string::npos);
  CHECK(suggest("micro_batch_size", {"microbatch"}) == "did you mean \"microbatch\"?");
  CHECK(suggest("dp", {"dq", "x"}) ==
        "did you mean \"dq\"?");  // no key that replaces it is allowed
  CHECK(suggest("1F1B", {"gpipe", "1f1b"}) == "did you mean \"1f1b\"?");
  CHECK(suggest("max_grad_norm", {"clip_norm"}) == "did you mean \"clip_norm\"?");
  CHECK(suggest("epochs", {"steps"}).find("epochs * samples / global_batch") != std::string::npos);
  CHECK(suggest("data/train.jsonl", {"synthetic", "easy-vqa"}).find("{\"dataset\":") !=
        std::string::npos);
  CHECK(hint_for_other_word("nonsense", grid).empty());
}

TEST_CASE("a word that several names begin with is answered by these") {
  const std::vector<std::string> nodes{"hgx-h100", "hgx-a100-40", "hgx-a100-80"};
  CHECK(suggest("hgx-a100", nodes) == "did you mean \"hgx-a100-40\" or \"hgx-a100-80\"?");
  CHECK(suggest("hgx-h10", nodes) == "did you mean \"hgx-h100\"?");
  CHECK(suggest("layer", {"layers", "layer_times"}) == "did you mean \"layers\"?");
}

TEST_CASE("a Hugging Face configuration in place of a scenario is recognized") {
  CHECK(test::refusal(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})")
            .find("Hugging Face config.json") != std::string::npos);
}
