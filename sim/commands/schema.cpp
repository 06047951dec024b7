#include <iostream>

#include "shared/scenario/schema_json.h"
#include "sim/commands/command.h"

namespace polyphony::sim {

int schema_command(int argc, char** argv) {
  Arguments args("schema", "The JSON Schema of scenario files.", "",
                 "  polyphony schema > scenario.schema.json\n  Name the file in your editor's "
                 "settings for completion and checks as you type.");
  if (args.parse(argc, argv)) return 0;
  std::cout << scenario_schema() << "\n";
  return 0;
}

}  // namespace polyphony::sim
