#include "api/blob_transfer.h"

#include <boost/beast/http/verb.hpp>

namespace bmgpu::api {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kPieceBytes = 256 * 1024;

}  // namespace

BlobTransfer::BlobTransfer(HttpSession& session)
    : session_(session),
      target_(session.target()),
      network_start_(session.edge().now()),
      disk_start_(session.edge().now()) {}

BlobTransfer::~BlobTransfer() { store().abandon(target_); }

void BlobTransfer::wait_for_disk() {
  disk_start_ = session_.edge().now();
  session_.set_deadline(SteadyTime::max());
}

void BlobTransfer::wait_for_network() {
  const ServerLimits& limits = session_.edge().limits();
  network_start_ += session_.edge().now() - disk_start_;
  disk_start_ = session_.edge().now();
  session_.set_deadline(network_start_ + limits.request_timeout +
                        std::chrono::seconds(moved_bytes_ / limits.bytes_per_second_min));
}

BlobUpload::BlobUpload(HttpSession& session, std::string name, AccountId account)
    : BlobTransfer(session) {
  wait_for_disk();
  store().begin_write(target_, std::move(name), account);
}

void BlobUpload::deliver(Delivery delivery) {
  if (delivery.error) {
    session_.fail(*delivery.error);  // this object is gone now
  } else if (finishing_) {
    session_.answer_json("{}");  // this object is gone now
  } else if (complete_) {
    finishing_ = true;
    store().finish_write(target_);
  } else {
    wait_for_network();
    session_.read_body();
  }
}

void BlobUpload::body(std::string bytes, bool complete) {
  const std::size_t max = session_.edge().limits().blob_bytes_max;
  moved_bytes_ += bytes.size();
  if (moved_bytes_ > max) {
    session_.fail_large(max);
    return;  // this object is gone now
  }
  complete_ = complete;
  wait_for_disk();
  store().write(target_, std::move(bytes));
}

void BlobUpload::written() {}  // "100 Continue"

BlobDownload::BlobDownload(HttpSession& session, std::string name) : BlobTransfer(session) {
  wait_for_disk();
  store().begin_read(target_, std::move(name));
}

void BlobDownload::deliver(Delivery delivery) {
  if (!begun_ && delivery.error) {
    session_.fail(*delivery.error);  // this object is gone now
    return;
  }
  // The head promised `size_` bytes: a file that fails or shrinks leaves only the hard way out.
  if (delivery.error || (begun_ && delivery.bytes.empty())) {
    session_.close();
    return;
  }
  wait_for_network();
  if (!begun_) {
    begun_ = true;
    size_ = delivery.number;
    session_.write("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: " +
                   std::to_string(size_) + "\r\n\r\n");
    return;
  }
  moved_bytes_ += delivery.bytes.size();
  session_.write(std::move(delivery.bytes));
}

void BlobDownload::written() {
  if (moved_bytes_ >= size_) {
    session_.finish_transfer();  // this object is gone now
    return;
  }
  wait_for_disk();
  store().read(target_, kPieceBytes);
}

void Edge::blobs(Blobs blobs) {
  check(!started_, "server: blobs() after start()");
  blob_store_ = std::make_unique<BlobStore>(std::move(blobs));
}

void HttpSession::on_blob(std::string_view name) {
  const http::verb method = parser_->get().method();
  if (method != http::verb::put && method != http::verb::get) {
    refuse(Refusal{405, "unimplemented", "a blob is stored with PUT and read with GET",
                   "\r\nAllow: GET, PUT"});
    return;
  }
  if (!is_blob_name(name)) {
    refuse(Error{ErrorCode::InvalidArgument,
                 "a blob's name is its SHA-256: 64 lower-case hexadecimal digits"});
    return;
  }
  const Result<Identity> caller = edge_.authenticate(header(http::field::authorization));
  if (!caller.ok()) {
    refuse(caller.error());
    return;
  }
  const bool put = method == http::verb::put;
  const Server::Blobs& access = edge_.blob_store()->access();
  const auto& allowed = put ? access.may_put : access.may_get;
  if (!allowed || !allowed(*caller)) {
    refuse(Error{ErrorCode::PermissionDenied,
                 put ? "this token may not store files" : "this token may not read files"});
    return;
  }
  if (put) {
    begin_upload(std::string(name), caller->account);
  } else {
    state_ = State::Transfer;
    transfer_ = std::make_unique<BlobDownload>(*this, std::string(name));
  }
}

void HttpSession::begin_upload(std::string name, AccountId account) {
  if (!may_have_body(edge_.limits().blob_bytes_max)) {
    return;
  }
  parser_->eager(true);
  state_ = State::Transfer;
  transfer_ = std::make_unique<BlobUpload>(*this, std::move(name), account);
  if (expects_continue()) {
    write_continue();
  }
}

}  // namespace bmgpu::api
