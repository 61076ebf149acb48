// The part of ONNX Runtime's C API that this backend uses, loaded from the shared library in the
// wheel.
//
// OrtApi is a struct of function pointers that only ever grows at its end, so the place of a
// function is its ABI (microsoft/onnxruntime,
// include/onnxruntime/core/session/onnxruntime_c_api.h). The table names each place used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct OrtAllocator;
struct OrtEnv;
struct OrtMapTypeInfo;
struct OrtMemoryInfo;
struct OrtRunOptions;
struct OrtSequenceTypeInfo;
struct OrtSession;
struct OrtSessionOptions;
struct OrtStatus;
struct OrtTensorTypeAndShapeInfo;
struct OrtTypeInfo;
struct OrtValue;

// The last function below came with version 15.
constexpr uint32_t kOrtApiVersion = 15;

#define ORT_FUNCTIONS(F)                                                                                            \
  F(1, int, GetErrorCode, (const OrtStatus*))                                                                       \
  F(2, const char*, GetErrorMessage, (const OrtStatus*))                                                            \
  F(3, OrtStatus*, CreateEnv, (int log_level, const char* name, OrtEnv**))                                          \
  F(7, OrtStatus*, CreateSession, (const OrtEnv*, const char* path, const OrtSessionOptions*, OrtSession**))        \
  F(9, OrtStatus*, Run,                                                                                             \
    (OrtSession*, const OrtRunOptions*, const char* const* input_names, const OrtValue* const* inputs,              \
     size_t input_count, const char* const* output_names, size_t output_count, OrtValue** outputs))                 \
  F(10, OrtStatus*, CreateSessionOptions, (OrtSessionOptions**))                                                    \
  F(13, OrtStatus*, SetSessionExecutionMode, (OrtSessionOptions*, int mode))                                        \
  F(22, OrtStatus*, SetSessionLogSeverityLevel, (OrtSessionOptions*, int level))                                    \
  F(23, OrtStatus*, SetSessionGraphOptimizationLevel, (OrtSessionOptions*, int level))                              \
  F(24, OrtStatus*, SetIntraOpNumThreads, (OrtSessionOptions*, int threads))                                        \
  F(25, OrtStatus*, SetInterOpNumThreads, (OrtSessionOptions*, int threads))                                        \
  F(30, OrtStatus*, SessionGetInputCount, (const OrtSession*, size_t*))                                             \
  F(31, OrtStatus*, SessionGetOutputCount, (const OrtSession*, size_t*))                                            \
  F(33, OrtStatus*, SessionGetInputTypeInfo, (const OrtSession*, size_t index, OrtTypeInfo**))                      \
  F(34, OrtStatus*, SessionGetOutputTypeInfo, (const OrtSession*, size_t index, OrtTypeInfo**))                     \
  F(36, OrtStatus*, SessionGetInputName, (const OrtSession*, size_t index, OrtAllocator*, char**))                  \
  F(37, OrtStatus*, SessionGetOutputName, (const OrtSession*, size_t index, OrtAllocator*, char**))                 \
  F(48, OrtStatus*, CreateTensorAsOrtValue, (OrtAllocator*, const int64_t* shape, size_t dims, int type, OrtValue**)) \
  F(49, OrtStatus*, CreateTensorWithDataAsOrtValue,                                                                 \
    (const OrtMemoryInfo*, void* data, size_t bytes, const int64_t* shape, size_t dims, int type, OrtValue**))      \
  F(51, OrtStatus*, GetTensorMutableData, (OrtValue*, void**))                                                      \
  F(53, OrtStatus*, GetStringTensorDataLength, (const OrtValue*, size_t*))                                          \
  F(54, OrtStatus*, GetStringTensorContent,                                                                         \
    (const OrtValue*, void* text, size_t bytes, size_t* offsets, size_t offset_count))                              \
  F(55, OrtStatus*, CastTypeInfoToTensorInfo, (const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**))              \
  F(56, OrtStatus*, GetOnnxTypeFromTypeInfo, (const OrtTypeInfo*, int*))                                            \
  F(60, OrtStatus*, GetTensorElementType, (const OrtTensorTypeAndShapeInfo*, int*))                                 \
  F(61, OrtStatus*, GetDimensionsCount, (const OrtTensorTypeAndShapeInfo*, size_t*))                                \
  F(62, OrtStatus*, GetDimensions, (const OrtTensorTypeAndShapeInfo*, int64_t*, size_t count))                      \
  F(63, OrtStatus*, GetSymbolicDimensions, (const OrtTensorTypeAndShapeInfo*, const char**, size_t count))          \
  F(65, OrtStatus*, GetTensorTypeAndShape, (const OrtValue*, OrtTensorTypeAndShapeInfo**))                          \
  F(69, OrtStatus*, CreateCpuMemoryInfo, (int allocator, int memory, OrtMemoryInfo**))                              \
  F(76, OrtStatus*, AllocatorFree, (OrtAllocator*, void*))                                                          \
  F(78, OrtStatus*, GetAllocatorWithDefaultOptions, (OrtAllocator**))                                               \
  F(92, void, ReleaseEnv, (OrtEnv*))                                                                                \
  F(93, void, ReleaseStatus, (OrtStatus*))                                                                          \
  F(94, void, ReleaseMemoryInfo, (OrtMemoryInfo*))                                                                  \
  F(95, void, ReleaseSession, (OrtSession*))                                                                        \
  F(96, void, ReleaseValue, (OrtValue*))                                                                            \
  F(98, void, ReleaseTypeInfo, (OrtTypeInfo*))                                                                      \
  F(99, void, ReleaseTensorTypeAndShapeInfo, (OrtTensorTypeAndShapeInfo*))                                          \
  F(100, void, ReleaseSessionOptions, (OrtSessionOptions*))                                                         \
  F(103, OrtStatus*, CastTypeInfoToMapTypeInfo, (const OrtTypeInfo*, const OrtMapTypeInfo**))                       \
  F(104, OrtStatus*, CastTypeInfoToSequenceTypeInfo, (const OrtTypeInfo*, const OrtSequenceTypeInfo**))             \
  F(105, OrtStatus*, GetMapKeyType, (const OrtMapTypeInfo*, int*))                                                  \
  F(106, OrtStatus*, GetMapValueType, (const OrtMapTypeInfo*, OrtTypeInfo**))                                       \
  F(107, OrtStatus*, GetSequenceElementType, (const OrtSequenceTypeInfo*, OrtTypeInfo**))                           \
  F(130, OrtStatus*, AddSessionConfigEntry, (OrtSessionOptions*, const char* key, const char* value))               \
  F(252, OrtStatus*, GetResizedStringTensorElementBuffer, (OrtValue*, size_t index, size_t bytes, char** buffer))

