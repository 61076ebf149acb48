#include "completion.h"

#include <algorithm>
#include <set>

namespace {

constexpr int64_t kDefaultMaxBatchSize = 32;

std::string hinted(const std::string& message, const std::string& hint) { return message + " (" + hint + ")"; }

// The entry of that name; nullptr: there is none.
const Json* find(const Json& entries, const std::string& name) {
  const Json* found = nullptr;
  for (const Json& entry : entries.items()) {
    if (entry["name"].string() == name) found = &entry;
  }
  return found;
}

void refuse_unsupported(const Json& config) {
  auto refuse = [](bool asked, const std::string& words) {
    if (asked) throw Error("config.pbtxt asks for " + words + ", which this backend has not");
  };
  refuse(config["batch_input"].truthy(), "batch_input");
  refuse(config["batch_output"].truthy(), "batch_output");
  refuse(config["model_transaction_policy"]["decoupled"].truthy(), "decoupled answers");
  refuse(config["optimization"]["execution_accelerators"].truthy(), "execution_accelerators");
  refuse(config["model_operations"]["op_library_filename"].truthy(), "op_library_filename");
  for (const Json& entry : config["input"].items()) {
    for (const char* field : {"allow_ragged_batch", "is_shape_tensor", "optional"}) {
      if (entry[field].truthy()) {
        throw Error(std::string("config.pbtxt sets ") + field + " for input '" + entry["name"].string() +
                    "', which this backend has not");
      }
    }
  }
}

void check_names(const Json& entries, const std::vector<Tensor>& tensors, bool input) {
  std::string known;
  for (const Tensor& tensor : tensors) {
    if (tensor.input == input) known += (known.empty() ? "'" : ", '") + tensor.name + "'";
  }
  for (const Json& entry : entries.items()) {
    const std::string& name = entry["name"].string();
    bool there = std::any_of(tensors.begin(), tensors.end(),
                             [&](const Tensor& t) { return t.input == input && t.name == name; });
    if (!there) {
      throw Error(std::string("config.pbtxt names the ") + (input ? "input" : "output") + " '" + name +
                  "', the model has [" + known + "]");
    }
  }
}

bool stands_in(const std::string& symbol, const Shape& shape, size_t from) {
  for (size_t i = from; i < shape.size(); ++i) {
    if (!shape[i].fixed() && shape[i].symbol == symbol) return true;
  }
  return false;
}

// Why the first dimension of all tensors may not be a batch; empty: it is one.
std::string why_not_batched(const std::vector<Tensor>& tensors) {
  if (std::none_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.input; })) {
    return "the model has no input";
  }
  std::set<std::string> symbols;
  for (const Tensor& tensor : tensors) {
    if (tensor.shape.size() < 2) return tensor.shown() + " has no dimension beside a batch";
    const Dimension& first = tensor.shape[0];
    if (first.fixed() || first.symbol.empty()) {
      return "the first dimension of " + tensor.shown() + " is " + (first.fixed() ? "fixed" : "unnamed");
    }
    symbols.insert(first.symbol);
    if (stands_in(first.symbol, tensor.shape, 1)) return first.symbol + " stands twice in " + tensor.shown();
  }
  if (symbols.size() > 1) {
    std::string names;
    for (const std::string& symbol : symbols) names += (names.empty() ? "" : ", ") + symbol;
    return "the first dimensions have different names: " + names;
  }
  return "";
}

void check_batchable(const Tensor& tensor, int64_t max_batch_size) {
  // The file may leave an output's rank open. Then each answer is checked.
  if (tensor.shape.empty() && !tensor.input) return;
  if (tensor.shape.empty() || tensor.shape[0].fixed()) {
    throw Error(hinted("config.pbtxt has max_batch_size " + std::to_string(max_batch_size) + ", but " +
                           tensor.shown() + " has no variable first dimension",
                       "leave max_batch_size out, or export the model with a symbolic first dimension"));
  }
}

