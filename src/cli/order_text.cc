#include "cli/order_text.h"

#include <vector>

#include "bmgpu/v1/market.pb.h"
#include "cli/format.h"
#include "cli/quote_text.h"
#include "cli/words.h"
#include "wire/units.h"

namespace bmgpu::cli {
namespace {

std::string or_share(const std::string& amount) {
  return amount.empty() ? "the GPUs' share of the node" : amount;
}

std::string cpus_text(std::int64_t millis) {
  if (millis == 0) {
    return {};
  }
  std::string text = std::to_string(millis / 1000);
  if (millis % 1000 != 0) {
    const std::string thousandths = std::to_string(1000 + millis % 1000).substr(1);
    text += "." + thousandths.substr(0, thousandths.find_last_not_of('0') + 1);
  }
  return text;
}

std::string file_text(const v1::WorkFile& file) {
  return file.link_target().empty() ? file.path() + ", " + wire::print_size_short(file.size())
                                    : file.path() + " → " + file.link_target();
}

std::string job_text(const v1::JobSpec& job) {
  const std::vector<std::string> command(job.command().begin(), job.command().end());
  std::string text = text_row("image", job.image());
  text += text_row("command", command.empty() ? "the image's own" : join_words(command));
  for (const v1::EnvVar& variable : job.env()) {
    text += text_row("env", variable.name() + "=" + variable.value());
  }
  text += text_row("network", job.network() == v1::NETWORK_MODE_NONE ? "none" : "nat");
  text += text_row("name", job.name().empty() ? "none" : job.name());
  text += job.has_workdir() ? text_row("workdir", files_text(job.workdir().size())) : "";
  for (const v1::WorkFile& file : job.workdir()) {
    text += text_row("", file_text(file));
  }
  return text;
}

}  // namespace

std::string order_text(const v1::PlaceOrderRequest& request) {
  const v1::Resources& resources = request.resources();
  const std::string memory = mib_text(resources.gpu_memory_mib_min());
  std::string text = text_row("GPUs", std::to_string(resources.gpus()) + " × " +
                                          (resources.gpu().empty() ? "any" : resources.gpu()) +
                                          (memory.empty() ? "" : ", at least " + memory + " each"));
  text += text_row("duration", wire::print_duration(Duration(request.duration_ms())));
  text += text_row("CPUs", or_share(cpus_text(resources.cpu_millis())));
  text += text_row("memory", or_share(mib_text(resources.memory_mib())));
  text += text_row("scratch", or_share(mib_text(resources.scratch_mib())));
  const std::int64_t cap = request.max_price_micros_per_gpu_hour();
  text += text_row("max price",
                   cap > 0 ? wire::print_money(Money(cap)) + " per GPU-hour" : "none of its own");
  text += text_row("quote", request.quote().empty() ? "none" : request.quote());
  text += text_row("if not free", request.refuse_if_unavailable() ? "never waits" : "waits");
  text +=
      text_row("restart", request.restart() == v1::RESTART_POLICY_NEVER ? "never" : "host-failure");
  return text + job_text(request.job());
}

}  // namespace bmgpu::cli
