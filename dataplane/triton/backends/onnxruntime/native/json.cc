#include "json.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

class JsonReader {
 public:
  explicit JsonReader(const std::string& source) : at_(source.data()), end_(at_ + source.size()) {}

  Json whole() {
    Json found = value(0);
    skip();
    if (at_ != end_) fail();
    return found;
  }

 private:
  static constexpr int kDepth = 200;

  [[noreturn]] static void fail() { throw std::runtime_error("this is not JSON"); }

  void skip() {
    while (at_ != end_ && std::strchr(" \t\r\n", *at_) != nullptr && *at_ != '\0') ++at_;
  }

  char peek() {
    skip();
    if (at_ == end_) fail();
    return *at_;
  }

  void expect(char wanted) {
    if (peek() != wanted) fail();
    ++at_;
  }

  Json value(int depth) {
    if (depth > kDepth) fail();
    Json found;
    switch (peek()) {
      case '{':
        found.kind_ = Json::kObject;
        ++at_;
        if (peek() == '}') return ++at_, found;
        for (;;) {
          peek();
          std::string name = text();
          expect(':');
          found.members_.emplace_back(std::move(name), value(depth + 1));
          if (peek() == '}') return ++at_, found;
          expect(',');
        }
      case '[':
        found.kind_ = Json::kList;
        ++at_;
        if (peek() == ']') return ++at_, found;
        for (;;) {
          found.items_.push_back(value(depth + 1));
          if (peek() == ']') return ++at_, found;
          expect(',');
        }
      case '"':
        found.kind_ = Json::kText;
        found.scalar_ = text();
        return found;
      default:
        return word();
    }
  }

  Json word() {
    Json found;
    auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.'; };
    while (at_ != end_ && part(*at_)) found.scalar_ += *at_++;
    const std::string& word = found.scalar_;
    if (word.empty()) fail();
    if (word == "null") return Json();
    bool truth = word == "true" || word == "false";
    if (!truth && std::strchr("-0123456789", word[0]) == nullptr) fail();
    found.kind_ = truth ? Json::kBool : Json::kNumber;
    return found;
  }

  unsigned code_unit() {
    if (end_ - at_ < 4) fail();
    unsigned unit = 0;
    for (int i = 0; i < 4; ++i) {
      char c = *at_++;
      if (!std::isxdigit(static_cast<unsigned char>(c))) fail();
      unit = unit * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return unit;
  }

  static void append(std::string& out, unsigned point) {
    if (point < 0x80) {
      out += static_cast<char>(point);
    } else if (point < 0x800) {
      out += static_cast<char>(0xC0 | point >> 6);
      out += static_cast<char>(0x80 | (point & 63));
    } else if (point < 0x10000) {
      out += static_cast<char>(0xE0 | point >> 12);
      out += static_cast<char>(0x80 | (point >> 6 & 63));
      out += static_cast<char>(0x80 | (point & 63));
    } else {
      out += static_cast<char>(0xF0 | point >> 18);
      out += static_cast<char>(0x80 | (point >> 12 & 63));
      out += static_cast<char>(0x80 | (point >> 6 & 63));
      out += static_cast<char>(0x80 | (point & 63));
    }
  }

  std::string text() {
    static const char* const kShort = "\"\\/bfnrt";
    static const char* const kMeant = "\"\\/\b\f\n\r\t";
    if (at_ == end_ || *at_++ != '"') fail();
    std::string out;
    while (at_ != end_ && *at_ != '"') {
      char c = *at_++;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ == end_) fail();
      char escape = *at_++;
      if (escape == 'u') {
        unsigned point = code_unit();
        if (point >= 0xD800 && point < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
          at_ += 2;
          point = 0x10000 + ((point - 0xD800) << 10) + (code_unit() - 0xDC00);
        }
        append(out, point);
      } else {
        const char* place = escape == '\0' ? nullptr : std::strchr(kShort, escape);
        if (place == nullptr) fail();
        out += kMeant[place - kShort];
      }
    }
    if (at_ == end_) fail();
    ++at_;
    return out;
  }

  const char* at_;
  const char* end_;
};

Json Json::parse(const std::string& source) { return JsonReader(source).whole(); }

Json Json::text(std::string value) {
  Json made;
  made.kind_ = kText;
  made.scalar_ = std::move(value);
  return made;
}

Json Json::number(int64_t value) {
  Json made;
  made.kind_ = kNumber;
  made.scalar_ = std::to_string(value);
  return made;
}

Json Json::list() {
  Json made;
  made.kind_ = kList;
  return made;
}

Json Json::object() {
  Json made;
  made.kind_ = kObject;
  return made;
}

bool Json::truthy() const {
  switch (kind_) {
    case kNull: return false;
    case kBool: return scalar_ == "true";
    case kNumber: return std::strtod(scalar_.c_str(), nullptr) != 0;
    case kText: return !scalar_.empty();
    case kList: return !items_.empty();
    default: return !members_.empty();
  }
}

int64_t Json::integer() const { return std::strtoll(scalar_.c_str(), nullptr, 10); }

const Json& Json::operator[](const std::string& name) const {
  static const Json kNothing;
  for (const auto& member : members_) {
    if (member.first == name) return member.second;
  }
  return kNothing;
}

bool Json::has(const std::string& name) const {
  for (const auto& member : members_) {
    if (member.first == name) return true;
  }
  return false;
}

void Json::set(const std::string& name, Json value) {
  for (auto& member : members_) {
    if (member.first == name) {
      member.second = std::move(value);
      return;
    }
  }
  members_.emplace_back(name, std::move(value));
}

std::string Json::dump() const {
  std::string out;
  write(out);
  return out;
}

static void write_text(const std::string& value, std::string& out) {
  out += '"';
  for (char c : value) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  out += '"';
}

void Json::write(std::string& out) const {
  const char* between = "";
  switch (kind_) {
    case kNull:
      out += "null";
      break;
    case kText:
      write_text(scalar_, out);
      break;
    case kList:
      out += '[';
      for (const Json& item : items_) {
        out += between;
        item.write(out);
        between = ",";
      }
      out += ']';
      break;
    case kObject:
      out += '{';
      for (const auto& member : members_) {
        out += between;
        write_text(member.first, out);
        out += ':';
        member.second.write(out);
        between = ",";
      }
      out += '}';
      break;
    default:
      out += scalar_;
  }
}
