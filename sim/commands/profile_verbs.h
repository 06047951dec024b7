// polyphony profile show, diff, merge and check: profiles as they are, without measuring anything.
#pragma once

namespace polyphony::sim {

// Whether profile_verb() knows the word.
bool is_profile_verb(const char* word);
int profile_verb(int argc, char** argv);

}  // namespace polyphony::sim
