#include "cli/failure.h"

#include <utility>

namespace bmgpu::cli {
namespace {

struct Kind {
  ExitCode exit_code;
  const char* code;  // Connect's names, so that the wire and --json agree
  const char* hint;
};

Kind kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return {ExitCode::Usage, "invalid_argument", ""};
    case ErrorCode::NotFound:
      return {ExitCode::NotFound, "not_found", ""};
    case ErrorCode::AlreadyExists:
      return {ExitCode::Refused, "already_exists", ""};
    case ErrorCode::Refused:
      return {ExitCode::Refused, "failed_precondition", ""};
    case ErrorCode::Unauthenticated:
      return {ExitCode::Auth, "unauthenticated",
              "log in again: bmcli login URL, with a token from the market's operator"};
    case ErrorCode::PermissionDenied:
      return {ExitCode::Auth, "permission_denied", "bmcli version shows your role"};
    case ErrorCode::ResourceExhausted:
      return {ExitCode::Refused, "resource_exhausted", ""};
    case ErrorCode::Unavailable:
      return {ExitCode::Unreachable, "unavailable", "bmcli doctor checks the connection"};
    case ErrorCode::DeadlineExceeded:
      return {ExitCode::Unreachable, "deadline_exceeded", "bmcli doctor checks the connection"};
    case ErrorCode::DataLoss:
      return {ExitCode::Refused, "data_loss", ""};
    case ErrorCode::Internal:
      return {ExitCode::Refused, "internal", ""};
  }
  check(false, "error code: no such value");
  return {};
}

}  // namespace

Failure failure_of(const Error& error, std::string hint) {
  const Kind kind = kind_of(error.code);
  return {kind.exit_code, kind.code, error.message, hint.empty() ? kind.hint : std::move(hint)};
}

Failure usage_failure(std::string message, std::string hint) {
  return failure_of({ErrorCode::InvalidArgument, std::move(message)}, std::move(hint));
}

}  // namespace bmgpu::cli
