// Where the market is and who we are: bmcli's own configuration.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace bmgpu::cli {

struct MarketConfig {
  std::string url;
  std::string ca_sha256;  // empty only for http
  std::string token;
};

using Variables = std::function<std::optional<std::string>(const std::string& name)>;

// `named` (--config) or $BMCLI_CONFIG or $XDG_CONFIG_HOME/bmcli/config.yaml or
// $HOME/.config/bmcli/config.yaml; "" if none of them is set.
std::string config_path(const std::optional<std::string>& named, const Variables& variable);

// The file at `path`, with $BMCLI_URL, $BMCLI_CA_SHA256 and $BMCLI_TOKEN_FILE over it. No file is
// no mistake if the variables say it all; otherwise Unauthenticated, with what to do.
Result<MarketConfig> load_config(const std::string& path, const Variables& variable);

// Writes the file as a whole (new file, then rename), mode 0600, and the folders it needs, 0700.
Result<void> save_config(const std::string& path, const MarketConfig& config);

// A token file or standard input: one line, blanks around it dropped. Never longer than 4 KiB.
Result<std::string> read_token(std::string_view text, std::string_view source);
Result<std::string> read_token_file(const std::string& path);

}  // namespace bmgpu::cli
