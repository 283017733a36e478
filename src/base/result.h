// Result<T>: the answer of something that the outside world can make fail.
//
// Refusals by market rules are not errors (see core/reason.h). No exception crosses a module
// border: library exceptions are caught at the edge and become an Error.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace bmgpu {

// A code exists only where some caller acts differently on it. The API maps them onto Connect
// error codes and bmcli onto exit codes (docs/reference/errors.md).
enum class ErrorCode {
  InvalidArgument,    // the request is malformed or out of its documented range
  NotFound,           // no such object, or not the caller's own
  AlreadyExists,      // the name or key is taken by something else
  Refused,            // well-formed, but the rules or the present state forbid it
  Unauthenticated,    // no token, or a wrong, expired or revoked one
  PermissionDenied,   // a valid token whose role may not do this
  ResourceExhausted,  // a documented limit was reached
  Unavailable,        // a peer, device or file cannot be reached now; a retry may work
  DeadlineExceeded,   // it took longer than the documented time
  DataLoss,           // stored or received bytes are not what they must be
  Internal,           // the outside world answered in a way that no rule covers
};

// A failure for people: `message` is one sentence that says what is wrong and, where there is
// one, what to do next. It never holds a secret.
struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;

  bool operator==(const Error&) const = default;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(*-explicit-*)
  Result(Error error) : value_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  bool ok() const { return value_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & {
    check(ok(), "value() of a Result that holds an error");
    return std::get<0>(value_);
  }
  const T& value() const& {
    check(ok(), "value() of a Result that holds an error");
    return std::get<0>(value_);
  }
  T&& value() && {
    check(ok(), "value() of a Result that holds an error");
    return std::get<0>(std::move(value_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const Error& error() const {
    check(!ok(), "error() of a Result that holds a value");
    return std::get<1>(value_);
  }

 private:
  std::variant<T, Error> value_;
};

// Result of an operation that yields nothing but success.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(*-explicit-*)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  // REQUIRES: !ok().
  const Error& error() const {
    check(!ok(), "error() of a Result that holds no error");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace bmgpu
