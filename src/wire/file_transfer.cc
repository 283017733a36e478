#include "wire/file_transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "wire/hash.h"
#include "wire/http_exchange.h"

namespace bmgpu::wire {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = 256 * 1024;
constexpr std::chrono::seconds kPieceTime{30};  // for each piece to be taken or to come
constexpr std::chrono::seconds kKeepTime{120};  // for the server to hash and sync the whole
constexpr std::string_view kBlobPrefix = "/blobs/";

// A file descriptor, closed at the end.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Error file_error(const std::string& file, std::string_view action) {
  const int number = errno;
  return Error{number == ENOENT ? ErrorCode::NotFound : ErrorCode::Unavailable,
               "cannot " + std::string(action) + " " + file + ": " + std::strerror(number)};
}

Result<void> send_content(HttpExchange& exchange, const File& source, const std::string& file,
                          std::size_t size, const std::function<void(std::size_t)>& on_progress) {
  std::string piece(kPieceBytes, '\0');
  std::size_t sent = 0;
  while (sent < size) {
    const ssize_t count = ::read(source.fd(), piece.data(), std::min(kPieceBytes, size - sent));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return file_error(file, "read");
    }
    if (count == 0) {
      return Error{ErrorCode::DataLoss, file + " became shorter while it was sent; try again"};
    }
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(count));
    const Result<void> written = exchange.write(bytes, steady_clock::now() + kPieceTime);
    if (!written.ok()) {
      return written;
    }
    sent += bytes.size();
    if (on_progress) {
      on_progress(sent);
    }
  }
  return {};
}

Result<void> upload(HttpExchange& exchange, std::string_view path, const std::string& file,
                    const std::function<void(std::size_t)>& on_progress) {
  const File source(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (source.fd() < 0 || ::fstat(source.fd(), &facts) != 0) {
    return file_error(file, "open");
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  std::string lines =
      "Content-Type: application/octet-stream\r\nContent-Length: " + std::to_string(size) + "\r\n";
  if (size > 0) {
    lines += "Expect: 100-continue\r\n";  // a refusal comes before the content is sent
  }
  Result<void> sent =
      exchange.send(exchange.head("PUT", path, lines), steady_clock::now() + kPieceTime);
  if (!sent.ok()) {
    return sent;
  }
  if (exchange.status() == 100) {
    sent = send_content(exchange, source, file, size, on_progress);
    if (sent.ok()) {
      sent = exchange.read_head(steady_clock::now() + kKeepTime);
    }
    if (!sent.ok()) {
      exchange.close();
      return sent;
    }
  }
  const LinkTime deadline = steady_clock::now() + kPieceTime;
  if (exchange.status() != 200) {
    return exchange.read_error(deadline);
  }
  const Result<std::string> body = exchange.read_all(kPieceBytes, deadline);
  return body.ok() ? Result<void>() : body.error();
}

Result<void> receive_content(HttpExchange& exchange, std::string_view path, const File& target,
                             const std::string& file) {
  Sha256 hash;
  for (;;) {
    const Result<std::string> piece = exchange.read_piece(steady_clock::now() + kPieceTime);
    if (!piece.ok()) {
      return piece.error();
    }
    if (piece->empty()) {
      break;
    }
    hash.add(*piece);
    std::string_view rest = *piece;
    while (!rest.empty()) {
      const ssize_t count = ::write(target.fd(), rest.data(), rest.size());
      if (count < 0 && errno != EINTR) {
        return file_error(file, "write");
      }
      rest.remove_prefix(count < 0 ? 0 : static_cast<std::size_t>(count));
    }
  }
  if (path.starts_with(kBlobPrefix) && path.substr(kBlobPrefix.size()) != hex(hash.finish())) {
    return Error{ErrorCode::DataLoss, "the content that came is not that of " + std::string(path)};
  }
  return ::fsync(target.fd()) == 0 ? Result<void>() : file_error(file, "keep");
}

Result<void> download(HttpExchange& exchange, std::string_view path, const std::string& file) {
  const Result<void> sent =
      exchange.send(exchange.head("GET", path, ""), steady_clock::now() + kPieceTime);
  if (!sent.ok()) {
    return sent;
  }
  if (exchange.status() != 200) {
    return exchange.read_error(steady_clock::now() + kPieceTime);
  }
  const std::string temporary = file + "." + hex(random_bytes(8)) + ".part";
  const File target(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (target.fd() < 0) {
    return file_error(temporary, "create");
  }
  Result<void> kept = receive_content(exchange, path, target, temporary);
  if (kept.ok() && ::rename(temporary.c_str(), file.c_str()) != 0) {
    kept = file_error(file, "keep");
  }
  if (!kept.ok()) {
    ::unlink(temporary.c_str());
  }
  return kept;
}

}  // namespace

Result<void> put_file(HttpExchange& exchange, std::string_view path, const std::string& file,
                      const std::function<void(std::size_t)>& on_progress) {
  const Result<void> outcome = upload(exchange, path, file, on_progress);
  exchange.finish();
  return outcome;
}

Result<void> get_file(HttpExchange& exchange, std::string_view path, const std::string& file) {
  const Result<void> outcome = download(exchange, path, file);
  exchange.finish();
  return outcome;
}

}  // namespace bmgpu::wire
