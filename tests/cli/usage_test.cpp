// SPDX-License-Identifier: Apache-2.0
// The program says this about input that it cannot accept.
#include "cli/program.h"

namespace stepcast::testing {
namespace {

bool says(const Outcome& run, const std::string& part) {
  return run.error.find(part) != std::string::npos;
}

TEST(Usage, HelpNamesEveryCommandAndEachHasAnExample) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* command : {"predict", "check", "show", "topology", "doctor"}) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
    const Outcome own = run({command, "--help"});
    EXPECT_EQ(own.code, 0) << command;
    EXPECT_NE(own.out.find("stepcast " + std::string(command)), std::string::npos) << command;
    EXPECT_NE(own.out.find("xample"), std::string::npos) << command;
  }
}

TEST(Usage, VersionGoesToStandardOutput) {
  const Outcome version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("stepcast ", 0), 0u);
}

TEST(Usage, HelpIsACommandTooAndItsUsageBeginsWithTheProgram) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  const Outcome show = run({"help", "show", "models"});
  EXPECT_EQ(show.code, 0);
  EXPECT_EQ(show.out, run({"show", "models", "--help"}).out);
  EXPECT_TRUE(has(show.out, "Usage: stepcast show models [OPTIONS]")) << show.out;
}

TEST(Usage, ANumberThatIsNoneIsOutOfEveryRange) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"plan", "--memory-margin", "nan"}, "--memory-margin: nan is out of range (0 to 1)"},
      {{"plan", "--risk", "NaN"}, "--risk: NaN is out of range (0.5 to 0.99)"},
      {{"plan", "--time-limit", "-nan"}, "--time-limit: -nan is out of range (0 to 1000000000)"},
      {{"validate", "--budget", "nan"}, "--budget: nan is out of range (1 to 100000)"},
      {{"calibrate", "--spread", "nan"}, "--spread: nan is out of range (0.0001 to 0.5)"},
      {{"compare", "--tornado", "nan"}, "--tornado: nan is out of range (0.1 to 90)"},
  };
  for (const auto& [words, error] : cases) {
    const Outcome refused = run(words);
    EXPECT_EQ(refused.code, 2) << error;
    EXPECT_EQ(refused.error, "error: " + error + "\n");
  }
}

// People who come from other tools type these.
TEST(Usage, ReadsWhatPeopleTypeAndSaysHow) {
  const Outcome out = run({"predict", "--model", "meta-llama/Llama-3.2-1B", "--cluster", "8xh100",
                           "--seq", "8k", "--global-batch", "16", "--tokens", "2t", "--deadline",
                           "30days", "--budget", "$500k", "--format", "json"});
  ASSERT_EQ(out.code, 0) << out.error;
  EXPECT_EQ(out.error,
            "note: meta-llama/Llama-3.2-1B is read as the shipped llama-3.2-1b\n"
            "note: h100 is read as dgx-h100, NVIDIA DGX H100, 8 x NDR\n");
  const Outcome plain = run({"predict", "--model", "llama-3.2-1b", "--cluster", "dgx-h100", "--seq",
                             "8192", "--global-batch", "16", "--tokens", "2T", "--deadline", "30d",
                             "--budget", "500000", "--format", "json"});
  EXPECT_EQ(plain.error, "");
  EXPECT_EQ(out.out, plain.out);
  const Outcome longest = run({"predict", "--model", "llama-3.2-1b", "--cluster", "dgx-h100",
                               "--seq", "1M", "--cp", "8", "--global-batch", "1"});
  EXPECT_EQ(longest.error, "");
  EXPECT_NE(longest.out.find("1 sequence of 1048576 tokens"), std::string::npos) << longest.out;
}

TEST(Usage, WordsOfOtherToolsGetTheRightHint) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--batch", "4"}, "--batch: is not a known flag (give --global-batch N"},
      {{"--gbs", "64"}, "--gbs: is not a known flag (give --global-batch N)"},
      {{"--mode", "lora"}, "--mode: is not a known flag (give --set training.mode=lora"},
      {{"--lora"}, "--lora: is not a known flag (give --set training.mode=lora)"},
      {{"--dtype", "bf16"}, "--dtype: is not a known flag (give --precision NAME)"},
      {{"--batch-size=4"}, "--batch-size: is not a known flag (give --global-batch N"},
      {{"--tensor-model-parallel-size", "2"}, "is not a known flag (give --tp N)"},
      {{"--tpp", "2"}, "--tpp: is not a known flag (did you mean '--tp'?)"},
      {{"--framework", "torchtitan"}, "'torchtitan' is a trainer (it runs steps as 'fsdp' does)"},
      {{"--framework", "NeMo"}, "'NeMo' is a trainer (it runs steps as 'megatron' does)"},
      {{"--seq", "8x"},
       "'8x' is no number of tokens (1 to 4194304, or \"8k\" for 8192, \"1M\" for 1048576)"},
      {{"--seq", "5M"}, "'5M' is no number of tokens"},
      {{"--seq", "5000k"}, "'5000k' is no number of tokens"},
  };
  for (const auto& [words, error] : cases) {
    std::vector<std::string> all = {"predict",  "--model",        "gpt2", "--cluster",
                                    "dgx-h100", "--global-batch", "8"};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome refused = run(all);
    EXPECT_EQ(refused.code, 2) << error;
    EXPECT_TRUE(says(refused, error)) << refused.error;
  }
}

