// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "core/text/escape.h"
#include "layout/scenario.h"
#include "report/breakdown.h"
#include "report/number_text.h"
#include "report/trace_text.h"

namespace stepcast {
namespace {

std::int64_t picoseconds(Seconds time) { return std::llround(time.value() * 1e12); }

constexpr int kStepTrack = kStreams;  // behind those of the streams

bool is_transfer(Stream stream) { return transfers_of(stream).has_value(); }

bool is_copy(Stream stream) { return stream == Stream::kCopyOut || stream == Stream::kCopyIn; }

// Profiler tools take as communication what NCCL would have named, and as copies what CUDA would.
std::string event_name(const TraceSlice& slice) {
  if (slice.stream == Stream::kCopyOut) return "Memcpy DtoH (Device -> Pinned)";
  if (slice.stream == Stream::kCopyIn) return "Memcpy HtoD (Pinned -> Device)";
  if (is_transfer(slice.stream)) return "ncclDevKernel_SendRecv";
  if (!slice.collective) return slice.name;
  std::string out = "ncclDevKernel_";
  bool upper = true;
  for (const char c : slice.name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return out;
}

struct Slice {
  const TraceSlice* source;
  std::int64_t start;  // ps
  std::int64_t end;
  bool encloses = false;  // a pass, drawn above its kernels
};

const char* category_of(const Slice& slice) {
  if (slice.source->stream == Stream::kHost) return "cpu_op";
  if (is_copy(slice.source->stream)) return "gpu_memcpy";
  return slice.encloses ? "gpu_user_annotation" : "kernel";
}

bool same_track(const Slice& a, const Slice& b) {
  return a.source->rank_class == b.source->rank_class && a.source->stream == b.source->stream;
}

// Slices by track and time. A pass is recorded before its kernels and starts with the first, so a
// stable order by start puts it above them. Kernels are drawn to scale into the time of their pass:
// what rounding makes stick out of it, or into the next kernel, is cut.
std::vector<Slice> ordered_slices(const Prediction& prediction,
                                  const std::vector<bool>& drawn_class) {
  std::vector<Slice> slices;
  for (const TraceSlice& slice : prediction.slices) {
    if (!drawn_class[static_cast<std::size_t>(slice.rank_class)]) continue;
    slices.push_back({&slice, picoseconds(slice.start), picoseconds(slice.start + slice.duration)});
  }
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::make_tuple(a.source->rank_class, a.source->stream, a.start) <
           std::make_tuple(b.source->rank_class, b.source->stream, b.start);
  });
  Slice* pass = nullptr;
  std::int64_t drawn = 0;  // of the pass
  for (Slice& slice : slices) {
    if (pass && same_track(*pass, slice) && slice.start < pass->end) {
      pass->encloses = true;
      slice.start = std::max(slice.start, drawn);
      slice.end = std::clamp(slice.end, slice.start, pass->end);
      drawn = slice.end;
    } else {
      pass = &slice;
      drawn = slice.start;
    }
  }
  return slices;
}

class TraceWriter {
 public:
  TraceWriter(const Scenario& scenario, const Prediction& prediction)
      : scenario_(scenario),
        prediction_(prediction),
        drawn_(classes_of_one_pipeline(prediction)),
        slices_(ordered_slices(prediction, drawn_)) {}

  std::string write() {
    write_head();
    write_names();
    write_steps();
    for (const Slice& slice : slices_) write_slice(slice);
    write_flows();
    write_memory();
    out_.append("\n]}}\n");
    return out_.text();
  }

 private:
  // A class is drawn as its lowest rank.
  std::int32_t pid(std::int32_t rank_class) const {
    return lowest_rank(prediction_.rank_classes[static_cast<std::size_t>(rank_class)]);
  }

