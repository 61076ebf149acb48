#include "ort_api.h"

#include <dlfcn.h>

#include <stdexcept>

namespace {

struct ApiBase {
  const void* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

const char* const kCodes[] = {"OK",           "FAIL",           "INVALID_ARGUMENT", "NO_SUCHFILE",
                              "NO_MODEL",     "ENGINE_ERROR",   "RUNTIME_EXCEPTION", "INVALID_PROTOBUF",
                              "MODEL_LOADED", "NOT_IMPLEMENTED", "INVALID_GRAPH",    "EP_FAIL"};

}  // namespace

Ort::Ort(const std::string& path) {
  // It is never closed: ONNX Runtime's threads and static objects may outlive the backend.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw std::runtime_error(std::string("cannot load ONNX Runtime: ") + dlerror());
  auto base = reinterpret_cast<const ApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  if (base == nullptr) throw std::runtime_error(path + " is not ONNX Runtime");
  version = base()->GetVersionString();
  auto table = static_cast<void* const*>(base()->GetApi(kOrtApiVersion));
  if (table == nullptr) throw std::runtime_error("ONNX Runtime " + version + " is too old");
#define F(PLACE, RESULT, NAME, PARAMETERS) NAME = reinterpret_cast<RESULT(*) PARAMETERS>(table[PLACE]);
  ORT_FUNCTIONS(F)
#undef F
  check(CreateEnv(3, "amphitrite", &env));
  check(GetAllocatorWithDefaultOptions(&allocator));
  check(CreateCpuMemoryInfo(0, 0, &memory));
}

Ort::~Ort() {
  if (memory != nullptr) ReleaseMemoryInfo(memory);
  if (env != nullptr) ReleaseEnv(env);
}

void Ort::check(OrtStatus* status) const {
  if (status == nullptr) return;
  size_t code = static_cast<size_t>(GetErrorCode(status));
  std::string name = code < sizeof(kCodes) / sizeof(*kCodes) ? kCodes[code] : "UNKNOWN";
  std::string words = "[ONNXRuntimeError] : " + std::to_string(code) + " : " + name + " : " + GetErrorMessage(status);
  ReleaseStatus(status);
  throw std::runtime_error(words);
}
