#include "cli/quote_text.h"

#include "bmgpu/v1/market.pb.h"
#include "cli/format.h"
#include "cli/text.h"
#include "wire/units.h"

namespace bmgpu::cli {
std::string text_row(const std::string& name, const std::string& value) {
  constexpr std::size_t kNameWidth = 13;
  return "  " + name + std::string(kNameWidth - name.size(), ' ') + printable(value) + "\n";
}

std::string quote_text(const v1::Quote& quote, std::int64_t max_price_micros) {
  const std::string& currency = quote.currency();
  const std::string total = money_text(quote.total_micros(), currency);
  std::string text = quote.id() + ", good until " + time_text(quote.expires_unix_ms()) + "\n";
  text += text_row("GPUs", std::to_string(quote.gpus()) + " × " + gpu_text(quote.gpu()) + ", " +
                               mib_text(quote.gpu_memory_mib()) + " each");
  text += text_row("node", quote.node().empty() ? "chosen at the start" : quote.node());
  text += text_row("price", money_text(quote.price_micros_per_gpu_hour(), currency) +
                                " per GPU-hour, locked for the whole lease");
  text += text_row("time", wire::print_duration(Duration(quote.duration_ms())) + ", to " +
                               time_text(quote.end_unix_ms()) + " if it starts now");
  text += text_row("total", total + " at most; billed per second, at least 15 minutes");
  text +=
      text_row("cap", max_price_micros > 0
                          ? money_text(max_price_micros, currency) + " per GPU-hour (--max-price)"
                          : "the total above; --max-price sets one per GPU-hour");
  text += text_row("not billed", "preparing the job, a start that fails, anything after the end");
  text += text_row("failover", quote.failover().empty() ? "none" : quote.failover());
  return text;
}

std::string factors_text(const v1::Quote& quote, Colours colours) {
  constexpr std::int64_t kSlotsPerHour = 4;
  Table table({{"FACTOR"}, {"VALUE", Align::Right}, {"PRICE/GPU-H AFTER IT", Align::Right}});
  for (const v1::PriceFactor& factor : quote.factors()) {
    table.add({factor.name(), factor.value(),
               money_text(factor.price_micros_after() * kSlotsPerHour, quote.currency())});
  }
  return table.text(colours);
}

}  // namespace bmgpu::cli
