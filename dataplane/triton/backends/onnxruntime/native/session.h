// One ONNX Runtime session: opened, described, run. Must not know Triton's objects, requests or
// batching.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "json.h"
#include "ort_api.h"
#include "tensors.h"

// Whether int8 models need ONNX Runtime's exact kernels on the CPU of this /proc/cpuinfo.
bool overflows(std::istream& cpuinfo);

class Session {
 public:
  // The copies of a model share one session and its threads. Throws Error when the file cannot be
  // loaded.
  Session(const Ort& ort, const std::string& path, const Json& config);

  const Ort& ort() const { return ort_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  // The outputs in the order of ``wanted``; inputs in the order of the model. Throws Error with
  // ONNX Runtime's message.
  std::vector<Value> run(const std::vector<Value>& inputs, const std::vector<const char*>& wanted) const;

 private:
  void describe(bool input);

  const Ort& ort_;
  Owned<OrtSession, &Ort::ReleaseSession> session_;
  std::vector<Tensor> tensors_;
  std::vector<std::string> input_names_;
  std::vector<const char*> inputs_;
};
