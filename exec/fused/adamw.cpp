#include "exec/fused/adamw.h"

#include "exec/cuda/adamw_body.h"
#include "exec/fused/run.h"

namespace polyphony::exec::kernels {

using torch::Tensor;

namespace {

constexpr std::size_t kWords = sizeof(AdamWTensor<float>) / sizeof(std::int64_t);

template <class T>
void add_words(const AdamWPiece& piece, std::vector<std::int64_t>& words) {
  static_assert(sizeof(AdamWTensor<T>) == kWords * sizeof(std::int64_t));
  const bool has_master = piece.master.defined();
  const Tensor& master = has_master ? piece.master : piece.value;
  for (const Tensor* tensor : {&piece.value, &piece.gradient, &piece.first, &piece.second, &master})
    POLYPHONY_CHECK(tensor->is_contiguous() && tensor->numel() == piece.value.numel(),
                    tensor->sizes() << " must equal " << piece.value.sizes());
  const bool aligned = all_aligned(piece.gradient, piece.first, piece.second, master) &&
                       reinterpret_cast<std::uintptr_t>(piece.value.const_data_ptr()) % 8 == 0;
  const AdamWTensor<T> tensor{write<Wide<T>>(piece.gradient),
                              write<Wide<T>>(piece.first),
                              write<Wide<T>>(piece.second),
                              write<Wide<T>>(master),
                              has_master ? write<T>(piece.value) : nullptr,
                              piece.value.numel(),
                              piece.decays ? 1 : 0,
                              aligned ? 1 : 0};
  words.resize(words.size() + kWords);
  std::memcpy(words.data() + words.size() - kWords, &tensor, sizeof tensor);
}

Tensor list_on(std::vector<std::int64_t>& words, torch::Device device) {
  if (!device.is_cpu()) return indices_on(words, device);
  return torch::from_blob(words.data(), {static_cast<std::int64_t>(words.size())}, torch::kInt64);
}

template <class T>
T* at_words(const Tensor& words) {
  return reinterpret_cast<T*>(words.data_ptr<std::int64_t>());
}

}  // namespace

void AdamWGroup::step(const std::vector<AdamWPiece>& pieces, const AdamWNumbers& numbers) {
  if (pieces.empty()) return;
  const torch::Device device = pieces[0].value.device();
  by_format(pieces[0].value.scalar_type(), [&]<class T>() {
    using W = Wide<T>;
    std::vector<std::int64_t> words;
    for (const AdamWPiece& piece : pieces) add_words<T>(piece, words);
    if (words != tensor_words_) {
      chunk_words_.clear();
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const std::int64_t packs = packs_of<W>(pieces[i].value.numel());
        for (std::int64_t first = 0; first < packs; first += kAdamWPacks)
          chunk_words_.insert(chunk_words_.end(), {static_cast<std::int64_t>(i), first});
      }
      tensor_words_ = std::move(words);
      tensors_ = list_on(tensor_words_, device);
      chunks_ = list_on(chunk_words_, device);
    }
    if (!device.is_cpu())  // the current stream may be any
      for (const Tensor* list : {&tensors_, &chunks_}) list->record_stream(current_stream(device));
    const Tensor terms = at::empty({4}, torch::dtype(torch::kFloat64).device(device));
    const auto number = [](const Tensor& x) {
      return x.defined() ? x.const_data_ptr<float>() : nullptr;
    };
    run_each(AdamWTerms{.clip = numbers.clip.defined() ? read<double>(numbers.clip) : nullptr,
                        .count = number(numbers.count),
                        .skip = number(numbers.skip),
                        .made = write<double>(terms),
                        .beta1 = numbers.beta1,
                        .beta2 = numbers.beta2,
                        .rate = numbers.rate},
             1, device);
    run_each(AdamW<T>{.tensors = at_words<const AdamWTensor<T>>(tensors_),
                      .chunks = at_words<const AdamWChunk>(chunks_),
                      .terms = read<double>(terms),
                      .keep1 = static_cast<W>(numbers.beta1),
                      .new1 = static_cast<W>(1 - numbers.beta1),
                      .keep2 = static_cast<W>(numbers.beta2),
                      .new2 = static_cast<W>(1 - numbers.beta2),
                      .epsilon = static_cast<W>(numbers.epsilon),
                      .keep = static_cast<W>(1 - numbers.rate * numbers.weight_decay)},
             chunks_.numel() / 2 * kAdamWPacks, device);
  });
}

}  // namespace polyphony::exec::kernels
