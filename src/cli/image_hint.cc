#include "cli/image_hint.h"

#include <algorithm>
#include <vector>

#include "base/nearest.h"
#include "bmgpu/v1/market.pb.h"
#include "cli/context.h"
#include "cli/text.h"

namespace bmgpu::cli {
namespace {

constexpr std::size_t kShownMax = 8;

// "image REFERENCE: what went wrong" is how a node says it.
bool image_failed(const v1::Order& order) {
  constexpr std::string_view kImage = "image ";
  const std::string_view detail = order.end_detail();
  if (order.end_reason() != v1::END_REASON_START_FAILED || !detail.starts_with(kImage)) {
    return false;
  }
  const std::string_view rest = detail.substr(kImage.size());
  return rest.substr(0, rest.find(' ')).ends_with(':');
}

// The nearest first, then the nearest of the others; what is near to none in order of the alphabet.
std::vector<std::string> by_nearness(const std::string& asked, std::vector<std::string> names) {
  std::ranges::sort(names);
  std::vector<std::string> ordered;
  while (true) {
    const auto found = std::ranges::find(names, nearest(asked, names));
    if (found == names.end()) {
      break;
    }
    ordered.push_back(*found);
    names.erase(found);
  }
  ordered.insert(ordered.end(), names.begin(), names.end());
  return ordered;
}

}  // namespace

std::string image_hint(Context& context, const v1::Order& order) {
  if (!image_failed(order)) {
    return {};
  }
  v1::GetInfoResponse info;
  if (!context.call("GetInfo", v1::GetInfoRequest(), info)) {
    return "bmcli version --json shows the market's image_aliases";
  }
  std::vector<std::string> names;
  for (const auto& [alias, reference] : info.image_aliases()) {
    names.push_back(alias);
  }
  if (names.empty()) {
    return "this market has no image aliases; name an image that its nodes can fetch, with its "
           "registry: HOST/NAME:TAG";
  }
  const std::vector<std::string> ordered = by_nearness(order.image(), std::move(names));
  std::string listed;
  for (std::size_t i = 0; i < std::min(ordered.size(), kShownMax); ++i) {
    listed += (i == 0 ? "" : ", ") + printable(ordered[i]);
  }
  return "this market's image aliases: " + listed +
         (ordered.size() > kShownMax ? " and others (bmcli version --json)" : "") +
         "; or name an image with its registry: HOST/NAME:TAG";
}

}  // namespace bmgpu::cli
