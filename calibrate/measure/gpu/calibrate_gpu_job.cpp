// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/calibrate_gpu_job.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include "calibrate/cpu_measurements.h"
#include "calibrate/device_name.h"
#include "calibrate/gpu_kernel_kind.h"
#include "calibrate/gpu_run.h"
#include "calibrate/kind_of_operation.h"
#include "calibrate/measure/collective_sampler.h"
#include "calibrate/measure/gpu/device_collectives.h"
#include "calibrate/measure/gpu/gpu_call.h"
#include "calibrate/measure/gpu/gpu_timer.h"
#include "calibrate/measure/gpu/overlap_sampler.h"
#include "calibrate/measure/gpu/this_gpu.h"
#include "calibrate/measure/host_memory_sampler.h"
#include "calibrate/protocol/attempts.h"
#include "calibrate/protocol/journal.h"
#include "calibrate/protocol/machine_facts.h"
#include "calibrate/protocol/needed_grid.h"
#include "calibrate/protocol/needed_shapes.h"
#include "calibrate/protocol/operation_json.h"
#include "core/atomic_file.h"
#include "core/json_tree.h"
#include "core/read_rows.h"
#include "core/text/escape.h"
#include "core/utc_date.h"
#include "core/write_rows.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/noise.h"
#include "launch/host_facts.h"
#include "layout/scenario.h"
#include "operation/signature.h"
#include "program/program.h"

namespace stepcast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPoint_s = 0.2;   // of a shape's samples
constexpr double kWarmUp_s = 0.5;  // of the device
constexpr double kShapeWarmUp_s = 5e-3;
constexpr double kLoad_s = 40e-3;     // before a shape: the GPU rests while its data is made
constexpr double kBetween_s = 10e-3;  // of the load between samples, which take a fifth of that
// Products take this share of the load's time, and kernels that move memory the rest: products and
// attention are 0.79 of a step of Llama 3.2 1B on an H100, and 0.86 of one of 8B.
constexpr double kProductsOfLoad = 0.8;
constexpr double kSustained_s = 2;            // the power limit acts within some tenths of a second
constexpr std::int64_t kShareOfMemory = 16;   // of the device, for one buffer of a collective
constexpr ByteCount kBesideBytes = 64 << 20;  // of the collective beside a product
constexpr const char* kProtected =
    "shapes were measured while the driver held the clocks down to protect the GPU, as their "
    "conditions say: cool it, or wait, and calibrate again";

// The curve of a profile that has a kernel's times. Frameworks run cuDNN's kernels too; the own
// ones are this program's alone.
const char* curve_of(cuda::AttentionKernel kernel) {
  return kernel == cuda::AttentionKernel::kCudnn ? "cudnn" : "stepcast-own";
}

// A part of gpu.json as a point of the journal keeps it.
template <class Part>
Part part_of_run(const JournalPoint& point) {
  const auto document = JsonDocument::from(SortedJson(point.extra), "journal, " + point.key);
  Part out = read_object<Part>(document->root());
  if (!document->ok()) throw JobFailure(document->errors());
  return out;
}

class CalibrateGpuJob {
 public:
  CalibrateGpuJob(const Job& job, GpuRanks& ranks, RankReporter& report)
      : job_(job),
        ranks_(ranks),
        report_(report),
        gpu_(this_gpu()),
        scenarios_(read_scenarios()),
        nvml_(gpu_.pci_bus_id),
        timer_(nvml_),
        journal_(open_journal()) {
    protocol_.budget_s = kPoint_s;
    protocol_.target_half_width = job.target_half_width;
    protocol_.warm_up_s = kShapeWarmUp_s;
    protocol_.rejection.waiting = false;  // the host waits for the device on purpose
  }

  void run() {
    warm_up();
    // Together, while all are here; kernels are measured on the first GPU.
    if (ranks_.world() != nullptr) measure_collectives();
    ranks_.part();
    if (ranks_.rank() != 0) return;
    measure_copies();
    begin_ = Clock::now();
    for (const Operation& operation : list()) {
      report_.progress("kernels", done_++, all_, operation.name);
      measure(operation);
    }
    for (const auto& [kind, operation] : longest_) measure_sustained(kind, operation);
    for (const auto& [why, count] : left_out_) report_.warning(fmt::format("{} {}", count, why));
    for (const std::string& worry : kernels_.attention_kernels().worries()) report_.warning(worry);
    report_.progress("host memory", 0, 1);
    run_.host_memory = measure_host_memory([this] { report_.heartbeat(); });
    tell_machine();
    write("gpu.json", gpu_run_text(run_));
    const Json points{{"rank", 0},
                      {"operations", std::move(operations_)},
                      {"collectives", std::move(collectives_)}};
    write("rank-0.json", json_text(points) + "\n");
  }

