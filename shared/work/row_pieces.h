// Rows of a tensor-parallel product in pieces (ModuleLayout::tp_pieces), so that the collective of one runs
// beside the product of the next:
//   sums      product 0, then product i + 1 beside the sum of piece i, the last sum alone
//   gathers   gather 0 alone, then gather i + 1 beside the product of piece i, the last product alone
// Equal pieces of each member's share of the rows (shared/work/row_shares.h) under sequence parallelism, of all
// rows else; the last ones shorter or, where rows are few, empty: ranks beside each other have as many
// collectives whatever their work. A gather or scatter of a piece moves as much for every member; its product is
// one of all members with as many rows, and one of the last that has fewer. P and C the time of the whole
// product and collective, k pieces as long as each other:
//   P/k + (k − 1)/k · max(P, C) + C/k
// Not modelled: that small products are less efficient than hardware profiles say of their sizes.
// Source: the pipelined overlap of Wang et al. (ASPLOS 2023, "Overlap communication with dependent computation");
// the cut by shares and the closed form, own.
#pragma once

#include "shared/work/row_shares.h"

namespace polyphony {

struct RowPieces {
  RowShares shares;  // of one member: all rows
  int pieces = 1;

  // Of every member's share.
  constexpr RowShares cut() const { return {shares.share(), pieces}; }
  constexpr int count() const { return pieces; }
  constexpr std::int64_t begin(int piece) const { return cut().begin(piece); }
  constexpr std::int64_t each(int piece) const { return cut().count(piece); }
  constexpr std::int64_t padded(int piece) const { return each(piece) * shares.members; }
  // Members that have all rows of a piece; rows of the one after them, of which the rest have none.
  constexpr int full(int piece) const {
    int member = 0;
    while (member < shares.members && rows(piece, member) == each(piece)) ++member;
    return member;
  }
  constexpr std::int64_t rest(int piece) const {
    return full(piece) < shares.members ? rows(piece, full(piece)) : 0;
  }
  // Of a member, that there are.
  constexpr std::int64_t rows(int piece, int member) const {
    return std::clamp<std::int64_t>(shares.count(member) - begin(piece), 0, each(piece));
  }
};

}  // namespace polyphony
