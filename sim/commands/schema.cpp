#include <iostream>

#include "shared/form/schema_json.h"
#include "shared/hardware/device_file_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/cli/command.h"
#include "sim/evidence/evidence_json.h"
#include "sim/evidence/profile_tables.h"
#include "sim/evidence/watch.h"
#include "sim/judged/validation_json.h"
#include "sim/replay/kernel_replay_json.h"
#include "sim/replay/replay_json.h"
#include "sim/schedules/schedules_json.h"

namespace polyphony::sim {
namespace {

struct Document {
  const char* of;
  std::string (*text)();
};
constexpr Document kDocuments[] = {
    {"scenario", [] { return scenario_schema() + "\n"; }},
    {"device", [] { return schema_text(device_file_form(), "Polyphony device file, form 1"); }},
    {"simulate", step_schema},
    {"plan", plan_schema},
    {"joint", joint_schema},
    {"stream", stream_schema},
    {"segments", segments_schema},
    {"trace", trace_schema},
    {"ask", ask_schema},
    {"import", import_schema},
    {"emit", emit_schema},
    {"sweep", sweep_schema},
    {"vary", vary_schema},
    {"phases", phase_plan_schema},
    {"why", why_schema},
    {"compare", comparison_schema},
    {"replay", replay_schema},
    {"replay-traces", kernel_replay_schema},
    {"calibrate", calibration_schema},
    {"profile", shown_schema},
    {"profile-diff", difference_schema},
    {"profile-check", check_schema},
    {"fit-smallest", smallest_schema},
    {"schedules", schedule_times_schema},
    {"watch", watch_schema},
    {"error", error_schema}};

}  // namespace

int schema_command(int argc, char** argv) {
  std::vector<std::string> names;
  for (const Document& document : kDocuments) names.emplace_back(document.of);
  Arguments args("schema",
                 "The JSON Schema of scenario files, of device files, or of an answer in JSON.",
                 "[OF]",
                 "  polyphony schema > scenario.schema.json\n  Name the file in your editor's "
                 "settings for completion and checks as you type.\n  polyphony schema sweep > "
                 "sweep.schema.json    what polyphony sweep --format json prints");
  args.add()("of", joined(names), cxxopts::value<std::string>()->default_value("scenario"));
  args.positional({"of"});
  if (args.parse(argc, argv)) return 0;
  for (const Document& document : kDocuments)
    if (args.text("of") == document.of) {
      std::cout << document.text();
      return 0;
    }
  throw InputError("polyphony schema", "", "there is no schema of \"" + args.text("of") + "\"",
                   suggest(args.text("of"), names));
}

}  // namespace polyphony::sim