 private:
  struct Longest {
    Operation operation;
    double seconds;
  };

  // Before anything is measured: a profile is of the device that its scenarios name.
  std::vector<Scenario> read_scenarios() const {
    std::vector<Scenario> out;
    for (const SortedJson& stated : job_.scenarios) {
      out.push_back(read_job_scenario(job_, stated));
      const Accelerator& device = out.back().cluster.spec.accelerator;
      if (names_device(gpu_.name, device)) continue;
      throw JobFailure(RankFailure::kInput,
                       fmt::format("this machine's GPU is '{}', and the cluster has {}", gpu_.name,
                                   device.title));
    }
    return out;
  }

  Journal open_journal() const {
    const std::string folder = job_.journal.empty() ? job_.results : job_.journal;
    Json conditions = to_json(gpu_);
    conditions["attention"] = job_.attention;
    // Points of older versions were measured after products alone, or without a load.
    conditions["load"] = "products and sums between samples";
    auto journal =
        Journal::open(fmt::format("{}/rank-{}.jsonl", folder, ranks_.rank()), conditions);
    if (!journal) throw JobFailure(journal.error());
    return std::move(*journal);
  }

  GpuContext context() { return {&kernels_, gpu_.cache_bytes}; }

  // It needs the whole device.
  GpuCall large_product() {
    constexpr std::int64_t kSize = 4096;
    const Gemm product{GemmRole::kForward, 1,    kSize, kSize, kSize, DataType::kBf16,
                       DataType::kBf16,    false};
    return gpu_call(product, context());
  }

  // Draws what a step draws: products, and kernels that move memory.
  void warm_up() {
    constexpr std::int64_t kElements = std::int64_t{1} << 26;
    ResidualAdd sum{};
    sum.type = DataType::kBf16;
    sum.size = {kElements, 4096, 3.0 * kElements * static_cast<double>(size_of(sum.type))};
    const GpuCall product = large_product(), stream = gpu_call(sum, context());
    const double of_product = timer_.seconds_of(product), of_stream = timer_.seconds_of(stream);
    const double products = kProductsOfLoad / (1 - kProductsOfLoad) * of_stream / of_product;
    const auto count = std::max<std::int64_t>(1, std::llround(products));
    timer_.load_with({[=](cuda::Stream on) {
                        for (std::int64_t i = 0; i < count; ++i) product.run(on);
                        stream.run(on);
                      },
                      0},
                     kBetween_s);
    timer_.warm_up(kWarmUp_s);
  }

  void measure_collectives() {
    DeviceCommunicator& world = *ranks_.world();
    DeviceCollectiveOptions options;
    options.largest = std::min(options.largest, gpu_.memory_bytes / kShareOfMemory);
    options.registered = job_.registered_buffers;
    options.identity = gpu_.name;
    options.is_throttled = [this] { return nvml_.is_throttled(); };
    options.fill = [](void* data, std::int64_t bytes) {
      cuda::fill_with_noise(static_cast<cuda::Bf16*>(data), bytes / 2, 1, nullptr);
      cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    };
    DeviceCollectives backend(world, nodes_of(world, host_name()), std::move(options));
    CollectiveSampler sampler(
        job_, report_, journal_, backend,
        {job_.budget_s,
         [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }});
    sampler.measure(collectives_);
    measure_beside_collective(backend);
    if (sampler.left_out() > 0) {
      left_out_["sizes of collectives are left out: the budget is spent"] += sampler.left_out();
    }
  }

  // An all-reduce of the largest group that lies within one node, where a device's SMs and memory
  // are what the two share, and not a network.
  void measure_beside_collective(DeviceCollectives& backend) {
    report_.progress("overlap", 0, 1, "all_reduce");
    const auto meeting = backend.meet(backend.all_reduce_within_a_node());
    const std::string key = backend.key_of(kBesideBytes) + " beside a product";
    const JournalPoint* known = journal_.find(key);
    if (!backend.on_any_rank(known == nullptr)) {
      if (!known->extra.empty()) run_.beside.all_reduce = part_of_run<GpuRun::Beside>(*known);
      return;
    }
    std::optional<GpuRun::Beside> measured;  // none: this rank takes no part
    if (meeting.takes_part) {
      OverlapSampler sampler(large_product());
      measured = sampler.collective(backend, meeting.placement.size(), kBesideBytes);
    }
    append(journal_, {key, {}, measured ? json_of(*measured) : Json::object()});
    run_.beside.all_reduce = measured;
    backend.on_any_rank(false);  // who takes no part waits for the others
  }