TEST(Usage, NumbersAreWrittenPlainlyAndTextsAreNotEmpty) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--threads", "0x2"}, "--threads: '0x2' is not a number (see stepcast predict --help)"},
      {{"--threads", "+2"}, "--threads: '+2' is not a number (see stepcast predict --help)"},
      {{"--threads", " 2"}, "--threads: ' 2' is not a number (see stepcast predict --help)"},
      {{"--zero", " 1"}, "--zero (layout.zero): must be a whole number, not \" 1\""},
      {{"--profile", ""}, "--profile: has no value (--profile NAME|PATH)"},
      {{"--data", ""}, "--data: has no value (--data DIR)"},
      {{"--output", ""}, "--output: has no value (--output FILE)"},
  };
  for (const auto& [words, error] : cases) {
    const Outcome refused = run(predict_words(words));
    expect_refused(refused);
    EXPECT_EQ(refused.error, "error: " + error + "\n");
  }
}

TEST(Usage, AFailedWriteToStandardErrorKeepsTheExitCode) {
  EXPECT_EQ(run({"predict", "absent.json"}, ">/dev/null 2>/dev/full").code, 2);
  EXPECT_EQ(run({"predikt"}, ">/dev/null 2>&-").code, 2);
}

TEST(Usage, SaysWhatIsWrongWithAFlagInItsOwnWords) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--tp", "4"}, "error: --tp: is given 2 times (give it once)\n"},
      {{"--format", "jsn"},
       "error: --format: 'jsn' is not accepted (one of table, json, csv or md; did you mean "
       "'json'?)\n"},
      {{"--format", "js\nn"},
       "error: --format: 'js\\nn' is not accepted (one of table, json, csv or md; did you mean "
       "'json'?)\n"},
      {{"--threads", "20000"}, "error: --threads: 20000 is out of range (0 to 4096)\n"},
      {{"--seed", "x"}, "error: --seed: 'x' is not a number (see stepcast predict --help)\n"},
      {{"--zero"}, "error: --zero: has no value (--zero 0..3)\n"},
  };
  for (const auto& [words, error] : cases) EXPECT_EQ(run(predict_words(words)).error, error);
  EXPECT_EQ(run({"check"}).error,
            "error: SUITE: is required and missing (suite files, names of shipped suites, or "
            "all (of training runs))\n");
  const Outcome price = run(predict_words({"--price", "dgx-h100=2"}));
  EXPECT_TRUE(says(price, "(a number such as 2.5)")) << price.error;
}

TEST(Usage, NamesTheFlagsThatWereLaidOverAFile) {
  const Folder folder;
  write_file(folder / "s.json", R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100x1",
      "training": {"global_batch": 8}, "layout": {"tp": 4}})");
  const Outcome gpus = run({"predict", folder / "s.json", "--gpus", "6"});
  expect_refused(gpus);
  EXPECT_TRUE(says(gpus, "s.json with --gpus: layout.tp: ")) << gpus.error;
  const Outcome set = run({"predict", folder / "s.json", "--set", "layout.tp=3"});
  expect_refused(set);
  EXPECT_TRUE(set.error.starts_with("error: --set layout.tp: ")) << set.error;
}

TEST(Usage, SuggestsOnlyNamesThatAreNear) {
  const auto cluster = [](const char* name) {
    return run({"predict", "--model", "gpt2", "--cluster", name, "--global-batch", "8"}).error;
  };
  EXPECT_FALSE(has(cluster("foo"), "did you mean")) << cluster("foo");
  EXPECT_TRUE(has(cluster("dgxh10"), "did you mean 'dgx-h100'?")) << cluster("dgxh10");
  const auto model = [](const char* name) {
    return run({"predict", "--model", name, "--cluster", "dgx-h100", "--global-batch", "8"}).error;
  };
  for (const char* name : {"meta-llama/Llama-3.1-8C", "nowhere/llama-3.1-8b.json"}) {
    EXPECT_TRUE(has(model(name), "did you mean 'llama-3.1-8b'?")) << model(name);
  }
}

