// Splits the rows of a tensor-parallel matrix multiplication into chunks (ModuleLayout::tp_pieces),
// so that the collective of one chunk runs in parallel with the GEMM of another:
//   sums      GEMM 0; then GEMM i + 1 overlapped with the sum of chunk i; last sum exposed
//   gathers   gather 0 exposed; then gather i + 1 overlapped with GEMM i; then the last GEMM
// With P and C the time of the whole GEMM and of the whole collective, and k equal chunks, this
// takes
//   P/k + (k − 1)/k · max(P, C) + C/k
//
// Under sequence parallelism each rank's share of the rows (shared/work/row_shares.h) is split into
// equal chunks, otherwise all rows are. The last chunks may be shorter, or empty if there are few
// rows, so all ranks of the group issue the same number of collectives, whatever their row counts.
//
// The gather or scatter of a chunk moves equal (padded) parts for every rank of the group. Its
// GEMMs have only real rows: one for all ranks with a full part of the chunk, and a smaller one for
// the last rank that has fewer rows.
//
// Does not model: small GEMMs being less efficient than the hardware profile states for their size.
// Source: the pipelined overlap of Wang et al. (ASPLOS 2023, "Overlap communication with dependent
// computation"); the split by shares and the closed form are our own.
#pragma once

#include "shared/work/row_shares.h"

namespace polyphony {

struct RowPieces {
  RowShares shares;  // with one member: all rows
  int pieces = 1;

  // How one member's full share is split into chunks.
  constexpr RowShares cut() const { return {shares.share(), pieces}; }
  constexpr int count() const { return pieces; }
  // Where the chunk begins within a member's share.
  constexpr std::int64_t begin(int piece) const { return cut().begin(piece); }
  // Rows of the chunk per member, padding included; and of all members together.
  constexpr std::int64_t each(int piece) const { return cut().count(piece); }
  constexpr std::int64_t padded(int piece) const { return each(piece) * shares.members; }
  // Number of members whose part of the chunk is full. The next member may have some rows, which
  // rest() returns; the members after it have none.
  constexpr int full(int piece) const {
    int member = 0;
    while (member < shares.members && rows(piece, member) == each(piece)) ++member;
    return member;
  }
  constexpr std::int64_t rest(int piece) const {
    return full(piece) < shares.members ? rows(piece, full(piece)) : 0;
  }
  // Real rows, without padding, that one member has in the chunk.
  constexpr std::int64_t rows(int piece, int member) const {
    return std::clamp<std::int64_t>(shares.count(member) - begin(piece), 0, each(piece));
  }
};

}  // namespace polyphony
