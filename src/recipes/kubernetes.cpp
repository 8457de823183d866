// SPDX-License-Identifier: Apache-2.0
// Sources: github.com/kubernetes-sigs/jobset api/jobset/v1alpha2 (a pod's name is
// JOBSET-JOB-JOBINDEX-PODINDEX.SUBDOMAIN, the subdomain the JobSet's name),
// github.com/kubeflow/trainer release-1.9 pkg/controller.v1/pytorch (RANK is the node's, Master
// first; MASTER_ADDR and MASTER_PORT are set).
#include "recipes/kubernetes.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>

#include "core/text/characters.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr const char* kName = "stepcast";
constexpr const char* kFiles = "stepcast-launch";

class Manifest {
 public:
  Manifest& pair(const char* key, const std::string& value) {
    out_ << YAML::Key << key << YAML::Value;
    return put(value);
  }
  Manifest& pair(const char* key, std::int64_t value) {
    out_ << YAML::Key << key << YAML::Value << value;
    return *this;
  }
  template <class Inside>
  Manifest& map(const char* key, Inside inside) {
    out_ << YAML::Key << key << YAML::Value;
    return item(inside);
  }
  template <class Inside>
  Manifest& item(Inside inside) {
    out_ << YAML::BeginMap;
    inside();
    out_ << YAML::EndMap;
    return *this;
  }
  template <class Inside>
  Manifest& list(const char* key, Inside inside) {
    out_ << YAML::Key << key << YAML::Value << YAML::BeginSeq;
    inside();
    out_ << YAML::EndSeq;
    return *this;
  }
  Manifest& words(const char* key, const std::vector<std::string>& words) {
    out_ << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const std::string& word : words) put(word);
    out_ << YAML::EndSeq;
    return *this;
  }
  Manifest& literal(const std::string& key, const std::string& text) {
    out_ << YAML::Key << key << YAML::Value << YAML::Literal << text;
    return *this;
  }
  // Text stays text: "true", "123" and what is not ASCII stand in quotes.
  Manifest& put(const std::string& value) {
    if (is_plain_yaml(value)) {
      out_ << value;
    } else {
      out_ << YAML::EscapeNonAscii << YAML::DoubleQuoted << with_utf8_alone(value);
    }
    return *this;
  }
  void next_document() { out_ << YAML::Newline << YAML::BeginDoc; }
  std::string text() const { return std::string(out_.c_str()) + "\n"; }

 private:
  YAML::Emitter out_;
};

void add_files(Manifest& m, const std::vector<LaunchFile>& files) {
  m.item([&] {
    m.pair("apiVersion", "v1").pair("kind", "ConfigMap");
    m.map("metadata", [&] { m.pair("name", kFiles); });
    m.map("data", [&] {
      for (const LaunchFile& file : files) m.literal(file.name, file.text);
    });
  });
}

void add_environment(Manifest& m, PodJob kind) {
  if (kind == PodJob::kPyTorchJob) return;  // the operator's
  m.list("env", [&] {
    m.item([&] {
      m.pair("name", "NODE_RANK");
      m.map("valueFrom", [&] {
        m.map("fieldRef", [&] {
          m.pair("fieldPath", "metadata.annotations['batch.kubernetes.io/job-completion-index']");
        });
      });
    });
    m.item([&] {
      m.pair("name", "MASTER_ADDR").pair("value", fmt::format("{0}-workers-0-0.{0}", kName));
    });
    m.item(
        [&] { m.pair("name", "MASTER_PORT").pair("value", fmt::format("{}", kRendezvousPort)); });
  });
}