TEST(Usage, SaysInPlainWordsWhereAFileIsNoJson) {
  const Folder folder;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "it is empty"},
      {"{\"stepcast\": 1, // one\n\"model\": 2}", "line 1, column 17: JSON has no comments"},
      {"{\"stepcast\": 1,\n}", "line 2, column 1: nothing stands between the last comma and '}'"},
      {"{'stepcast': 1}", "line 1, column 2: JSON has double quotes only"},
      {"{\"stepcast\": True}", "bare words other than true, false and null need quotes"},
      {"{\"stepcast\": 1 \"model\": 2}", "a comma or a closing bracket is missing before it"},
      {"{\"stepcast\": 1}}", "the object is closed before it"},
      {"{\"stepcast\": 1,", "it ends before its last bracket or quote is closed"}};
  for (const auto& [text, why] : cases) {
    write_file(folder / "s.json", text);
    const Outcome out = run({"predict", folder / "s.json"});
    expect_refused(out);
    EXPECT_TRUE(says(out, "s.json: not valid JSON: ") && says(out, why)) << out.error;
  }
}

TEST(Usage, NamesTheNearestCommandAndFlag) {
  const Outcome command = run({"predikt"});
  expect_refused(command);
  EXPECT_TRUE(says(command, "did you mean 'predict'?")) << command.error;
  const Outcome flag = run(predict_words({"--micro-bach", "1"}));
  expect_refused(flag);
  EXPECT_TRUE(says(flag, "did you mean '--micro-batch'?")) << flag.error;
  // Shares its dashes and one letter with --zero.
  const Outcome far = run(predict_words({"--kora"}));
  expect_refused(far);
  EXPECT_TRUE(says(far, "--kora: is not a known flag (see stepcast predict --help)")) << far.error;
}

TEST(Usage, RefusesAMissingCommandAndAMissingTopic) {
  expect_refused(run({}));
  expect_refused(run({"show"}));
  expect_refused(run({"topology"}));
  expect_refused(run({"show", "modles"}));
  expect_refused(run({"topology", "show"}));
  expect_refused(run({"check"}));
}

TEST(Usage, SaysTheWordThatIsMissing) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--set", "training.lora_rank=64"}, "it needs a mode first: training.mode=lora"},
      {{"--precision", "mxfp8"},
       "'mxfp8' is a recipe of fp8 (fp8, with training.fp8_recipe mxfp8)"},
      {{"--global-batch", "4194304"}, "it counts sequences: 4194304 tokens are 1024 of them"},
      {{"--cluster", "all"}, "name those to search, as in dgx-h100,aws-p5"}};
  for (const auto& [words, hint] : cases) {
    std::vector<std::string> all{"predict",   "--model",    "llama-3.1-8b",
                                 "--cluster", "dgx-h100x1", "--global-batch",
                                 "8",         "--seq",      "4096"};
    if (words.front() == "--cluster") all[4] = words[1];
    if (words.front() == "--global-batch") all[6] = words[1];
    if (words.front() == "--set" || words.front() == "--precision") {
      all.insert(all.end(), words.begin(), words.end());
    }
    const Outcome out = run(all);
    expect_refused(out);
    EXPECT_TRUE(has(out.error, hint)) << out.error;
  }
}

TEST(Usage, RefusesValuesThatAFlagDoesNotTake) {
  expect_refused(run(predict_words({"--format", "xml"})));
  expect_refused(run({"check", "all", "--threads", "many"}));
  expect_refused(run({"check", "all", "--threads", "-1"}));
  expect_refused(run(predict_words({"--seed", "x"})));
  expect_refused(run(predict_words({"--set", "layout.tp"})));
  expect_refused(run(predict_words({"--set", "=8"})));
  expect_refused(run(predict_words({"--set", "model.layers.x=8"})));
  expect_refused(run(predict_words({"--assume", "no-such-family"})));
  expect_refused(run(predict_words({"--tp"})));
  expect_refused(run(predict_words({"--data", "/no/such/folder"})));
}

TEST(Usage, NamesTheFlagThatGaveAValue) {
  const Outcome result = run(predict_words({"--zero", "7"}));
  expect_refused(result);
  EXPECT_TRUE(says(result, "--zero (layout.zero)")) << result.error;
}

