// The text of token ids, by a tokenizer that is loaded when it is first needed.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/tokenizer/tokenizer.h"

namespace polyphony::exec {

class TokenText {
 public:
  // `path`: a tokenizer.json.
  explicit TokenText(std::string path) : path_(std::move(path)) {}
  // Returns the text of the ids, special tokens included; ids that do not exist are left out.
  // Thread-safe. Throws InputError as Tokenizer::load() does.
  std::string of(const std::vector<std::int64_t>& ids) const {
    std::call_once(once_, [&] { tokenizer_ = Tokenizer::load(path_); });
    return tokenizer_->decode({ids.begin(), ids.end()});
  }

 private:
  std::string path_;
  mutable std::once_flag once_;
  mutable std::optional<Tokenizer> tokenizer_;
};

}  // namespace polyphony::exec
