// Runs the requests of one call of Triton together where they fit, and alone where they do not, as
// batching.py does: one request's failure does not affect others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "requests.h"
#include "sequences.h"
#include "session.h"

// What is fixed when a model is loaded.
struct Model {
  std::unique_ptr<Session> session;
  int64_t max_batch_size;            // 0: none; else every tensor's first dimension is the batch
  std::vector<Tensor> inputs;        // of the model
  std::vector<std::string> outputs;  // those that are served
  Sequences sequences;
};

// One copy of one model: what it needs while it runs.
class Execution {
 public:
  Execution(const Model& model, TRITONBACKEND_ModelInstance* instance) : model_(model), instance_(instance) {}

  // Answers and releases every request. Triton limits the batch, except when it warms a model up.
  void run(TRITONBACKEND_Request** requests, uint32_t count);

 private:
  // Nanoseconds of Triton's clock; those that belong to one run of the session.
  struct Times {
    uint64_t start, compute_start = 0, compute_end = 0;
  };

  void refuse_beyond_bound(std::vector<Request>& requests);
  bool run_group(std::vector<Request*>& group);
  void run_alone(Request& request);
  void respond(std::vector<Request*>& group, const std::vector<std::string>& wanted, const std::vector<Value>& outputs,
               const std::vector<std::vector<int64_t>>& shapes);
  std::vector<std::string> with_states(std::vector<std::string> wanted) const;
  Value joined(size_t index, const std::vector<Request*>& group);
  void finish(Request& request, const Times& times);
  std::vector<Value> compute(const std::vector<Request*>& group, const std::vector<std::string>& wanted);

  const Model& model_;
  TRITONBACKEND_ModelInstance* instance_;
  Times times_{};
  std::vector<std::vector<char>> buffers_;  // by input, for values that must be joined
};
