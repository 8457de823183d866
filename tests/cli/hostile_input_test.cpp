// SPDX-License-Identifier: Apache-2.0
// Input that nobody writes by hand: every command refuses it in a sentence, soon, and none ends by
// a signal or by an error of its own.
#include <sys/stat.h>

#include <set>
#include <thread>

#include "cli/program.h"

namespace stepcast::testing {
namespace {

using Words = std::vector<std::string>;

const Words kSmall{"--model", "gpt2", "--cluster", "dgx-h100x2", "--global-batch", "64"};

Words words(Words first, const Words& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

Words predict(const Words& more) { return words(words({"predict"}, kSmall), more); }

// Each command that reads a file, with `file` in its place.
std::vector<Words> readers_of(const std::string& file, const std::string& output) {
  return {{"predict", file},
          {"plan", file},
          {"compare", file, "--vary", "layout.tp=1,2"},
          {"export", file, "--to", "megatron"},
          {"validate", file, "--backend", "cpu"},
          {"check", file},
          {"check", "torchtitan", "--baseline", file},
          {"import", file, "--cluster", "dgx-h100x1"},
          {"import", file, "--from", "huggingface", "--cluster", "dgx-h100x1"},
          {"calibrate", "--import", file, "--cluster", "dgx-h100", "-o", output},
          {"topology", "show", file},
          predict({"--model", file}),
          predict({"--model", file, "--assume", "llama"}),
          predict({"--cluster", file}),
          predict({"--set", "profile=" + file}),
          predict({"--pp", "2", "--schedule", "file:" + file})};
}

void expect_refused_by_all(const std::string& file, const std::string& reason) {
  const Folder folder;
  int readers = 0;
  for (Words command : readers_of(file, folder / "profile.json")) {
    // The last of a flag that is given twice is the one that the case is about.
    for (const char* flag : {"--model", "--cluster"}) {
      const auto first = std::find(command.begin(), command.end(), flag);
      if (first == command.end()) continue;
      if (std::find(first + 1, command.end(), flag) != command.end()) {
        command.erase(first, first + 2);
      }
    }
    const Outcome out = run(command);
    EXPECT_EQ(out.code, 2) << command[0] << " " << command[1] << ": " << out.error.substr(0, 300);
    EXPECT_TRUE(has(out.error, reason)) << command[0] << ": " << out.error.substr(0, 300);
    EXPECT_LT(out.error.size(), 20'000u) << command[0];
    EXPECT_FALSE(has(out.error, "json.exception")) << out.error.substr(0, 300);
    ++readers;
  }
  EXPECT_EQ(readers, 16);
}

TEST(HostileInput, DevicesAndEndlessFilesAreRefusedByEveryCommand) {
  expect_refused_by_all("/dev/zero", "is a device");
  const Folder folder;
  write_file(folder / "sparse", "");
  ASSERT_EQ(::truncate((folder / "sparse").c_str(), off_t{1} << 40), 0);
  expect_refused_by_all(folder / "sparse", "is larger than");
}

TEST(HostileInput, NoCommandReadsJsonThatNestsAHundredThousandDeep) {
  const Folder folder;
  const std::string lists(100'000, '[');
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  for (const std::string& text : {lists, objects, R"({"stepcast": 1, "model": )" + lists}) {
    write_file(folder / "deep.json", text);
    for (const Words& command : readers_of(folder / "deep.json", folder / "profile.json")) {
      const Outcome out = run(command);
      EXPECT_EQ(out.code, 2) << command[0] << " " << command[1] << out.error.substr(0, 300);
    }
    const Outcome out = run({"predict", folder / "deep.json"});
    EXPECT_TRUE(has(out.error, "deep.json: nests deeper than 64 levels")) << out.error;
  }
  const Outcome set = run(predict({"--set", "model=" + lists}));
  expect_refused(set);
  EXPECT_TRUE(has(set.error, "nests deeper than 64 levels")) << set.error.substr(0, 300);
  std::string path = "layout";
  for (int i = 0; i < 30'000; ++i) path += ".a";
  expect_refused(run(predict({"--set", path + "=1"})));
}

// Files of other tools nest too: brackets, dotted keys, and remarks of our own exports.
TEST(HostileInput, ImportsThatNestAreRefused) {
  const Folder folder;
  std::string key = "a";
  for (int i = 0; i < 100'000; ++i) key += ".a";
  const std::string brackets(100'000, '[');
  const std::string megatron =
      "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 2 "
      "--seq-length 64 --micro-batch-size 1\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[training]\n" + key + " = 1\n", "more than 64 dots"},
      {"[training]\n[" + key + "]\n", "more than 64 dots"},
      {"[training]\na = " + brackets, "is not TOML"},
      {megatron + "# stepcast: model=" + brackets + "\n", "nests deeper than 64 levels"},
      {megatron + "# stepcast: " + key + "=1\n", "a key path of 100001 parts"},
      {"MODEL_ARGS:\n  --a: " + brackets, ""},
      {"torchrun pretrain_gpt.py --num-layers $((" + std::string(100'000, '(') + "1))\n", ""},
  };
  for (const auto& [text, reason] : cases) {
    write_file(folder / "input", text);
    const Outcome out = run({"import", folder / "input", "--cluster", "dgx-h100x1"});
    expect_refused(out);
    EXPECT_TRUE(has(out.error, reason)) << reason << ": " << out.error.substr(0, 300);
  }
}

TEST(HostileInput, ANumberThatIsTooLargeIsNamedInPlainWords) {
  const Folder folder;
  write_file(folder / "s.json", "{\"stepcast\": 1,\n \"model\": 1e999}");
  const Outcome out = run({"predict", folder / "s.json"});
  expect_refused(out);
  EXPECT_TRUE(has(out.error,
                  "s.json: not valid JSON: line 2, column 11: the number 1e999 is too "
                  "large"))
      << out.error;
}

// 20,000 keys that nobody reads: 50 are told, and how many are not.
TEST(HostileInput, TheListOfErrorsHasAnEnd) {
  const Folder folder;
  std::string text = R"({"stepcast": 1)";
  const auto letters = [](int number) {
    std::string out;
    for (; number > 0; number /= 26) out += static_cast<char>('a' + number % 26);
    return out;
  };
  for (int i = 0; i < 20'000; ++i) text += ", \"key" + letters(i) + "\": 1";
  write_file(folder / "s.json", text + "}");
  const Outcome out = run({"predict", folder / "s.json"});
  expect_refused(out);
  EXPECT_EQ(std::count(out.error.begin(), out.error.end(), '\n'), 51);
  EXPECT_TRUE(has(out.error, "error: at least 950 more are not listed: mend these first\n"))
      << out.error.substr(out.error.size() - 200);
  // Errors that agree in all but numbers are one.
  text = R"({"stepcast": 1)";
  for (int i = 0; i < 20'000; ++i) text += ", \"key" + std::to_string(i) + "\": 1";
  write_file(folder / "s.json", text + "}");
  EXPECT_TRUE(has(run({"predict", folder / "s.json"}).error, "; and at least 9"));
  write_file(folder / "s.json", R"({"stepcast": 1, ")" + std::string(1'000'000, 'k') + "\": 1}");
  const Outcome key = run({"predict", folder / "s.json"});
  expect_refused(key);
  EXPECT_LT(key.error.size(), 10'000u);
}

TEST(HostileInput, APipeIsReadAsAFile) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer([&] {
    write_file(folder / "pipe", R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100x1",
        "training": {"global_batch": 8}})");
  });
  EXPECT_EQ(run({"predict", folder / "pipe"}).code, 0);
  writer.join();
}

TEST(HostileInput, AStepOfMoreThanElevenDaysNamesWhatTakesThatLong) {
  const std::vector<Words> cases = {{"--set", "cluster.nic=1 B/s"},
                                    {"--set", "cluster.network_latency=1000000 d"},
                                    {"--set", "cluster.scale_up_bandwidth=1 B/s", "--tp", "2"},
                                    {"--set", "cluster.scale_up_latency=1e11 s", "--tp", "2"}};
  for (const Words& more : cases) {
    const Outcome out = run(predict(more));
    expect_refused(out);
    EXPECT_TRUE(has(out.error, "takes longer than a forecast can count: ")) << out.error;
  }
}

// Each node has a second NIC that hangs on its GPU, and its cable to the switch is gone: the
// forecast is that of one NIC for each node. PCIe keeps up with a NIC of 200 Gb/s, and binds one of
// 400 Gb/s: the link to the other NIC is no help to it.
TEST(HostileInput, ANicWithoutItsCableCarriesNothing) {
  const Folder folder;
  const auto step_time = [&](const std::string& nic, const std::string& vertices,
                             const std::string& links) {
    write_file(folder / "cluster.json", R"({"stepcast_cluster": 1, "name": "two",
      "accelerator": "a100-sxm4-80g", "network": "roce",
      "vertices": [{"name": "a", "kind": "gpu", "node": 0},
                   {"name": "n0", "kind": "nic", "node": 0},
                   {"name": "b", "kind": "gpu", "node": 1},
                   {"name": "n1", "kind": "nic", "node": 1},
                   {"name": "tor", "kind": "leaf"})" +
                                            vertices + R"(],
      "links": [{"between": ["a", "n0"], "capacity": "31.5 GB/s"},
                {"between": ["b", "n1"], "capacity": "31.5 GB/s"},
                {"between": ["n0", "tor"], "capacity": ")" +
                                            nic + R"("},
                {"between": ["n1", "tor"], "capacity": ")" +
                                            nic + "\"}" + links + "]}");
    const Outcome out = run({"predict", "--model", "gpt2", "--cluster", folder / "cluster.json",
                             "--global-batch", "8", "--format", "json"});
    EXPECT_EQ(out.code, 0) << out.error;
    return out.code == 0 ? out.json()["step_time_s"].get<double>() : 0;
  };
  for (const char* nic : {"200 Gb/s", "400 Gb/s"}) {
    const double whole = step_time(nic, "", "");
    const double failed = step_time(
        nic,
        R"(, {"name": "m0", "kind": "nic", "node": 0}, {"name": "m1", "kind": "nic", "node": 1})",
        R"(, {"between": ["a", "m0"], "capacity": "31.5 GB/s"},
           {"between": ["b", "m1"], "capacity": "31.5 GB/s"})");
    EXPECT_GT(whole, 0) << nic;
    EXPECT_EQ(failed, whole) << nic;
  }
}

// Every import looks for a ConfigMap first. The reader of YAML never gets past these characters
// where no value begins, so without a check the import would go on for ever.
TEST(HostileInput, AManifestInWhichNoValueBeginsIsRefused) {
  const Folder folder;
  for (const char* text : {",a:", "a: 1\n---\n,b", "]", "}"}) {
    write_file(folder / "input", std::string("# ConfigMap\n") + text);
    const Outcome out = run({"import", folder / "input", "--cluster", "dgx-h100x1"});
    expect_refused(out);
    EXPECT_TRUE(has(out.error, "holds no command")) << text << ": " << out.error.substr(0, 300);
  }
}

// A megabyte is what a manifest of Kubernetes may have; no script of a launch comes near it.
TEST(HostileInput, AScriptOfMoreThanAMegabyteIsRefused) {
  const Folder folder;
  std::string text;
  while (text.size() <= (std::size_t{1} << 20)) text += "A+=x\n";
  write_file(folder / "launch.sh", text);
  const Outcome out = run({"import", folder / "launch.sh", "--cluster", "dgx-h100"});
  expect_refused(out);
  EXPECT_TRUE(has(out.error, "launch.sh: is larger than 1 MiB")) << out.error;
}

// Words of flags that are longer than any sentence about them.
TEST(HostileInput, AWordOfAHundredThousandLettersIsRefused) {
  const std::string word(100'000, 'x');
  int refused = 0;
  for (const char* flag : {"--format", "--seed", "--threads", "--model", "--schedule", "--set"}) {
    const Outcome out = run(predict({flag, word}));
    EXPECT_EQ(out.code, 2) << flag << out.error.substr(0, 300);
    EXPECT_LT(out.error.size(), 20'000u) << flag;
    ++refused;
  }
  EXPECT_EQ(refused, 6);
}

TEST(HostileInput, ModelTypesThatAreNoTextAreRefused) {
  const Folder folder;
  for (const char* type : {"5", "[1]", "{}", "true"}) {
    write_file(folder / "config.json", std::string(R"({"model_type": )") + type + "}");
    const Outcome out = run({"predict", "--model", folder / "config.json", "--assume", "llama",
                             "--cluster", "dgx-h100", "--global-batch", "8"});
    expect_refused(out);
    EXPECT_TRUE(has(out.error, "model_type: must be text")) << out.error;
  }
}

TEST(HostileInput, RatesOfFailuresAreNeverOrReckonable) {
  for (const char* key : {"failures_per_node_day", "failures_per_day"}) {
    for (const char* rate : {"1e-305", "1e-14"}) {
      const Outcome out =
          run(predict({"--tokens", "1T", "--set", std::string("run.") + key + "=" + rate}));
      expect_refused(out);
      EXPECT_TRUE(has(out.error, "is out of range (0, or 1e-13 to 1000000)")) << out.error;
    }
    for (const char* rate : {"0", "1e-13", "1000000"}) {
      const Outcome out = run(predict(
          {"--tokens", "1T", "--explain", "--set", std::string("run.") + key + "=" + rate}));
      EXPECT_EQ(out.code, 0) << key << rate << out.error;
    }
  }
}

}  // namespace
}  // namespace stepcast::testing
