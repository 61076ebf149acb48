// The functions that Triton calls in a backend, for the backend, its models and their instances. No
// exception leaves them.
//
// Triton finds this library as <backend directory>/onnxruntime/libtriton_onnxruntime.so. The
// library finds ONNX Runtime beside itself as libonnxruntime.so.
#include <sys/stat.h>

#include <memory>

#include "completion.h"
#include "execution.h"
#include "triton_calls.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

// Triton puts the class before a Python backend's errors. Both backends use the same text.
template <class F>
TRITONSERVER_Error* guarded(F body) {
  try {
    body();
    return nullptr;
  } catch (const Error& error) {
    return failure(std::string("Error: ") + error.what());
  } catch (const std::exception& error) {
    return failure(error.what());
  }
}

Json configuration(TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* message = nullptr;
  call(TRITONBACKEND_ModelConfig(model, 1, &message));
  const char* base = nullptr;
  size_t size = 0;
  call(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
  std::string text(base, size);
  call(TRITONSERVER_MessageDelete(message));
  return Json::parse(text);
}

void set_configuration(TRITONBACKEND_Model* model, const Json& config) {
  std::string text = config.dump();
  TRITONSERVER_Message* message = nullptr;
  call(TRITONSERVER_MessageNewFromSerializedJson(&message, text.data(), text.size()));
  TRITONSERVER_Error* refused = TRITONBACKEND_ModelSetConfig(model, 1, message);
  ignore(TRITONSERVER_MessageDelete(message));
  call(refused);
}

// A large model may be a directory model.onnx with the file of that name and its weights.
std::string file_of(TRITONBACKEND_Model* model, const Json& config) {
  TRITONBACKEND_ArtifactType artifacts;
  const char* location = nullptr;
  uint64_t version = 0;
  call(TRITONBACKEND_ModelRepository(model, &artifacts, &location));
  call(TRITONBACKEND_ModelVersion(model, &version));
  const std::string& named = config["default_model_filename"].string();
  std::string path = std::string(location) + "/" + std::to_string(version) + "/";
  path += named.empty() ? "model.onnx" : named;
  struct stat facts;
  if (stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) path += "/model.onnx";
  return path;
}

const Ort& ort_of(TRITONBACKEND_Model* model) {
  TRITONBACKEND_Backend* backend = nullptr;
  void* state = nullptr;
  call(TRITONBACKEND_ModelBackend(model, &backend));
  call(TRITONBACKEND_BackendState(backend, &state));
  return *static_cast<Ort*>(state);
}

std::unique_ptr<Model> load(TRITONBACKEND_Model* triton) {
  const char* name = nullptr;
  bool may_complete = false;
  call(TRITONBACKEND_ModelName(triton, &name));
  call(TRITONBACKEND_ModelAutoCompleteConfig(triton, &may_complete));
  const Ort& ort = ort_of(triton);
  Json config = configuration(triton);
  auto session = std::make_unique<Session>(ort, file_of(triton, config), config);
  Completion completion = complete(config, session->tensors());
  if (may_complete) {
    config.set("input", completion.inputs);
    config.set("output", completion.outputs);
    config.set("max_batch_size", Json::number(completion.max_batch_size));
    bool batches = completion.max_batch_size > 0;
    bool chosen = config.has("dynamic_batching") || completion.sequences.inputs.batched;
    if (batches && !chosen) config.set("dynamic_batching", Json::object());
    set_configuration(triton, config);
  }
  auto model = std::make_unique<Model>(
      Model{std::move(session), completion.max_batch_size, {}, {}, std::move(completion.sequences)});
  for (const Tensor& tensor : model->session->tensors()) {
    if (tensor.input) model->inputs.push_back(tensor);
  }
  for (const Json& entry : completion.outputs.items()) model->outputs.push_back(entry["name"].string());
  log(std::string(name) + ": " + completion.remark);
  log(std::string("engine of ") + name + ": onnxruntime " + ort.version + ", CPU");
  return model;
}

}  // namespace

EXPORTED TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return guarded([&] {
    uint32_t major = 0, minor = 0;
    call(TRITONBACKEND_ApiVersion(&major, &minor));
    if (major != 1 || minor < 15) throw Error("this Triton's backend API is not the one that this backend is made for");
    TRITONBACKEND_ArtifactType artifacts;
    const char* location = nullptr;
    call(TRITONBACKEND_BackendArtifacts(backend, &artifacts, &location));
    auto ort = std::make_unique<Ort>(std::string(location) + "/libonnxruntime.so");
    call(TRITONBACKEND_BackendSetState(backend, ort.get()));
    ort.release();
  });
}

EXPORTED TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  return guarded([&] {
    void* state = nullptr;
    call(TRITONBACKEND_BackendState(backend, &state));
    delete static_cast<Ort*>(state);
  });
}

EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* triton) {
  return guarded([&] {
    std::unique_ptr<Model> model = load(triton);
    call(TRITONBACKEND_ModelSetState(triton, model.get()));
    model.release();
  });
}

EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* triton) {
  return guarded([&] {
    void* state = nullptr;
    call(TRITONBACKEND_ModelState(triton, &state));
    delete static_cast<Model*>(state);
  });
}

EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  return guarded([&] {
    TRITONBACKEND_Model* triton = nullptr;
    void* state = nullptr;
    call(TRITONBACKEND_ModelInstanceModel(instance, &triton));
    call(TRITONBACKEND_ModelState(triton, &state));
    auto execution = std::make_unique<Execution>(*static_cast<Model*>(state), instance);
    call(TRITONBACKEND_ModelInstanceSetState(instance, execution.get()));
    execution.release();
  });
}

EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  return guarded([&] {
    void* state = nullptr;
    call(TRITONBACKEND_ModelInstanceState(instance, &state));
    delete static_cast<Execution*>(state);
  });
}

EXPORTED TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                                TRITONBACKEND_Request** requests, uint32_t count) {
  void* state = nullptr;
  if (TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceState(instance, &state)) return error;
  static_cast<Execution*>(state)->run(requests, count);
  return nullptr;
}
