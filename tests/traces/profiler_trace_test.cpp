// SPDX-License-Identifier: Apache-2.0
#include "traces/profiler_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "core/each.h"
#include "core/work_limits.h"

namespace stepcast {
namespace {

// Two steps of a rank as Kineto writes them, with a product, a collective and a copy.
const std::string kEvents =
    R"json({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 9, "tid": 9,
        "ts": 100.5, "dur": 50, "args": {}},
       {"ph": "X", "cat": "python_function", "name": "a \"kernel\" { [", "pid": 9, "tid": 9,
        "ts": 100, "dur": 1, "args": {"cat": "kernel"}},
       {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 101, "dur": 9,
        "args": {"Input Dims": [[16, 32], [32, 64]]}},
       {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
        "ts": 102, "dur": 2, "args": {"correlation": 1}},
       {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 9, "tid": 9,
        "ts": 120, "dur": 25, "args": {"correlation": 7}},
       {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 9, "tid": 9, "ts": 102},
       {"ph": "X", "cat": "kernel", "name": "sm90_xmma_gemm_bf16", "pid": 0, "tid": 7, "ts": 110,
        "dur": 20.25, "args": {"stream": 7, "correlation": 1}},
       {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgs)",
        "pid": 0, "tid": 20, "ts": 112, "dur": 5, "args": {"stream": 20, "correlation": 2,
        "Collective name": "_allgather_base", "In msg nelems": 64, "Out msg nelems": 512,
        "Group size": 8, "dtype": "BFloat16", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}},
       {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH", "pid": 0, "tid": 7, "ts": 131,
        "dur": 1, "args": {"stream": 7}})json";

std::string whole(const std::string& events = kEvents) {
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100"}],
             "distributedInfo": {"rank": 3, "traceEvents": [1]}, "traceEvents": [)" +
         events + R"(], "traceName": "x"})";
}

