#include "cli/format.h"

#include <array>
#include <ctime>

#include "bmgpu/v1/market.pb.h"
#include "wire/units.h"

namespace bmgpu::cli {
namespace {

const char* reason_text(v1::EndReason reason) {
  switch (reason) {
    case v1::END_REASON_JOB_EXITED:
      return "the job ended by itself";
    case v1::END_REASON_STOPPED:
      return "it was stopped";
    case v1::END_REASON_TIME_UP:
      return "the lease's time was up";
    case v1::END_REASON_NODE_LOST:
      return "the node was lost";
    case v1::END_REASON_START_FAILED:
      return "it could not be started; not charged";
    case v1::END_REASON_DEVICE_CHECK_FAILED:
      return "the container did not hold the leased GPUs; not charged";
    case v1::END_REASON_PREPARATION_TIMEOUT:
      return "it was not ready in time; not charged";
    case v1::END_REASON_CANCELLED:
      return "it was cancelled before it started";
    case v1::END_REASON_EXPIRED:
      return "it waited too long";
    case v1::END_REASON_GPU_LOST:
      return "a GPU was lost";
    case v1::END_REASON_OUT_OF_MEMORY:
      return "the job hit its memory limit";
    case v1::END_REASON_HOST_UNAVAILABLE:
      return "the GPUs booked for it were not ready in time; not charged";
    default:
      return "the reason is newer than this bmcli";
  }
}

Cell ended_cell(const v1::Order& order) {
  if (order.end_reason() != v1::END_REASON_JOB_EXITED) {
    const v1::EndReason reason = order.end_reason();
    const bool wanted = reason == v1::END_REASON_STOPPED || reason == v1::END_REASON_CANCELLED;
    return {"ended: " + std::string(reason_text(reason)), wanted ? Style::Plain : Style::Red};
  }
  const int code = order.exit_code();
  return {"ended: exit " + std::to_string(code), code == 0 ? Style::Plain : Style::Red};
}

std::string with_detail(std::string text, const std::string& detail) {
  return detail.empty() ? text : text + ": " + detail;
}

}  // namespace

std::string time_text(std::int64_t unix_ms) {
  if (unix_ms == 0) {
    return {};
  }
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) {
    return "@" + std::to_string(unix_ms);
  }
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%F %T %Z", &local);
  return {text.data(), size};
}

std::string money_text(std::int64_t micros, std::string_view currency) {
  return wire::print_money(Money(micros)) + " " + std::string(currency);
}

std::string span_text(std::int64_t ms) {
  if (ms >= 0 && ms < 60'000) {
    const std::int64_t tenths = ms / 100;
    const std::string fraction = tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10);
    return std::to_string(tenths / 10) + fraction + "s";
  }
  return wire::print_duration(Duration(ms / 1000 * 1000));
}

std::string files_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " file" : " files");
}

std::string mib_text(std::int64_t mib) {
  return mib <= 0 ? "" : wire::print_size_short(mib * 1024 * 1024);
}

std::string gpu_text(std::string_view model) {
  constexpr std::string_view kMaker = "NVIDIA ";
  return std::string(model.starts_with(kMaker) ? model.substr(kMaker.size()) : model);
}

Cell state_cell(const v1::Order& order) {
  switch (order.state()) {
    case v1::ORDER_STATE_WAITING:
      return {with_detail("waiting", order.waiting_reason()), Style::Yellow};
    case v1::ORDER_STATE_PREPARING:
      return {with_detail("preparing", order.progress()), Style::Yellow};
    case v1::ORDER_STATE_RUNNING:
      return {"running", Style::Green};
    case v1::ORDER_STATE_ENDING:
      return {"ending", Style::Yellow};
    case v1::ORDER_STATE_BOOKED:
      return {"booked", Style::Green};
    case v1::ORDER_STATE_CANCELLED:
      return {"cancelled", Style::Yellow};
    case v1::ORDER_STATE_HELD:
      return {"held", Style::Green};
    case v1::ORDER_STATE_ENDED:
      return ended_cell(order);
    default:
      return {"unknown", Style::Red};
  }
}

bool succeeded(const v1::Order& order) {
  return order.end_reason() == v1::END_REASON_JOB_EXITED && order.has_exit_code() &&
         order.exit_code() == 0;
}

std::string end_text(const v1::Order& order) {
  std::string text = reason_text(order.end_reason());
  if (order.has_exit_code()) {
    const std::string code = "exit code " + std::to_string(order.exit_code());
    text += order.end_reason() == v1::END_REASON_JOB_EXITED ? " with " + code : " (" + code + ")";
  }
  return with_detail(text, order.end_detail());
}

}  // namespace bmgpu::cli
