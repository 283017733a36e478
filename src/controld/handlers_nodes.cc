#include "bmgpu/v1/agent.pb.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/rpc.h"
#include "controld/validate.h"
#include "controld/views.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

bool may_see(const api::Identity& caller, const NodeEntry& node) {
  return caller.role == api::Role::Operator || caller.account == node.owner;
}

// By id or name; someone else's node is not found.
Result<NodeEntry> find_node(const Market& market, const api::Identity& caller,
                            const std::string& text) {
  const Result<NodeId> id = wire::parse_id<NodeId>(text);
  std::optional<NodeEntry> node = market.parts.directory.node_by_name(text);
  if (!node && id) {
    node = market.parts.directory.node(*id);
  }
  if (!node || node->removed || !may_see(caller, *node)) {
    return Error{ErrorCode::NotFound, "there is no node " + text + "; bmcli nodes list shows them"};
  }
  return std::move(*node);
}

std::string state_text(const core::NodeRecord* record) {
  if (record == nullptr) {
    return "joining";
  }
  if (record->lost) {
    return "lost";
  }
  if (record->listing == core::NodeListing::Draining) {
    return record->leases.empty() ? "drained" : "draining";
  }
  return record->ready ? "offered" : "not-offered";
}

void add_gpus(v1::Node& view, const core::State& state, const core::NodeRecord& record,
              const std::map<std::string, GpuReading>& readings, bool show_leases) {
  for (const core::GpuRecord& gpu : record.gpus) {
    const core::GpuClassSpec& spec = core::class_spec(state, gpu.gpu_class);
    v1::Gpu& shown = *view.add_gpus();
    shown.set_id(wire::to_text(gpu.id));
    shown.set_uuid(gpu.uuid);
    shown.set_model(spec.model);
    shown.set_memory_mib(spec.memory_mib);
    shown.set_state(gpu_state_text(gpu.state));
    if (show_leases && !gpu.lease.is_none()) {
      shown.set_lease(wire::to_text(gpu.lease));
    }
    const auto reading = readings.find(gpu.uuid);
    if (reading != readings.end()) {
      shown.set_health(reading->second.health);
      if (reading->second.temperature_c) {
        shown.set_temperature_c(*reading->second.temperature_c);
      }
      if (reading->second.power_mw) {
        shown.set_power_mw(*reading->second.power_mw);
      }
    }
  }
}

v1::Node node_view(const Turn& turn, const Market& market, const api::Identity& caller,
                   const NodeEntry& node) {
  const auto found = turn.state().nodes.find(node.id);
  const core::NodeRecord* record = found == turn.state().nodes.end() ? nullptr : &found->second;
  v1::Node view;
  view.set_id(wire::to_text(node.id));
  view.set_name(node.name);
  view.set_site(node.site_name);
  view.set_owner(wire::to_text(node.owner));
  view.set_state(state_text(record));
  view.set_agent_version(market.sessions.agent_version(node.id));
  for (const GateView& gate : market.sessions.gates(node.id, turn.boot())) {
    v1::Gate& shown = *view.add_gates();
    shown.set_name(gate.name);
    shown.set_open(gate.open);
    shown.set_detail(gate.detail);
  }
  const std::optional<BootTime> silence = market.parts.liveness.silence(node.id, turn.boot());
  if (silence) {
    view.set_last_heartbeat_ms(
        std::chrono::duration_cast<std::chrono::milliseconds>(*silence).count());
  }
  if (record != nullptr) {
    view.set_cpu_millis(record->capacity.cpu_millis);
    view.set_memory_mib(record->capacity.memory_mib);
    view.set_scratch_mib(record->capacity.scratch_mib);
    view.set_simulated_driver(record->driver == core::Driver::Simulated);
    view.set_leases(static_cast<std::uint32_t>(record->leases.size()));
    add_gpus(view, turn.state(), *record, market.sessions.readings(node.id),
             caller.role == api::Role::Operator);
  }
  return view;
}

template <typename Command>
Result<v1::Node> change_listing(Turn& turn, Market& market, const api::Identity& caller,
                                const v1::NodeRequest& request) {
  const Result<NodeEntry> node = find_node(market, caller, request.node());
  if (!node) {
    return node.error();
  }
  const core::Answer answer = turn.execute(Command{node->id});
  if (const auto* refused = std::get_if<core::Refused>(&answer)) {
    return refusal(refused->reason);
  }
  return node_view(turn, market, caller, *node);
}

// After the commit: who used the tokens is cut off.
void drop_tokens(Turn& turn, const Market& market, std::vector<std::uint64_t> tokens) {
  turn.after_commit(
      [drop = market.parts.drop_token, tokens = std::move(tokens)](const Result<void>& durable) {
        for (const std::uint64_t token : tokens) {
          if (durable) {
            drop(token);
          }
        }
      });
}

Result<v1::Node> remove(Turn& turn, Market& market, const api::Identity& caller,
                        const v1::NodeRequest& request) {
  const Result<NodeEntry> node = find_node(market, caller, request.node());
  if (!node) {
    return node.error();
  }
  if (const auto why = market.sessions.why_alive(turn.state(), node->id, turn.boot())) {
    return Error{ErrorCode::Refused, node->name + " cannot be removed: " + *why};
  }
  v1::Node view = node_view(turn, market, caller, *node);
  if (turn.state().nodes.contains(node->id)) {
    const core::Answer answer = turn.execute(core::RemoveNode{node->id});
    if (const auto* refused = std::get_if<core::Refused>(&answer)) {
      return refusal(refused->reason);
    }
  }
  Directory::Documents documents;
  drop_tokens(turn, market, market.parts.directory.remove_node(node->id, turn.now(), documents));
  put_all(turn, std::move(documents));
  market.sessions.forget(node->id);
  market.parts.log.info("node removed", {{"node", view.id()}, {"name", view.name()}});
  view.set_state("removed");
  return view;
}

