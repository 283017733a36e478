#include "controld/config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace bmgpu::controld {
namespace {

std::string refusal(std::string_view text) {
  const Result<Config> config = parse_config(text, "bmd.yaml");
  return config ? "" : config.error().message;
}

TEST(ConfigTest, AnEmptyFileGivesTheDocumentedDefaults) {
  const Result<Config> config = parse_config("", "bmd.yaml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->state_dir, "/var/lib/bmd");
  EXPECT_EQ(to_text(config->listen), "127.0.0.1:7443");
  EXPECT_EQ(config->lost.count(), 3000);
  EXPECT_EQ(config->tls_mode, TlsMode::Auto);
}

TEST(ConfigTest, ReadsPricesImagesAndAddresses) {
  const Result<Config> config = parse_config(
      "listen: '[::1]:0'\n"
      "prices: {default: '0.5', words: {'A100 80GB': '1.25', A40: '0.4'}}\n"
      "images: {'pytorch:2.0': 'localhost/bm-pytorch:2.0'}\n",
      "bmd.yaml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->listen.host, "::1");
  EXPECT_EQ(config->price_default_micros_per_gpu_hour, 500'000);
  ASSERT_EQ(config->prices.size(), 2U);
  EXPECT_EQ(config->prices[0].words, "a100 80gb");
  EXPECT_EQ(config->prices[0].micros_per_gpu_hour, 1'250'000);
  EXPECT_EQ(config->images[0].second, "localhost/bm-pytorch:2.0");
}

TEST(ConfigTest, AnUnknownKeyNamesTheNearest) {
  EXPECT_NE(refusal("liveness: {lost_mss: 3000}").find("lost_ms"), std::string::npos);
  EXPECT_NE(refusal("lisen: 127.0.0.1:1").find("did you mean listen"), std::string::npos);
}

TEST(ConfigTest, RefusesWhatItCannotUse) {
  EXPECT_NE(refusal("listen: localhost"), "");
  EXPECT_NE(refusal("listen: 127.0.0.1:99999"), "");
  EXPECT_NE(refusal("state_dir: relative"), "");
  EXPECT_NE(refusal("currency: dollars"), "");
  EXPECT_NE(refusal("prices: {default: '-1'}"), "");
  EXPECT_NE(refusal("prices: {default: '1e3'}"), "");
  EXPECT_NE(refusal("prices: {words: {'--': '1'}}"), "");
  EXPECT_NE(refusal("images: {'a b': 'c'}"), "");
  EXPECT_NE(refusal("liveness: {lost_ms: 2500}"), "");
  EXPECT_NE(refusal("tls: {mode: files}"), "");
  EXPECT_NE(refusal("tls: {mode: auto, key: /k}"), "");
  EXPECT_EQ(refusal("tls: {mode: files, certificate: /c, key: /k}"), "");
}

TEST(ConfigTest, WhatItPrintsItReadsBack) {
  const Result<Config> config = parse_config(
      "prices: {words: {a100: '1.25'}}\nimages: {'x:1': 'y:2'}\nlog: {format: json}\n", "a");
  ASSERT_TRUE(config.ok());
  const std::string printed = print_config(*config);
  const Result<Config> again = parse_config(printed, "printed");
  ASSERT_TRUE(again.ok()) << again.error().message << printed;
  EXPECT_EQ(print_config(*again), printed);
}

TEST(ConfigTest, EveryKeyIsInTheReference) {
  std::ifstream in(CONFIG_REFERENCE);
  const std::string reference(std::istreambuf_iterator<char>(in), {});
  std::istringstream printed(print_config(Config()));
  std::string line;
  std::string section;
  int keys = 0;
  while (std::getline(printed, line)) {
    const bool inner = line.starts_with("  ");
    const std::string name = line.substr(inner ? 2 : 0, line.find(':') - (inner ? 2 : 0));
    section = inner ? section : name;
    if (line.back() == ':') {
      continue;
    }
    const std::string key = inner ? section + "." + name : name;
    EXPECT_NE(reference.find("| `" + key + "` |"), std::string::npos) << key;
    ++keys;
  }
  EXPECT_GT(keys, 20);
}

}  // namespace
}  // namespace bmgpu::controld
