#include "cli/config_file.h"

#include <unistd.h>

#include "cli/file.h"
#include "wire/json.h"
#include "wire/yaml_config.h"

namespace bmgpu::cli {
namespace {

constexpr std::size_t kTokenBytesMax = 4096;

std::string yaml_quoted(const std::string& text) {
  std::string quoted;
  wire::append_json_string(quoted, text);  // a JSON string is a YAML double-quoted one
  return quoted;
}

Result<void> check_config(const MarketConfig& config, const std::string& source) {
  const bool plain = config.url.starts_with("http://");
  if (!plain && !config.url.starts_with("https://")) {
    return Error{ErrorCode::InvalidArgument,
                 source + ": the URL must start with https:// (or http:// on a loopback address)"};
  }
  if (!plain && config.ca_sha256.size() != 64) {
    return Error{ErrorCode::InvalidArgument,
                 source + ": ca_sha256 must be 64 hex digits for an https URL"};
  }
  return {};
}

}  // namespace

std::string config_path(const std::optional<std::string>& named, const Variables& variable) {
  if (named) {
    return *named;
  }
  if (const auto path = variable("BMCLI_CONFIG"); path && !path->empty()) {
    return *path;
  }
  if (const auto folder = variable("XDG_CONFIG_HOME"); folder && !folder->empty()) {
    return *folder + "/bmcli/config.yaml";
  }
  if (const auto home = variable("HOME"); home && !home->empty()) {
    return *home + "/.config/bmcli/config.yaml";
  }
  return {};
}

Result<MarketConfig> load_config(const std::string& path, const Variables& variable) {
  MarketConfig config;
  std::string source = path;
  if (!path.empty() && ::access(path.c_str(), F_OK) == 0) {
    Result<wire::YamlConfig> file = wire::YamlConfig::load(path);
    if (!file) {
      return file.error();
    }
    wire::YamlSection root = file->root();
    root.text("url", config.url);
    root.text("ca_sha256", config.ca_sha256);
    root.text("token", config.token);
    if (Result<void> checked = file->finish(); !checked) {
      return checked.error();
    }
  }
  if (const auto url = variable("BMCLI_URL"); url && !url->empty()) {
    config.url = *url;
    source = "BMCLI_URL";
  }
  if (const auto ca = variable("BMCLI_CA_SHA256"); ca && !ca->empty()) {
    config.ca_sha256 = *ca;
  }
  if (const auto token_file = variable("BMCLI_TOKEN_FILE"); token_file && !token_file->empty()) {
    Result<std::string> token = read_token_file(*token_file);
    if (!token) {
      return token.error();
    }
    config.token = *token;
  }
  if (config.url.empty() || config.token.empty()) {
    return Error{ErrorCode::Unauthenticated,
                 config.url.empty() ? "no market is configured" : "no token is configured"};
  }
  Result<void> checked = check_config(config, source);
  return checked ? Result<MarketConfig>(std::move(config)) : checked.error();
}

Result<void> save_config(const std::string& path, const MarketConfig& config) {
  const std::string text = "# Written by bmcli login. Holds a secret: keep it to yourself.\nurl: " +
                           yaml_quoted(config.url) +
                           "\nca_sha256: " + yaml_quoted(config.ca_sha256) +
                           "\ntoken: " + yaml_quoted(config.token) + "\n";
  return replace_file(path, text, 0600);
}

Result<std::string> read_token(std::string_view text, std::string_view source) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  const std::size_t last = text.find_last_not_of(kBlanks);
  const std::string token(first == std::string_view::npos ? ""
                                                          : text.substr(first, last - first + 1));
  const bool printable_ascii =
      token.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == std::string::npos;
  if (token.empty() || token.size() > kTokenBytesMax || !printable_ascii) {
    return Error{ErrorCode::InvalidArgument,
                 std::string(source) + " does not hold a token: one line like bm1_tenant_…"};
  }
  return token;
}

Result<std::string> read_token_file(const std::string& path) {
  Result<std::string> text = read_small_file(path, kTokenBytesMax);
  return text ? read_token(*text, path) : text.error();
}

}  // namespace bmgpu::cli