// Checks that dims (or the shape of reshape, if any) agree with the model's. Symbols agree with
// everything.
void check_dims(const Tensor& tensor, const Shape& shape, const Json& given) {
  const Json& wanted = given.has("reshape") ? given["reshape"]["shape"] : given["dims"];
  if (tensor.shape.empty() && !tensor.input) return;
  std::vector<int64_t> numbers;
  for (const Json& d : wanted.items()) numbers.push_back(d.integer());
  bool agrees = numbers.size() == shape.size();
  for (size_t i = 0; agrees && i < shape.size(); ++i) agrees = !shape[i].fixed() || shape[i].number == numbers[i];
  if (!agrees) {
    std::string words = "config.pbtxt has dims " + shown(numbers) + " for " + tensor.shown();
    throw Error(hinted(words + ", expected " + shown(shape),
                       "with max_batch_size the first dimension is left out of dims, without it is part of them"));
  }
}

Json entry_of(const Tensor& tensor, const Json* given, bool batching) {
  std::string data_type = triton_type(tensor);
  Json entry = given != nullptr ? *given : Json::object();
  const std::string& wanted = entry["data_type"].string();
  if (!wanted.empty() && wanted != "TYPE_INVALID" && wanted != data_type) {
    throw Error("config.pbtxt has " + wanted + " for " + tensor.kind() + " '" + tensor.name + "', the model " +
                data_type);
  }
  Shape shape(tensor.shape.begin() + (batching && !tensor.shape.empty() ? 1 : 0), tensor.shape.end());
  if (tensor.shape.empty()) {
    // Triton has no tensors without dimensions: a scalar travels as one element. An output without
    // dimensions may also be one whose rank the file leaves open, so it is declared as variable and
    // travels as it is.
    shape.resize(1);
    if (tensor.input) shape[0].number = 1;
  }
  entry.set("name", Json::text(tensor.name));
  entry.set("data_type", Json::text(data_type));
  if (entry["dims"].truthy()) {
    check_dims(tensor, shape, entry);
    return entry;
  }
  Json dims = Json::list();
  for (const Dimension& d : shape) dims.add(Json::number(d.fixed() ? d.number : -1));
  if (shape.empty()) {
    dims.add(Json::number(1));
    Json reshape = Json::object();
    reshape.set("shape", Json::list());
    entry.set("reshape", reshape);
  }
  entry.set("dims", dims);
  return entry;
}

}  // namespace

Completion complete(const Json& config, const std::vector<Tensor>& tensors) {
  refuse_unsupported(config);
  const Json &inputs = config["input"], &outputs = config["output"];
  check_names(inputs, tensors, true);
  check_names(outputs, tensors, false);
  Sequences sequences = declared_sequences(config);
  auto is_for_clients = [&](const Tensor& tensor) {
    if (tensor.input) return !sequences.provides(tensor.name);
    return outputs.truthy() ? find(outputs, tensor.name) != nullptr : !sequences.keeps(tensor.name);
  };
  std::vector<Tensor> served;
  for (const Tensor& tensor : tensors) {
    if (tensor.input || is_for_clients(tensor) || sequences.keeps(tensor.name)) served.push_back(tensor);
  }
  auto gives_dims = [](const Json& entries) {
    const auto& items = entries.items();
    return std::any_of(items.begin(), items.end(), [](const Json& entry) { return entry["dims"].truthy(); });
  };
  Completion made{config["max_batch_size"].integer(), Json::list(), Json::list(), "", sequences};
  if (made.max_batch_size != 0) {
    made.remark = "batches up to " + std::to_string(made.max_batch_size) + ", as config.pbtxt says";
    for (const Tensor& tensor : served) check_batchable(tensor, made.max_batch_size);
  } else if (gives_dims(inputs) || gives_dims(outputs)) {
    made.remark = "no batching, as config.pbtxt gives dims without max_batch_size";
  } else if (std::string doubt = why_not_batched(served); !doubt.empty()) {
    made.remark = "no batching, because " + doubt;
  } else {
    made.max_batch_size = kDefaultMaxBatchSize;
    made.remark = "batches up to " + std::to_string(made.max_batch_size) + " along " + served[0].shape[0].symbol;
  }
  check_sequences(config, tensors, made.max_batch_size > 0);
  for (bool input : {true, false}) {
    for (const Tensor& tensor : served) {
      if (tensor.input != input || !is_for_clients(tensor)) continue;
      Json entry = entry_of(tensor, find(input ? inputs : outputs, tensor.name), made.max_batch_size > 0);
      (input ? made.inputs : made.outputs).add(std::move(entry));
    }
  }
  return made;
}
