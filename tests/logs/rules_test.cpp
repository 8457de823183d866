// SPDX-License-Identifier: Apache-2.0
// Which steps of a log count, and logs that are broken, cut, mixed or hostile.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/each.h"
#include "core/limits.h"
#include "logs/log_figures.h"
#include "logs/log_number.h"
#include "logs/log_of.h"
#include "logs/printed_settings.h"
#include "logs/samples.h"
#include "logs/training_log.h"

namespace stepcast {
namespace {

using namespace samples;

// A line of Megatron-LM, in milliseconds.
std::string line(long step, double time_ms, const std::string& more = "", long batch = 16) {
  return " iteration " + std::to_string(step) +
         "/ 1000 | elapsed time per iteration (ms): " + std::to_string(time_ms) +
         " | global batch size: " + std::to_string(batch) + " | " + more + "\n";
}

std::string lines(long first, long last, double time_ms) {
  std::string out;
  for (long step = first; step <= last; ++step) out += line(step, time_ms);
  return out;
}

LogFigures figures(const std::string& text, std::int64_t warm_up = kUsualWarmUp) {
  auto out = figures_of(log_of(text), warm_up);
  if (!out) ADD_FAILURE() << to_string(out.error());
  return out ? *out : LogFigures{};
}

std::string refusal(const std::string& text) {
  const auto log = training_log_of(text, "run.log");
  if (!log) return to_string(log.error().front());
  const auto out = figures_of(*log);
  return out ? "" : to_string(out.error().front());
}

TEST(LogRules, TheFirstStepsAreWarmUp) {
  const LogFigures found = figures(lines(1, 5, 9000) + lines(6, 15, 500));
  EXPECT_DOUBLE_EQ(found.median, 0.5);
  EXPECT_DOUBLE_EQ(found.low, 0.5);
  EXPECT_DOUBLE_EQ(found.high, 0.5);
  EXPECT_EQ(found.left_out.warm_up, 5);
  EXPECT_EQ(found.steps, 10);
  EXPECT_EQ(found.first, 6);
  EXPECT_EQ(found.last, 15);
  EXPECT_EQ(figures(lines(1, 5, 9000) + lines(6, 15, 500), 0).steps, 15);
}

// A line that is the mean of ten steps counts when none of them is warm-up. The line of step 1 is
// that of releases of 2026.
TEST(LogRules, ALineSpeaksForTheStepsSinceTheLineBefore) {
  const LogFigures found =
      figures(line(1, 9000) + line(10, 2000) + line(20, 500) + line(30, 510) + line(40, 520));
  EXPECT_EQ(found.left_out.warm_up, 2);
  EXPECT_EQ(found.lines, 3);
  EXPECT_EQ(found.steps, 30);
  EXPECT_DOUBLE_EQ(found.median, 0.51);
}

TEST(LogRules, TheStepBehindAnEvaluationOrACheckpointIsLeftOut) {
  const std::vector<std::string> marks = {
      " validation loss at iteration 10 | lm loss value: 8.889540E+00 | lm loss PPL: 7.2E+03 | \n",
      "saving checkpoint at iteration      10 to /checkpoint in torch_dist format\n"};
  for (const std::string& mark : each_of(marks)) {
    const LogFigures found =
        figures(lines(1, 10, 500) + mark + line(11, 3000) + lines(12, 15, 500));
    EXPECT_EQ(found.left_out.disturbed, 1) << mark;
    EXPECT_EQ(found.steps, 9) << mark;
    EXPECT_DOUBLE_EQ(found.high, 0.5) << mark;
  }
}

TEST(LogRules, StepsWithoutAnUpdateAndWithASmallerBatchAreLeftOut) {
  std::string text;
  for (long step = 1; step <= 10; ++step) text += line(step, 300, "", 8);
  text += line(11, 100, "number of skipped iterations: 1 |") + lines(12, 20, 500);
  const LogFigures found = figures(text);
  EXPECT_EQ(found.left_out.other_batch, 5);
  EXPECT_EQ(found.left_out.skipped, 1);
  EXPECT_EQ(found.batch, 16);
  EXPECT_DOUBLE_EQ(found.median, 0.5);
  EXPECT_EQ(found.steps, 9);
}

// Behind the restart five steps are warm-up again, and the longer part counts.
TEST(LogRules, ARestartWarmsUpAgain) {
  const std::string before = lines(1, 100, 500);
  const std::string after = lines(51, 55, 9000) + lines(56, 80, 700);
  const std::vector<std::string> marks = {
      "", "  successfully loaded checkpoint from /checkpoint [ t 1/1, p 1/1 ] at iteration 50\n",
      "[before the start of training step] datetime: 2026-04-13 23:41:00 \n"};
  for (const std::string& mark : each_of(marks)) {
    const LogFigures found = figures(before + mark + after);
    EXPECT_EQ(found.parts, 2) << mark;
    EXPECT_DOUBLE_EQ(found.median, 0.5) << mark;
    EXPECT_EQ(found.left_out.warm_up, 10) << mark;
    EXPECT_EQ(found.left_out.other_parts, 25) << mark;
  }
}

TEST(LogRules, StepsThatOtherRanksSayAgainAreReadOnce) {
  std::string tagged, bare;
  for (long step = 1; step <= 20; ++step) {
    for (const long rank : {0, 1, 2}) {
      // A rank that is a step behind.
      const long said = rank == 2 ? std::max(1L, step - 1) : step;
      tagged += "[rank" + std::to_string(rank) + "]:" + line(said, rank == 0 ? 500 : 900);
      bare += line(said, rank == 0 ? 500 : 900);
    }
  }
  for (const std::string& text : each_of(std::vector<std::string>{tagged, bare})) {
    const TrainingLog log = log_of(text);
    EXPECT_EQ(log.steps.of_other_ranks, 40);
    EXPECT_EQ(figures(text).parts, 1);
    EXPECT_DOUBLE_EQ(figures(text).high, 0.5);
  }
}

// An evaluation has a bar of its own, of another length.
TEST(LogRules, TheBarOfAnEvaluationIsNoStep) {
  std::string text = steps(kTrainerBar, 1, 20);
  text += steps("  5%|#     | {}/50 [00:01<00:02, 0.10s/it]\r", 1, 50);
  text += at("  1%|#     | {}/7252 [24:16<29:02:42, 90.0s/it]\r", 21) + steps(kTrainerBar, 22, 30);
  const LogFigures found = figures(text);
  EXPECT_EQ(found.steps, 15 + 9);
  EXPECT_EQ(found.left_out.disturbed, 1);
  EXPECT_DOUBLE_EQ(found.low, 14.62);
  EXPECT_DOUBLE_EQ(found.high, 14.62);
}

TEST(LogRules, LossesThatAreNoNumbersAreToldAndTheirStepsCount) {
  std::string text = lines(1, 10, 500);
  for (long step = 11; step <= 15; ++step) text += line(step, 500, "lm loss: NaN |");
  text += line(16, 500, "number of nan iterations: 3 |");
  EXPECT_EQ(log_of(text).steps.not_numbers, 6);
  EXPECT_EQ(figures(text).steps, 11);
}

TEST(LogRules, ATimeThatIsNoPositiveNumberIsNoStep) {
  std::string text = lines(1, 20, 500);
  for (const char* time : {"nan", "inf", "0.0", "-3.0", "N/A", "1e400", ""}) {
    text += std::string(" iteration 21/ 1000 | elapsed time per iteration (ms): ") + time + " |\n";
  }
  const TrainingLog log = log_of(text);
  EXPECT_EQ(log.steps.unreadable, 7);
  EXPECT_EQ(figures(text).last, 20);
}

TEST(BrokenLogs, ALastLineThatIsCutIsLeftOut) {
  const std::string whole = lines(1, 20, 500);
  const std::string cut = line(21, 512345.0);
  AtLeast cuts(static_cast<int>(cut.size()) - 1);
  for (std::size_t length = 1; length < cut.size(); ++length) {
    const std::string text = whole + cut.substr(0, length);
    const TrainingLog log = log_of(text);
    EXPECT_EQ(log.steps.steps.size(), 20u) << length;
    EXPECT_EQ(log.notes.size(), 1u) << length;
    EXPECT_DOUBLE_EQ(figures(text).high, 0.5) << length;
    ++cuts;
  }
}

// A log whose head is gone begins with a step of its own.
TEST(BrokenLogs, ALogWithoutItsHeadIsRead) {
  const LogFigures found = figures("time per iteration (ms): 1.0 |\n" + lines(5001, 5020, 500));
  EXPECT_EQ(found.first, 5006);
  EXPECT_EQ(found.steps, 15);
}

TEST(BrokenLogs, JunkBetweenLinesChangesNothing) {
  std::mt19937 random(7);
  std::string text;
  for (long step = 1; step <= 40; ++step) {
    text += line(step, 500);
    for (int byte = 0; byte < 300; ++byte) text += static_cast<char>(random() & 0xff);
    text += std::string(20, '\0') + "\n";
  }
  const LogFigures found = figures(text);
  EXPECT_DOUBLE_EQ(found.median, 0.5);
  EXPECT_GE(found.steps, 30);
}

TEST(BrokenLogs, ALineLongerThanTheLimitIsLeftOutAndTold) {
  const std::string huge(kLongestLogLine + 1, 'x');
  const std::string text = lines(1, 10, 500) + huge + line(11, 9000) + lines(12, 20, 500);
  const TrainingLog log = log_of(text);
  EXPECT_EQ(log.too_long, 1);
  EXPECT_EQ(log.steps.steps.size(), 19u);
  ASSERT_EQ(log.notes.size(), 1u);
  EXPECT_EQ(log.notes[0], "1 line is longer than 256 KiB, left out");
}

TEST(BrokenLogs, AreRefusedByName) {
  const auto block = [](const std::string& tp) {
    return "------------------------ arguments ------------------------\n"
           "  tensor_model_parallel_size ...................... " +
           tp +
           "\n"
           "  train_iters ..................................... 100\n"
           "-------------------- end of arguments ---------------------\n";
  };
  EXPECT_EQ(refusal(block("1") + lines(1, 20, 500) + block("2") + lines(1, 20, 500)),
            "run.log: holds two runs: the settings of lines 1 and 25 differ in "
            "tensor_model_parallel_size (a file for each run)");
  EXPECT_EQ(refusal(block("1") + lines(1, 20, 500) + block("1") + lines(1, 20, 500)), "");
  EXPECT_EQ(refusal(steps(kTorchtitan2025, 1, 20) + lines(1, 20, 500)),
            "run.log: holds steps of Megatron-LM and of torchtitan (a file for each run)");
  const std::string world = "using world size: ";
  EXPECT_EQ(refusal(world + "8, \n" + lines(1, 20, 500) + world + "16, \n" + lines(1, 20, 500)),
            "run.log: holds two runs: a world size of 8, and in line 22 16 (a file for each run)");
  EXPECT_EQ(refusal(lines(1, 8, 500)),
            "run.log: 3 steps are left of 8 lines when warm-up, evaluation and restarts are left "
            "out, and 5 are needed (a longer log, or --warm-up N)");
  EXPECT_EQ(refusal("\"Step\",\"a - iteration-time\",\"b - iteration-time\"\n1,2.0,3.0\n"),
            "run.log: has the step time of 2 runs (a file for each run)");
}

TEST(BrokenLogs, TextsThatAreNoLogsHaveNoSteps) {
  const std::vector<std::string> texts = {
      "",
      "\n\n",
      "{",
      "{}",
      "[1, 2]",
      "\x1f\x8b\x08",
      "iteration elapsed time per iteration (ms):\n",
      "torchrun pretrain_gpt.py --num-layers 12 --hidden-size 768\n",
      "step: tps: \n",
      "{\"log_history\": 3}",
      "{\"log_history\": [1, {\"step\": \"x\"}]}",
      "Step,loss\n1,2\n",
      "  1%|#  | 1/2 [nonsense\r"};
  for (const std::string& text : each_of(texts)) {
    const TrainingLog log = log_of(text);
    EXPECT_TRUE(log.steps.steps.empty()) << text;
    EXPECT_FALSE(log.printed) << text;
  }
}

TEST(PrintedSettings, AreKeptAsTheImporterReadsThem) {
  const TrainingLog megatron = log_of(
      "0: ------------------------ arguments ------------------------\n"
      "0:   hidden_size ..................................... 768\n"
      "0: -------------------- end of arguments ---------------------\n");
  ASSERT_TRUE(megatron.printed);
  EXPECT_EQ(megatron.printed->format, "megatron");
  EXPECT_EQ(megatron.printed->text, "  hidden_size ..................................... 768\n");
  const TrainingLog titan = log_of(
      "[rank0]:[titan] 2025-03-12 - root - INFO - Running with args: {'model': {'name': 'llama3', "
      "'flavor': \"8B\", 'x': None, 'y': True, 'brace': '}'}}\nnext\n");
  ASSERT_TRUE(titan.printed);
  EXPECT_EQ(titan.printed->format, "torchtitan");
  EXPECT_EQ(json_of_python(titan.printed->text),
            "{\"model\": {\"name\": \"llama3\", \"flavor\": \"8B\", \"x\": null, \"y\": true, "
            "\"brace\": \"}\"}}\n");
  const TrainingLog deepspeed = log_of(
      "[2023-07-25 21:03:17,269] [INFO] [config.py:950:print_user_config]   json = {\n"
      "    \"train_batch_size\": 64, \n    \"zero_optimization\": {\n        \"stage\": 3\n    "
      "}\n}\n");
  ASSERT_TRUE(deepspeed.printed);
  EXPECT_EQ(deepspeed.printed->format, "deepspeed");
  EXPECT_TRUE(deepspeed.printed->text.ends_with("        \"stage\": 3\n    }\n}\n"));
  const TrainingLog cut = log_of("------ arguments ------\n  hidden_size .... 768\n");
  EXPECT_FALSE(cut.printed);
  ASSERT_EQ(cut.notes.size(), 1u);
  EXPECT_EQ(cut.notes[0], "the settings of line 1 are cut");
}

TEST(LogNumbers, AreFoundByTheirLabel) {
  EXPECT_EQ(number_behind("tps: 10,050  tflops: 314.71", "tps"), 10050);
  EXPECT_EQ(number_behind("a_tps: 1 tps: 2", "tps"), 2);
  EXPECT_EQ(number_behind("CurrSamplesPerSec=8.00", "SamplesPerSec"), std::nullopt);
  EXPECT_EQ(number_behind("iteration (ms): 5 iteration 7/9", "iteration"), 7);
  EXPECT_EQ(number_behind("'loss': '0.5'", "loss"), 0.5);
  EXPECT_EQ(number_behind("loss: 1.5e-05", "loss"), 1.5e-5);
  EXPECT_EQ(number_behind("loss:", "loss"), std::nullopt);
  EXPECT_TRUE(std::isnan(number_behind("loss: nan", "loss").value_or(0)));
  EXPECT_EQ(number_before("[24:16<29:02:42, 14.62s/it]", "s/it"), 14.62);
  EXPECT_EQ(number_before("131,072 tokens per train step", "tokens per train step"), 131072);
  EXPECT_EQ(number_before("s/it", "s/it"), std::nullopt);
}

// Two gigabytes of a log would be a slow test: the memory is that of the steps alone.
TEST(LogRules, OfALongRunOnlyItsStepsAreKept) {
  std::string text;
  for (long step = 1; step <= 2000; ++step) {
    text += line(step, 500) + std::string(5000, 'x') + "\n";
  }
  const TrainingLog log = log_of(text);
  EXPECT_EQ(log.steps.steps.size(), 2000u);
  EXPECT_EQ(log.lines, 4000);
  EXPECT_TRUE(log.notes.empty());
}

}  // namespace
}  // namespace stepcast
