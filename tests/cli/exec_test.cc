#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "bmgpu/v1/market.pb.h"
#include "command_line.h"

namespace bmgpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ExecTest : public testing::Test {
 protected:
  ExecTest() {
    bmcli.market.on<v1::GetOrderRequest, v1::Order>(
        "GetOrder", [this](const v1::GetOrderRequest& request, v1::Order& order) {
          order.set_id(request.id());
          order.set_state(state);
          return Result<void>();
        });
  }
  // Answers the start frame with these; remembers every frame.
  void answer(std::vector<v1::ExecServerFrame> frames) {
    bmcli.market.on_socket([this, frames](const std::string& message) {
      sent.emplace_back().ParseFromString(message);
      std::vector<std::string> answers;
      if (sent.back().has_start()) {
        for (const v1::ExecServerFrame& frame : frames) {
          answers.push_back(frame.SerializeAsString());
        }
      }
      return answers;
    });
  }
  static v1::ExecServerFrame out(const std::string& text) {
    v1::ExecServerFrame frame;
    frame.set_stdout(text);
    return frame;
  }
  static v1::ExecServerFrame err(const std::string& text) {
    v1::ExecServerFrame frame;
    frame.set_stderr(text);
    return frame;
  }
  static v1::ExecServerFrame exit_code(int code) {
    v1::ExecServerFrame frame;
    frame.set_exit_code(code);
    return frame;
  }

  CommandLine bmcli;
  v1::OrderState state = v1::ORDER_STATE_RUNNING;
  std::vector<v1::ExecClientFrame> sent;
};

TEST_F(ExecTest, GivesOutputAndExitCodeAsOneDocument) {
  answer({out("a\xff"), err("b"), out("c\n"), exit_code(3)});
  const Ran ran = bmcli.run({"exec", "order-1", "--json", "--", "ls", "-l", "--json"});
  EXPECT_EQ(ran.code, 6);
  ASSERT_TRUE(one_document(ran.out)) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("\"stdout\":\"a\xef\xbf\xbd"
                                 "c\\u000a\""));
  EXPECT_THAT(ran.out, HasSubstr("\"stderr\":\"b\""));
  EXPECT_THAT(ran.out, HasSubstr("\"exit_code\":3"));
  EXPECT_THAT(ran.out, HasSubstr("\"code\":\"command_failed\""));
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_THAT(sent[0].start().command(), ElementsAre("ls", "-l", "--json"));
  EXPECT_FALSE(sent[0].start().terminal());
  EXPECT_TRUE(sent[1].stdin_closed());
}

TEST_F(ExecTest, AMissingProgramIsSaidInOurWords) {
  v1::ExecServerFrame frame = exit_code(127);
  frame.set_not_started("no such program in the container: nope");
  frame.set_engine_text("Error: runc: exec failed\n");
  answer({frame});
  const Ran text = bmcli.run({"exec", "order-1", "--", "nope"});
  EXPECT_EQ(text.code, 6);
  EXPECT_THAT(text.err, HasSubstr("bmcli: no such program in the container: nope\n"));
  EXPECT_EQ(text.err.find("runc"), std::string::npos);
  const Ran json = bmcli.run({"exec", "order-1", "--json", "--", "nope"});
  ASSERT_TRUE(one_document(json.out)) << json.out;
  EXPECT_THAT(json.out, HasSubstr("\"exit_code\":127"));
  EXPECT_THAT(json.out, HasSubstr("\"code\":\"command_failed\""));
  EXPECT_THAT(json.out, HasSubstr("\"detail\":\"Error: runc: exec failed"));
}

TEST_F(ExecTest, AFailureSaysItsKind) {
  v1::ExecServerFrame frame;
  frame.set_error("there is no /x in the job");
  frame.set_error_code("not_found");
  answer({frame});
  EXPECT_EQ(bmcli.run({"exec", "order-1", "ls"}).code, 3);
}

TEST_F(ExecTest, SucceedsWithExitCodeZero) {
  answer({exit_code(0)});
  EXPECT_EQ(bmcli.run({"exec", "order-1", "true", "--json"}).code, 0);
}

TEST_F(ExecTest, SaysWhyItCannotBeRun) {
  v1::ExecServerFrame frame;
  frame.set_error("no such program");
  answer({frame});
  const Ran ran = bmcli.run({"exec", "order-1", "nope"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("no such program"));
  answer({});
  state = v1::ORDER_STATE_WAITING;
  EXPECT_THAT(bmcli.run({"exec", "order-1", "ls"}).err, HasSubstr("is not running (waiting)"));
  EXPECT_EQ(bmcli.run({"exec", "order-1"}).code, 2);
  EXPECT_EQ(bmcli.run({"exec", "order-1", "-t", "bash"}).code, 2);  // no terminal here
}

}  // namespace
}  // namespace bmgpu::cli