  void write_head() {
    const Accelerator& device = scenario_.cluster.spec.accelerator;
    out_.append(
        "{{\"schemaVersion\": 1,\n\"deviceProperties\": [{{\"id\": 0, \"name\": {}, "
        "\"totalGlobalMem\": {}, \"numSms\": {}}}],\n",
        json_literal(device.title), device.memory, device.sm_count);
    out_.append(
        "\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": 0, \"world_size\": {}}},\n",
        scenario_.cluster.gpus());
    out_.append("\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [");
  }

  void metadata(const char* name, std::int32_t pid, int tid, const char* key,
                const std::string& value) {
    out_.next();
    out_.append(
        "{{\"ph\": \"M\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"args\": "
        "{{\"{}\": {}}}}}",
        name, pid, tid, key, value);
  }

  void write_names() {
    for (std::size_t c = 0; c < prediction_.rank_classes.size(); ++c) {
      if (!drawn_[c]) continue;
      const RankClass& rank_class = prediction_.rank_classes[c];
      const std::int32_t process = pid(static_cast<std::int32_t>(c));
      metadata("process_name", process, 0, "name",
               json_literal(fmt::format("stage {}, ranks {}", rank_class.stage,
                                        ranks_text(rank_class.ranks))));
      metadata("process_sort_index", process, 0, "sort_index", fmt::format("{}", rank_class.stage));
    }
    std::map<std::pair<std::int32_t, Stream>, bool> named;
    for (const Slice& slice : slices_) {
      const auto key = std::make_pair(slice.source->rank_class, slice.source->stream);
      if (!named.emplace(key, true).second) continue;
      const int tid = static_cast<int>(key.second);
      metadata("thread_name", pid(key.first), tid, "name",
               json_literal(fmt::format("stream {} {}", tid, stepcast::name_of(key.second))));
      metadata("thread_sort_index", pid(key.first), tid, "sort_index", fmt::format("{}", tid));
    }
  }

  // The profiler's mark of a step: it ends with the last kernel, as in a forecast's step time.
  void write_steps() {
    std::map<std::int32_t, std::int64_t> ends;
    for (const Slice& slice : slices_) {
      if (slice.source->stream != Stream::kCompute) continue;
      std::int64_t& end = ends[slice.source->rank_class];
      end = std::max(end, slice.end);
    }
    const std::int64_t length = picoseconds(prediction_.step_time);
    for (const auto& [rank_class, end] : ends) {
      metadata("thread_name", pid(rank_class), kStepTrack, "name", "\"steps\"");
      out_.next();
      out_.append(
          "{{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#0\", "
          "\"pid\": {}, \"tid\": {}, \"ts\": {}, \"dur\": {}, \"args\": {{}}}}",
          pid(rank_class), kStepTrack, trace_time(end - length), trace_time(length));
    }
  }

  void write_slice(const Slice& slice) {
    const TraceSlice& source = *slice.source;
    const bool communication = source.collective || is_transfer(source.stream);
    out_.next();
    out_.append(
        "{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}, "
        "\"dur\": {}, \"args\": {{\"device\": 0, \"stream\": {}, \"phase\": \"{}\"",
        category_of(slice), json_literal(event_name(source)), pid(source.rank_class),
        static_cast<int>(source.stream), trace_time(slice.start),
        trace_time(slice.end - slice.start),
        source.stream == Stream::kHost ? -1 : static_cast<int>(source.stream),
        name_of(source.phase));
    if (source.micro_batch >= 0) out_.append(", \"micro_batch\": {}", source.micro_batch);
    if (source.chunk >= 0) out_.append(", \"chunk\": {}", source.chunk);
    if (communication) {
      out_.append(", \"Collective name\": {}, \"bytes\": {}",
                  json_literal(is_transfer(source.stream) ? "send_recv" : source.name),
                  source.bytes);
      write_choice(source);
    } else if (is_copy(source.stream)) {
      out_.append(", \"bytes\": {}", source.bytes);
    }
    out_.append("}}}}");
  }

