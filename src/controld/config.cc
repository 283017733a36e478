#include "controld/config.h"

#include <algorithm>
#include <charconv>

#include "controld/validate.h"
#include "core/market/words.h"
#include "wire/units.h"
#include "wire/yaml_config.h"

namespace bmgpu::controld {
namespace {

const std::vector<std::string> kTlsModes = {"auto", "files", "off"};
const std::vector<std::string> kDrivers = {"real", "simulated"};
const std::vector<std::string> kLevels = {"debug", "info", "warning", "error"};
const std::vector<std::string> kFormats = {"text", "json"};

constexpr std::int64_t kPriceMicrosMax = 1'000'000'000'000;  // a million units per GPU-hour

Result<std::int64_t> parse_price(std::string_view text) {
  const Result<Money> price = wire::parse_money(text);
  if (!price) {
    return price.error();
  }
  if (price->count() > kPriceMicrosMax) {
    return Error{ErrorCode::InvalidArgument, "a price is at most 1000000 units per GPU-hour"};
  }
  return price->count();
}

std::string price_text(std::int64_t micros) { return wire::print_money(Money(micros)); }

void read_address(wire::YamlSection& root, const char* key, HostPort& address) {
  std::string text = to_text(address);
  root.text(key, text);
  const Result<HostPort> parsed = parse_host_port(text);
  if (parsed) {
    address = *parsed;
  } else {
    root.reject(key, parsed.error().message);
  }
}

void read_tls(wire::YamlSection root, Config& config) {
  std::size_t mode = static_cast<std::size_t>(config.tls_mode);
  root.choice("mode", kTlsModes, mode);
  config.tls_mode = static_cast<TlsMode>(mode);
  root.text("certificate", config.tls_certificate);
  root.text("key", config.tls_key);
  const bool both = !config.tls_certificate.empty() && !config.tls_key.empty();
  const bool none = config.tls_certificate.empty() && config.tls_key.empty();
  if (config.tls_mode == TlsMode::Files && !both) {
    root.reject("mode", "mode files needs tls.certificate and tls.key");
  } else if (config.tls_mode != TlsMode::Files && !none) {
    root.reject("mode", "tls.certificate and tls.key are read only with mode files");
  }
}

void read_prices(wire::YamlSection root, Config& config) {
  std::string price = price_text(config.price_default_micros_per_gpu_hour);
  root.text("default", price);
  const Result<std::int64_t> micros = parse_price(price);
  if (micros) {
    config.price_default_micros_per_gpu_hour = *micros;
  } else {
    root.reject("default", micros.error().message);
  }
  std::vector<std::pair<std::string, std::string>> words;
  root.text_map("words", words);
  for (const auto& [name, text] : words) {
    const Result<std::int64_t> parsed = parse_price(text);
    const std::string normal = core::normalise_words(name);
    if (!parsed || normal.empty()) {
      root.reject("words", parsed ? "an empty model word" : parsed.error().message);
      return;
    }
    config.prices.push_back({normal, *parsed});
  }
}

void read_images(wire::YamlSection& root, Config& config) {
  root.text_map("images", config.images);
  for (const auto& [alias, reference] : config.images) {
    const Result<void> name = check_image(alias);
    const Result<void> target = check_image(reference);
    if (!name || !target) {
      root.reject("images", name ? target.error().message : name.error().message);
      return;
    }
  }
}

void read_liveness(wire::YamlSection root, Config& config) {
  std::int64_t lost = config.lost.count();
  std::int64_t fence = config.fence.count();
  root.integer("lost_ms", lost, 1000, 600'000);
  root.integer("fence_ms", fence, 500, 599'000);
  if (fence + 1000 > lost) {
    root.reject("lost_ms", "must be at least 1000 more than liveness.fence_ms");
  }
  config.lost = std::chrono::milliseconds(lost);
  config.fence = std::chrono::milliseconds(fence);
}

void read_log(wire::YamlSection root, Config& config) {
  auto level = static_cast<std::size_t>(config.log_level);
  auto format = static_cast<std::size_t>(config.log_format);
  root.choice("level", kLevels, level);
  root.choice("format", kFormats, format);
  config.log_level = static_cast<wire::LogLevel>(level);
  config.log_format = static_cast<wire::LogFormat>(format);
}

void read_limits(wire::YamlSection root, ConfigLimits& limits) {
  root.integer("connections_max", limits.connections_max, 8, 1'000'000);
  root.integer("streams_per_token_max", limits.streams_per_token_max, 1, 100'000);
  root.integer("body_bytes_max", limits.body_bytes_max, 64 << 10, 64 << 20);
  root.integer("blob_bytes_max", limits.blob_bytes_max, 1 << 20, std::int64_t{1} << 40);
  root.integer("queued_requests_max", limits.queued_requests_max, 64, 1'000'000);
  root.integer("tokens_max", limits.tokens_max, 16, 10'000'000);
  root.integer("log_bytes_per_attempt_max", limits.log_bytes_per_attempt_max, 1 << 20,
               std::int64_t{1} << 40);
  root.integer("log_bytes_max", limits.log_bytes_max, 1 << 20, std::int64_t{1} << 50);
  root.integer("job_bytes_per_account_max", limits.job_bytes_per_account_max, 1 << 20,
               std::int64_t{1} << 40);
  root.integer("blobs_per_account_max", limits.blobs_per_account_max, 1, 1'000'000'000);
  root.integer("blob_bytes_per_account_max", limits.blob_bytes_per_account_max, 1 << 20,
               std::int64_t{1} << 50);
  root.integer("blob_kept_hours", limits.blob_kept_hours, 1, 24 * 366);
}

Result<Config> read_config(wire::YamlConfig& file) {
  Config config;
  wire::YamlSection root = file.root();
  root.text("state_dir", config.state_dir);
  if (config.state_dir.empty() || config.state_dir.front() != '/') {
    root.reject("state_dir", "must be an absolute path");
  }
  read_address(root, "listen", config.listen);
  read_address(root, "heartbeat_listen", config.heartbeat_listen);
  root.text("advertise_host", config.advertise_host);
  read_tls(root.section("tls"), config);
  root.text("currency", config.currency);
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (config.currency.size() != 3 ||
      !std::all_of(config.currency.begin(), config.currency.end(), upper)) {
    root.reject("currency", "must be three capital letters (ISO 4217), such as USD");
  }
  read_prices(root.section("prices"), config);
  read_images(root, config);
  auto drivers = static_cast<std::size_t>(config.drivers_accepted);
  root.choice("drivers_accepted", kDrivers, drivers);
  config.drivers_accepted = static_cast<core::Driver>(drivers);
  read_liveness(root.section("liveness"), config);
  read_log(root.section("log"), config);
  read_limits(root.section("limits"), config.limits);
  const Result<void> checked = file.finish();
  if (!checked) {
    return checked.error();
  }
  return config;
}

// A YAML double-quoted scalar.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + "\"";
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  const Error bad{ErrorCode::InvalidArgument,
                  "'" + std::string(text) +
                      "' is not an address: write HOST:PORT such as 127.0.0.1:7443 or [::1]:7443"};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return bad;
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad;
  }
  HostPort address{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || host.empty()) {
    return bad;
  }
  return address;
}

std::string to_text(const HostPort& address) {
  const bool six = address.host.find(':') != std::string::npos;
  return (six ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Result<Config> load_config(const std::string& file) {
  Result<wire::YamlConfig> yaml = wire::YamlConfig::load(file);
  return yaml ? read_config(*yaml) : Result<Config>(yaml.error());
}

Result<Config> parse_config(std::string_view text, std::string name) {
  Result<wire::YamlConfig> yaml = wire::YamlConfig::parse(text, std::move(name));
  return yaml ? read_config(*yaml) : Result<Config>(yaml.error());
}

std::string print_config(const Config& config) {
  std::string out;
  const auto text = [&out](std::string_view key, std::string_view value) {
    out.append(key).append(": ").append(quoted(value)).append("\n");
  };
  const auto word = [&out](std::string_view key, std::string_view value) {
    out.append(key).append(": ").append(value).append("\n");
  };
  const auto number = [&word](std::string_view key, std::int64_t value) {
    word(key, std::to_string(value));
  };
  text("state_dir", config.state_dir);
  text("listen", to_text(config.listen));
  text("heartbeat_listen", to_text(config.heartbeat_listen));
  text("advertise_host", config.advertise_host);
  out += "tls:\n";
  word("  mode", kTlsModes[static_cast<std::size_t>(config.tls_mode)]);
  text("  certificate", config.tls_certificate);
  text("  key", config.tls_key);
  text("currency", config.currency);
  out += "prices:\n";
  text("  default", price_text(config.price_default_micros_per_gpu_hour));
  out += config.prices.empty() ? "  words: {}\n" : "  words:\n";
  for (const core::BasePrice& price : config.prices) {
    text("    " + quoted(price.words), price_text(price.micros_per_gpu_hour));
  }
  out += config.images.empty() ? "images: {}\n" : "images:\n";
  for (const auto& [alias, reference] : config.images) {
    text("  " + quoted(alias), reference);
  }
  word("drivers_accepted", kDrivers[static_cast<std::size_t>(config.drivers_accepted)]);
  out += "liveness:\n";
  number("  lost_ms", config.lost.count());
  number("  fence_ms", config.fence.count());
  out += "log:\n";
  word("  level", kLevels[static_cast<std::size_t>(config.log_level)]);
  word("  format", kFormats[static_cast<std::size_t>(config.log_format)]);
  out += "limits:\n";
  number("  connections_max", config.limits.connections_max);
  number("  streams_per_token_max", config.limits.streams_per_token_max);
  number("  body_bytes_max", config.limits.body_bytes_max);
  number("  blob_bytes_max", config.limits.blob_bytes_max);
  number("  queued_requests_max", config.limits.queued_requests_max);
  number("  tokens_max", config.limits.tokens_max);
  number("  log_bytes_per_attempt_max", config.limits.log_bytes_per_attempt_max);
  number("  log_bytes_max", config.limits.log_bytes_max);
  number("  job_bytes_per_account_max", config.limits.job_bytes_per_account_max);
  number("  blobs_per_account_max", config.limits.blobs_per_account_max);
  number("  blob_bytes_per_account_max", config.limits.blob_bytes_per_account_max);
  number("  blob_kept_hours", config.limits.blob_kept_hours);
  return out;
}

core::MarketPolicy market_policy(const Config& config) {
  core::MarketPolicy policy;
  policy.currency = config.currency;
  policy.base_prices = config.prices;
  policy.base_default_micros_per_gpu_hour = config.price_default_micros_per_gpu_hour;
  policy.drivers_accepted = config.drivers_accepted;
  return policy;
}

}  // namespace bmgpu::controld