struct Ort {
#define F(PLACE, RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS;
  ORT_FUNCTIONS(F)
#undef F
  std::string version;
  OrtEnv* env = nullptr;
  OrtAllocator* allocator = nullptr;
  OrtMemoryInfo* memory = nullptr;

  // Loads the library. Throws std::runtime_error with what is wrong with it.
  explicit Ort(const std::string& path);
  Ort(const Ort&) = delete;
  ~Ort();

  // Throws ONNX Runtime's message as std::runtime_error, in the form of its Python interface.
  void check(OrtStatus* status) const;
};

// Owns an object of the API. RELEASE is the member of Ort that releases it.
template <class T, void (*Ort::*RELEASE)(T*)>
class Owned {
 public:
  explicit Owned(const Ort& ort) : ort_(ort) {}
  Owned(Owned&& other) noexcept : ort_(other.ort_), it_(other.it_) { other.it_ = nullptr; }
  Owned(const Owned&) = delete;
  ~Owned() {
    if (it_ != nullptr) (ort_.*RELEASE)(it_);
  }
  T* get() const { return it_; }
  T** out() { return &it_; }

 private:
  const Ort& ort_;
  T* it_ = nullptr;
};

using Value = Owned<OrtValue, &Ort::ReleaseValue>;
using TypeInfo = Owned<OrtTypeInfo, &Ort::ReleaseTypeInfo>;
using ShapeInfo = Owned<OrtTensorTypeAndShapeInfo, &Ort::ReleaseTensorTypeAndShapeInfo>;
