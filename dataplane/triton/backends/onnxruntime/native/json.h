// JSON as Triton writes and reads configurations. Numbers keep their text, objects their order.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

class Json {
 public:
  enum Kind { kNull, kBool, kNumber, kText, kList, kObject };

  Json() = default;
  static Json text(std::string value);
  static Json number(int64_t value);
  static Json list();
  static Json object();
  // Throws std::runtime_error for what is not JSON.
  static Json parse(const std::string& source);

  Kind kind() const { return kind_; }
  // As in Python: empty, zero and null are false.
  bool truthy() const;
  // Text, or the digits of a number.
  const std::string& string() const { return scalar_; }
  // Triton sometimes writes 64-bit numbers as text. 0: not a number.
  int64_t integer() const;
  const std::vector<Json>& items() const { return items_; }
  const std::vector<std::pair<std::string, Json>>& members() const { return members_; }
  // A member of an object; null: there is none.
  const Json& operator[](const std::string& name) const;
  bool has(const std::string& name) const;
  void set(const std::string& name, Json value);
  void add(Json value) { items_.push_back(std::move(value)); }
  std::string dump() const;

 private:
  friend class JsonReader;
  void write(std::string& out) const;

  Kind kind_ = kNull;
  std::string scalar_;
  std::vector<Json> items_;
  std::vector<std::pair<std::string, Json>> members_;
};
