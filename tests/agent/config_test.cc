#include "agent/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "agent/gpu/cdi.h"
#include "agent/node_watch.h"
#include "agent/runtime/temp_dir.h"
#include "bmgpu/v1/agent.pb.h"

namespace bmgpu::agent {
namespace {

class AgentConfigTest : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string path = dir_.path() + "/agent.yaml";
    std::ofstream(path) << text;
    return path;
  }
  std::string refusal(const std::string& text) {
    const Result<AgentConfig> config = load_config(file(text), std::nullopt);
    return config ? "accepted" : config.error().message.substr(dir_.path().size() + 1);
  }
  TempDir dir_;
};

TEST_F(AgentConfigTest, ReadsEveryKey) {
  const Result<AgentConfig> config = load_config(file(R"(
state_dir: /srv/node
nvml: {library: /opt/libnvml-sim.so, sim_profile: /opt/gpus.yaml}
runtime: {podman: /usr/bin/podman, oci_runtime: runc, image_stores: [/srv/images], init_path: /opt/bm-init}
cdi: {dir: /etc/cdi, kind: bmgpu.io/node-a}
share: {cpu_millis: 4000, memory_mib: 8192, scratch_mib: 10240}
blob_cache_mib: 100
log: {level: debug, format: json}
)"),
                                                 std::nullopt);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->state_dir, "/srv/node");
  EXPECT_EQ(config->nvml.sim_profile, "/opt/gpus.yaml");
  EXPECT_EQ(config->runtime.oci_runtime, "runc");
  EXPECT_EQ(config->runtime.image_stores, std::vector<std::string>{"/srv/images"});
  EXPECT_EQ(config->cdi.kind, "bmgpu.io/node-a");
  EXPECT_EQ(config->share.scratch_mib, 10240);
  EXPECT_EQ(config->blob_cache_mib, 100);
  EXPECT_EQ(config->log.format, wire::LogFormat::Json);
}

TEST_F(AgentConfigTest, StateDirOfTheCommandLineWins) {
  const Result<AgentConfig> config = load_config(file("state_dir: /srv/a\n"), "/srv/b");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->state_dir, "/srv/b");
}

TEST_F(AgentConfigTest, PathsBecomeAbsoluteAndWordsStay) {
  const Result<AgentConfig> config =
      load_config(file("runtime: {image_stores: [images]}\n"), "state");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->state_dir, std::filesystem::current_path().string() + "/state");
  EXPECT_EQ(config->runtime.image_stores[0], std::filesystem::current_path().string() + "/images");
  EXPECT_EQ(config->runtime.podman, "podman");
  EXPECT_EQ(config->nvml.library, "auto");
}

TEST_F(AgentConfigTest, MistakesAreNamed) {
  EXPECT_EQ(refusal("runtime: {podmn: x}\n"),
            "agent.yaml:1: runtime.podmn: unknown key; did you mean runtime.podman?");
  EXPECT_NE(refusal("runtime: {oci_runtime: runq}\n").find("auto, runc or crun"),
            std::string::npos);
  EXPECT_NE(refusal("cdi: {kind: 'no slash'}\n").find("cdi.kind"), std::string::npos);
  EXPECT_NE(refusal("share: {cpu_millis: -1}\n").find("from 0 to"), std::string::npos);
}

// The example of the reference page holds every key with its default.
TEST_F(AgentConfigTest, TheReferencePageShowsTheDefaults) {
  std::ifstream page(BMGPU_DOCS "/reference/bm-agent-config.md");
  std::string text(std::istreambuf_iterator<char>(page), {});
  const std::size_t start = text.find("```yaml\n") + 8;
  ASSERT_LT(start, text.size());
  const Result<AgentConfig> shown =
      load_config(file(text.substr(start, text.find("```", start) - start)), std::nullopt);
  ASSERT_TRUE(shown.ok()) << shown.error().message;
  const Result<AgentConfig> defaults = load_config(file(""), std::nullopt);
  EXPECT_EQ(shown->state_dir, defaults->state_dir);
  EXPECT_EQ(shown->runtime.podman, defaults->runtime.podman);
  EXPECT_EQ(shown->cdi.dir, defaults->cdi.dir);
  EXPECT_EQ(shown->blob_cache_mib, defaults->blob_cache_mib);
  EXPECT_EQ(shown->log.level, defaults->log.level);
}

TEST_F(AgentConfigTest, AMissingFileThatWasNamedIsAnError) {
  EXPECT_FALSE(load_config(dir_.path() + "/none.yaml", std::nullopt).ok());
}

TEST(CdiKindTest, TheDefaultIsAKindWhateverTheMarketsNameBeginsWith) {
  for (const char* market : {"16058091aabbccdd", "f6058091aabbccdd"}) {
    v1::NodeFile node;
    node.set_market(market);
    node.set_node("node-1");
    const std::string kind = cdi_kind_of({}, node);
    EXPECT_TRUE(check_cdi_kind(kind).ok()) << kind;
  }
  EXPECT_FALSE(check_cdi_kind("bmgpu.io/16058091-node-1").ok());
}

}  // namespace
}  // namespace bmgpu::agent
