// The part of Triton's backend API (major version 1, from minor version 15 on) that this backend
// uses.
//
// Declared here because the wheel has the server without its headers. These are plain C functions
// over opaque pointers. Their names, the order of parameters and the values of enumerations are
// Triton's ABI (triton-inference-server/core, include/triton/core/tritonserver.h and
// tritonbackend.h). The server that loads this library defines them.
#pragma once

#include <cstddef>
#include <cstdint>

struct TRITONSERVER_Error;
struct TRITONSERVER_Message;
struct TRITONBACKEND_Backend;
struct TRITONBACKEND_Input;
struct TRITONBACKEND_Model;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_Output;
struct TRITONBACKEND_Request;
struct TRITONBACKEND_Response;
struct TRITONBACKEND_State;

enum TRITONSERVER_Error_Code {
  TRITONSERVER_ERROR_INTERNAL = 1,
  TRITONSERVER_ERROR_INVALID_ARG = 3,
  TRITONSERVER_ERROR_CANCELLED = 7
};
enum TRITONSERVER_LogLevel { TRITONSERVER_LOG_INFO };
enum TRITONSERVER_MemoryType { TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_CPU_PINNED, TRITONSERVER_MEMORY_GPU };
enum TRITONBACKEND_ArtifactType { TRITONBACKEND_ARTIFACT_FILESYSTEM };
// TRITONSERVER_DataType: see tensors.cc, which has them in a table.
using TRITONSERVER_DataType = int;

constexpr uint32_t kReleaseAll = 1;     // TRITONSERVER_REQUEST_RELEASE_ALL
constexpr uint32_t kResponseFinal = 1;  // TRITONSERVER_RESPONSE_COMPLETE_FINAL

// Weak, so that a check can load this library without a server.
#define TRITON(NAME, ...) extern "C" __attribute__((weak)) TRITONSERVER_Error* NAME(__VA_ARGS__)

TRITON(TRITONSERVER_ErrorNew, TRITONSERVER_Error_Code, const char* message);
extern "C" __attribute__((weak)) void TRITONSERVER_ErrorDelete(TRITONSERVER_Error*);
extern "C" __attribute__((weak)) const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error*);
TRITON(TRITONSERVER_LogMessage, TRITONSERVER_LogLevel, const char* file, int line, const char* message);
TRITON(TRITONSERVER_MessageNewFromSerializedJson, TRITONSERVER_Message**, const char* base, size_t size);
TRITON(TRITONSERVER_MessageSerializeToJson, TRITONSERVER_Message*, const char** base, size_t* size);
TRITON(TRITONSERVER_MessageDelete, TRITONSERVER_Message*);

TRITON(TRITONBACKEND_ApiVersion, uint32_t* major, uint32_t* minor);
TRITON(TRITONBACKEND_BackendArtifacts, TRITONBACKEND_Backend*, TRITONBACKEND_ArtifactType*, const char** location);
TRITON(TRITONBACKEND_BackendState, TRITONBACKEND_Backend*, void** state);
TRITON(TRITONBACKEND_BackendSetState, TRITONBACKEND_Backend*, void* state);

TRITON(TRITONBACKEND_ModelName, TRITONBACKEND_Model*, const char** name);
TRITON(TRITONBACKEND_ModelVersion, TRITONBACKEND_Model*, uint64_t* version);
TRITON(TRITONBACKEND_ModelRepository, TRITONBACKEND_Model*, TRITONBACKEND_ArtifactType*, const char** location);
TRITON(TRITONBACKEND_ModelConfig, TRITONBACKEND_Model*, uint32_t version, TRITONSERVER_Message**);
TRITON(TRITONBACKEND_ModelSetConfig, TRITONBACKEND_Model*, uint32_t version, TRITONSERVER_Message*);
TRITON(TRITONBACKEND_ModelAutoCompleteConfig, TRITONBACKEND_Model*, bool* complete);
TRITON(TRITONBACKEND_ModelBackend, TRITONBACKEND_Model*, TRITONBACKEND_Backend**);
TRITON(TRITONBACKEND_ModelState, TRITONBACKEND_Model*, void** state);
TRITON(TRITONBACKEND_ModelSetState, TRITONBACKEND_Model*, void* state);

