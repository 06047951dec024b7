// `polyphony replay`, which sim/commands/main.cpp picks.
#pragma once

namespace polyphony::sim {

int replay_command(int argc, char** argv);

}  // namespace polyphony::sim
