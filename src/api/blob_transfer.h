// Uploads and downloads of blobs on an HTTP session. One piece is between network and disk at a
// time, so a transfer holds little memory. Private to api.
#pragma once

#include "api/blob_store.h"
#include "api/http_session.h"

namespace bmgpu::api {

// What both directions share: the minimum rate, counted without the time our own disk takes.
class BlobTransfer : public Transfer {
 public:
  explicit BlobTransfer(HttpSession& session);
  ~BlobTransfer() override;
  void tick(SteadyTime) override {}
  void drain() override {}
  std::uint64_t token() const override { return 0; }

 protected:
  BlobStore& store() { return *session_.edge().blob_store(); }
  void wait_for_disk();
  void wait_for_network();

  HttpSession& session_;
  const HandleTarget target_;
  std::uint64_t moved_bytes_ = 0;

 private:
  SteadyTime network_start_;  // moved on by what the disk took
  SteadyTime disk_start_;
};

class BlobUpload final : public BlobTransfer {
 public:
  BlobUpload(HttpSession& session, std::string name, AccountId account);
  void body(std::string bytes, bool complete) override;
  void deliver(Delivery delivery) override;
  void written() override;

 private:
  bool complete_ = false;
  bool finishing_ = false;
};

class BlobDownload final : public BlobTransfer {
 public:
  BlobDownload(HttpSession& session, std::string name);
  void deliver(Delivery delivery) override;
  void written() override;

 private:
  bool begun_ = false;
  std::uint64_t size_ = 0;
};

}  // namespace bmgpu::api
