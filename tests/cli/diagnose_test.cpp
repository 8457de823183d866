// SPDX-License-Identifier: Apache-2.0
// Diagnoses by the program as a user runs it: traces of its own forecasts, of the executor and of a
// profiler, and logs.
#include <algorithm>
#include <filesystem>

#include "core/each.h"
#include "logs/samples.h"
#include "program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

std::vector<std::string> layout_words(const std::string& command,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> out{
      command, "--model",     "llama-3.1-8b", "--cluster", "dgx-h100x2", "--global-batch",
      "32",    "--framework", "fsdp",         "--zero",    "3",          "--seq",
      "4096"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

class DiagnoseCommand : public ::testing::Test {
 protected:
  std::string forecast(const std::vector<std::string>& more = {}) const {
    const std::string file = folder_ / "rank0.json";
    std::vector<std::string> words = more;
    words.insert(words.end(), {"--trace", file, "--format", "json"});
    EXPECT_EQ(run(layout_words("predict", words)).code, 0);
    return file;
  }
  Folder folder_;
};

TEST_F(DiagnoseCommand, NamesNoGapInItsOwnForecast) {
  const Outcome result = run(layout_words("diagnose", {"--trace", forecast(), "--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  EXPECT_TRUE(out["gaps"].empty());
  EXPECT_GT(out["measured"]["accounted_fraction"], 0.95);
  EXPECT_NEAR(out["measured"]["step_time_s"].get<double>(),
              out["predicted"]["step_time_s"].get<double>(), 1e-6);
}

TEST_F(DiagnoseCommand, SaysInEveryFormatWhichLinkIsSlow) {
  const std::string trace = forecast({"--what-if", "nic=-70%"});
  const std::string page = folder_ / "page.html", markdown = folder_ / "page.md";
  const Outcome table =
      run(layout_words("diagnose", {"--trace", trace, "--html", page, "--md", markdown}));
  ASSERT_EQ(table.code, 0) << table.error;
  const Outcome data = run(layout_words("diagnose", {"--trace", trace, "--format", "json"}));
  const json gap = data.json()["gaps"][0];
  EXPECT_EQ(gap["cause"], "slow_link");
  const std::string sentence = gap["sentence"];
  EXPECT_TRUE(has(sentence, "over dp")) << sentence;
  EXPECT_TRUE(has(sentence, "on the bus where the forecast has")) << sentence;
  for (const std::string& text :
       each_of(std::vector{table.out, read_file(page), read_file(markdown)})) {
    EXPECT_TRUE(has(text, "over dp takes")) << text.substr(0, 400);
    EXPECT_TRUE(has(text, "nccl-tests"));
  }
  EXPECT_TRUE(has(read_file(page), "forecast-picture"));
  EXPECT_TRUE(has(read_file(page), "measured-picture"));
}

TEST_F(DiagnoseCommand, RefusesTracesThatAreCutOrOfOtherLayouts) {
  const std::string trace = forecast();
  const std::string text = read_file(trace);
  const std::string cut = folder_ / "cut.json";
  write_file(cut, text.substr(0, text.size() / 2));
  Outcome result = run(layout_words("diagnose", {"--trace", cut}));
  expect_refused(result);
  EXPECT_TRUE(has(result.error, "cut.json")) << result.error;
  EXPECT_TRUE(has(result.error, "was cut")) << result.error;
  result = run(layout_words("diagnose", {"--trace", trace, "--trace", trace}));
  expect_refused(result);
  EXPECT_TRUE(has(result.error, "a second trace of rank 0")) << result.error;
  const std::string other = folder_ / "rank99.json";
  write_file(other, R"([{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1,
                         "dur": 1, "args": {}}])");
  result = run(layout_words("diagnose", {"--trace", other}));
  expect_refused(result);
  EXPECT_TRUE(has(result.error, "the layout has 16 ranks")) << result.error;
  result = run(layout_words("diagnose", {"--trace", trace, "--rank", "3"}));
  expect_refused(result);
  EXPECT_TRUE(has(result.error, "no trace is of rank 3")) << result.error;
}

TEST_F(DiagnoseCommand, WantsTracesOrALog) {
  Outcome result = run(layout_words("diagnose", {}));
  expect_refused(result);
  EXPECT_TRUE(has(result.error, "--trace")) << result.error;
  result = run(layout_words("diagnose", {"--log", "x.log", "--fit", folder_ / "p.json"}));
  expect_refused(result);
  EXPECT_TRUE(has(result.error, "--fit")) << result.error;
}

std::string megatron_log(double seconds, int batch) {
  std::string out;
  for (int i = 1; i <= 20; ++i) {
    out += " iteration " + std::to_string(i) +
           "/ 20 | consumed samples: 1 | elapsed time per "
           "iteration (ms): " +
           std::to_string(seconds * 1000) + " | global batch size: " + std::to_string(batch) +
           " | lm loss: 1.0E+00 |\n";
  }
  return out;
}

TEST_F(DiagnoseCommand, SetsALogBesideItsForecast) {
  const std::string log = folder_ / "run.log";
  write_file(log, megatron_log(2.5, 32));
  Outcome result = run(layout_words("diagnose", {"--log", log, "--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  json out = result.json();
  EXPECT_NEAR(out["measured"]["step_time_s"].get<double>(), 2.5, 1e-6);
  EXPECT_EQ(out["covered"], false);
  EXPECT_GT(out["findings"].size(), 1u);
  EXPECT_TRUE(out["differences"].empty());
  write_file(log, megatron_log(2.5, 64));
  result = run(layout_words("diagnose", {"--log", log, "--format", "json"}));
  out = result.json();
  ASSERT_EQ(out["differences"].size(), 1u);
  EXPECT_EQ(out["differences"][0]["key"], "training.global_batch");
  EXPECT_EQ(out["differences"][0]["log"], 64);
}

// Two steps of a small layer as a profiler writes them: products with shapes, late launches. Every
// second product is the gradient of its input.
std::string profiler_trace(const std::string& device = "NVIDIA H100 80GB HBM3",
                           bool has_gradients = true) {
  std::string out = R"({"deviceProperties": [{"name": ")" + device + R"("}],
    "distributedInfo": {"rank": 0}, "traceEvents": [)";
  int correlation = 0;
  const auto add = [&](const std::string& event) {
    out += (out.back() == '[' ? "\n" : ",\n") + event;
  };
  for (int step = 0; step < 3; ++step) {
    const double begin = 100000.0 * step;
    add(R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)" + std::to_string(step) +
        R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(begin) + R"(, "dur": 100000})");
    for (int k = 0; k < 50; ++k) {
      const double launched = begin + 2000.0 * k;
      ++correlation;
      add(R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": )" +
          std::to_string(launched - 5) + R"(, "dur": 20, "args": {"Input Dims": )" +
          (has_gradients && k % 2 == 1 ? "[[4096, 6144], [6144, 4096]]"
           : has_gradients             ? "[[4096, 4096], [4096, 6144]]"
                                       : "[[2048, 4096], [4096, 6144]]") +
          R"(, "Input type": ["c10::BFloat16", "c10::BFloat16"]}})");
      add(R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
              "ts": )" +
          std::to_string(launched) + R"(, "dur": 5, "args": {"correlation": )" +
          std::to_string(correlation) + "}}");
      add(R"({"ph": "X", "cat": "kernel", "name": "nvjet_tst_128x256_64x4_TNT", "pid": 0, "tid": 7,
              "ts": )" +
          std::to_string(launched + 10) + R"(, "dur": 600, "args": {"stream": 7, "correlation": )" +
          std::to_string(correlation) + "}}");
    }
  }
  return out + "]}";
}

TEST_F(DiagnoseCommand, RefusesTracesOfAnotherRun) {
  const std::string trace = folder_ / "trace.json";
  const auto refused = [&](const std::string& text) {
    write_file(trace, text);
    const Outcome result = run(layout_words("diagnose", {"--trace", trace}));
    expect_refused(result);
    return result.error;
  };
  const std::string device = refused(profiler_trace("NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(has(device, "was recorded on 'NVIDIA A100-SXM4-80GB'")) << device;
  const std::string forward = refused(profiler_trace("NVIDIA H100 80GB HBM3", false));
  EXPECT_TRUE(has(forward, "holds forward passes alone")) << forward;
}

TEST_F(DiagnoseCommand, ReadsAProfilersTraceAndFitsAProfileOfIt) {
  const std::string trace = folder_ / "trace.json", profile = folder_ / "mine.json";
  write_file(trace, profiler_trace());
  const Outcome result =
      run(layout_words("diagnose", {"--trace", trace, "--format", "json", "--fit", profile}));
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  EXPECT_EQ(out["measured"]["steps"], 2);  // the first is left out
  EXPECT_NEAR(out["measured"]["step_time_s"].get<double>(), 0.1, 1e-3);
  EXPECT_GT(out["measured"]["accounted_fraction"], 0.95);
  const auto& parts = out["parts"];
  const auto host = std::find_if(parts.begin(), parts.end(),
                                 [](const json& one) { return one["key"] == "host"; });
  ASSERT_NE(host, parts.end());
  // A kernel of 0.6 ms in each 2 ms, and 10 us from launch to begin.
  EXPECT_NEAR((*host)["measured_s"].get<double>(), 50 * 1.395e-3, 1e-3);
  const auto& kernels = out["kernels"];
  EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [](const json& one) {
    return one["name"] == "qkv" && one["measured"]["calls"] == 50;
  }));
  EXPECT_TRUE(std::filesystem::exists(profile));
}

}  // namespace
}  // namespace stepcast::testing
