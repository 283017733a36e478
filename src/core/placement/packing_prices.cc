#include "core/placement/packing_prices.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/wide.h"

namespace bmgpu::core {
namespace {

// Numbers with 32 fractional bits.
constexpr int kFractionBits = 32;
using Number = std::int64_t;
constexpr Number kOne = Number{1} << kFractionBits;
constexpr Number kTiny = kOne >> 20;  // below it a number is taken for zero
constexpr Number kNumberMax = std::numeric_limits<Number>::max();
constexpr int kStepsMax = 20'000;

// Nothing costs more than this many times its share of a GPU, however scarce its model is: what
// cannot be served anyway must not make everything else look free.
constexpr std::int64_t kPriceCap = 2;

bool serves(std::uint64_t models, std::size_t model) {
  return models == 0 || (models >> model & 1) != 0;
}

std::vector<PricedSize> sizes_of(const std::vector<TypicalRequest>& mix) {
  std::map<std::pair<std::int32_t, std::uint64_t>, PricedSize> sizes;
  for (const TypicalRequest& one : mix) {
    const RequestShape& request = one.request;
    if (request.gpus == 0 || one.count == 0) {
      continue;
    }
    const std::int32_t grains =
        (request.thousandths + kThousandthsPerGrain - 1) / kThousandthsPerGrain;
    const PricedSize fresh{grains, request.models, 0, 0, grains * kMicrosPerGpu / kGrainsPerGpu};
    PricedSize& size = sizes.try_emplace({grains, request.models}, fresh).first->second;
    size.gpus += one.count * request.gpus;
    size.cpu_millis += one.count * request.cpu_millis;  // the sum so far
  }
  std::vector<PricedSize> list;
  for (const auto& [key, size] : sizes) {
    list.push_back(size);
    list.back().cpu_millis /= size.gpus;
  }
  return list;
}

// Rows: one per size (the multiple of its demand ≤ what patterns serve), one per model (patterns ≤
// its GPUs). Basis inverse kept whole, since there are about a hundred rows.
class Simplex {
 public:
  Simplex(const std::vector<PricedSize>& sizes, const std::vector<std::int64_t>& gpus_of_model)
      : sizes_(sizes), models_(gpus_of_model.size()), rows_(sizes.size() + models_) {
    const std::int64_t fleet =
        std::accumulate(gpus_of_model.begin(), gpus_of_model.end(), std::int64_t{0});
    inverse_.assign(rows_, std::vector<Number>(rows_));
    cost_.assign(rows_, 0);
    prices_.assign(rows_, 0);
    multiple_.assign(rows_, 0);
    cap_.assign(rows_, 0);
    for (std::size_t row = 0; row < rows_; ++row) {
      inverse_[row][row] = kOne;
      // Sizes start from a little more than nothing, each from another amount: no ties, no cycles.
      values_.push_back(row < sizes.size()
                            ? kTiny + static_cast<Number>(row * 7919 % 101) * (kTiny / 101)
                            : ratio(gpus_of_model[row - sizes.size()], fleet));
    }
    const std::int64_t demand =
        std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0},
                        [](std::int64_t sum, const PricedSize& size) { return sum + size.gpus; });
    std::int64_t grains = 0;
    for (const PricedSize& size : sizes) {
      grains += size.grains * size.gpus;
    }
    for (std::size_t row = 0; row < sizes.size(); ++row) {
      multiple_[row] = std::max(ratio(sizes[row].gpus, demand), kTiny * 16);
      cap_[row] = kPriceCap * ratio(sizes[row].grains * demand, grains);
    }
  }