  // Measures copies alone and beside a product.
  void measure_copies() {
    report_.progress("overlap", 0, 1, "copies");
    const std::string key = "copies beside a product";
    attempt(key, "copies", [&] {
      append(journal_, {key, {}, json_of(OverlapSampler(large_product()).copies())});
    });
    const JournalPoint* known = journal_.find(key);
    if (known != nullptr) run_.beside.copies = part_of_run<GpuRun::Copies>(*known);
  }

  // Measures what the journal lacks, and notes before it begins: what breaks the GPU for this
  // process, or ends it, is known to the next one, which leaves it out and says so.
  template <typename Work>
  void attempt(const std::string& key, const std::string& name, const Work& work) {
    if (journal_.find(key) != nullptr) return;
    if (const auto why = attempts_.why_not(key)) {
      report_.warning(fmt::format("{}: is left out: {}", key, *why));
      return;
    }
    must(attempts_.begin(key));
    try {
      work();
    } catch (const cuda::OutOfDeviceMemory&) {
      ++left_out_[fmt::format("shapes of {} do not fit into the GPU's memory", name)];
    } catch (const cuda::CudaError& error) {
      try {
        timer_.check_device();
      } catch (const cuda::CudaError&) {
        must(attempts_.fail(key, error.what()));
        throw JobFailure(
            RankFailure::kInternal,
            fmt::format("{} has broken the GPU for this process: {}", key, error.what()));
      }
      ++left_out_[fmt::format("shapes of {} fail: {}", name, error.what())];
    }
  }

  static void must(const Result<void>& written) {
    if (!written) throw JobFailure(written.error());
  }

  // Lists what scenarios need first, then what lies around it.
  std::vector<Operation> list() {
    std::vector<Operation> out;
    std::set<std::string> known;
    const auto add = [&](const NeededMeasurements& kernels) {
      for (const NeededKernel& kernel : kernels.kernels) {
        if (!known.insert(signature(kernel.operation)).second) continue;
        out.push_back(kernel.operation);
      }
    };
    std::vector<NeededMeasurements> all;
    for (const Scenario& scenario : scenarios_) {
      all.push_back(needed(scenario, lower(scenario), RankGrid(scenario.layout)));
      add(all.back());
    }
    needed_ = static_cast<std::int64_t>(out.size());
    for (std::size_t i = 0; job_.grid && i < all.size(); ++i) add(grid(all[i]));
    all_ = static_cast<std::int64_t>(out.size());
    return out;
  }

  bool is_over() const {
    const double spent = std::chrono::duration<double>(Clock::now() - begin_).count();
    return done_ > needed_ && spent > job_.budget_s;
  }

  void measure(const Operation& operation) {
    const std::string key = signature(operation);
    if (journal_.find(key) == nullptr) {
      if (is_over()) {
        ++left_out_["shapes around the needed ones are left out: the budget is spent"];
        return;
      }
      attempt(key, operation.name, [&] { sample(operation, key); });
    }
    const JournalPoint* point = journal_.find(key);
    if (point == nullptr) return;
    Json told = point->extra;
    if (was_protected(told)) ++left_out_[kProtected];
    told["measurement"] = measurement_json(point->measurement);
    operations_.push_back(std::move(told));
    keep_longest(operation, point->measurement.median_s);
  }

  static bool was_protected(const Json& told) {
    GpuCondition condition;
    const Json known = told.value("condition", Json::object());
    for (const auto& reason : known.value("held_by", Json::array())) {
      condition.held_by.insert(reason.get<std::string>());
    }
    return is_protecting(condition);
  }

  // The needed kernel that takes longest stands for all of its kind.
  void keep_longest(const Operation& operation, double seconds) {
    const auto kind = gpu_kernel_kind(operation.work);
    if (!kind || done_ > needed_) return;
    const auto known = longest_.find(*kind);
    if (known != longest_.end() && known->second.seconds >= seconds) return;
    longest_.insert_or_assign(*kind, Longest{operation, seconds});
  }

