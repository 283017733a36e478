#include "bmgpu/v1/market.pb.h"
#include "controld/blob_ledger.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/rpc.h"
#include "wire/hash.h"

namespace bmgpu::controld {
namespace {

constexpr int kHashesMax = 10'000;

Result<void> check_hashes(const v1::MissingBlobsRequest& request) {
  if (request.sha256_size() > kHashesMax) {
    return Error{ErrorCode::InvalidArgument, "at most 10,000 hashes at once"};
  }
  for (const std::string& hash : request.sha256()) {
    if (hash.size() != 32) {
      return Error{ErrorCode::InvalidArgument, "a SHA-256 has 32 bytes"};
    }
  }
  return {};
}

}  // namespace

void add_blob_methods(Rpc& rpc, api::Server& server, Market& market) {
  Method<v1::MissingBlobsRequest, v1::MissingBlobsResponse> missing;
  missing.name = "bmgpu.v1.Market/MissingBlobs";
  missing.prepare = [](const api::Identity&, v1::MissingBlobsRequest& request) {
    return check_hashes(request);
  };
  missing.run = [&market](
                    Turn&, const api::Identity& caller,
                    const v1::MissingBlobsRequest& request) -> Result<v1::MissingBlobsResponse> {
    v1::MissingBlobsResponse response;
    for (const std::string& hash : request.sha256()) {
      if (!market.parts.blobs.touch(caller.account, wire::hex(hash))) {
        response.add_sha256(hash);
      }
    }
    return response;
  };
  rpc.add(std::move(missing));

  api::Server::Blobs blobs;
  blobs.directory = market.parts.dir.file("blobs");
  blobs.may_put = [](const api::Identity& caller) {
    return check_access(caller, Access::People).ok();
  };
  blobs.may_get = [](const api::Identity& caller) { return caller.role == api::Role::Node; };
  blobs.quota = &market.parts.blobs;
  server.blobs(std::move(blobs));
}

}  // namespace bmgpu::controld