  // Prices of the sizes where a GPU costs kOne on average; absent if it does not end.
  std::optional<std::vector<Number>> solve(const std::vector<std::int64_t>& gpus_of_model) {
    for (int step = 0; step < kStepsMax; ++step) {
      set_prices();
      const std::optional<Column> column = entering();
      if (!column) {
        return scaled(gpus_of_model);
      }
      if (!pivot(*column)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  struct Column {
    std::vector<Number> entries;
    Number gain = 0;  // by how much the objective grows per unit
    Number cost = 0;  // its own part of the objective
  };

  static Number ratio(std::int64_t part, std::int64_t whole) {
    return static_cast<Number>(Wide{part} * kOne / std::max<std::int64_t>(whole, 1));
  }
  static Number clamp(Wide value) {
    return static_cast<Number>(std::clamp(value, -Wide{kNumberMax}, Wide{kNumberMax}));
  }

  std::optional<std::vector<Number>> scaled(const std::vector<std::int64_t>& gpus_of_model) const {
    Wide sum = 0;
    std::int64_t fleet = 0;
    for (std::size_t model = 0; model < models_; ++model) {
      sum += Wide{prices_[sizes_.size() + model]} * gpus_of_model[model];
      fleet += gpus_of_model[model];
    }
    const Number gpu = clamp(sum / std::max<std::int64_t>(fleet, 1));
    if (gpu <= kTiny) {
      return std::nullopt;
    }
    std::vector<Number> prices;
    for (std::size_t row = 0; row < sizes_.size(); ++row) {
      const Number price = std::max<Number>(prices_[row], 0);
      prices.push_back(clamp((Wide{price} << kFractionBits) / gpu));
    }
    return prices;
  }

  void set_prices() {
    for (std::size_t column = 0; column < rows_; ++column) {
      Wide sum = 0;
      for (std::size_t row = 0; row < rows_; ++row) {
        sum += Wide{cost_[row]} * inverse_[row][column];
      }
      prices_[column] = clamp(sum >> kFractionBits);
    }
  }

  void consider(std::optional<Column>& best, Column column) const {
    if (column.gain > (best ? best->gain : kTiny)) {
      best = std::move(column);
    }
  }

  std::optional<Column> entering() const {
    std::optional<Column> best;
    Wide gain = kOne;
    for (std::size_t row = 0; row < sizes_.size(); ++row) {
      gain -= Wide{prices_[row]} * multiple_[row] >> kFractionBits;
    }
    consider(best, Column{multiple_, clamp(gain), kOne});
    for (std::size_t row = 0; row < rows_; ++row) {
      if (prices_[row] < 0) {
        Column slack{std::vector<Number>(rows_), -prices_[row], 0};
        slack.entries[row] = kOne;
        consider(best, std::move(slack));
      }
    }
    for (std::size_t row = 0; row < sizes_.size(); ++row) {
      if (prices_[row] > cap_[row]) {  // leaving some of it unserved is better
        Column unserved{std::vector<Number>(rows_), prices_[row] - cap_[row], -cap_[row]};
        unserved.entries[row] = -kOne;
        consider(best, std::move(unserved));
      }
    }
    for (std::size_t model = 0; model < models_; ++model) {
      consider(best, best_pattern(model));
    }
    return best;
  }

  // The set of shares that is worth most on a GPU of the model.
  Column best_pattern(std::size_t model) const {
    std::vector<Number> worth(kGrainsPerGpu + 1);
    std::vector<std::size_t> last(kGrainsPerGpu + 1, sizes_.size());
    for (std::size_t grains = 1; grains < worth.size(); ++grains) {
      worth[grains] = worth[grains - 1];
      for (std::size_t row = 0; row < sizes_.size(); ++row) {
        const auto size = static_cast<std::size_t>(sizes_[row].grains);
        if (size <= grains && prices_[row] + worth[grains - size] > worth[grains] &&
            serves(sizes_[row].models, model)) {
          worth[grains] = prices_[row] + worth[grains - size];
          last[grains] = row;
        }
      }
    }
    Column pattern{std::vector<Number>(rows_), worth.back() - prices_[sizes_.size() + model], 0};
    pattern.entries[sizes_.size() + model] = kOne;
    for (std::size_t grains = kGrainsPerGpu; grains > 0;) {
      if (last[grains] == sizes_.size()) {
        --grains;
        continue;
      }
      pattern.entries[last[grains]] -= kOne;
      grains -= static_cast<std::size_t>(sizes_[last[grains]].grains);
    }
    return pattern;
  }

  // False if no row limits the column or the numbers outgrow their range.
  bool pivot(const Column& column) {
    std::vector<Number> direction(rows_);
    for (std::size_t row = 0; row < rows_; ++row) {
      Wide sum = 0;
      for (std::size_t i = 0; i < rows_; ++i) {
        sum += Wide{inverse_[row][i]} * column.entries[i];
      }
      direction[row] = clamp(sum >> kFractionBits);
      if (direction[row] == kNumberMax || direction[row] == -kNumberMax) {
        return false;
      }
    }
    std::optional<std::size_t> leaving;
    for (std::size_t row = 0; row < rows_; ++row) {
      if (direction[row] > kTiny && (!leaving || Wide{values_[row]} * direction[*leaving] <
                                                     Wide{values_[*leaving]} * direction[row])) {
        leaving = row;
      }
    }
    if (!leaving) {
      return false;
    }
    const std::size_t out = *leaving;
    cost_[out] = column.cost;
    divide_row(out, direction[out]);
    for (std::size_t row = 0; row < rows_; ++row) {
      if (row != out && direction[row] != 0) {
        subtract_row(row, out, direction[row]);
      }
    }
    return true;
  }

  void divide_row(std::size_t row, Number divisor) {
    values_[row] = clamp((Wide{values_[row]} << kFractionBits) / divisor);
    for (Number& entry : inverse_[row]) {
      entry = clamp((Wide{entry} << kFractionBits) / divisor);
    }
  }

  void subtract_row(std::size_t row, std::size_t other, Number factor) {
    values_[row] =
        std::max<Number>(0, clamp(values_[row] - (Wide{factor} * values_[other] >> kFractionBits)));
    for (std::size_t i = 0; i < rows_; ++i) {
      inverse_[row][i] =
          clamp(inverse_[row][i] - (Wide{factor} * inverse_[other][i] >> kFractionBits));
    }
  }

  const std::vector<PricedSize>& sizes_;
  std::size_t models_;
  std::size_t rows_;
  std::vector<std::vector<Number>> inverse_;
  std::vector<Number> values_;    // of the basic columns
  std::vector<Number> cost_;      // of the basic columns
  std::vector<Number> prices_;    // dual, by row
  std::vector<Number> multiple_;  // the column that serves the mix once more
  std::vector<Number> cap_;       // of the prices
};

}  // namespace

std::vector<PricedSize> packing_prices(const std::vector<TypicalRequest>& mix,
                                       const std::vector<std::int64_t>& gpus_of_model) {
  std::vector<PricedSize> sizes = sizes_of(mix);
  if (sizes.empty()) {
    return sizes;
  }
  Simplex simplex(sizes, gpus_of_model);
  const auto prices = simplex.solve(gpus_of_model);
  for (std::size_t row = 0; prices && row < sizes.size(); ++row) {
    sizes[row].price_micros =
        static_cast<std::int64_t>(Wide{(*prices)[row]} * kMicrosPerGpu >> kFractionBits);
  }
  return sizes;
}

}  // namespace bmgpu::core
