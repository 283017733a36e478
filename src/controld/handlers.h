// The API's methods, one file a group. Each adds its methods to the edge before it starts.
#pragma once

#include <string>

#include "base/result.h"
#include "core/core.h"

namespace bmgpu::api {
class Server;
}

namespace bmgpu::controld {

class Market;
class Rpc;
class Turn;

void add_info_methods(Rpc& rpc, Market& market);                        // GetInfo
void add_offer_methods(Rpc& rpc, Market& market);                       // ListOffers, CreateQuote
void add_order_methods(Rpc& rpc, api::Server& server, Market& market);  // PlaceOrder … WatchOrder
void add_node_methods(Rpc& rpc, Market& market);   // ListNodes, DrainNode … RemoveNode, Join
void add_token_methods(Rpc& rpc, Market& market);  // CreateToken, ListTokens, RevokeToken
void add_log_methods(api::Server& server, Market& market);             // StreamLogs
void add_event_methods(Rpc& rpc, Market& market);                      // ListEvents
void add_explain_methods(Rpc& rpc, Market& market);                    // Explain
void add_blob_methods(Rpc& rpc, api::Server& server, Market& market);  // MissingBlobs, /blobs/
void add_exec_methods(api::Server& server, Market& market);            // Exec
void add_session_methods(api::Server& server, Market& market);         // Agent/Session

// Whether a node may join under that name: it is unknown, or the node has left or is lost.
Result<void> check_node_name_free(const Turn& turn, const Market& market, const std::string& name);

// A refusal by the market's rules as an error for the wire.
Error refusal(const core::Reason& reason);

}  // namespace bmgpu::controld
