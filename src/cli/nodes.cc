#include <algorithm>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/explanation.h"
#include "cli/format.h"
#include "cli/message_json.h"

namespace bmgpu::cli {
namespace {

Style state_style(const std::string& state) {
  if (state == "offered") {
    return Style::Green;
  }
  return state == "lost" || state == "not-offered" ? Style::Red : Style::Yellow;
}

// The first thing that keeps a node off the market.
std::string first_closed(const v1::Node& node) {
  const auto closed = std::ranges::find(node.gates(), false, &v1::Gate::open);
  if (closed == node.gates().end()) {
    return {};
  }
  return closed->name() + (closed->detail().empty() ? "" : ": " + closed->detail());
}

std::string nodes_table(const v1::ListNodesResponse& response, Colours colours) {
  Table table({{"NODE"},
               {"NAME"},
               {"SITE"},
               {"STATE"},
               {"GPUS"},
               {"FREE", Align::Right},
               {"LEASES", Align::Right},
               {"HEARTBEAT", Align::Right},
               {"AGENT"},
               {"CLOSED GATE"}});
  for (const v1::Node& node : response.nodes()) {
    const auto free = std::ranges::count(node.gpus(), "free", &v1::Gpu::state);
    const std::string model = node.gpus().empty() ? "" : " " + gpu_text(node.gpus(0).model());
    table.add({node.id(),
               node.name(),
               node.site(),
               {node.state(), state_style(node.state())},
               std::to_string(node.gpus_size()) + model + (node.simulated_driver() ? " (sim)" : ""),
               std::to_string(free),
               std::to_string(node.leases()),
               span_text(node.last_heartbeat_ms()) + " ago",
               node.agent_version(),
               first_closed(node)});
  }
  return table.empty() ? "" : table.text(colours);
}

Answer run_list(Context& context, const Arguments&) {
  v1::ListNodesResponse response;
  Result<void> called = context.call("ListNodes", v1::ListNodesRequest(), response);
  if (!called) {
    return called.error();
  }
  if (response.nodes().empty() && !context.json()) {
    context.note(
        "No node that you may see. To add one: bmcli token create --role node-join --name "
        "join-gpu01 --node gpu01 > join.token, then on the GPU server: bm-agent join "
        "--token-file join.token");
  }
  return {nodes_table(response, context.out_colours()), to_json(response)};
}

Answer change(Context& context, const Arguments& arguments, const char* method) {
  v1::NodeRequest request;
  request.set_node(arguments.operand(0));
  request.set_reason(arguments.value("reason").value_or(""));
  v1::Node node;
  if (Result<void> called = context.mutate(method, request, node); !called) {
    return called.error();
  }
  std::string text = node.name() + " is " + node.state();
  text += node.leases() > 0 ? "; leases on it: " + std::to_string(node.leases()) : "";
  return {text + "\n", Json::object().set("node", to_json(node))};
}

Answer run_drain(Context& context, const Arguments& arguments) {
  return change(context, arguments, "DrainNode");
}

Answer run_resume(Context& context, const Arguments& arguments) {
  return change(context, arguments, "ResumeNode");
}

Answer run_remove(Context& context, const Arguments& arguments) {
  return change(context, arguments, "RemoveNode");
}

std::string gpus_table(const v1::Node& node, Colours colours) {
  Table table({{"GPU"},
               {"UUID"},
               {"MODEL"},
               {"STATE"},
               {"HEALTH", Align::Right},
               {"TEMP", Align::Right},
               {"POWER", Align::Right},
               {"LEASE"}});
  for (const v1::Gpu& gpu : node.gpus()) {
    table.add({gpu.id(),
               gpu.uuid(),
               gpu_text(gpu.model()),
               {gpu.state(), gpu.state() == "failed" ? Style::Red : Style::Plain},
               std::to_string(gpu.health()),
               gpu.has_temperature_c() ? std::to_string(gpu.temperature_c()) + " °C" : "",
               gpu.has_power_mw() ? std::to_string(gpu.power_mw() / 1000) + " W" : "",
               gpu.lease()});
  }
  return table.empty() ? "" : table.text(colours);
}

Answer run_explain(Context& context, const Arguments& arguments) {
  const std::string wanted = arguments.operand(0);
  v1::ListNodesResponse nodes;
  if (Result<void> called = context.call("ListNodes", v1::ListNodesRequest(), nodes); !called) {
    return called.error();
  }
  const auto node = std::ranges::find_if(nodes.nodes(), [&](const v1::Node& candidate) {
    return candidate.id() == wanted || candidate.name() == wanted;
  });
  if (node == nodes.nodes().end()) {
    return Answer(failure_of({ErrorCode::NotFound, "there is no node " + wanted},
                             "bmcli nodes list shows those you may see"));
  }
  v1::ExplainRequest request;
  request.set_id(node->id());
  v1::ExplainResponse response;
  if (Result<void> called = context.call("Explain", request, response); !called) {
    return called.error();
  }
  const Colours colours = context.out_colours();
  Json document = to_json(response);
  document.set("node", to_json(*node));
  return {explanation_text(response, colours) + gpus_table(*node, colours), std::move(document)};
}

}  // namespace

CommandSpec nodes_command() {
  const OperandSpec node{.name = "NODE", .help = "Id or name"};
  const OptionSpec reason{.name = "reason", .value = "TEXT", .help = "Kept with the event"};
  CommandSpec list{.name = "list",
                   .summary = "Show all nodes and what keeps each off the market",
                   .examples = {{"bmcli nodes list", "All nodes"}},
                   .run = run_list};
  CommandSpec drain{
      .name = "drain",
      .summary = "Offer a node no more; leases on it run to their end",
      .operands = {node},
      .options = {reason},
      .examples = {{"bmcli nodes drain gpu01 --reason 'new fans'", "Before maintenance"}},
      .run = run_drain};
  CommandSpec resume{.name = "resume",
                     .summary = "Offer a drained node again",
                     .operands = {node},
                     .options = {reason},
                     .examples = {{"bmcli nodes resume gpu01", "After maintenance"}},
                     .run = run_resume};
  CommandSpec explain{
      .name = "explain",
      .summary = "Say why a node is offered or not, gate by gate, and show its GPUs",
      .operands = {node},
      .examples = {{"bmcli nodes explain gpu01", "What holds it back"}},
      .run = run_explain};
  CommandSpec remove{
      .name = "remove",
      .summary = "Forget a node that has left or is lost (operators); its name becomes free",
      .description = "Refused while a lease lives on the node or its agent is connected: drain it, "
                     "wait until its leases have ended, then run bm-agent leave on it. What the "
                     "node did stays in history.",
      .operands = {node},
      .examples = {{"bmcli nodes remove gpu01", "After bm-agent leave"}},
      .run = run_remove};
  return {.name = "nodes",
          .summary = "Look after GPU nodes (owners and operators)",
          .commands = {std::move(list), std::move(drain), std::move(resume), std::move(remove),
                       std::move(explain)}};
}

}  // namespace bmgpu::cli
