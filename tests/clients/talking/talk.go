// Asks what each line of stdin says, by net/http, and answers with a line.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

type question struct {
	Method, URL string
	Headers     map[string]string
	Body        []byte
	TimeoutMS   int `json:"timeout_ms"`
}

func ask(asked question) map[string]any {
	client := http.Client{Timeout: time.Duration(asked.TimeoutMS) * time.Millisecond}
	request, err := http.NewRequest(asked.Method, asked.URL, bytes.NewReader(asked.Body))
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	for name, value := range asked.Headers {
		request.Header.Set(name, value)
	}
	found, err := client.Do(request)
	if err != nil {
		return failed(err)
	}
	defer found.Body.Close()
	body, err := io.ReadAll(found.Body)
	if err != nil {
		return failed(err)
	}
	headers := map[string]string{}
	for name := range found.Header {
		headers[name] = found.Header.Get(name)
	}
	return map[string]any{"status": found.StatusCode, "headers": headers, "body": body}
}

func failed(err error) map[string]any {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return map[string]any{"late": true}
	}
	return map[string]any{"error": err.Error()}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		line, err := json.Marshal(ask(asked))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
}
