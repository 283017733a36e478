// bmd's configuration: one YAML file, every key in docs/reference/bmd-config.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/types.h"
#include "wire/log.h"

namespace bmgpu::controld {

struct HostPort {
  std::string host;  // IPv4 or IPv6 literal, without brackets
  std::uint16_t port = 0;
};
// "127.0.0.1:7443", "[::1]:7443"; port 0 = any free one.
Result<HostPort> parse_host_port(std::string_view text);
std::string to_text(const HostPort& address);

enum class TlsMode { Auto, Files, Off };

struct ConfigLimits {
  std::int64_t connections_max = 4096;
  std::int64_t streams_per_token_max = 64;
  std::int64_t body_bytes_max = 4 << 20;
  std::int64_t blob_bytes_max = std::int64_t{1} << 30;
  std::int64_t queued_requests_max = 16'384;
  std::int64_t tokens_max = 100'000;
  std::int64_t log_bytes_per_attempt_max = std::int64_t{256} << 20;
  std::int64_t log_bytes_max = std::int64_t{64} << 30;
  std::int64_t job_bytes_per_account_max = std::int64_t{256} << 20;
  std::int64_t blobs_per_account_max = 200'000;
  std::int64_t blob_bytes_per_account_max = std::int64_t{64} << 30;
  std::int64_t blob_kept_hours = 7 * 24;
};

struct Config {
  std::string state_dir = "/var/lib/bmd";
  HostPort listen{"127.0.0.1", 7443};
  HostPort heartbeat_listen{"127.0.0.1", 7444};
  std::string advertise_host;  // what others connect to; empty = the host of `listen`
  TlsMode tls_mode = TlsMode::Auto;
  std::string tls_certificate;
  std::string tls_key;
  std::string currency = "USD";
  std::int64_t price_default_micros_per_gpu_hour = 1'000'000;
  std::vector<core::BasePrice> prices;                      // in the order of the file
  std::vector<std::pair<std::string, std::string>> images;  // alias → reference
  core::Driver drivers_accepted = core::Driver::Simulated;
  std::chrono::milliseconds lost{3000};
  std::chrono::milliseconds fence{2000};
  wire::LogLevel log_level = wire::LogLevel::Info;
  wire::LogFormat log_format = wire::LogFormat::Text;
  ConfigLimits limits;
};

// An unknown key, a wrong type or a value out of its range is InvalidArgument with its line.
Result<Config> load_config(const std::string& file);
// `name` stands for the file in messages.
Result<Config> parse_config(std::string_view text, std::string name);

// The configuration as YAML: every key with its effective value.
std::string print_config(const Config& config);

// The part that core decides by.
core::MarketPolicy market_policy(const Config& config);

}  // namespace bmgpu::controld