TRITON(TRITONBACKEND_ModelInstanceModel, TRITONBACKEND_ModelInstance*, TRITONBACKEND_Model**);
TRITON(TRITONBACKEND_ModelInstanceName, TRITONBACKEND_ModelInstance*, const char** name);
TRITON(TRITONBACKEND_ModelInstanceState, TRITONBACKEND_ModelInstance*, void** state);
TRITON(TRITONBACKEND_ModelInstanceSetState, TRITONBACKEND_ModelInstance*, void* state);
TRITON(TRITONBACKEND_ModelInstanceReportStatistics, TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request*, bool success,
       uint64_t exec_start_ns, uint64_t compute_start_ns, uint64_t compute_end_ns, uint64_t exec_end_ns);
TRITON(TRITONBACKEND_ModelInstanceReportBatchStatistics, TRITONBACKEND_ModelInstance*, uint64_t batch_size,
       uint64_t exec_start_ns, uint64_t compute_start_ns, uint64_t compute_end_ns, uint64_t exec_end_ns);

TRITON(TRITONBACKEND_RequestCorrelationId, TRITONBACKEND_Request*, uint64_t* id);
TRITON(TRITONBACKEND_RequestCorrelationIdString, TRITONBACKEND_Request*, const char** id);
TRITON(TRITONBACKEND_RequestFlags, TRITONBACKEND_Request*, uint32_t* flags);
TRITON(TRITONBACKEND_RequestIsCancelled, TRITONBACKEND_Request*, bool* cancelled);
TRITON(TRITONBACKEND_RequestInput, TRITONBACKEND_Request*, const char* name, TRITONBACKEND_Input**);
TRITON(TRITONBACKEND_RequestOutputCount, TRITONBACKEND_Request*, uint32_t* count);
TRITON(TRITONBACKEND_RequestOutputName, TRITONBACKEND_Request*, uint32_t index, const char** name);
TRITON(TRITONBACKEND_RequestRelease, TRITONBACKEND_Request*, uint32_t flags);
TRITON(TRITONBACKEND_InputProperties, TRITONBACKEND_Input*, const char** name, TRITONSERVER_DataType*,
       const int64_t** shape, uint32_t* dims, uint64_t* bytes, uint32_t* buffers);
TRITON(TRITONBACKEND_InputBuffer, TRITONBACKEND_Input*, uint32_t index, const void** buffer, uint64_t* bytes,
       TRITONSERVER_MemoryType*, int64_t* memory_id);

TRITON(TRITONBACKEND_ResponseNew, TRITONBACKEND_Response**, TRITONBACKEND_Request*);
TRITON(TRITONBACKEND_ResponseOutput, TRITONBACKEND_Response*, TRITONBACKEND_Output**, const char* name,
       TRITONSERVER_DataType, const int64_t* shape, uint32_t dims);
TRITON(TRITONBACKEND_OutputBuffer, TRITONBACKEND_Output*, void** buffer, uint64_t bytes, TRITONSERVER_MemoryType*,
       int64_t* memory_id);
TRITON(TRITONBACKEND_ResponseSend, TRITONBACKEND_Response*, uint32_t flags, TRITONSERVER_Error*);

TRITON(TRITONBACKEND_StateNew, TRITONBACKEND_State**, TRITONBACKEND_Request*, const char* name, TRITONSERVER_DataType,
       const int64_t* shape, uint32_t dims);
TRITON(TRITONBACKEND_StateBuffer, TRITONBACKEND_State*, void** buffer, uint64_t bytes, TRITONSERVER_MemoryType*,
       int64_t* memory_id);
TRITON(TRITONBACKEND_StateUpdate, TRITONBACKEND_State*);

#undef TRITON
