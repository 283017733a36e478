#include "cli/explanation.h"

#include "bmgpu/v1/market.pb.h"
#include "cli/text.h"

namespace bmgpu::cli {

std::string explanation_text(const v1::ExplainResponse& response, Colours colours) {
  std::string text = styled(printable(response.subject()), Style::Bold, colours) + "\n";
  for (const std::string& line : response.lines()) {
    text += "  " + printable(line) + "\n";
  }
  for (const v1::Gate& gate : response.gates()) {
    const std::string mark = gate.open() ? styled("open  ", Style::Green, colours)
                                         : styled("closed", Style::Red, colours);
    text += "  " + mark + "  " + printable(gate.name()) +
            (gate.detail().empty() ? "" : ": " + printable(gate.detail())) + "\n";
  }
  return text;
}

}  // namespace bmgpu::cli