TEST(Usage, ListsAllErrorsOfAFileOnePerLine) {
  const Folder folder;
  write_file(folder / "s.json", R"({"stepcast": 1, "model": "lama-3.1-8b",
      "cluster": "dgx-h10", "training": {"global_batch": -1}, "layot": {}})");
  const Outcome result = run({"predict", folder / "s.json"});
  expect_refused(result);
  EXPECT_TRUE(says(result, "did you mean 'llama-3.1-8b'?")) << result.error;
  EXPECT_TRUE(says(result, "did you mean 'dgx-h100'?")) << result.error;
  EXPECT_TRUE(says(result, "training.global_batch")) << result.error;
  EXPECT_TRUE(says(result, "layot")) << result.error;
  EXPECT_GE(std::count(result.error.begin(), result.error.end(), '\n'), 4);
  std::istringstream lines(result.error);
  for (std::string line; std::getline(lines, line);)
    EXPECT_EQ(line.rfind("error: ", 0), 0u) << line;
}

TEST(Usage, RefusesFilesThatAreNoScenario) {
  const Folder folder;
  for (const char* text :
       {"", "{", "[]", "7", "{}", R"({"stepcast": 2})", R"({"stepcast": 1, "stepcast": 1})"}) {
    write_file(folder / "s.json", text);
    expect_refused(run({"predict", folder / "s.json"}));
  }
  expect_refused(run({"predict", folder / "absent.json"}));
  expect_refused(run({"predict", folder / ""}));
}

TEST(Usage, SaysWhatIsNotModelledInOtherWordsThanWhatIsIllegal) {
  const Outcome unsupported = run(predict_words({"--schedule", "dualpipe", "--zero", "2"}));
  expect_refused(unsupported);
  EXPECT_TRUE(says(unsupported, "not supported yet")) << unsupported.error;
  const Outcome illegal = run(predict_words({"--tp", "3"}));
  expect_refused(illegal);
  EXPECT_FALSE(says(illegal, "not supported yet")) << illegal.error;
}

TEST(Usage, ReadsAnUnknownFamilyOnlyWhenToldHow) {
  const Folder folder;
  write_file(folder / "config.json", R"({"model_type": "llamb", "hidden_size": 1024,
      "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 4096,
      "vocab_size": 32000, "max_position_embeddings": 2048, "hidden_act": "silu",
      "rms_norm_eps": 1e-5, "tie_word_embeddings": false})");
  const std::vector<std::string> words{"predict",   "--model",    folder / "config.json",
                                       "--cluster", "dgx-h100x1", "--global-batch",
                                       "8"};
  expect_refused(run(words));
  auto told = words;
  told.insert(told.end(), {"--assume", "llama"});
  const std::string folder_name =
      std::filesystem::path(folder / "config.json").parent_path().stem();
  EXPECT_EQ(run(told).out.rfind(folder_name + " on ", 0), 0u) << run(told).out;
  EXPECT_EQ(run(told).code, 0) << run(told).error;
  // A model that has more than the family is another model.
  write_file(folder / "hybrid.json", R"({"model_type": "nemotron_h", "hidden_size": 4096,
      "num_hidden_layers": 52, "num_attention_heads": 32, "num_key_value_heads": 8,
      "intermediate_size": 21504, "vocab_size": 131072, "hybrid_override_pattern": "M-M*-",
      "mamba_num_heads": 128})");
  auto hybrid = told;
  hybrid[2] = folder / "hybrid.json";
  const Outcome refused = run(hybrid);
  expect_refused(refused);
  EXPECT_TRUE(has(refused.error, "'llama' has nothing of hybrid_override_pattern, mamba_num_heads"))
      << refused.error;
  // The folder that a download is.
  const std::string file = folder / "config.json";
  told[2] = file.substr(0, file.rfind('/'));
  EXPECT_EQ(run(told).code, 0) << run(told).error;
}

TEST(Usage, NeverWritesOverAnInput) {
  const Folder folder;
  const std::string text = R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100x1",
      "training": {"global_batch": 8}})";
  write_file(folder / "run.json", text);
  for (const char* flag : {"-o", "--trace", "--memory-timeline"}) {
    expect_refused(run({"predict", folder / "run.json", flag, folder / "run.json"}));
    EXPECT_EQ(read_file(folder / "run.json"), text) << flag;
  }
}

TEST(Usage, RefusesWhatNoMachineRuns) {
  expect_refused(run(predict_words({"--global-batch", "4000000000"})));
  expect_refused(run(predict_words({"--seq", "100000000"})));
  expect_refused(run(predict_words({"--set", "cluster.accelerator=v100-sxm2-32g"})));
}

}  // namespace
}  // namespace stepcast::testing
