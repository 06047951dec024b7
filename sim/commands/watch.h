// polyphony watch (sim/commands/watch.cpp).
#pragma once

namespace polyphony::sim {

int watch_command(int argc, char** argv);

}  // namespace polyphony::sim
