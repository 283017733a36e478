// Every command, one per file.
#pragma once

#include "cli/command.h"

namespace bmgpu::cli {

CommandSpec login_command();
CommandSpec list_command();
CommandSpec quote_command();
CommandSpec run_command();
CommandSpec ps_command();
CommandSpec wait_command();
CommandSpec logs_command();
CommandSpec exec_command();
CommandSpec cp_command();
CommandSpec stop_command();
CommandSpec extend_command();
CommandSpec events_command();
CommandSpec explain_command();
CommandSpec nodes_command();
CommandSpec token_command();
CommandSpec doctor_command();
CommandSpec version_command();
CommandSpec completion_command();
CommandSpec commands_command();

}  // namespace bmgpu::cli