// The pod of one node.
void add_pod(Manifest& m, const World& world, const LaunchFile& script, PodJob kind,
             const std::string& image) {
  m.map("spec", [&] {
    if (kind == PodJob::kJobSet) m.pair("restartPolicy", "Never");
    m.list("containers", [&] {
      m.item([&] {
        m.pair("name", "pytorch").pair("image", image);
        m.words("command", {"bash", fmt::format("{}/{}", kPodFolder, script.name)});
        add_environment(m, kind);
        m.map("resources",
              [&] { m.map("limits", [&] { m.pair("nvidia.com/gpu", world.gpus_per_node); }); });
        m.list("volumeMounts", [&] {
          m.item([&] { m.pair("name", "launch").pair("mountPath", kPodFolder); });
          m.item([&] { m.pair("name", "shared-memory").pair("mountPath", "/dev/shm"); });
        });
      });
    });
    m.list("volumes", [&] {
      m.item([&] {
        m.pair("name", "launch");
        m.map("configMap", [&] { m.pair("name", kFiles); });
      });
      m.item([&] {
        m.pair("name", "shared-memory");
        m.map("emptyDir", [&] { m.pair("medium", "Memory"); });
      });
    });
  });
}

void add_job_set(Manifest& m, const World& world, const LaunchFile& script,
                 const std::string& image) {
  m.pair("apiVersion", "jobset.x-k8s.io/v1alpha2").pair("kind", "JobSet");
  m.map("metadata", [&] { m.pair("name", kName); });
  m.map("spec", [&] {
    m.list("replicatedJobs", [&] {
      m.item([&] {
        m.pair("name", "workers").pair("replicas", 1);
        m.map("template", [&] {
          m.map("spec", [&] {
            m.pair("parallelism", world.nodes).pair("completions", world.nodes);
            m.pair("completionMode", "Indexed").pair("backoffLimit", 0);
            m.map("template", [&] { add_pod(m, world, script, PodJob::kJobSet, image); });
          });
        });
      });
    });
  });
}

void add_pytorch_job(Manifest& m, const World& world, const LaunchFile& script,
                     const std::string& image) {
  const auto replicas = [&](const char* kind, std::int64_t count) {
    m.map(kind, [&] {
      m.pair("replicas", count).pair("restartPolicy", "Never");
      m.map("template", [&] { add_pod(m, world, script, PodJob::kPyTorchJob, image); });
    });
  };
  m.pair("apiVersion", "kubeflow.org/v1").pair("kind", "PyTorchJob");
  m.map("metadata", [&] { m.pair("name", kName); });
  m.map("spec", [&] {
    m.pair("nprocPerNode", fmt::format("{}", world.gpus_per_node));
    m.map("pytorchReplicaSpecs", [&] {
      replicas("Master", 1);
      if (world.nodes > 1) replicas("Worker", world.nodes - 1);
    });
  });
}

// yaml-cpp leaves a comma or a bracket that begins no value where it is, and would read one empty
// document after the other from there for ever: each has to begin behind the one before.
class DocumentsAdvance : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos <= last_) throw YAML::ParserException(mark, "no value begins here");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

std::vector<YAML::Node> documents_of(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentsAdvance advance;
  while (parser.HandleNextDocument(advance)) {
  }
  return YAML::LoadAll(text);
}

}  // namespace

std::string kubernetes_manifest(const World& world, const std::vector<LaunchFile>& files,
                                PodJob kind, const std::string& image) {
  Manifest m;
  add_files(m, files);
  m.next_document();
  m.item([&] {
    if (kind == PodJob::kJobSet) {
      add_job_set(m, world, files.front(), image);
    } else {
      add_pytorch_job(m, world, files.front(), image);
    }
  });
  return m.text();
}

std::vector<LaunchFile> files_in_manifest(const std::string& text) {
  std::vector<LaunchFile> out;
  if (text.find("ConfigMap") == std::string::npos) return out;
  try {
    for (const YAML::Node& document : documents_of(text)) {
      if (!document.IsMap() || !document["kind"] || !document["data"] ||
          document["kind"].as<std::string>() != "ConfigMap") {
        continue;
      }
      for (const auto& file : document["data"]) {
        out.push_back({file.first.as<std::string>(), file.second.as<std::string>(), false});
      }
    }
  } catch (const YAML::Exception&) {
    return {};
  }
  return out;
}

}  // namespace stepcast