Result<v1::JoinResponse> join(Turn& turn, Market& market, const api::Identity& caller,
                              const v1::JoinRequest& request) {
  if (Result<void> free = check_node_name_free(turn, market, request.node_name()); !free) {
    return free.error();
  }
  Directory::Documents documents;
  const Result<Directory::Joined> joined =
      market.parts.directory.join(caller.token, request.node_name(), turn.now(), documents);
  if (!joined) {
    return joined.error();
  }
  put_all(turn, std::move(documents));
  if (turn.state().nodes.contains(joined->node.id)) {
    const core::Answer renewed = turn.execute(core::RenewNode{joined->node.id});
    check(std::holds_alternative<core::Done>(renewed), "handlers: a node that lives joins anew");
  }
  market.sessions.forget(joined->node.id);
  drop_tokens(turn, market, joined->ended_tokens);
  v1::JoinResponse response;
  response.set_node(wire::to_text(joined->node.id));
  response.set_secret(wire::to_text(wire::TokenId(joined->token)));  // revealed, never stored
  response.set_market(market.parts.dir.market());
  response.set_heartbeat_address(market.endpoints.heartbeat);
  response.set_name(joined->node.name);
  market.parts.log.info("node joined", {{"node", response.node()}, {"name", response.name()}});
  return response;
}

template <typename Command>
Method<v1::NodeRequest, v1::Node> listing_method(std::string name, Market& market) {
  Method<v1::NodeRequest, v1::Node> method;
  method.name = std::move(name);
  method.access = Access::OwnersOperators;
  method.effect = Effect::Mutation;
  method.run = [&market](Turn& turn, const api::Identity& caller,
                         const v1::NodeRequest& request) -> Result<v1::Node> {
    return change_listing<Command>(turn, market, caller, request);
  };
  return method;
}

}  // namespace

Result<void> check_node_name_free(const Turn& turn, const Market& market,
                                  const std::string& name) {
  const std::optional<NodeEntry> known = market.parts.directory.node_by_name(name);
  const std::optional<std::string> why =
      known ? market.sessions.why_alive(turn.state(), known->id, turn.boot()) : std::nullopt;
  if (why) {
    return Error{ErrorCode::AlreadyExists,
                 "a node named " + name + " is in the market; choose another name. " +
                     "To let that one join anew: " + *why};
  }
  return {};
}

void add_node_methods(Rpc& rpc, Market& market) {
  Method<v1::ListNodesRequest, v1::ListNodesResponse> list;
  list.name = "bmgpu.v1.Market/ListNodes";
  list.access = Access::OwnersOperators;
  list.run = [&market](Turn& turn, const api::Identity& caller,
                       const v1::ListNodesRequest&) -> Result<v1::ListNodesResponse> {
    v1::ListNodesResponse response;
    for (const NodeEntry& node : market.parts.directory.nodes()) {
      if (may_see(caller, node)) {
        *response.add_nodes() = node_view(turn, market, caller, node);
      }
    }
    return response;
  };
  rpc.add(std::move(list));

  rpc.add(listing_method<core::DrainNode>("bmgpu.v1.Market/DrainNode", market));
  Method<v1::NodeRequest, v1::Node> resume =
      listing_method<core::ResumeNode>("bmgpu.v1.Market/ResumeNode", market);
  resume.run = [&market, run = resume.run](Turn& turn, const api::Identity& caller,
                                           const v1::NodeRequest& request) {
    Result<v1::Node> node = run(turn, caller, request);
    if (node) {  // also the operator's word for a desired set that the node holds back
      const NodeId id = wire::parse_id<NodeId>(node->id()).value();
      market.sessions.confirm(id);
      turn.sync(id);
    }
    return node;
  };
  rpc.add(std::move(resume));

  Method<v1::NodeRequest, v1::Node> remove_method;
  remove_method.name = "bmgpu.v1.Market/RemoveNode";
  remove_method.access = Access::Operators;
  remove_method.effect = Effect::Mutation;
  remove_method.run = [&market](Turn& turn, const api::Identity& caller,
                                const v1::NodeRequest& request) {
    return remove(turn, market, caller, request);
  };
  rpc.add(std::move(remove_method));

  Method<v1::JoinRequest, v1::JoinResponse> join_method;
  join_method.name = "bmgpu.v1.Agent/Join";
  join_method.access = Access::JoiningNodes;
  join_method.effect = Effect::Mutation;
  join_method.prepare = [](const api::Identity&, v1::JoinRequest& request) {
    return check_name("the node's name", request.node_name());
  };
  join_method.run = [&market](Turn& turn, const api::Identity& caller,
                              const v1::JoinRequest& request) {
    return join(turn, market, caller, request);
  };
  join_method.reveal = [&market](v1::JoinResponse& response) {
    const Result<wire::TokenId> token = wire::parse_id<wire::TokenId>(response.secret());
    response.set_secret(market.parts.directory.secret_text(token.value().value()));
  };
  rpc.add(std::move(join_method));
}

}  // namespace bmgpu::controld
