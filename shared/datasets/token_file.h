// Token ids as Megatron-LM's indexed data sets store them: a pair of files NAME.bin, the ids of all
// sequences one after another, and NAME.idx, where each sequence begins. A sequence is a document,
// or a sentence of one.
//   NAME.idx, little-endian, without padding:
//     "MMIDIDX\0\0", version 1 (uint64), type of an id (uint8): 1 uint8, 2 int8, 3 int16, 4 int32,
//     5 int64, 8 uint16 (6 and 7 are floating-point numbers, which are no ids)
//     number of sequences n (uint64), number of document boundaries d (uint64)
//     n lengths in ids (int32), n first bytes in NAME.bin (int64), d boundaries: the sequence with
//     which a document begins, and n (int64)
// Both files are mapped into memory. The constructor reads the header and the last sequence alone,
// so that it takes no longer for a larger file; ids are read and checked when they are asked for.
//   Not read: data sets of texts and images, which have a mode for each sequence.
//   Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py (commit 00caa53a).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/data/samples.h"
#include "shared/files/mapped_file.h"

namespace polyphony {

class TokenFile {
 public:
  // `name`: NAME, or the path of one of the two files. `named_by`: where it is named, for messages
  // ("/data/source/tokens in my.json"). Throws InputError if a file is missing, truncated or of
  // another format, or the two do not belong together.
  TokenFile(const std::string& name, const std::string& named_by);

  std::int64_t tokens() const { return tokens_; }
  std::int64_t sequences() const { return sequences_; }
  // Reads the whole index. Throws InputError unless each sequence begins where the one before it
  // ends, and documents follow each other.
  void check_sequences() const;

  // Returns samples of `sequence` tokens, cut from all sequences joined in their order; the last
  // one has the rest. A sample has the tokens from its position · `sequence` on, and their labels
  // are the tokens that follow them. Throws InputError if there are fewer than two tokens, or more
  // samples than a data set may have.
  SampleList samples(std::int64_t sequence) const;
  // Returns `count` ids from token `first` on, which must exist. Throws InputError with file and
  // position if one is not below `vocabulary`.
  std::vector<std::int64_t> read(std::int64_t first, std::int64_t count,
                                 std::int64_t vocabulary) const;

 private:
  std::int64_t length(std::int64_t sequence) const;
  std::int64_t begin(std::int64_t sequence) const;     // in NAME.bin
  std::int64_t boundary(std::int64_t position) const;  // of documents
  std::int64_t sequence_at(std::int64_t byte) const;
  void read_header();
  [[noreturn]] void refuse_index(const std::string& what) const;

  MappedFile index_, ids_;
  std::uint8_t type_ = 0;
  std::int64_t id_bytes_ = 0;
  std::int64_t sequences_ = 0, boundaries_ = 0, tokens_ = 0;
};

}  // namespace polyphony
