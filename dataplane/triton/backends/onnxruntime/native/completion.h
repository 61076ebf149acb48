// Completes a model's Triton configuration from what the ONNX file declares, exactly as
// completion.py does; a test compares the two. Must not know files, sessions or requests.
#pragma once

#include <string>
#include <vector>

#include "json.h"
#include "sequences.h"
#include "tensors.h"

struct Completion {
  int64_t max_batch_size;
  Json inputs;  // of clients, as Triton's configuration has them
  Json outputs;
  std::string remark;  // why it batches or does not
  Sequences sequences;
};

// What the configuration says already stays and is checked against the model. Throws Error.
Completion complete(const Json& config, const std::vector<Tensor>& tensors);
