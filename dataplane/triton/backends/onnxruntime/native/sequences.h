// What sequence_batching asks of a model, as sequences.py has it, and the state that a sequence
// keeps between requests, which Triton stores. Must not know ONNX Runtime.
#pragma once

#include <string>
#include <vector>

#include "json.h"
#include "requests.h"
#include "tensors.h"

// One state of a configuration: the value of ``output`` is the next request's ``input``.
struct State {
  std::string input, output;
  bool zero;            // a sequence begins with zeros: there is no initial_state
  std::string carrier;  // the name under which Triton takes the value
};

struct Sequences {
  SequenceInputs inputs;
  std::vector<std::string> provided;  // inputs that no client sends
  std::vector<State> states;

  bool provides(const std::string& input) const;
  bool keeps(const std::string& output) const;
};

// The names in the configuration. Throws Error for what is not honoured, and for a name that stands
// twice.
Sequences declared_sequences(const Json& config);

// Throws Error where the model does not have a control or a state as the configuration says.
void check_sequences(const Json& config, const std::vector<Tensor>& tensors, bool batching);

// Gives a request that starts a sequence zeros for the states that begin with them. Triton's own
// memory for them holds whatever was there.
void begin_with_zeros(Request& request, const std::vector<Tensor>& inputs, const std::vector<State>& states);

// Where the bytes of a request's next state are to be written. Throws Error.
void* next_state(const Request& request, const State& state, const Type& type, std::vector<int64_t> shape,
                 size_t bytes, TRITONBACKEND_State** handle);