  // Measures seconds without rest, because kernels of a step follow each other at the power limit.
  void measure_sustained(GpuKernelKind kind, const Longest& longest) {
    report_.progress("sustained", 0, 1, longest.operation.name);
    const std::string key = "sustained " + signature(longest.operation);
    attempt(key, longest.operation.name, [&] {
      const SustainedRun run =
          timer_.sustain(gpu_call(longest.operation.work, context()), kSustained_s);
      const GpuRun::Sustained told{std::max(1.0, run.call_s / longest.seconds),
                                   signature(longest.operation), run.condition};
      append(journal_, {key, {}, json_of(told)});
    });
    if (const JournalPoint* known = journal_.find(key)) {
      run_.sustained.of(kind) = part_of_run<GpuRun::Sustained>(*known);
    }
  }

  // Measures the operation and writes it into the journal, unless it has no kernel here.
  void sample(Operation operation, const std::string& key) {
    const GpuCall call = gpu_call(operation.work, context());
    if (!call.run) {
      ++left_out_[fmt::format("shapes of {} have no kernel here", operation.name)];
      return;
    }
    timer_.warm_up(kLoad_s);
    const GpuMeasurement measured = timer_.measure(call, protocol_);
    // Counts the bytes of this kernel, because a framework's may move others.
    if (KernelSize* size = size_of_kernel(operation.work)) size->bytes = call.bytes;
    Json told = {{"operation", operation_json(operation)},
                 {"condition", to_json(measured.condition)}};
    const auto* attention = std::get_if<Attention>(&operation.work);
    if (attention != nullptr && size_of(attention->type) == 2) add_other(operation.work, told);
    append(journal_, {key, measured.measurement, told});
  }

  // Measures the kernel of attention that was not chosen too, where it can run the shape.
  void add_other(const Operation::Work& work, Json& told) {
    const auto served = kernels_.attention_kernels().served_last();
    if (!served || !is_choice_free()) return;
    const bool by_cudnn = *served == cuda::AttentionKernel::kCudnn;
    told["kernel"] = curve_of(*served);
    auto& kernels = by_cudnn ? own_attention_ : cudnn_attention_;
    const auto wanted = by_cudnn ? cuda::AttentionKernel::kOwn : cuda::AttentionKernel::kCudnn;
    if (!kernels) {
      cuda::AttentionSettings settings = cuda::attention_settings(job_.attention);
      settings.fixed = wanted;
      kernels.emplace(cuda::GemmSettings{.tf32 = false}, settings);
    }
    try {
      const GpuCall call = gpu_call(work, {&*kernels, gpu_.cache_bytes});
      if (!call.run || kernels->attention_kernels().served_last() != wanted) return;
      timer_.warm_up(kLoad_s);
      const GpuMeasurement measured = timer_.measure(call, protocol_);
      told["other"] =
          json_of(OtherKernel{curve_of(wanted), measured.measurement, measured.condition});
    } catch (const cuda::CudaError&) {
      timer_.check_device();  // a kernel that fails alone is no other kernel
    }
  }
  bool is_choice_free() const { return job_.attention == "fastest" || job_.attention == "atomics"; }

  void tell_machine() {
    run_.device = gpu_.name;
    run_.host.launch_s = timer_.launch_s();
    run_.host.graph_launch_s = timer_.graph_launch_s();
    run_.machine = to_json(gpu_);
    for (const auto& [key, fact] : nvml_.facts()) run_.machine[key] = fact;
    run_.machine["attention"] = kernels_.attention_kernels().told();
    run_.machine["date"] = utc_date(std::time(nullptr));
  }

  void write(const char* name, const std::string& content) const {
    const std::string file = job_.results + "/" + name;
    if (const auto written = write_file_atomically(file, content); !written) {
      throw JobFailure(written.error());
    }
  }

  const Job& job_;
  GpuRanks& ranks_;
  RankReporter& report_;
  Clock::time_point begin_ = Clock::now();
  ThisGpu gpu_;
  std::vector<Scenario> scenarios_;
  Nvml nvml_;
  GpuTimer timer_;
  cuda::CudaKernels kernels_{{.tf32 = false},  // as the executor's
                             cuda::attention_settings(job_.attention)};
  std::optional<cuda::CudaKernels> own_attention_, cudnn_attention_;  // beside the faster one
  Journal journal_;
  Attempts attempts_{journal_};
  MeasurementProtocol protocol_;
  std::int64_t done_ = 0, needed_ = 0, all_ = 0;
  std::map<std::string, std::int64_t> left_out_;
  Json operations_ = Json::array(), collectives_ = Json::array();
  std::map<GpuKernelKind, Longest> longest_;
  GpuRun run_;
};

}  // namespace

void calibrate_gpu_job(const Job& job, GpuRanks& ranks, RankReporter& report) {
  CalibrateGpuJob(job, ranks, report).run();
}

}  // namespace stepcast
