// What every command works with: the environment, the configuration, and calls to the market.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/config_file.h"
#include "cli/environment.h"
#include "cli/table.h"

namespace google::protobuf {
class Message;
}

namespace bmgpu::cli {

struct CommandSpec;

enum class Output { Text, Json };

class Context {
 public:
  Context(Environment& environment, const CommandSpec& root, Output output,
          std::optional<std::string> config_option);

  Environment& environment() { return environment_; }
  const CommandSpec& root() const { return root_; }
  bool json() const { return output_ == Output::Json; }
  Colours out_colours() const;
  Colours err_colours() const;
  // Does a person sit at both ends and read what we print?
  bool can_ask() const;

  // One or more lines on standard error, made printable.
  void note(std::string_view text);

  // "" if the home folder is unknown.
  const std::string& config_path() const { return config_path_; }
  // The configured market; read once.
  Result<MarketConfig> config();
  Result<wire::Endpoint> endpoint();
  // The connection to it; made once.
  Result<wire::Client*> client();

  // A read. `method` is the bare name, "ListOffers".
  Result<void> call(std::string_view method, const google::protobuf::Message& request,
                    google::protobuf::Message& response);
  // A mutation, under a random key of 128 bits. When the connection breaks it is sent again with
  // the same key, so that it takes effect once.
  Result<void> mutate(std::string_view method, const google::protobuf::Message& request,
                      google::protobuf::Message& response);

 private:
  Environment& environment_;
  const CommandSpec& root_;
  Output output_;
  std::string config_path_;
  std::optional<Result<MarketConfig>> config_;
  std::unique_ptr<wire::Client> client_;
};

// "bmgpu.v1.Market/ListOffers"
std::string method_path(std::string_view method);

}  // namespace bmgpu::cli
