// Turns Triton's errors into exceptions inside this library, and back at its border.
#pragma once

#include <string>

#include "tensors.h"
#include "triton_api.h"

inline void call(TRITONSERVER_Error* error) {
  if (error == nullptr) return;
  std::string message = TRITONSERVER_ErrorMessage(error);
  TRITONSERVER_ErrorDelete(error);
  throw Error(message);
}

// For a failure that nothing can be done about.
inline void ignore(TRITONSERVER_Error* error) {
  if (error != nullptr) TRITONSERVER_ErrorDelete(error);
}

inline TRITONSERVER_Error* failure(const std::string& message) {
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, message.c_str());
}

inline void log(const std::string& message) {
  ignore(TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "onnxruntime", 0, message.c_str()));
}
