// Checks that every transport must pass, as functions that each rank runs; they throw if a check
// fails.
#pragma once

#include "exec/transport/communicator.h"

namespace polyphony::exec {

void adds_and_finds_maxima(Transport& transport);
void gives_all_the_same_bits(Transport& transport);
void runs_several_groups_at_once(Transport& transport);
void matches_tags_in_any_order(Transport& transport);
void sends_to_itself(Transport& transport);
void moves_nothing(Transport& transport);
void serves_several_threads(Transport& transport);
void posts_letters(Transport& transport);
// tests/exec/transport/collective_behaviour.cpp
void gathers_unequal_parts(Transport& transport);
void scatters_sums_in_group_order(Transport& transport);
void exchanges_all_to_all(Transport& transport);
void collects_nothing(Transport& transport);
void all_behaviours(Transport& transport);

}  // namespace polyphony::exec
