#include <gmock/gmock.h>

#include "bmgpu/v1/market.pb.h"
#include "command_line.h"
#include "wire/hash.h"

namespace bmgpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using OnMessage = FakeMarket::OnMessage;

const std::vector<std::string> kLine = {
    "run", "-g", "2", "--duration", "2h", "--image", "pytorch:2.0", "--command", "python train.py"};

std::vector<std::string> with(std::vector<std::string> line, const std::vector<std::string>& more) {
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

v1::Order order_in(v1::OrderState state) {
  v1::Order order;
  order.set_id("order-7");
  order.set_state(state);
  order.set_lease(state == v1::ORDER_STATE_WAITING ? "" : "lease-7");
  order.set_gpu("NVIDIA A100 80GB PCIe");
  order.set_gpus(2);
  order.set_node("n1");
  order.set_currency("USD");
  order.set_quote_micros(4'000'000);
  order.set_end_unix_ms(1'800'007'200'000);
  return order;
}

v1::Order ended(v1::EndReason reason, int exit_code) {
  v1::Order order = order_in(v1::ORDER_STATE_ENDED);
  order.set_end_reason(reason);
  order.set_exit_code(exit_code);
  order.set_charge_micros(500'000);
  order.set_billed_ms(42'500);
  order.set_billed_from_unix_ms(order.end_unix_ms() - 10'000);
  return order;
}

v1::LogChunk line(std::uint64_t sequence, const std::string& text, bool complete) {
  v1::LogChunk chunk;
  v1::LogLine& entry = *chunk.add_lines();
  entry.set_sequence(sequence);
  entry.set_text(text);
  chunk.set_complete(complete);
  return chunk;
}

// A market that quotes, takes the order, runs it and ends it with `end`.
class RunTest : public testing::Test {
 protected:
  RunTest() {
    bmcli.market.on<v1::CreateQuoteRequest, v1::Quote>(
        "CreateQuote", [this](const v1::CreateQuoteRequest& request, v1::Quote& quote) {
          ++quotes;
          quote.set_id("quote-" + std::to_string(quotes));
          quote.set_gpu("NVIDIA A100 80GB PCIe");
          quote.set_gpus(request.resources().gpus());
          quote.set_gpu_memory_mib(81920);
          quote.set_duration_ms(request.duration_ms());
          quote.set_start_unix_ms(1'800'000'000'000);
          quote.set_expires_unix_ms(1'800'000'000'000 + quote_lifetime_ms);
          quote.set_end_unix_ms(1'800'007'200'000);
          quote.set_price_micros_per_gpu_hour(1'000'000);
          quote.set_total_micros(4'000'000 + price_rise * quotes);
          quote.set_currency("USD");
          quote.set_node("n1");
          return Result<void>();
        });
    bmcli.market.on<v1::PlaceOrderRequest, v1::Order>(
        "PlaceOrder", [this](const v1::PlaceOrderRequest& request, v1::Order& order) {
          placed = request;
          order = order_in(v1::ORDER_STATE_PREPARING);
          return Result<void>();
        });
    bmcli.market.on_stream<v1::GetOrderRequest>(
        "WatchOrder", [this](const v1::GetOrderRequest&, const OnMessage& on_message) {
          v1::Order preparing = order_in(v1::ORDER_STATE_PREPARING);
          preparing.set_progress("image: 40 %");
          on_message(preparing.SerializeAsString());
          on_message(order_in(v1::ORDER_STATE_RUNNING).SerializeAsString());
          on_message(end.SerializeAsString());
          return Result<void>();
        });
    bmcli.market.on_stream<v1::StreamLogsRequest>(
        "StreamLogs", [](const v1::StreamLogsRequest&, const OnMessage& on_message) {
          on_message(line(1, "epoch 1", false).SerializeAsString());
          on_message(line(2, "epoch 2", true).SerializeAsString());
          return Result<void>();
        });
  }

  bool nothing_placed() const { return bmcli.market.calls("PlaceOrder").empty(); }

  CommandLine bmcli;
  int quotes = 0;
  std::int64_t quote_lifetime_ms = 60'000;
  std::int64_t price_rise = 0;
  v1::PlaceOrderRequest placed;
  std::vector<std::string> aliases = {"busybox", "pytorch:1.9", "pytorch:2.0"};
  v1::Order end = ended(v1::END_REASON_JOB_EXITED, 0);
};

TEST_F(RunTest, TheLineOfTheManualWorksAsWritten) {
  const Ran ran = bmcli.run(kLine);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "epoch 1\nepoch 2\n");
  EXPECT_THAT(ran.err, HasSubstr("2 × A100 80GB PCIe, 80.0 GiB each"));
  EXPECT_THAT(ran.err, HasSubstr("1.00 USD per GPU-hour"));
  EXPECT_THAT(ran.err, HasSubstr("4.00 USD at most"));
  EXPECT_THAT(ran.err, HasSubstr("to 2027-01-15"));
  EXPECT_THAT(ran.err, HasSubstr("not billed"));
  EXPECT_THAT(ran.err, HasSubstr("preparing: image: 40 %"));
  EXPECT_THAT(ran.err, HasSubstr("order-7 has ended: the job ended by itself with exit code 0"));
  EXPECT_THAT(ran.err, HasSubstr("ran 10s, billed 42.5s: 0.50 USD of at most 4.00 USD quoted"));
  EXPECT_EQ(placed.quote(), "quote-1");
  EXPECT_EQ(placed.resources().gpus(), 2u);
  EXPECT_EQ(placed.duration_ms(), 7'200'000);
  EXPECT_EQ(placed.job().image(), "pytorch:2.0");
  EXPECT_THAT(placed.job().command(), ElementsAre("python", "train.py"));
  EXPECT_EQ(placed.restart(), v1::RESTART_POLICY_HOST_FAILURE);
  EXPECT_EQ(placed.job().network(), v1::NETWORK_MODE_NAT);
  EXPECT_FALSE(placed.job().has_workdir());
}

TEST_F(RunTest, EveryOptionReachesTheOrder) {
  bmcli.variables["TOKEN"] = "t";
  const Ran ran = bmcli.run(
      {"run",       "-g1",         "--gpu",     "A100",  "--min-mem",  "40G",     "--duration=90m",
       "--image",   "r.io/a:1",    "--cpus",    "2.5",   "--memory",   "64G",     "--scratch",
       "100G",      "--max-price", "1.2",       "-e",    "A=b c",      "--env",   "TOKEN",
       "--network", "none",        "--restart", "never", "--name",     "train-1", "--no-wait",
       "-d",        "--",          "sh",        "-c",    "echo \"$A\""});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "order-7\n");
  const v1::Resources& resources = placed.resources();
  EXPECT_EQ(resources.gpu(), "A100");
  EXPECT_EQ(resources.gpu_memory_mib_min(), 40960);
  EXPECT_EQ(resources.cpu_millis(), 2500);
  EXPECT_EQ(resources.memory_mib(), 65536);
  EXPECT_EQ(resources.scratch_mib(), 102400);
  EXPECT_EQ(placed.max_price_micros_per_gpu_hour(), 1'200'000);
  EXPECT_TRUE(placed.refuse_if_unavailable());
  EXPECT_EQ(placed.restart(), v1::RESTART_POLICY_NEVER);
  EXPECT_EQ(placed.job().network(), v1::NETWORK_MODE_NONE);
  EXPECT_EQ(placed.job().name(), "train-1");
  ASSERT_EQ(placed.job().env_size(), 2);
  EXPECT_EQ(placed.job().env(0).value(), "b c");
  EXPECT_EQ(placed.job().env(1).value(), "t");
  EXPECT_THAT(placed.job().command(), ElementsAre("sh", "-c", "echo \"$A\""));
}

TEST_F(RunTest, JobFileGivesTheSameAndOptionsOutweighIt) {
  const std::string file = bmcli.folder().write(
      "job.yaml",
      "gpus: 2\nduration: 2h\nimage: pytorch:2.0\ncommand: python train.py\nenv: {A: x}\n");
  ASSERT_EQ(bmcli.run({"run", "-f", file, "-g", "3", "-e", "A=y", "-d"}).code, 0);
  EXPECT_EQ(placed.resources().gpus(), 3u);
  EXPECT_THAT(placed.job().command(), ElementsAre("python", "train.py"));
  EXPECT_EQ(placed.job().env(0).value(), "y");
  const std::string bad = bmcli.folder().write("bad.yaml", "gpus: 40X\nduration: 1h\nimage: a\n");
  EXPECT_THAT(bmcli.run({"run", "-f", bad}).err, HasSubstr("bad.yaml: gpus"));
}

TEST_F(RunTest, WorkdirIsUploadedOnceAndTheOrderNamesIt) {
  bmcli.folder().write("w/train.py", "print(1)");
  bmcli.folder().write("w/copy.py", "print(1)");
  bmcli.folder().write("w/known.txt", "known");
  bmcli.market.on<v1::MissingBlobsRequest, v1::MissingBlobsResponse>(
      "MissingBlobs",
      [](const v1::MissingBlobsRequest& request, v1::MissingBlobsResponse& missing) {
        EXPECT_EQ(request.sha256_size(), 2);
        for (const std::string& sha256 : request.sha256()) {
          if (sha256 == wire::as_bytes(wire::sha256("print(1)"))) {
            missing.add_sha256(sha256);
          }
        }
        return Result<void>();
      });
  const Ran ran = bmcli.run(with(kLine, {"--workdir", bmcli.folder().path("w"), "-d"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto uploads = bmcli.market.uploads();
  ASSERT_EQ(uploads.size(), 1u);
  EXPECT_EQ(uploads.begin()->first, "/blobs/" + wire::hex(wire::sha256("print(1)")));
  EXPECT_EQ(uploads.begin()->second, "print(1)");
  EXPECT_TRUE(placed.job().has_workdir());
  EXPECT_EQ(placed.job().workdir_size(), 3);
  EXPECT_THAT(ran.err, HasSubstr("uploaded 1 file,"));
}

TEST_F(RunTest, DryRunPlacesNothing) {
  const Ran ran = bmcli.run(with(kLine, {"--dry-run", "--json"}));
  EXPECT_EQ(ran.code, 0);
  ASSERT_TRUE(one_document(ran.out));
  EXPECT_THAT(ran.out, HasSubstr("\"total_micros\":4000000"));
  EXPECT_THAT(ran.out, HasSubstr("\"command\":[\"python\",\"train.py\"]"));
  EXPECT_THAT(bmcli.run(with(kLine, {"--dry-run"})).out, HasSubstr("Nothing was placed"));
  EXPECT_TRUE(nothing_placed());
}

TEST_F(RunTest, DryRunShowsAllThatWouldBeSent) {
  bmcli.folder().write("w/train.py", "print(1)");
  std::filesystem::create_symlink("train.py", bmcli.folder().path("w/link"));
  const std::string long_word(300, 'x');
  const std::vector<std::string> options = {"--dry-run", "--gpu",
                                            "A100",      "--min-mem",
                                            "40G",       "--cpus",
                                            "2.5",       "--memory",
                                            "64G",       "-e",
                                            "A=b c",     "-e",
                                            "B=\x1b[2J", "--scratch",
                                            "100G",      "--max-price",
                                            "1.2",       "--network",
                                            "none",      "--restart",
                                            "never",     "--name",
                                            "train-1",   "--no-wait",
                                            "--workdir", bmcli.folder().path("w")};
  std::vector<std::string> line = {"run", "-g", "2", "--duration", "2h", "--image", "pytorch:2.0"};
  line = with(with(line, options), {"--", "python", long_word});
  const Ran ran = bmcli.run(line);
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* shown :
       {"pytorch:2.0", "train-1", "A=b c", "B=\\x1b[2J", "A100", "40.0 GiB", "2.5", "64.0 GiB",
        "100.0 GiB", "1.20 USD", "network      none", "restart      never", "never waits",
        "train.py", "link → train.py", "2h"}) {
    EXPECT_THAT(ran.out, HasSubstr(shown));
  }
  EXPECT_THAT(ran.out, HasSubstr(long_word));
  EXPECT_TRUE(nothing_placed());
  EXPECT_TRUE(bmcli.market.uploads().empty());
}

TEST_F(RunTest, AnImageThatCannotBeHadNamesTheAliasesNearestFirst) {
  bmcli.market.on<v1::GetInfoRequest, v1::GetInfoResponse>(
      "GetInfo", [this](const v1::GetInfoRequest&, v1::GetInfoResponse& info) {
        for (const std::string& alias : aliases) {
          (*info.mutable_image_aliases())[alias] = "localhost/x:1";
        }
        return Result<void>();
      });
  end = ended(v1::END_REASON_START_FAILED, 0);
  end.clear_exit_code();
  end.set_image("pytorch:2");
  end.set_end_detail("image docker.io/library/pytorch:2: manifest unknown");
  const Ran ran = bmcli.run(kLine);
  EXPECT_EQ(ran.code, 6);
  EXPECT_THAT(ran.err, HasSubstr("this market's image aliases: pytorch:2.0, pytorch:1.9, busybox"));
  EXPECT_THAT(bmcli.run(with(kLine, {"--json"})).out, HasSubstr("image aliases: pytorch:2.0"));
  EXPECT_THAT(bmcli.run({"wait", "order-7"}).err, HasSubstr("image aliases: pytorch:2.0"));
  aliases.clear();
  EXPECT_THAT(bmcli.run(kLine).err, HasSubstr("this market has no image aliases"));
  end.set_end_detail("no such program in the image: nope");
  EXPECT_THAT(bmcli.run(kLine).err, Not(HasSubstr("image aliases")));
}

TEST_F(RunTest, AsksOnATerminalAndTakesNoForAnAnswer) {
  bmcli.terminal = true;
  for (const char* no : {"n\n", "\n", "", "maybe\n"}) {
    const Ran ran = bmcli.run(kLine, no);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("Rent it? [y/N]"));
  }
  EXPECT_TRUE(nothing_placed());
  EXPECT_EQ(bmcli.run(kLine, "y\n").code, 0);
  EXPECT_EQ(bmcli.run(with(kLine, {"-y"})).code, 0);
}

TEST_F(RunTest, HostileInputIsRefusedBeforeTheMarketIsAsked) {
  const std::string mega(1 << 20, 'x');
  const std::vector<std::vector<std::string>> lines = {
      {"run", "--duration", "1h", "--image", "-x"},
      {"run", "--duration", "1h", "--image", "a;b"},
      {"run", "--duration", "1h", "--image", "a b"},
      {"run", "--duration", "1h", "--image", "$(id)"},
      {"run", "--duration", "1h", "--image", ""},
      {"run", "--duration", "1h"},
      {"run", "--image", "a"},
      {"run", "--duration", "2", "--image", "a"},
      {"run", "--duration", "0s", "--image", "a"},
      {"run", "--duration", "-1h", "--image", "a"},
      {"run", "--duration", "99999999999999999999h", "--image", "a"},
      {"run", "-g", "0", "--duration", "1h", "--image", "a"},
      {"run", "-g", "-1", "--duration", "1h", "--image", "a"},
      {"run", "-g", "65", "--duration", "1h", "--image", "a"},
      {"run", "-g", "99999999999999999999", "--duration", "1h", "--image", "a"},
      {"run", "-g", "2.5", "--duration", "1h", "--image", "a"},
      {"run", "--min-mem", "40X", "--duration", "1h", "--image", "a"},
      {"run", "--min-mem", "40", "--duration", "1h", "--image", "a"},
      {"run", "--memory", "-1G", "--duration", "1h", "--image", "a"},
      {"run", "--cpus", "1e3", "--duration", "1h", "--image", "a"},
      {"run", "--cpus", "0.0001", "--duration", "1h", "--image", "a"},
      {"run", "--max-price", "0", "--duration", "1h", "--image", "a"},
      {"run", "--max-price", "-1", "--duration", "1h", "--image", "a"},
      {"run", "--max-price", "1.2345678", "--duration", "1h", "--image", "a"},
      {"run", "--name", "A b", "--duration", "1h", "--image", "a"},
      {"run", "--env", "1X=y", "--duration", "1h", "--image", "a"},
      {"run", "--env", "NOT_SET", "--duration", "1h", "--image", "a"},
      {"run", "--env-file", "/nonexistent", "--duration", "1h", "--image", "a"},
      {"run", "--command", mega, "--duration", "1h", "--image", "a"},
      {"run", "--command", "a 'b", "--duration", "1h", "--image", "a"},
      {"run", "--command", "''", "--duration", "1h", "--image", "a"},
      {"run", "--command", "a", "--duration", "1h", "--image", "a", "--", "b"},
      {"run", "--duration", "1h", "--image", "a", "--", "\xff"},
      {"run", "--workdir", "/nonexistent", "--duration", "1h", "--image", "a"},
      {"run", "-f", "/nonexistent.yaml"},
      {"run", "--network", "host", "--duration", "1h", "--image", "a"},
      {"run", "--restart", "always", "--duration", "1h", "--image", "a"},
  };
  for (const std::vector<std::string>& bad : lines) {
    const Ran ran = bmcli.run(with({"--json"}, bad));
    const std::string shown = bad[1] + " " + bad[2].substr(0, 40);
    EXPECT_EQ(ran.code, 2) << shown << ran.out;
    EXPECT_TRUE(one_document(ran.out)) << shown;
    EXPECT_LT(ran.out.size(), 1000u) << shown;
  }
  EXPECT_THAT(bmcli.market.calls(), IsEmpty());
}

TEST_F(RunTest, NotesShellSyntaxThatNoShellWillRead) {
  const Ran ran = bmcli.run({"run", "--duration", "1h", "--image", "a", "--command", "a && b"});
  EXPECT_THAT(ran.err, HasSubstr("no shell runs the command, so && is passed on"));
  const Ran shell = bmcli.run(
      {"run", "--duration", "1h", "--image", "a", "--command", "/bin/sh -c \"echo $HOME && ls\""});
  EXPECT_THAT(shell.err, Not(HasSubstr("no shell runs")));
}

TEST_F(RunTest, FailedJobsGiveExitCodeSix) {
  end = ended(v1::END_REASON_JOB_EXITED, 3);
  const Ran ran = bmcli.run(kLine);
  EXPECT_EQ(ran.code, 6);
  EXPECT_EQ(ran.out, "epoch 1\nepoch 2\n");
  const Ran json = bmcli.run(with(kLine, {"--json"}));
  EXPECT_EQ(json.code, 6);
  ASSERT_TRUE(one_document(json.out)) << json.out;
  EXPECT_THAT(json.out, HasSubstr("\"exit_code\":3"));
  EXPECT_THAT(json.out, HasSubstr("\"code\":\"job_failed\""));
  end = ended(v1::END_REASON_TIME_UP, 137);
  EXPECT_EQ(bmcli.run(kLine).code, 6);
}

TEST_F(RunTest, LogGoesOnAfterALostConnection) {
  int tries = 0;
  bmcli.market.on_stream<v1::StreamLogsRequest>(
      "StreamLogs",
      [&](const v1::StreamLogsRequest& request, const OnMessage& on_message) -> Result<void> {
        if (++tries == 1) {
          on_message(line(1, "one", false).SerializeAsString());
          return Error{ErrorCode::Unavailable, "bmd was killed"};
        }
        EXPECT_EQ(request.from_sequence(), 2u);
        on_message(line(1, "one", false).SerializeAsString());
        on_message(line(2, "two", true).SerializeAsString());
        return {};
      });
  EXPECT_EQ(bmcli.run(kLine).out, "one\ntwo\n");
}

TEST_F(RunTest, CtrlCDetachesAndStopsNothing) {
  bmcli.market.on_stream<v1::GetOrderRequest>(
      "WatchOrder", [this](const v1::GetOrderRequest&, const OnMessage& on_message) {
        on_message(order_in(v1::ORDER_STATE_RUNNING).SerializeAsString());
        bmcli.interrupts.press();
        return Result<void>();
      });
  bmcli.market.on_stream<v1::StreamLogsRequest>(
      "StreamLogs", [](const v1::StreamLogsRequest&, const OnMessage&) -> Result<void> {
        return Error{ErrorCode::Unavailable, "quiet"};
      });
  const Ran ran = bmcli.run(with(kLine, {"--json"}));
  EXPECT_EQ(ran.code, 0);
  ASSERT_TRUE(one_document(ran.out));
  EXPECT_THAT(ran.out, HasSubstr("\"detached\":true"));
  EXPECT_THAT(ran.err, HasSubstr("bmcli stop order-7"));
  EXPECT_THAT(bmcli.market.calls("StopOrder"), IsEmpty());
}

TEST_F(RunTest, WaitingAtAnUnknownPriceNeedsALimitInScripts) {
  bmcli.market.on<v1::CreateQuoteRequest, v1::Quote>(
      "CreateQuote", [](const v1::CreateQuoteRequest&, v1::Quote&) -> Result<void> {
        return Error{ErrorCode::Refused, "2 GPUs are free at 14:00"};
      });
  const Ran refused = bmcli.run(kLine);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--max-price"));
  EXPECT_EQ(bmcli.run(with(kLine, {"--no-wait", "-y"})).code, 1);
  EXPECT_TRUE(nothing_placed());
  EXPECT_EQ(bmcli.run(with(kLine, {"--max-price", "2", "-d"})).code, 0);
  EXPECT_EQ(placed.quote(), "");
  EXPECT_EQ(placed.max_price_micros_per_gpu_hour(), 2'000'000);
  EXPECT_EQ(bmcli.run(with(kLine, {"-y", "-d"})).code, 0);
  EXPECT_EQ(bmcli.market.calls("PlaceOrder").size(), 2u);
}

TEST_F(RunTest, AnExpiredQuoteIsAskedForAgainAndADearerOneNeedsConsent) {
  bmcli.terminal = true;
  quote_lifetime_ms = 0;
  EXPECT_EQ(bmcli.run(with(kLine, {"-d"}), "y\n").code, 0);
  EXPECT_EQ(placed.quote(), "quote-2");
  price_rise = 1;
  const Ran dearer = bmcli.run(with(kLine, {"-d"}), "y\nn\n");
  EXPECT_EQ(dearer.code, 1);
  EXPECT_THAT(dearer.err, HasSubstr("costs more now"));
  EXPECT_EQ(bmcli.market.calls("PlaceOrder").size(), 1u);
  EXPECT_EQ(bmcli.run(with(kLine, {"-d"}), "y\ny\n").code, 0);
}

TEST_F(RunTest, AGivenQuoteIsTaken) {
  bmcli.market.on<v1::ExplainRequest, v1::ExplainResponse>(
      "Explain", [](const v1::ExplainRequest& request, v1::ExplainResponse& response) {
        EXPECT_EQ(request.id(), "quote-5");
        response.add_lines("2 GPUs, 4.00 USD");
        return Result<void>();
      });
  const Ran ran = bmcli.run(with(kLine, {"--quote", "quote-5", "-d"}));
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("2 GPUs, 4.00 USD"));
  EXPECT_EQ(placed.quote(), "quote-5");
  EXPECT_EQ(quotes, 0);
}

TEST_F(RunTest, ColoursAreForTerminalsOnly) {
  const Ran plain = bmcli.run(with(kLine, {"--dry-run"}));
  EXPECT_THAT(plain.out + plain.err, Not(HasSubstr("\x1b")));
  bmcli.terminal = true;
  bmcli.variables.erase("NO_COLOR");
  EXPECT_THAT(bmcli.run({"quote", "--duration", "1h", "--explain"}).out, HasSubstr("\x1b[1m"));
  bmcli.variables["NO_COLOR"] = "1";
  EXPECT_THAT(bmcli.run({"quote", "--duration", "1h", "--explain"}).out, Not(HasSubstr("\x1b[1m")));
}

}  // namespace
}  // namespace bmgpu::cli