std::string error_of(const std::string& text, const std::string& file = "rank0.json") {
  const auto out = trace_of(text, file);
  return out ? "" : to_string(out.error());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string packed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string in = text, out(::deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

class File {
 public:
  explicit File(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("stepcast-trace-" + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void expect_read(const Trace& trace) {
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.device_name, "H100");
  ASSERT_EQ(trace.works.size(), 3u);
  const TraceWork& product = trace.works[0];
  EXPECT_EQ(trace.name_of(product.name), "sm90_xmma_gemm_bf16");
  EXPECT_DOUBLE_EQ(product.end_us, 130.25);
  EXPECT_EQ(product.launched_us, 102);
  ASSERT_EQ(product.product, 0);
  EXPECT_EQ(trace.products[0], (ProductShape{1, 16, 64, 32}));
  const TraceWork& gather = trace.works[1];
  ASSERT_EQ(gather.message, 0);
  EXPECT_EQ(trace.messages[0].elements_out, 512);
  EXPECT_EQ(trace.messages[0].ranks.size(), 8u);
  EXPECT_FALSE(gather.launched_us.has_value());
  EXPECT_EQ(trace.works[2].kind, TraceWorkKind::kCopy);
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_EQ(trace.steps[0].number, 4);
  ASSERT_EQ(trace.waits.size(), 1u);
  EXPECT_EQ(trace.events, 9);
}

TEST(ReadTrace, KeepsKernelsWithLaunchesProductsAndMessages) {
  const auto trace = trace_of(whole(), "x.json");
  ASSERT_TRUE(trace.has_value()) << to_string(trace.error());
  expect_read(*trace);
}

TEST(ReadTrace, ReadsPackedFilesAlike) {
  const File file(packed(whole()));
  const auto trace = read_trace(file.path());
  ASSERT_TRUE(trace.has_value()) << to_string(trace.error());
  expect_read(*trace);
}

TEST(ReadTrace, ReadsAFileOfSeveralPackedMembers) {
  const std::string text = whole();
  const File file(packed(text.substr(0, 700)) + packed(text.substr(700)));
  const auto trace = read_trace(file.path());
  ASSERT_TRUE(trace.has_value()) << to_string(trace.error());
  expect_read(*trace);
}

// 20,000 equal kernels pack into some kB, and take megabytes of memory where they are kept.
TEST(ReadTrace, HoldsNoMoreOfAPackedFileThanTheMemoryThatItMayTake) {
  std::string events = kEvents;
  for (int i = 0; i < 20'000; ++i) {
    events += R"(,{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 140, )"
              R"("dur": 1, "args": {"stream": 7}})";
  }
  const std::string text = packed(whole(events));
  EXPECT_LT(text.size(), 20'000u);
  const File file(text);
  EXPECT_TRUE(read_trace(file.path()).has_value());
  const MemoryScope scope(2'000'000);
  const auto refused = read_trace(file.path());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().front().code, ErrorCode::kTooMuch);
  EXPECT_TRUE(has(to_string(refused.error()), "holds more events")) << to_string(refused.error());
}

TEST(ReadTrace, TakesABareListOfEvents) {
  const auto trace = trace_of("[" + kEvents + "]", "rank-5.json");
  ASSERT_TRUE(trace.has_value()) << to_string(trace.error());
  EXPECT_EQ(trace->works.size(), 3u);
  EXPECT_EQ(trace->rank, 5);  // by the file's name
}

TEST(ReadTrace, RefusesATraceThatIsCutWhereverItIs) {
  const std::string text = whole();
  for (const std::size_t length : each_of(std::vector<std::size_t>{
           1, 60, 400, text.size() / 2, text.size() - 20, text.size() - 1})) {
    EXPECT_TRUE(has(error_of(text.substr(0, length)), "rank0.json: ")) << length;
    EXPECT_TRUE(has(error_of(text.substr(0, length)), "was cut")) << length;
  }
}

TEST(ReadTrace, RefusesAPackedTraceThatIsCutOrDamaged) {
  const std::string text = packed(whole());
  const File cut(text.substr(0, text.size() / 2));
  EXPECT_TRUE(has(to_string(read_trace(cut.path()).error()), "its gzip does not end"));
  std::string damaged = text;
  for (std::size_t i = 40; i < 60; ++i) damaged[i] = '\xff';
  const File other(damaged);
  EXPECT_FALSE(read_trace(other.path()).has_value());
}

TEST(ReadTrace, RefusesWhatIsNoTraceByName) {
  EXPECT_TRUE(has(error_of(""), "is empty"));
  EXPECT_TRUE(has(error_of("hello"), "does not begin as JSON"));
  EXPECT_TRUE(has(error_of(R"({"a": 1})"), "holds no kernels"));
  EXPECT_TRUE(has(error_of(whole() + "x"), "goes on behind its end"));
  EXPECT_TRUE(has(error_of(whole(kEvents + ", 7")), "is no JSON"));
  EXPECT_TRUE(has(error_of(whole(kEvents + ",")), "is no JSON"));
  EXPECT_TRUE(has(error_of(whole(R"({"ph": "i"})")), "holds no kernels"));
}

TEST(ReadTrace, RefusesAnEventThatIsNoJsonByItsPlace) {
  const std::string bad =
      R"(, {"ph": "X", "cat": "kernel", "name": "k", "ts": NaN, "dur": 1, "args": {}})";
  EXPECT_TRUE(has(error_of(whole(kEvents + bad)), "traceEvents[9]"));
}

TEST(ReadTrace, RefusesTimesThatNoMachineHas) {
  for (const char* time : each_of(std::vector{R"("ts": 1, "dur": -1)", R"("ts": 1e30, "dur": 1)",
                                              R"("ts": 1, "dur": 1e30)"})) {
    const std::string bad =
        std::string(R"(, {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 1, )") + time +
        "}";
    EXPECT_TRUE(has(error_of(whole(kEvents + bad)), "no time that a machine has")) << time;
  }
}

TEST(ReadTrace, ValuesOfOtherTypesCountAsNone) {
  const auto trace = trace_of(
      R"([{"ph": "X", "cat": "kernel", "name": 7, "pid": "a", "tid": [], "ts": "x", "dur": {},
           "args": []}])",
      "x");
  ASSERT_TRUE(trace.has_value()) << to_string(trace.error());
  EXPECT_EQ(trace->works.front().end_us, 0);
}

}  // namespace
}  // namespace stepcast