  void write_choice(const TraceSlice& source) {
    if (source.sent < 0) return;
    const SentCollective& sent = prediction_.collectives[static_cast<std::size_t>(source.sent)];
    out_.append(", \"algorithm\": {}", json_literal(sent.algorithm));
    if (!sent.protocol.empty()) out_.append(", \"protocol\": {}", json_literal(sent.protocol));
    if (sent.channels > 0) out_.append(", \"channels\": {}", sent.channels);
    if (!sent.bound_by.empty()) out_.append(", \"bound by\": {}", json_literal(sent.bound_by));
  }

  // A send and its receive end at the same instant, carry the same micro-batch and as many bytes.
  void write_flows() {
    using Key = std::tuple<bool, std::int32_t, ByteCount, std::int64_t>;
    const auto key_of = [](const Slice& slice, bool forward) {
      return Key(forward, slice.source->micro_batch, slice.source->bytes, slice.end);
    };
    std::multimap<Key, const Slice*> receives;
    for (const Slice& slice : slices_) {
      const auto moved = transfers_of(slice.source->stream);
      if (moved && !moved->sends) receives.emplace(key_of(slice, moved->activations), &slice);
    }
    int id = 0;
    for (const Slice& send : slices_) {
      const auto moved = transfers_of(send.source->stream);
      if (!moved || !moved->sends) continue;
      const auto found = receives.find(key_of(send, moved->activations));
      if (found == receives.end()) continue;
      write_flow("s", ++id, send);
      write_flow("f", id, *found->second);
      receives.erase(found);
    }
  }

  void write_flow(const char* phase, int id, const Slice& slice) {
    out_.next();
    out_.append(
        "{{\"ph\": \"{}\", \"cat\": \"ac2g\", \"name\": \"send\", \"id\": {}, \"pid\": {}, "
        "\"tid\": {}, \"ts\": {}{}}}",
        phase, id, pid(slice.source->rank_class), static_cast<int>(slice.source->stream),
        trace_time(slice.start), *phase == 'f' ? ", \"bp\": \"e\"" : "");
  }

  void write_memory() {
    for (const MemorySample& sample : prediction_.memory_samples) {
      if (!drawn_[static_cast<std::size_t>(sample.rank_class)]) continue;
      out_.next();
      out_.append(
          "{{\"ph\": \"C\", \"name\": \"memory bytes\", \"pid\": {}, \"ts\": {}, \"args\": {{",
          pid(sample.rank_class), trace_time(picoseconds(sample.at)));
      for (int i = 0; i < memory_categories(prediction_); ++i) {
        out_.append("{}\"{}\": {}", i > 0 ? ", " : "",
                    stepcast::name_of(static_cast<MemoryCategory>(i)),
                    sample.parts[static_cast<std::size_t>(i)]);
      }
      out_.append("}}}}");
    }
  }

  const Scenario& scenario_;
  const Prediction& prediction_;
  std::vector<bool> drawn_;
  std::vector<Slice> slices_;
  TraceText out_;
};

}  // namespace

Written trace_json(const Scenario& scenario, const Prediction& prediction) {
  return Written::escaped(TraceWriter(scenario, prediction).write());
}

Written run_trace_json(const Scenario& scenario, const Validation& validation,
                       const std::vector<TraceSlice>& measured) {
  // Slices of a run name their stage; one rank stands for it, as in a forecast's trace.
  Prediction run;
  run.step_time = Seconds(validation.measured.step_time.median);
  const std::vector<bool> drawn = classes_of_one_pipeline(validation.predicted);
  std::map<std::int32_t, std::int32_t> by_stage;
  for (std::size_t c = 0; c < drawn.size(); ++c) {
    if (!drawn[c]) continue;
    const RankClass& known = validation.predicted.rank_classes[c];
    by_stage[known.stage] = static_cast<std::int32_t>(run.rank_classes.size());
    run.rank_classes.push_back(known);
  }
  for (TraceSlice slice : measured) {
    const auto known = by_stage.find(slice.rank_class);
    if (known == by_stage.end()) continue;
    slice.rank_class = known->second;
    run.slices.push_back(std::move(slice));
  }
  return trace_json(scenario, run);
}

}  // namespace stepcast
